"""Charts over time run forward when the clock is set, and call no two moments by one name."""

from datetime import UTC, datetime, timedelta

import numpy as np
import plotly.graph_objects as go
import pytest

from candor.data.times import TimeAxis
from candor.explain.overview import Forecasts, Outlook
from candor.explain.pictures import ComponentPicture
from candor.render.report.charts import draw_gates, draw_outlook, use_moments

AUTUMN, SPRING = datetime(2024, 11, 3, 7, tzinfo=UTC), datetime(2024, 3, 10, 8, tzinfo=UTC)  # midnight in Los Angeles


def moments(start: datetime, length: int, interval: timedelta = timedelta(minutes=30)) -> list[datetime]:
    return list(TimeAxis(start, interval, length, "America/Los_Angeles").local.to_pydatetime())


@pytest.mark.parametrize("start", [AUTUMN, SPRING])
def test_readings_and_forecasts_stand_one_step_apart_whatever_the_clock_does(start: datetime) -> None:
    times, heights = moments(start, 10), np.zeros((10, 2))
    known, ahead = (Forecasts(times[part], heights[part], None, None) for part in (slice(3, 6), slice(6, 10)))
    figure = draw_outlook(Outlook(times[:6], heights[:6], known, ahead), 0).figure
    axis = figure.layout.xaxis
    at = {trace.name: [axis.categoryarray.index(name) for name in trace.x] for trace in figure.data}
    assert at == {
        "last forecast with known outcome": [3, 4, 5], "next forecast": [6, 7, 8, 9], "readings": [0, 1, 2, 3, 4, 5],
    }  # fmt: skip
    assert axis.type == "category" and len(set(axis.categoryarray)) == 10
    assert axis.range[0] < 0 and axis.range[1] > 9


def test_the_hour_that_is_there_twice_is_told_apart_under_the_axis_and_to_the_mouse() -> None:
    figure = go.Figure()
    names = list(use_moments(figure, moments(AUTUMN, 8)).values())
    offsets = ["", "", *["UTC−07:00"] * 2, *["UTC−08:00"] * 2, "", ""]
    hours = ["00:00", "00:30", *["01:00", "01:30"] * 2, "02:00", "02:30"]
    assert names == [f"03 Nov 2024 {hour} {offset}".strip() for hour, offset in zip(hours, offsets, strict=True)]
    axis = figure.layout.xaxis
    ticks = {round(place): text for place, text in zip(axis.tickvals, axis.ticktext, strict=True)}
    assert ticks == {
        0: "03 Nov<br>00:00", 6: "03 Nov<br>02:00",
        2: "03 Nov<br>01:00<br>UTC−07:00", 4: "03 Nov<br>01:00<br>UTC−08:00",
    }  # fmt: skip
    width = axis.range[1] - axis.range[0]  # nearer than this, plotly gives the mouse the text of the tick
    assert all(width / 10_000 < abs(place - round(place)) < width / 1000 for place in axis.tickvals)


def test_seconds_are_told_where_readings_are_less_than_minutes_apart() -> None:
    figure = go.Figure()
    names = list(use_moments(figure, moments(AUTUMN, 5, timedelta(seconds=10))).values())
    assert names[:2] == ["03 Nov 2024 00:00:00", "03 Nov 2024 00:00:10"]
    assert figure.layout.xaxis.ticktext[1] == "03 Nov<br>00:00:10"
    assert figure.layout.xaxis.title.text == "local time (America/Los_Angeles), 2024"


def test_patches_of_both_hours_keep_their_own_places() -> None:
    times = moments(AUTUMN, 9)
    components = ComponentPicture("", times[:8:2], times[1::2], {}, {"release": np.ones((1, 4))})
    (trace,) = draw_gates(components, 0).figure.data
    assert list(trace.x)[1:3] == [
        "03 Nov 01:00 UTC−07:00 – 03 Nov 01:30 UTC−07:00", "03 Nov 01:00 UTC−08:00 – 03 Nov 01:30 UTC−08:00",
    ]  # fmt: skip
    assert len(set(trace.x)) == 4
