"""Every figure can be read, shows the numbers that lie beside it, and is written whole or not at all."""

import math
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import FancyArrowPatch
from pictures import assert_texts_stand_apart

from candor.core.errors import InputError
from candor.core.text import sensor_label
from candor.explain.pictures import (
    ComponentPicture,
    EdgePicture,
    Epoch,
    ForecastPicture,
    TrainingPicture,
    WeightedEdges,
)
from candor.render.figures.benchmark import draw_changes
from candor.render.figures.explore import LagPicture, _draw_lags
from candor.render.figures.forecast import draw_components, draw_forecast
from candor.render.figures.learned import draw_fusions, draw_training
from candor.render.figures.maps import draw_edges
from candor.render.figures.style import Drawing, new_figure, on_axis, plain
from candor.research.ablations import Change

LONG = sensor_label("420853121505501", "Klamath River at Miller Island Boat Ramp, far below the surface")
COMPONENTS = ("background", "accumulation", "release", "shock")
GATES = ("accumulation", "release", "shock, against this background", "shock, against the next")


def moments(first: str, count: int, frequency: str, zone: str = "Europe/Berlin") -> list[datetime]:
    start = pd.Timestamp(first).tz_localize(zone, ambiguous=True)  # where the clock showed it twice, the first time
    return list(pd.date_range(start, periods=count, freq=frequency).to_pydatetime())


def forecast_picture(frequency: str = "h", first: str = "2024-10-25 20:00", sensor: str = LONG) -> ForecastPicture:
    times = moments(first, 60, frequency)
    values = 10 + np.sin(np.arange(60) / 3)
    past = np.where(np.arange(40) % 7 == 3, np.nan, values[:40])
    forecast = values[40:] + 0.1
    return ForecastPicture(sensor, "mg/L", times[:40], past, times[40:], forecast, forecast - 1, forecast + 2, 0.9)


def scaled_picture(level: float, size: float) -> ForecastPicture:
    """Returns the same forecast in another unit, or above another zero."""
    picture = forecast_picture()
    parts = {name: level + size * getattr(picture, name) for name in ("past", "forecast", "lower", "upper")}
    return replace(picture, **parts)


def component_picture(frequency: str = "h", patches: int = 23, first: str = "2024-10-25") -> ComponentPicture:
    times, chance = moments(first, 4 * patches + 4, frequency), np.random.default_rng(0)
    return ComponentPicture(
        LONG, times[: 4 * patches : 4], times[7::4][:patches],
        {name: chance.random(patches) for name in COMPONENTS}, {name: chance.random(patches) for name in GATES},
    )  # fmt: skip


def edge_picture(count: int = 12, has_places: bool = True, density: float = 0.3) -> EdgePicture:
    chance = np.random.default_rng(1)
    sender, receiver = np.nonzero(chance.random((count, count)) < density)
    weight = chance.random(len(sender))
    places = chance.random((count, 2)) * [0.3, 0.2] + [-122, 42]
    places[1], places[3] = places[0], places[2] + 1e-4
    return EdgePicture(
        [f"g{i}" for i in range(count)], [LONG[8:]] * count, places if has_places else None,
        {"forward": WeightedEdges(sender, receiver, weight), "reverse": WeightedEdges(receiver, sender, weight)},
        "Width: share among all a sensor hears from, mean over 200 windows.",
    )  # fmt: skip


EPOCHS = [Epoch(number, 2 / (number + 1), 1 + (number - 20) ** 2 / 400, min(12, number + 1)) for number in range(60)]

BRANCHES = ("functional", "forward", "reverse")
SYSTEMS = {
    system: {name: (mean, mean - 0.1, mean + 0.1) for name, mean in zip(BRANCHES, means, strict=True)}
    for system, means in {"metr-la": (0.4, 0.35, 0.25), "korea4-do-192": (0.7, 0.1, 0.2)}.items()
}
METRICS = ("mae", "rmse", "mape", "mse")
CHANGES = {
    variant: {
        f"{task}, {metric}": Change(variant, metric, 0.123, 3, True)
        for task in ("metr-la", "korea4-do-192")
        for metric in METRICS
    }
    for variant in ("w/o Decomp.", "w/o Aux. loss", "avg Fusion")
}
SIZED = {
    variant: {metric: Change(variant, metric, -0.05, 3, False, 898_566) for metric in METRICS}
    for variant in ("w/o Physical", "RainAdd")
}

DRAWINGS = {
    "forecast of hours": lambda: draw_forecast(forecast_picture()),
    "forecast when the clock is set back": lambda: draw_forecast(forecast_picture("5min", "2024-10-27 00:30")),
    "forecast of days": lambda: draw_forecast(forecast_picture("D", "2024-12-01")),
    "forecast of months": lambda: draw_forecast(forecast_picture("MS", "2020-01-01")),
    "forecast of dust in kg/m3": lambda: draw_forecast(scaled_picture(0.0, 2e-9)),
    "components when the clock is set back": lambda: draw_components(component_picture("5min", 8, "2024-10-27 02:00")),
    "components of days": lambda: draw_components(component_picture("D", 8)),
    "components of one patch": lambda: draw_components(component_picture("D", 1)),
    "edges on a map": lambda: draw_edges(edge_picture()),
    "edges of many sensors": lambda: draw_edges(edge_picture(35, density=0.05)),
    "fusion of systems": lambda: draw_fusions(SYSTEMS),
    "ablations of two tasks": lambda: draw_changes(CHANGES, "CANDOR without its parts", "Dot: beyond chance."),
    "ablations with sizes": lambda: draw_changes(SIZED, "CANDOR without its parts", "Dot: beyond chance."),
    "training": lambda: draw_training(TrainingPicture(EPOCHS, "mg/L")),
    "training of one epoch": lambda: draw_training(TrainingPicture(EPOCHS[:1], "")),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_text_leaves_the_figure_or_lies_on_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = DRAWINGS[name]().figure
    assert figure.canvas.get_width_height()[0] == 1200
    assert_texts_stand_apart(figure, monkeypatch)


@pytest.mark.parametrize(("level", "size"), [(4139.0, 0.01), (0.0, 2e-9), (101_000.0, 30.0)])
def test_ticks_are_the_readings_themselves(level: float, size: float) -> None:
    axes = draw_forecast(scaled_picture(level, size)).figure.axes[0]
    axes.figure.draw_without_rendering()
    shown = [float(label.get_text().replace("\N{MINUS SIGN}", "-")) for label in axes.get_yticklabels()]
    np.testing.assert_allclose(shown, axes.get_yticks(), atol=size / 100)
    assert len(set(shown)) == len(shown) > 3


def test_files_are_whole_and_the_same_whenever_they_are_written(tmp_path: Path) -> None:
    first, second = (draw_edges(edge_picture(4)).write(tmp_path / place, "figure") for place in ("one", "two"))
    assert [path.name for path in first] == ["figure.png", "figure.svg", "figure.csv"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert sorted((tmp_path / "one").iterdir()) == sorted(first)
    assert int.from_bytes(first[0].read_bytes()[16:20]) == 1200  # where a PNG says how wide it is
    assert ElementTree.parse(first[1]).getroot().tag.endswith("svg")


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="could not be written") as refused:
        draw_training(TrainingPicture(EPOCHS, "m")).write(tmp_path / "file", "training")
    assert "file" in refused.value.where


def read_back(drawing: Drawing, folder: Path) -> pd.DataFrame:
    return pd.read_csv(drawing.write(folder, "figure")[2])


@pytest.mark.usefixtures("no_pictures")
def test_the_table_of_a_forecast_holds_its_lines_on_the_local_clock(tmp_path: Path) -> None:
    picture = forecast_picture()  # in its nights the clock is set back
    drawing = draw_forecast(picture)
    table = read_back(drawing, tmp_path)
    seconds = [datetime.fromisoformat(text).timestamp() for text in table.time]
    assert seconds == [moment.timestamp() for moment in (*picture.past_times, *picture.times)]
    assert len(set(table.time)) == 60 and {text[-6:] for text in table.time} == {"+01:00", "+02:00"}
    np.testing.assert_array_equal(table.reading[:40], picture.past)
    np.testing.assert_array_equal(table.forecast[40:], picture.forecast)
    assert table.reading[40:].isna().all() and table.forecast[:40].isna().all()
    (axes,) = drawing.figure.axes
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["forecast"], picture.forecast)
    assert "what happened" not in lines


def test_ticks_stand_at_round_times_of_the_local_clock() -> None:
    picture = forecast_picture(first="2024-03-30 20:00")  # in the next night the clock is set forward
    (axes,) = draw_forecast(picture).figure.axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    zone = picture.times[0].tzinfo
    for place, label in zip(axes.get_xticks(), labels, strict=True):
        moment = datetime.strptime(f"2024 {label}", "%Y %d %b\n%H:%M").replace(tzinfo=zone)
        assert on_axis([moment])[0] == pytest.approx(place)
        assert moment.hour % 6 == 0 and moment.minute == 0
    assert len(labels) >= 4
    assert "Europe/Berlin" in axes.get_xlabel() and "2024" in axes.get_xlabel()


def test_both_hours_of_autumn_have_their_place_and_their_ticks() -> None:
    picture = forecast_picture("2min", "2024-10-27 01:30")  # it ends in the second hour from 2 to 3
    (axes,) = draw_forecast(picture).figure.axes
    at = np.concatenate([line.get_xdata() for line in axes.get_lines() if line.get_label() in ("readings", "forecast")])
    np.testing.assert_allclose(np.diff(at), 2 / (24 * 60))
    low, high = axes.get_xlim()
    assert low < at[0] and at[-1] < high
    shown = [label.get_text().split("\n")[1:] for label in axes.get_xticklabels()]
    assert shown[:3] == [["01:30"], ["01:45"], ["02:00", "UTC+02:00"]]
    assert shown[-3:] == [["02:45", "UTC+02:00"], ["02:00", "UTC+01:00"], ["02:15", "UTC+01:00"]]
    np.testing.assert_allclose(np.diff(axes.get_xticks()), 15 / (24 * 60))  # also where the clock is set


def test_seconds_stand_at_ticks_that_are_less_than_minutes_apart() -> None:
    for frequency, first in (("s", ["20:00:00", "20:00:10"]), ("10s", ["20:00", "20:02"])):
        (axes,) = draw_forecast(forecast_picture(frequency)).figure.axes
        assert [label.get_text().split("\n")[1] for label in axes.get_xticklabels()][:2] == first
    table = pd.DataFrame({"distance": [np.nan], "lag_steps": [3], "is_clear": [True]})
    lags = LagPicture(table, None, timedelta(seconds=10))
    axes = new_figure("").subplots()
    _draw_lags(axes, lags)
    assert "[seconds]" in axes.get_xlabel()
    assert any(bar.get_x() < 30 < bar.get_x() + bar.get_width() and bar.get_height() for bar in axes.patches)


@pytest.mark.usefixtures("no_pictures")
def test_every_strength_stands_at_its_own_height_and_patches_are_told_apart(tmp_path: Path) -> None:
    picture = component_picture("5min", 6, "2024-10-27 02:20")
    drawing = draw_components(picture)
    strengths, gates = drawing.figure.axes
    for line, (name, values) in zip(strengths.get_lines(), picture.strengths.items(), strict=True):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert not strengths.patches and "stacked" not in strengths.get_ylabel()
    labels = [label.get_text() for label in gates.get_xticklabels()]
    assert labels[0] == "27 Oct 02:20\nUTC+02:00\nto 27 Oct 02:55\nUTC+02:00"
    assert len(set(labels)) == 6
    table = read_back(drawing, tmp_path)
    np.testing.assert_array_equal(table["shock strength"], picture.strengths["shock"])
    np.testing.assert_array_equal(table["release gate"], picture.gates["release"])


@pytest.mark.usefixtures("no_pictures")
def test_systems_stand_beside_each_other_with_their_ranges(tmp_path: Path) -> None:
    systems = {
        "road": {"functional": (0.3, 0.2, 0.4), "forward": (0.7, 0.6, 0.8)},
        "river": {"functional": (0.9, 0.8, 1.0), "reverse": (0.1, 0.0, 0.2)},
    }
    drawing = draw_fusions(systems)
    table = read_back(drawing, tmp_path).set_index(["system", "branch"])
    assert table.loc[("river", "reverse")].tolist() == [0.1, 0.0, 0.2] and len(table) == 4
    (axes,) = drawing.figure.axes
    means = {line.get_label().split(":")[0]: list(line.get_xdata()) for line in axes.lines}
    assert means == {"functional": [0.3, 0.9], "forward": [0.7], "reverse": [0.1]}
    assert [label.get_text() for label in axes.get_yticklabels()] == list(systems)


@pytest.mark.parametrize("has_places", [True, False])
def test_arrows_point_from_sender_to_receiver_and_are_wide_where_weights_are(has_places: bool) -> None:
    picture = edge_picture(has_places=has_places)
    drawing = draw_edges(picture)
    for axes, direction in zip(drawing.figure.axes, ("forward", "reverse"), strict=False):
        points = np.asarray(axes.collections[0].get_offsets())
        edges = picture.edges[direction]
        other = edges.sender != edges.receiver
        ends = {
            (s, r): w for s, r, w in zip(edges.sender[other], edges.receiver[other], edges.weight[other], strict=True)
        }
        arrows = [arrow for arrow in axes.get_children() if isinstance(arrow, FancyArrowPatch)]
        found = {}
        for arrow in arrows:
            start, end = arrow._posA_posB
            places = [int(np.linalg.norm(points - place, axis=1).argmin()) for place in (start, end)]
            found[places[0], places[1]] = arrow.get_linewidth()
        assert found.keys() == ends.keys()
        by_weight = sorted(ends, key=ends.__getitem__)
        assert by_weight == sorted(found, key=found.__getitem__)
    assert len(drawing.table) == 2 * len(picture.edges["forward"].weight)


def test_the_map_keeps_north_up_and_east_to_the_right() -> None:
    picture = edge_picture(35, density=0.05)  # so many are not moved apart
    points = np.asarray(draw_edges(picture).figure.axes[0].collections[0].get_offsets())
    for axis in (0, 1):
        assert picture.places is not None
        np.testing.assert_array_equal(np.argsort(points[:, axis]), np.argsort(picture.places[:, axis]))
    span = np.ptp(picture.places, axis=0)
    shape = np.ptp(points, axis=0)
    assert shape[1] / shape[0] == pytest.approx(span[1] / (span[0] * np.cos(np.radians(42.1))), rel=1e-2)


def test_of_very_many_edges_the_heaviest_are_shown_and_the_reader_is_told() -> None:
    picture = edge_picture(40, density=0.5)
    drawing = draw_edges(picture)
    arrows = [arrow for arrow in drawing.figure.axes[0].get_children() if isinstance(arrow, FancyArrowPatch)]
    edges = picture.edges["forward"]
    assert len(arrows) == 400 and (edges.sender == edges.receiver).any()  # what a sensor hears from itself is no arrow
    assert "heaviest 400" in drawing.figure.get_supxlabel()
    assert len(drawing.table) == 2 * len(edges.weight) > 1000


def test_a_direction_that_the_network_does_not_have_leaves_its_place_empty() -> None:
    picture = edge_picture()
    drawing = draw_edges(replace(picture, edges={"forward": picture.edges["forward"]}))
    assert [axes.axison for axes in drawing.figure.axes] == [False, False, False]


@pytest.mark.usefixtures("no_pictures")
def test_a_table_that_belongs_to_no_figure_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("from,to\na,b\n")
    drawing = draw_edges(edge_picture(4))
    with pytest.raises(InputError, match=r"would replace edges\.csv, which belongs to no figure"):
        drawing.write(tmp_path, "edges")
    assert [file.name for file in tmp_path.iterdir()] == ["edges.csv"]
    assert (tmp_path / "edges.csv").read_text() == "from,to\na,b\n"
    for _ in range(2):  # its own it may replace
        assert len(drawing.write(tmp_path, "heard")) == 3


def test_names_are_never_read_as_formulas_and_letters_without_a_glyph_do_no_harm() -> None:
    drawing = draw_forecast(forecast_picture(sensor=sensor_label("g$1", "Rio $\\alpha$ 한강")))
    drawing.figure.draw_without_rendering()  # a warning would be an error
    assert drawing.figure.get_suptitle() == "Forecast for Rio \\$\\alpha\\$ (g\\$1)"
    shown = {
        "Seosang / 서상 (S1)": "Seosang (S1)",
        "서상 / Seosang": "Seosang",
        "서상": "??",
        "a한b": "a?b",
        "a  b": "a  b",
    }
    assert {text: plain(text) for text in shown} == shown


@pytest.mark.slow
def test_drawing_leaves_no_trace_in_the_global_state(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    draw_training(TrainingPicture(EPOCHS, "m")).write(tmp_path, "training")
    assert dict(matplotlib.rcParams) == before
    code = "import candor.render.figures.gallery, sys; assert 'matplotlib.pyplot' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_validation_error_the_latest_weights_are_ringed() -> None:
    drawn = draw_training(TrainingPicture([Epoch(0, 2.0, math.nan, 4), Epoch(1, 1.0, math.nan, 4)], "mph"))
    texts = [text.get_text() for text in drawn.figure.axes[0].get_legend().get_texts()]
    assert "weights kept: epoch 2" in texts
    judged = draw_training(TrainingPicture([Epoch(0, 2.0, 3.0, 4), Epoch(1, 1.0, math.nan, 4)], "mph"))
    texts = [text.get_text() for text in judged.figure.axes[0].get_legend().get_texts()]
    assert "weights kept: epoch 1, 3 mph" in texts
