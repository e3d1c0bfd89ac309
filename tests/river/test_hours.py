"""The hourly grid: the reading nearest the hour, each reading at one hour at most, nothing invented."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from usgs_answers import transcoded

from candor.data.times import TimeAxis
from candor.river.hours import on_grid

START = datetime(2021, 5, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hourly(minutes: list[float], values: list[float], hours: int = 4, how: str = "nearest") -> list[float | None]:
    """Returns the value of each hour for readings at minutes after the start; None where there is none."""
    times = np.array([np.datetime64("2021-05-01", "us") + np.timedelta64(round(60e6 * m), "us") for m in minutes])
    found = on_grid(times, np.array(values), TimeAxis(START, HOUR, hours), how)  # type: ignore[arg-type]
    return [None if np.isnan(value) else float(value) for value in found]


@pytest.mark.parametrize(
    ("minutes", "values", "expected"),
    [
        ([0, 60, 120, 180], [1, 2, 3, 4], [1, 2, 3, 4]),
        ([58, 61, 75], [1, 2, 3], [None, 2, None, None]),  # the nearest, not the first or the last
        ([50, 70], [1, 2], [None, 1, None, None]),  # equally near: the earlier
        ([30], [1], [None, 1, None, None]),  # half an interval before the hour belongs to it
        ([29.999], [1], [1, None, None, None]),
        ([-30, 209.999], [1, 2], [1, None, None, 2]),
        ([-30.001, 210], [1, 2], [None, None, None, None]),  # beyond the period
        ([], [], [None, None, None, None]),
    ],
)
def test_an_hour_takes_the_reading_nearest_to_it(minutes, values, expected) -> None:
    assert hourly(minutes, values) == expected


def test_the_mean_takes_all_readings_of_the_hour() -> None:
    assert hourly([30, 60, 89.999, 90, 150], [1, 2, 6, 8, 4], how="mean") == [None, 3, 8, 4]


@given(
    st.lists(st.tuples(st.integers(-90, 400), st.integers(0, 50)), unique_by=lambda pair: pair[0], max_size=40),
    st.sampled_from(["nearest", "mean"]),
)
def test_the_grid_agrees_with_looking_at_every_reading_for_every_hour(pairs, how) -> None:
    pairs = sorted(pairs)
    found = hourly([minute for minute, _ in pairs], [float(value) for _, value in pairs], 5, how)
    for hour in range(5):
        near = [(minute, value) for minute, value in pairs if -30 <= minute - 60 * hour < 30]
        if not near:
            assert found[hour] is None
        elif how == "mean":
            assert found[hour] == pytest.approx(np.mean([value for _, value in near]))
        else:
            assert found[hour] == min(near, key=lambda pair: (abs(pair[0] - 60 * hour), pair[0]))[1]


def test_sensors_of_different_intervals_share_the_grid() -> None:
    observations = transcoded("iv_mixed_frequency")
    axis = TimeAxis(datetime(2018, 6, 1, 4, tzinfo=UTC), HOUR, 24, "America/New_York")
    for site, interval in (("USGS-01541000", 15), ("USGS-01570500", 30)):
        sent = [one for one in observations if (one.site, one.parameter) == (site, "00060")]
        assert sent[1].time - sent[0].time == timedelta(minutes=interval)
        times = np.array([one.time.astimezone(UTC).replace(tzinfo=None) for one in sent], "datetime64[us]")
        found = on_grid(times, np.array([float(one.value) for one in sent]), axis, "nearest")
        assert found.tolist() == [float(one.value) for one in sent if one.time.minute == 0]


def test_the_hours_of_daylight_saving_days_follow_the_readings_on_both_clocks() -> None:
    for name, local_hours in (("iv_dst_start_20180311", 23), ("iv_dst_end_20181104", 25)):
        sent = transcoded(name)
        axis = TimeAxis(sent[0].time.astimezone(UTC), HOUR, len(sent) // 4, "America/New_York")
        times = np.array([one.time.astimezone(UTC).replace(tzinfo=None) for one in sent], "datetime64[us]")
        found = on_grid(times, np.array([float(one.value) for one in sent]), axis, "nearest")
        assert found.tolist() == [float(one.value) for one in sent if one.time.minute == 0]
        days = axis.local.strftime("%Y-%m-%d").value_counts()
        assert sorted(days) == sorted([24, 24, local_hours])
