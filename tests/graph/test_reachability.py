"""Laws of downstream pairs, components and isolated sensors."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import candor.graph.reachability as reachability
from candor.core.errors import InputError
from candor.graph import components, downstream_pairs, isolated

without_deadline = settings(deadline=None)
Segments = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]


@st.composite
def rivers(draw: st.DrawFn, most_sensors: int = 8) -> Segments:
    """Segments with small whole lengths, so that sums are exact.

    Zero lengths, parallel segments, self-loops, cycles and no segments at all are included.
    """
    sensors = draw(st.integers(1, most_sensors))
    position = st.integers(0, sensors - 1)
    segment = st.tuples(position, position, st.integers(0, 4))
    listed = draw(st.lists(segment, max_size=3 * sensors))
    table = np.asarray(listed, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2].astype(np.float64), sensors


def direct_lengths(river: Segments) -> NDArray[np.float64]:
    """Sensors x sensors: the shortest direct segment, infinite where there is none."""
    source, target, length, sensors = river
    direct = np.full((sensors, sensors), np.inf)
    np.minimum.at(direct, (source, target), length)
    return direct


def floyd_warshall(river: Segments) -> NDArray[np.float64]:
    """Shortest distances by letting one more sensor be passed at a time."""
    shortest = direct_lengths(river)
    np.fill_diagonal(shortest, 0)
    for between in range(len(shortest)):
        shortest = np.minimum(shortest, shortest[:, [between]] + shortest[[between], :])
    return shortest


def as_dictionary(pairs) -> dict[tuple[int, int], float]:
    """The pairs with their distances; a pair listed twice would be lost, hence the length check."""
    found = {(int(i), int(j)): float(d) for i, j, d in zip(*pairs, strict=True)}
    assert len(found) == len(pairs[0])
    return found


@without_deadline
@given(rivers(), st.one_of(st.none(), st.integers(0, 10)))
def test_pairs_are_those_of_floyd_and_warshall_within_the_limit(
    river: Segments,
    limit: int | None,
) -> None:
    shortest = floyd_warshall(river)
    expected = {
        (i, j): shortest[i, j]
        for i, j in permutations(range(river[3]), 2)
        if shortest[i, j] <= (1e9 if limit is None else limit)
    }
    assert as_dictionary(downstream_pairs(*river, limit=limit)) == expected


@without_deadline
@given(rivers(most_sensors=5))
def test_pairs_are_those_of_walking_every_possible_way(river: Segments) -> None:
    direct, sensors = direct_lengths(river), river[3]
    expected: dict[tuple[int, int], float] = {}
    for stops in range(2, sensors + 1):
        for way in permutations(range(sensors), stops):
            length = sum(direct[i, j] for i, j in pairwise(way))
            ends = (way[0], way[-1])
            if length < expected.get(ends, np.inf):
                expected[ends] = length
    assert as_dictionary(downstream_pairs(*river, limit=None)) == expected


@without_deadline
@given(rivers(), st.integers(0, 6))
def test_pairs_are_sorted_and_never_lead_home(river: Segments, limit: int) -> None:
    source, target, distance = downstream_pairs(*river, limit=limit)
    assert (source.dtype, target.dtype, distance.dtype) == (np.int32, np.int32, np.float64)
    assert np.all(source != target)
    assert np.all(np.diff(source.astype(np.int64) * river[3] + target) > 0)


@without_deadline
@given(rivers(), st.integers(0, 6), st.randoms(use_true_random=False))
def test_relabelled_sensors_have_relabelled_pairs_groups_and_loners(
    river: Segments,
    limit: int,
    random,
) -> None:
    source, target, length, sensors = river
    label = np.asarray(random.sample(range(sensors), sensors))
    renamed = (label[source], label[target], length, sensors)
    pairs = as_dictionary(downstream_pairs(*river, limit=limit))
    expected = {(label[i], label[j]): distance for (i, j), distance in pairs.items()}
    assert as_dictionary(downstream_pairs(*renamed, limit=limit)) == expected
    group, renamed_group = components(source, target, sensors), components(*renamed[:2], sensors)
    same, renamed_same = (labels[:, None] == labels for labels in (group, renamed_group[label]))
    np.testing.assert_array_equal(renamed_same, same)
    loners = isolated(source, target, sensors)
    np.testing.assert_array_equal(isolated(*renamed[:2], sensors), np.sort(label[loners]))


@without_deadline
@given(rivers(), st.integers(0, 6), st.integers(1, 3))
def test_the_size_of_the_blocks_does_not_matter(river: Segments, limit: int, starts: int) -> None:
    whole = downstream_pairs(*river, limit=limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reachability, "_NUMBERS_PER_BLOCK", starts * river[3])
        in_blocks = downstream_pairs(*river, limit=limit)
    for one, other in zip(whole, in_blocks, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_segments_of_length_zero_are_passed_even_with_a_limit_of_zero() -> None:
    river = ([0, 1, 2, 3], [1, 2, 3, 4], [0.0, 0.0, 5.0, 0.0], 5)
    assert as_dictionary(downstream_pairs(*river, limit=0)) == {
        (0, 1): 0.0,
        (0, 2): 0.0,
        (1, 2): 0.0,
        (3, 4): 0.0,
    }
    assert as_dictionary(downstream_pairs(*river, limit=5))[0, 4] == 5.0


def test_the_shortest_of_parallel_segments_counts_and_a_zero_is_the_shortest() -> None:
    for lengths, shortest in (([4.0, 3.0, 9.0], 3.0), ([4.0, 0.0, 9.0], 0.0)):
        pairs = downstream_pairs([0, 0, 0], [1, 1, 1], lengths, 2, None)
        assert as_dictionary(pairs) == {(0, 1): shortest}


def test_a_pair_exactly_at_the_limit_is_kept_in_spite_of_rounding() -> None:
    river = ([0, 1], [1, 2], [0.1, 0.2], 3)
    assert 0.1 + 0.2 > 0.3
    assert (0, 2) in as_dictionary(downstream_pairs(*river, limit=0.3))
    assert (0, 2) not in as_dictionary(downstream_pairs(*river, limit=0.299999))


def test_every_sensor_of_a_cycle_is_downstream_of_every_other() -> None:
    pairs = as_dictionary(downstream_pairs([0, 1, 2], [1, 2, 0], [1.0, 2.0, 4.0], 3, None))
    assert pairs == {(0, 1): 1, (0, 2): 3, (1, 0): 6, (1, 2): 2, (2, 0): 4, (2, 1): 5}


def test_a_long_river_of_many_sensors_is_searched_in_blocks(monkeypatch) -> None:
    sensors = 3000
    shapes = []
    search = reachability.dijkstra

    def watched_search(*arguments, **options):
        distance = search(*arguments, **options)
        shapes.append(distance.shape)
        return distance

    monkeypatch.setattr(reachability, "dijkstra", watched_search)
    chain = np.arange(sensors)
    pairs = downstream_pairs(chain[:-1], chain[1:], np.ones(sensors - 1), sensors, limit=2)
    assert len(pairs[0]) == (sensors - 1) + (sensors - 2)
    np.testing.assert_array_equal(pairs[1] - pairs[0], pairs[2])
    assert len(shapes) > 1
    assert max(rows * columns for rows, columns in shapes) <= 4_000_000


def test_no_segments_and_no_sensors_are_legal() -> None:
    for sensors in (0, 1, 3):
        pairs = downstream_pairs([], [], [], sensors, limit=None)
        assert [len(part) for part in pairs] == [0, 0, 0]
        assert components([], [], sensors).tolist() == list(range(sensors))
        assert isolated([], [], sensors).tolist() == list(range(sensors))


@pytest.mark.parametrize("limit", [-1.0, np.nan])
def test_a_limit_that_is_no_distance_is_refused(limit: float) -> None:
    with pytest.raises(InputError, match="limit"):
        downstream_pairs([0], [1], [1.0], 2, limit=limit)


@pytest.mark.parametrize("length", [[-1.0], [np.nan], [np.inf], [1.0, 2.0], [[1.0]]])
def test_lengths_that_do_not_fit_are_refused(length) -> None:
    with pytest.raises(ValueError, match="length"):
        downstream_pairs([0], [1], length, 2, limit=None)


@pytest.mark.parametrize("function", [components, isolated])
def test_positions_beyond_the_last_sensor_are_refused(function) -> None:
    with pytest.raises(ValueError, match="target 2"):
        function([0], [2], 2)


@without_deadline
@given(rivers())
def test_components_are_what_one_can_reach_when_directions_are_forgotten(river: Segments) -> None:
    source, target, length, sensors = river
    both_ways = (np.r_[source, target], np.r_[target, source], np.r_[length, length], sensors)
    labels = components(source, target, sensors)
    np.testing.assert_array_equal(labels[:, None] == labels, np.isfinite(floyd_warshall(both_ways)))
    _, first_sensor = np.unique(labels, return_index=True)
    assert np.all(np.diff(first_sensor) > 0)
    assert set(labels.tolist()) == set(range(len(first_sensor)))


@without_deadline
@given(rivers())
def test_the_isolated_are_the_components_of_one(river: Segments) -> None:
    source, target, _, sensors = river
    labels = components(source, target, sensors)
    alone = np.flatnonzero(np.bincount(labels)[labels] == 1)
    np.testing.assert_array_equal(isolated(source, target, sensors), alone)
