"""Laws of great-circle distances, of edge weights and of the adjacency they make."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sphere import angle_between_vectors_km

from candor.core.errors import InputError
from candor.graph import adjacency, gaussian_weights, great_circle_km
from candor.graph.weights import EARTH_RADIUS_KM, SMALLEST_WEIGHT

without_deadline = settings(deadline=None)
metres = st.one_of(st.just(0.0), st.floats(1e-3, 1e6))
several = st.lists(metres, min_size=2, max_size=20)
distances = several.filter(lambda lengths: np.ptp(lengths) > 1e-3 * max(lengths))


@st.composite
def edge_sets(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[float], int]:
    """Distinct directed edges, self-loops among them, with a weight each, over 1 to 7 sensors."""
    sensors = draw(st.integers(1, 7))
    position = st.integers(0, sensors - 1)
    pairs = draw(st.lists(st.tuples(position, position), unique=True, max_size=20))
    weight = st.floats(SMALLEST_WEIGHT, 1e6, width=32)
    weights = draw(st.lists(weight, min_size=len(pairs), max_size=len(pairs)))
    return pairs, weights, sensors


def official_file(name: str) -> Path:
    """The path of a downloaded file, or a skipped test."""
    path = Path(os.environ.get("CANDOR_DATA", "no such folder")) / name
    if not path.is_file():
        pytest.skip(f"needs {name} in the folder named by CANDOR_DATA")
    return path


@without_deadline
@given(distances)
def test_weights_are_the_formula_written_out(lengths: list[float]) -> None:
    mean = sum(lengths) / len(lengths)
    variance = sum((length - mean) ** 2 for length in lengths) / len(lengths)
    expected = [np.exp(-(length**2) / variance) for length in lengths]
    weight, kept = gaussian_weights(lengths)
    assert weight.dtype == np.float32
    assert kept.all()
    np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=2 * SMALLEST_WEIGHT)


@without_deadline
@given(distances, st.randoms(use_true_random=False))
def test_longer_edges_never_weigh_more_whatever_their_order(lengths: list[float], random) -> None:
    weight, _ = gaussian_weights(lengths)
    assert np.all(np.diff(weight[np.argsort(lengths)]) <= 0)
    order = random.sample(range(len(lengths)), len(lengths))
    shuffled, _ = gaussian_weights(np.asarray(lengths)[order])
    np.testing.assert_allclose(shuffled, weight[order], rtol=1e-5, atol=2 * SMALLEST_WEIGHT)


@without_deadline
@given(distances, st.sampled_from([2.0**-10, 2.0**10]))
def test_the_unit_of_the_distances_does_not_matter(lengths: list[float], factor: float) -> None:
    weight, _ = gaussian_weights(lengths)
    in_other_unit, _ = gaussian_weights(np.asarray(lengths) * factor)
    np.testing.assert_allclose(in_other_unit, weight, rtol=1e-5, atol=2 * SMALLEST_WEIGHT)


@without_deadline
@given(distances, st.floats(0, 1))
def test_a_threshold_drops_the_weights_below_it_and_changes_no_other(
    lengths: list[float],
    threshold: float,
) -> None:
    every, _ = gaussian_weights(lengths)
    weight, kept = gaussian_weights(lengths, threshold=threshold)
    assert len(kept) == len(lengths)
    assert np.all(weight >= np.float32(threshold))
    # A dropped weight may round up to the threshold in float32, but not beyond it.
    assert np.all(every[~kept] <= max(np.float32(threshold), SMALLEST_WEIGHT))
    np.testing.assert_array_equal(weight, every[kept])


def test_an_edge_exactly_at_the_threshold_is_kept_and_the_next_longer_is_not() -> None:
    threshold = float(np.exp(-1.0))
    _, kept = gaussian_weights([3.0, 3.0 + 1e-12], sigma=3.0, threshold=threshold)
    assert kept.tolist() == [True, False]


def test_sigma_is_the_population_deviation_of_all_edges_even_of_those_dropped() -> None:
    lengths = [0.0, 2.0, 4.0]  # mean 2, variance 8 / 3 (with ddof 1 it would be 4)
    weight, kept = gaussian_weights(lengths, threshold=0.2)
    assert kept.tolist() == [True, True, False]
    np.testing.assert_allclose(weight, [1.0, np.exp(-1.5)], rtol=1e-6)


@pytest.mark.parametrize("lengths", [[7.0], [0.0], [0.0, 0.0], [0.1, 0.1, 0.1], [0.3, 0.1 + 0.2]])
def test_one_edge_or_equal_lengths_weigh_one(lengths: list[float]) -> None:
    weight, kept = gaussian_weights(lengths, threshold=1.0)
    assert weight.tolist() == [1.0] * len(lengths)
    assert kept.all()


@pytest.mark.parametrize("length", [1e-300, 1e300])
def test_lengths_whose_squares_no_number_can_hold_are_weighed_alike(length: float) -> None:
    weight, _ = gaussian_weights([0.0, length])
    np.testing.assert_allclose(weight, [1.0, np.exp(-4.0)], rtol=1e-6)


def test_a_given_sigma_counts_even_for_one_edge() -> None:
    weight, _ = gaussian_weights([3.0], sigma=3.0)
    np.testing.assert_allclose(weight, [np.exp(-1.0)], rtol=1e-6)


def test_no_edges_have_no_weights() -> None:
    weight, kept = gaussian_weights([], threshold=0.1)
    assert weight.shape == kept.shape == (0,)
    assert weight.dtype == np.float32 and kept.dtype == np.bool_


@pytest.mark.parametrize("length", [9.5, 20.0, 1e9, 1e300])
def test_very_long_edges_keep_a_positive_normal_weight(length: float) -> None:
    # exp(-9.5^2) is 6e-40: a float32 can hold it only as a subnormal number, exp(-20^2) not at all
    weight, kept = gaussian_weights([1.0, length], sigma=1.0)
    assert kept.all()
    assert weight[1] == np.finfo(np.float32).tiny > 0
    assert adjacency([0, 1], [1, 0], weight, 2).nnz == 2


def test_very_long_edges_are_still_dropped_by_any_positive_threshold() -> None:
    _, kept = gaussian_weights([1.0, 20.0], sigma=1.0, threshold=1e-100)
    assert kept.tolist() == [True, False]


def test_a_tiny_sigma_overflows_into_the_smallest_weight() -> None:
    weight, _ = gaussian_weights([0.0, 1e200], sigma=1e-200)
    assert weight.tolist() == [1.0, SMALLEST_WEIGHT]


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf])
def test_a_sigma_that_is_no_width_is_refused(sigma: float) -> None:
    with pytest.raises(InputError, match="sigma"):
        gaussian_weights([1.0, 2.0], sigma=sigma)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan])
def test_a_threshold_outside_zero_to_one_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="threshold"):
        gaussian_weights([1.0, 2.0], threshold=threshold)


@pytest.mark.parametrize("length", [-1.0, np.nan, np.inf])
def test_a_length_that_is_no_length_is_refused(length: float) -> None:
    with pytest.raises(ValueError, match="edge 1 has length"):
        gaussian_weights([1.0, length])


@without_deadline
@given(edge_sets(), st.randoms(use_true_random=False))
def test_adjacency_has_each_weight_at_source_and_target_under_any_labels(edges, random) -> None:
    pairs, weights, sensors = edges
    dense = np.zeros((sensors, sensors), np.float32)
    for (source, target), weight in zip(pairs, weights, strict=True):
        dense[source, target] = weight
    ends = np.asarray(pairs, np.int64).reshape(-1, 2)
    matrix = adjacency(ends[:, 0], ends[:, 1], weights, sensors)
    assert matrix.dtype == np.float32
    assert matrix.nnz == len(pairs)
    np.testing.assert_array_equal(matrix.toarray(), dense)
    label = np.asarray(random.sample(range(sensors), sensors))
    relabelled = adjacency(label[ends[:, 0]], label[ends[:, 1]], weights, sensors).toarray()
    np.testing.assert_array_equal(relabelled[np.ix_(label, label)], dense)


def test_an_adjacency_may_have_no_edges_and_even_no_sensors() -> None:
    assert adjacency([], [], [], 3).toarray().tolist() == [[0.0] * 3] * 3
    assert adjacency([], [], [], 0).shape == (0, 0)


def test_an_edge_listed_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="from 1 to 0 is listed twice"):
        adjacency([0, 1, 1], [1, 0, 0], [1.0, 0.5, 0.25], 2)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, 1e-60, 1e60])
def test_a_weight_that_is_not_positive_in_float32_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="from 1 to 0 has weight"):
        adjacency([0, 1], [1, 0], [1.0, weight], 2)


@pytest.mark.parametrize(
    ("source", "target", "weight", "words"),
    [
        ([0, 2], [1, 0], [1, 1], "edge 1 has source 2"),
        ([0, 1], [1, -1], [1, 1], "edge 1 has target -1"),
        ([0], [1, 0], [1, 1], "1 sources and 2 targets"),
        ([0], [1], [1, 1], "weights of shape"),
        ([0.0], [1.0], [1], "whole numbers"),
        ([[0]], [[1]], [[1]], "plain list"),
    ],
)
def test_positions_that_are_not_those_of_sensors_are_refused(source, target, weight, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        adjacency(source, target, weight, 2)


def test_official_pems_bay_weights_follow_from_the_distances() -> None:
    with official_file("pems-bay.distances.csv").open(newline="") as file:
        listed = [(source, target, float(length)) for source, target, length in csv.reader(file)]
    with official_file("pems-bay.edges.csv").open(newline="") as file:
        official = {(row["from"], row["to"]): float(row["weight"]) for row in csv.DictReader(file)}
    weight, kept = gaussian_weights([length for _, _, length in listed], threshold=0.1)
    ours = [edge[:2] for edge, is_kept in zip(listed, kept, strict=True) if is_kept]
    assert len(ours) == len(official) == 2694
    assert set(ours) == set(official)
    np.testing.assert_allclose(weight, [official[pair] for pair in ours], rtol=0, atol=2e-7)


places = st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=10)


@without_deadline
@given(places)
def test_the_haversine_is_the_angle_between_vectors_and_symmetric(found) -> None:
    latitude, longitude = np.array(found, float).T
    ours = great_circle_km(latitude[:, None], longitude[:, None], latitude, longitude)
    theirs = angle_between_vectors_km(latitude, longitude)
    far = theirs > 19_000  # near antipodes the haversine is good to a few hundred metres only
    np.testing.assert_allclose(ours[~far], theirs[~far], rtol=1e-9, atol=1e-5)
    np.testing.assert_allclose(ours[far], theirs[far], rtol=0, atol=0.5)
    np.testing.assert_array_equal(ours, ours.T)
    assert np.all(np.diag(ours) == 0)


def test_known_distances_and_an_unknown_place() -> None:
    quarter = np.pi / 2 * EARTH_RADIUS_KM
    assert great_circle_km(0, 0, 90, 17) == pytest.approx(quarter)
    assert great_circle_km(0, 179, 0, -179) == pytest.approx(quarter * 2 / 90)
    antipodes = np.linspace(-90, 90, 1801)
    np.testing.assert_allclose(great_circle_km(antipodes, 3, -antipodes, 183), 2 * quarter)
    # One arc minute is a nautical mile, 1.853 km on a sphere of the mean radius.
    assert great_circle_km(45, 7, 45 + 1 / 60, 7) == pytest.approx(1.8532, abs=1e-3)
    assert np.isnan(great_circle_km([np.nan, 1.0], 0, 0, 0)).tolist() == [True, False]


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
        great_circle_km(latitude, longitude, 0.0, 0.0)
