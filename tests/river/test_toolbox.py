"""Laws of the river toolbox, and the same answers by networkx."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.catalog import load_dataset
from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis
from candor.river.toolbox import (
    confluences,
    direct_edges,
    find_cycle,
    path_lengths,
    topological_order,
    travel_hours,
    upstream_sets,
)

KEY = "abcdefghij"


def river(
    *ways: str,
    unit: str = "km",
    lengths: list[float] | None = None,
    places: dict[str, tuple[float, float]] | None = None,
) -> Panel:
    """Returns a panel of ways such as `ab`, water from a to b; sensors in alphabetical order, each edge 1 long."""
    names = sorted(set("".join(ways)))
    place = {name: position for position, name in enumerate(names)}
    sensors = [Sensor(n, "", *(places or {}).get(n, (None, None))) for n in names]
    return made(sensors, [(place[w[0]], place[w[1]]) for w in ways], lengths or [1.0] * len(ways), unit)


def made(sensors: list[Sensor], ends: list[tuple[int, int]], lengths: list[float] | None, unit: str = "km") -> Panel:
    pairs = np.array(ends, np.int32).reshape(-1, 2)
    distance = None if lengths is None else np.array(lengths, np.float32)
    return Panel(
        values=np.zeros((1, len(sensors)), np.float32),
        times=TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 1),
        sensors=tuple(sensors),
        edges=Edges(pairs[:, 0], pairs[:, 1], distance=distance, distance_unit=unit),
        name="creek",
    )


@st.composite
def networks(draw: st.DrawFn, is_river: bool) -> Panel:
    """Returns a panel with small whole lengths, so that sums are exact; a river never flows in a circle."""
    count = draw(st.integers(1, 8))
    label = draw(st.permutations(range(count)))
    position = st.integers(0, count - 1)
    pairs = draw(st.sets(st.tuples(position, position), max_size=3 * count))
    ends = [(label[i], label[j]) for i, j in sorted(pairs) if not is_river or i < j]
    lengths = draw(st.lists(st.integers(0, 5), min_size=len(ends), max_size=len(ends)))
    return made([Sensor(KEY[i]) for i in range(count)], ends, [float(length) for length in lengths])


def graph_of(panel: Panel) -> nx.DiGraph:
    """Returns the same network as networkx sees it."""
    graph = nx.DiGraph()
    graph.add_nodes_from(panel.sensor_ids)
    ids, edges = panel.sensor_ids, panel.edges
    for source, target, length in zip(edges.source, edges.target, edges.distance, strict=True):
        graph.add_edge(ids[source], ids[target], length=float(length))
    return graph


@given(networks(is_river=True))
def test_the_order_is_that_of_networkx(panel: Panel) -> None:
    order = topological_order(panel)
    assert order == tuple(nx.lexicographical_topological_sort(graph_of(panel)))
    assert find_cycle(panel) is None


@given(networks(is_river=False))
def test_a_circle_is_found_exactly_where_there_is_one_and_can_be_walked(panel: Panel) -> None:
    graph, circle = graph_of(panel), find_cycle(panel)
    assert (circle is None) == nx.is_directed_acyclic_graph(graph)
    if circle is None:
        return
    assert len(set(circle)) == len(circle)
    assert all(graph.has_edge(*step) for step in pairwise((*circle, circle[0])))
    with pytest.raises(InputError, match="circle") as refused:
        topological_order(panel)
    assert " -> ".join(circle[:6]) in refused.value.what and refused.value.what.split(" -> ")[-1].startswith(circle[0])
    with pytest.raises(InputError, match="circle"):
        direct_edges(panel)
    with pytest.raises(InputError, match="circle"):
        confluences(panel)


@given(networks(is_river=False))
def test_upstream_sets_are_the_ancestors_of_networkx_even_with_circles(panel: Panel) -> None:
    graph = graph_of(panel)
    assert upstream_sets(panel) == {node: frozenset(nx.ancestors(graph, node)) for node in graph}


@given(networks(is_river=True))
def test_direct_edges_are_the_transitive_reduction_of_networkx(panel: Panel) -> None:
    ids, edges, is_direct = panel.sensor_ids, panel.edges, direct_edges(panel)
    kept = {(ids[s], ids[t]) for s, t in zip(edges.source[is_direct], edges.target[is_direct], strict=True)}
    assert kept == set(nx.transitive_reduction(graph_of(panel)).edges)


@given(networks(is_river=True))
def test_joining_every_sensor_with_all_below_changes_nothing_but_the_edges(panel: Panel) -> None:
    closed = nx.transitive_closure(graph_of(panel))
    place = {name: position for position, name in enumerate(panel.sensor_ids)}
    ends = [(place[i], place[j]) for i, j in closed.edges]
    lengths = path_lengths(panel)
    joined = made(list(panel.sensors), ends, [lengths[pair] for pair in ends])
    np.testing.assert_array_equal(path_lengths(joined), lengths)
    assert topological_order(joined) == topological_order(panel)
    assert upstream_sets(joined) == upstream_sets(panel)
    assert confluences(joined) == confluences(panel)


@given(networks(is_river=True))
def test_confluences_have_two_or_more_sensors_directly_upstream(panel: Panel) -> None:
    reduced = nx.transitive_reduction(graph_of(panel))
    expected = {node: set(reduced.predecessors(node)) for node in reduced if reduced.in_degree(node) > 1}
    assert {c.sensor: {i for branch in c.branches for i in branch} for c in confluences(panel)} == expected


@given(networks(is_river=False))
def test_lengths_are_the_shortest_ways_of_networkx(panel: Panel) -> None:
    ids, lengths = panel.sensor_ids, path_lengths(panel)
    found = dict(nx.all_pairs_dijkstra_path_length(graph_of(panel), weight="length"))
    for i, start in enumerate(ids):
        for j, end in enumerate(ids):
            assert lengths[i, j] == found[start].get(end, np.inf)


def test_a_confluence_names_its_branches_and_a_diversion_is_none() -> None:
    panel = river("ac", "bc", "cd", "ce", "df", "ef")  # two creeks join, the river parts and joins again
    assert [(c.sensor, c.branches) for c in confluences(panel)] == [("c", (("a",), ("b",))), ("f", (("d",), ("e",)))]


def test_a_long_edge_beside_a_way_through_other_sensors_makes_no_confluence() -> None:
    panel = river("ab", "bc", "ac", lengths=[1, 1, 2])
    assert confluences(panel) == () and direct_edges(panel).tolist() == [True, True, False]


def test_two_sensors_at_one_place_are_one_branch() -> None:
    places = {"a": (42.0, -121.0), "b": (42.0, -121.002), "c": (42.1, -121.0)}  # a and b are 165 m apart
    panel = river("ad", "bd", "cd", places=places)
    assert confluences(panel)[0].branches == (("a", "b"), ("c",))
    assert confluences(panel, same_place_km=0.1)[0].branches == (("a",), ("b",), ("c",))
    assert confluences(river("ad", "bd", places=places)) == ()


def test_travel_times_are_lengths_by_speed_in_every_unit() -> None:
    hours = travel_hours(river("ab", "bc", lengths=[3.6, 7.2]), metres_per_second=1.0)
    np.testing.assert_allclose(hours, [[0, 1, 3], [np.inf, 0, 2], [np.inf, np.inf, 0]], rtol=1e-6)
    np.testing.assert_allclose(travel_hours(river("ab", lengths=[3600], unit="m"), 0.5)[0, 1], 2)
    np.testing.assert_allclose(travel_hours(river("ab", lengths=[1], unit="mi"), 1609.344 / 3600)[0, 1], 1)
    np.testing.assert_allclose(travel_hours(river("ab", lengths=[1000], unit="ft"), 304.8 / 3600)[0, 1], 1)


@pytest.mark.parametrize("speed", [0.0, -1.0, np.inf, np.nan])
def test_an_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(InputError, match="speed of the water"):
        travel_hours(river("ab"), speed)


def test_lengths_without_distances_or_unit_are_refused_with_a_hint() -> None:
    bare = made([Sensor("a"), Sensor("b")], [(0, 1)], None)
    with pytest.raises(InputError, match="no distances") as refused:
        path_lengths(bare)
    assert "distance_km" in refused.value.hint
    with pytest.raises(InputError, match="unit of the edges' distances is ''") as refused:
        travel_hours(river("ab", unit=""), 1.0)
    assert "distance_km" in refused.value.hint


def test_a_sensor_that_flows_into_itself_is_named() -> None:
    with pytest.raises(InputError, match="circle: b -> b;"):
        topological_order(river("ab", "bb"))


def test_the_klamath_is_read_as_a_hydrologist_would() -> None:
    panel = load_dataset("klamath-daily")
    assert topological_order(panel)[-1] == "11510700"
    assert len(upstream_sets(panel)["11510700"]) == 10
    met = {confluence.sensor: confluence.branches for confluence in confluences(panel)}
    lost_river = (("11507501",), ("421015121471800",))  # meets the Link River above Miller Island
    straits_drain = (("420853121505500", "420853121505501"), ("420451121510000",))  # comes in above Keno Dam
    assert met == {
        "420853121505500": lost_river,
        "420853121505501": lost_river,
        "11509370": straits_drain,
        "420741121554001": straits_drain,
    }
