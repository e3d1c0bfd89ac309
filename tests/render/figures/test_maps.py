"""The map of a river can be read, points the right way, and leaves nothing out without saying so."""

from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from candor.cli import run
from candor.core.errors import InputError
from candor.data.catalog import load_dataset
from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis
from candor.explain.places import picture_river_map
from candor.render.figures import labels
from candor.render.figures.maps import draw_river_map
from candor.render.figures.style import Drawing

Places = dict[str, tuple[float, float]]  # longitude, latitude
FORK: Places = {"a": (-122.3, 42.4), "b": (-121.9, 42.5), "c": (-122.1, 42.2), "d": (-122.2, 42.0)}
FORK_WAYS = ("ac", "bc", "cd", "ad", "bd")


def map_of(panel: Panel) -> Drawing:
    return draw_river_map(picture_river_map(panel))


def network(ways: tuple[str, ...], places: Places | None = None, names: str = "", count: int = 0) -> Panel:
    ids = sorted(places) if places else sorted(set("".join(ways)))
    ids += [f"more {number}" for number in range(count)]
    position = {name: place for place, name in enumerate(ids)}
    sensors = [Sensor(i, f"{names} {i}" if names else "", *reversed((places or {}).get(i, (None, None)))) for i in ids]
    ends = np.array([(position[way[0]], position[way[1]]) for way in ways], np.int32).reshape(-1, 2)
    return Panel(
        values=np.zeros((1, len(ids)), np.float32),
        times=TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 1),
        sensors=tuple(sensors),
        edges=Edges(ends[:, 0], ends[:, 1], distance=np.ones(len(ends), np.float32), distance_unit="km"),
        name="creek",
    )


def crowded(count: int, names: str, spread: float = 0.2) -> Panel:
    """A chain of sensors scattered over some kilometres."""
    chance = np.random.default_rng(count)
    letters = "".join(chr(ord("A") + number) for number in range(count))
    places = {letter: tuple(chance.random(2) * spread + [-122, 42]) for letter in letters}
    return network(tuple(a + b for a, b in pairwise(letters)), places, names)


CHAIN = "abcdefghijklmnop"
CHAIN_WAYS = tuple(one + other for one, other in pairwise(CHAIN))
LONG = "Klamath River at Miller Island Boat Ramp, far below the surface,"
PANELS = {
    "klamath": lambda: load_dataset("klamath-daily"),
    "a fork": lambda: network(FORK_WAYS, FORK, "Creek at"),
    "without places": lambda: network(FORK_WAYS, names="Creek at"),
    "a circle without places": lambda: network(("ab", "bc", "ca", "cb"), names="Road"),
    "roads to and fro": lambda: network(("ab", "ba", "bc", "cb", "ca"), FORK, "Road"),
    "one sensor": lambda: network((), {"a": (8.5, 47.4)}, "Alone"),
    "all at one place": lambda: network(("ab", "bc"), dict.fromkeys("abc", (8.5, 47.4)), "Depth"),
    "a straight river": lambda: network(("ab", "bc"), {"a": (8.0, 47.0), "b": (9.0, 47.0), "c": (10.0, 47.0)}, "Rhine"),
    "a crowd": lambda: crowded(14, LONG),
    "a crowd in one valley": lambda: crowded(16, "Creek at", spread=0.001),
    "a long chain": lambda: network(CHAIN_WAYS, {name: (8 + number / 10, 47.0) for number, name in enumerate(CHAIN)}),
    "many": lambda: crowded(45, LONG),
}


def written(figure: Figure) -> list[tuple[str, Bbox]]:
    """Returns all texts with the boxes they fill, in dots."""
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), Text.get_window_extent(text)) for text in texts]


def places_of(figure: Figure) -> np.ndarray:
    """Returns the middles of the marks, in dots."""
    axes = figure.axes[0]
    return np.concatenate([axes.transData.transform(marks.get_offsets()) for marks in axes.collections])


def arrows_of(figure: Figure) -> set[tuple[int, int]]:
    """Returns from which mark to which every arrow leads, by where its tail and its head are on the page."""
    figure.draw_without_rendering()
    marks, found = places_of(figure), set()
    for arrow in figure.axes[0].findobj(FancyArrowPatch):
        path = figure.axes[0].transData.transform_path(arrow.get_path())
        parts = np.flatnonzero(path.codes == path.MOVETO)  # the shaft, then the head: a wing, the tip, a wing
        ends = path.vertices[0], path.vertices[parts[1] + 1]
        found.add(tuple(int(np.linalg.norm(marks - end, axis=1).argmin()) for end in ends))
    return found


@pytest.mark.parametrize("name", PANELS)
def test_no_text_leaves_the_page_or_lies_on_another_or_on_a_mark(name: str) -> None:
    figure = map_of(PANELS[name]()).figure
    texts, marks = written(figure), places_of(figure)
    width, height = figure.canvas.get_width_height()
    frame = figure.axes[0].get_window_extent()
    assert all(frame.contains(*mark) for mark in marks)
    for text, box in texts:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, f"{text!r} is cut"
        assert not any(box.contains(*mark) for mark in marks), f"{text!r} lies on a mark"
    for (one, first), (other, second) in combinations(texts, 2):
        apart = first.x1 <= second.x0 or second.x1 <= first.x0 or first.y1 <= second.y0 or second.y1 <= first.y0
        assert apart, f"{one!r} lies on {other!r}"


@pytest.mark.parametrize("name", ["a fork", "roads to and fro"])
def test_arrows_lead_from_source_to_target_and_over_no_other_sensor(name: str) -> None:
    panel = PANELS[name]()
    figure = map_of(panel).figure
    # Counted from west to east, on the page as on the Earth.
    on_page = np.argsort(np.argsort(places_of(figure)[:, 0]))
    on_earth = np.argsort(np.argsort([sensor.longitude for sensor in panel.sensors]))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(panel.sensors)))
    graph.add_edges_from(zip(on_earth[panel.edges.source], on_earth[panel.edges.target], strict=True))
    expected = graph if name == "roads to and fro" else nx.transitive_reduction(graph)
    assert {(on_page[start], on_page[end]) for start, end in arrows_of(figure)} == set(expected.edges)


def test_arrows_to_and_fro_do_not_lie_on_one_another() -> None:
    figure = map_of(network(("ab", "ba"), {"a": (8.0, 47.0), "b": (9.0, 47.0)})).figure
    figure.draw_without_rendering()
    there, back = (arrow.get_window_extent() for arrow in figure.axes[0].findobj(FancyArrowPatch))
    assert there.y0 > back.y1 or back.y0 > there.y1 or abs(there.y0 - back.y0) > 10


def test_north_is_up_east_is_right_and_the_bar_has_its_length() -> None:
    figure = map_of(network(FORK_WAYS, FORK)).figure
    figure.draw_without_rendering()
    marks = places_of(figure)
    labels = {text: box for text, box in written(figure) if text.startswith("sensor")}
    assert len(labels) == 4
    # One degree of latitude is 111.2 km, also on the bar: d to b are half a degree apart.
    bar = next(line for line in figure.axes[0].get_lines() if line.get_linewidth() == 2.0)
    drawn = bar.get_window_extent().width
    kilometres = float(next(text for text, _ in written(figure) if "north is up" in text).split(" km")[0])
    assert np.ptp(marks[:, 1]) / drawn * kilometres == pytest.approx(0.5 * 111.2, rel=0.02)
    assert np.ptp(marks[:, 0]) / drawn * kilometres == pytest.approx(0.4 * 111.2 * np.cos(np.radians(42.275)), rel=0.02)
    for axis, name in ((0, "a"), (1, "d")):  # the westernmost is a, the southernmost d
        box = labels[f"sensor {name}"]
        first = marks[marks[:, axis].argmin()]
        assert np.linalg.norm(first - [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2]) < 100


def test_a_river_across_the_date_line_is_not_torn_apart() -> None:
    figure = map_of(network(("ab",), {"a": (179.9, -17.0), "b": (-179.9, -17.0)}, "Fiji")).figure
    label = next(text for text, _ in written(figure) if "north is up" in text)
    assert float(label.split(" km")[0]) <= 10
    marks = places_of(figure)
    assert arrows_of(figure) == {(0, 1)} and marks[1][0] > marks[0][0]


@pytest.mark.parametrize("name", ["klamath", "a crowd", "without places", "a circle without places"])
def test_every_sensor_is_named_once(name: str) -> None:
    panel = PANELS[name]()
    everything = " ".join(text for text, _ in written(map_of(panel).figure))
    for sensor in panel.sensors:
        assert everything.count(f"({sensor.id})") == 1
        assert sensor.name.replace(" ", "") in everything.replace("\n", " ").replace(" ", "")


@pytest.mark.parametrize(
    ("count", "words"), [(20, "found no room are left out"), (41, "More than 40 sensors are not named")]
)
def test_names_that_are_left_out_are_spoken_of(count: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_DETOURS", (0.0,))  # names right beside their places, or not at all
    for panel, is_too_much in ((crowded(count, LONG), True), (PANELS["a fork"](), False)):
        texts = " ".join(text for text, _ in written(map_of(panel).figure)).replace("\n", " ")
        named = sum(f"({sensor.id})" in texts for sensor in panel.sensors)
        assert (words in texts) == is_too_much == (named < len(panel.sensors))


def test_the_table_lists_every_edge_and_which_are_drawn() -> None:
    drawing = map_of(network(FORK_WAYS, FORK))
    assert drawing.table["from"].str.cat(drawing.table["to"]).tolist() == list(FORK_WAYS)
    assert drawing.table.is_drawn.tolist() == [True, True, True, False, False]
    assert drawing.table.distance_km.tolist() == [1.0] * 5


def test_a_panel_without_sensors_is_refused() -> None:
    with pytest.raises(InputError, match="no sensors"):
        map_of(network((), {}))


@pytest.mark.usefixtures("unpainted")
def test_the_command_draws_the_bundled_river(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["data", "map", "klamath-daily", "--out", str(tmp_path / "new" / "map.png")]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["map.csv", "map.png", "map.svg"]
    assert "map.svg" in capsys.readouterr().err.replace("\n", "")
    assert run(["data", "map", "klamath-daily", "--out", str(tmp_path / "map.jpg")]) == 2
    assert ".png or .svg" in capsys.readouterr().err
    assert run(["data", "map", "klamth", "--out", str(tmp_path / "map.png")]) == 2
    assert "klamath-daily" in capsys.readouterr().err
    assert not (tmp_path / "map.png").exists()
