"""Laws of nearest neighbours; those of great-circle distances are in test_weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sphere import angle_between_vectors_km

from candor.core.errors import InputError
from candor.graph import nearest_neighbours
from candor.graph.weights import EARTH_RADIUS_KM

without_deadline = settings(deadline=None)
degrees = st.tuples(st.floats(-90, 90), st.floats(-180, 180))
# A coarse grid around the date line has many ties; None is an unknown place.
grid = st.tuples(st.integers(-2, 2), st.sampled_from([178, 179, 180, -179, -178, 181]))
scattered = st.lists(st.one_of(st.none(), degrees, grid), min_size=1, max_size=12)
small_grid = st.tuples(st.integers(-2, 2), st.integers(-2, 2))
distinct_places = st.lists(small_grid, unique=True, min_size=1, max_size=12)


def coordinates(places) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latitudes and longitudes of the places; NaN where unknown."""
    table = np.array([(np.nan, np.nan) if place is None else place for place in places], float)
    return table[:, 0], table[:, 1]


@without_deadline
@given(scattered, st.integers(1, 14))
def test_neighbours_are_as_near_as_those_found_by_looking_at_all(places, k: int) -> None:
    latitude, longitude = coordinates(places)
    source, target, km = nearest_neighbours(latitude, longitude, k)
    assert np.all(source != target)
    assert np.all(np.diff(source.astype(np.int64) * len(places) + target) > 0)
    known = np.flatnonzero(~np.isnan(latitude))
    assert set(source.tolist()) | set(target.tolist()) <= set(known.tolist())
    distance = angle_between_vectors_km(latitude, longitude)
    # The same accuracy as above: near antipodes the haversine itself is coarse.
    np.testing.assert_allclose(km, distance[source, target], rtol=1e-9, atol=0.5)
    for sensor in known:
        others = np.sort(distance[sensor, known[known != sensor]])
        ours = np.sort(distance[source[target == sensor], sensor])
        expected = others[: min(k, len(others))]
        assert len(ours) == len(expected)
        near = expected < 19_000
        np.testing.assert_allclose(ours[near], expected[near], rtol=1e-9, atol=1e-5)


@without_deadline
@given(distinct_places, st.integers(1, 6), st.randoms(use_true_random=False))
def test_relabelled_sensors_have_relabelled_neighbours_even_in_ties(places, k, random) -> None:
    latitude, longitude = coordinates(places)
    order = np.asarray(random.sample(range(len(places)), len(places)))
    edges = nearest_neighbours(latitude, longitude, k)
    renamed = nearest_neighbours(latitude[order], longitude[order], k)
    expected = {(i, j): km for i, j, km in zip(*edges, strict=True)}
    found = {(order[i], order[j]): km for i, j, km in zip(*renamed, strict=True)}
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], abs=1e-9) for pair in expected)


def test_the_neighbour_is_the_source_and_the_sensor_the_target() -> None:
    # 0 and 1 are close together; 2 is far off, so it has a neighbour but is nobody's.
    source, target, km = nearest_neighbours([0.0, 0.0, 0.0], [0.0, 1.0, 5.0], k=1)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2)]
    degree = np.pi / 180 * EARTH_RADIUS_KM
    np.testing.assert_allclose(km, [degree, degree, 4 * degree])
    assert (source.dtype, target.dtype, km.dtype) == (np.int32, np.int32, np.float64)


def test_ties_go_south_then_west_then_to_the_first_of_sensors_at_one_place() -> None:
    # Around the sensor 0 lie north, south, east and west neighbours at the same distance.
    latitude = [0.0, 1.0, -1.0, 0.0, 0.0]
    longitude = [0.0, 0.0, 0.0, 1.0, -1.0]
    for k, expected in ((1, [2]), (2, [2, 4]), (3, [2, 3, 4]), (4, [1, 2, 3, 4])):
        source, target, _ = nearest_neighbours(latitude, longitude, k)
        assert source[target == 0].tolist() == expected
    source, target, km = nearest_neighbours([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], k=1)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0)]
    assert km.tolist() == [0.0, 0.0, 0.0]


def test_a_tie_is_a_tie_in_spite_of_rounding() -> None:
    # North and south neighbour are 0.3 degrees away; their computed distances differ at the end.
    for latitude in np.linspace(-60, 60, 41):
        places = [latitude, latitude + 0.3, latitude - 0.3]
        source, target, _ = nearest_neighbours(places, [7.0, 7.0, 7.0], k=1)
        assert source[target == 0].tolist() == [2]


@pytest.mark.parametrize("places", [[], [(1.0, 2.0)], [(1.0, 2.0), None], [None, None]])
def test_a_sensor_without_known_company_has_no_edges(places) -> None:
    latitude, longitude = coordinates(places) if places else (np.empty(0), np.empty(0))
    assert [len(part) for part in nearest_neighbours(latitude, longitude, 3)] == [0, 0, 0]


def test_half_a_place_is_no_place() -> None:
    source, target, _ = nearest_neighbours([0.0, np.nan, 1.0, 2.0], [0.0, 0.0, np.nan, 0.0], 5)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [(0, 3), (3, 0)]


@pytest.mark.parametrize(
    ("latitude", "longitude", "wrong"),
    [
        ([0.0, 91.0], [0.0, 0.0], "latitude is 91"),
        ([0.0, -np.inf], [0.0, 0.0], "latitude is -inf"),
        ([0.0, 0.0], [0.0, 361.0], "longitude is 361"),
    ],
)
def test_coordinates_off_the_globe_are_refused_and_located(latitude, longitude, wrong) -> None:
    with pytest.raises(InputError, match=f"position 1: the {wrong}"):
        nearest_neighbours(latitude, longitude, 1)


def test_no_neighbours_and_unequal_coordinates_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        nearest_neighbours([0.0, 1.0], [0.0, 1.0], 0)
    with pytest.raises(ValueError, match="shapes"):
        nearest_neighbours([0.0, 1.0], [0.0], 1)
