"""Synthetic networks look like rivers and roads, and their laws follow from their distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.panel import Edges
from candor.data.synthetic import SyntheticRecipe
from candor.data.synthetic.generate import World, settle
from candor.data.synthetic.network import Network

KINDS = st.sampled_from(["river", "road"])
SIZES = st.integers(1, 60)
SEEDS = st.integers(0, 1000)


def paths(edges: Edges, count: int) -> np.ndarray:
    """Returns whether a directed path of any length leads from row to column, by closure."""
    reach = np.eye(count, dtype=bool)
    reach[edges.source, edges.target] = True
    for middle in range(count):
        reach |= reach[:, [middle]] & reach[[middle], :]
    return reach


def straight_kilometres(network: Network) -> np.ndarray:
    """Returns the great-circle length of every edge, from the sensors' coordinates."""
    latitude = np.radians([sensor.latitude for sensor in network.sensors])
    longitude = np.radians([sensor.longitude for sensor in network.sensors])
    source, target = network.edges.source, network.edges.target
    north = np.sin((latitude[target] - latitude[source]) / 2) ** 2
    east = np.sin((longitude[target] - longitude[source]) / 2) ** 2
    shrink = np.cos(latitude[source]) * np.cos(latitude[target])
    return 2 * 6371 * np.arcsin(np.sqrt(north + shrink * east))


@given(SIZES, SEEDS)
def test_all_water_leaves_a_river_by_one_outlet(count: int, seed: int) -> None:
    edges = settle(SyntheticRecipe("river", count, 1, seed)).network.edges
    leaving = np.bincount(edges.source, minlength=count)
    assert sorted(leaving) == [0] + [1] * (count - 1)
    assert np.bincount(edges.target, minlength=count).max() <= 2
    assert paths(edges, count)[:, np.flatnonzero(leaving == 0)].all()


def test_a_river_has_springs_reaches_and_confluences() -> None:
    edges = settle(SyntheticRecipe("river", 40, 1)).network.edges
    joining = np.bincount(np.bincount(edges.target, minlength=40), minlength=3)
    assert (joining >= 5).all()


@given(SIZES, SEEDS)
def test_a_road_network_is_in_one_piece(count: int, seed: int) -> None:
    edges = settle(SyntheticRecipe("road", count, 1, seed)).network.edges
    ends, turned = [edges.source, edges.target], [edges.target, edges.source]
    both_ways = Edges(np.concatenate(ends), np.concatenate(turned))
    assert paths(both_ways, count).all()


def test_roads_part_and_join_at_junctions() -> None:
    edges = settle(SyntheticRecipe("road", 200, 1)).network.edges
    assert np.bincount(edges.source).max() > 1
    assert np.bincount(edges.target).max() > 1


@given(KINDS, SIZES, SEEDS)
def test_no_way_is_shorter_than_the_straight_line(kind: str, count: int, seed: int) -> None:
    network = settle(SyntheticRecipe(kind, count, 1, seed)).network
    assert (network.edges.distance >= 0.97 * straight_kilometres(network)).all()
    assert network.edges.distance_unit == "km"


@given(KINDS, SIZES, SEEDS)
def test_delays_are_travel_times_and_little_arrives(kind: str, count: int, seed: int) -> None:
    world = settle(SyntheticRecipe(kind, count, 1, seed))
    hours = world.network.edges.distance / {"river": 3.6, "road": 20.0}[kind]
    steps = hours * {"river": 1, "road": 12}[kind]
    assert (world.delays >= 1).all()
    assert (abs(world.delays - np.maximum(steps, 1)) <= 0.5001).all()
    assert ((world.attenuation > 0) & (world.attenuation < 1)).all()
    arriving = np.bincount(world.network.edges.target, weights=world.attenuation)
    assert (arriving < 1).all()


def test_delays_differ_from_edge_to_edge() -> None:
    for kind in ("river", "road"):
        assert len(np.unique(settle(SyntheticRecipe(kind, 40, 1)).delays)) >= 4


def background_correlation(world: World) -> np.ndarray:
    two_weeks = 14 * world.recipe.physics.steps_per_day
    return np.corrcoef(world.background.between(0, two_weeks).T)


@given(KINDS, st.integers(2, 60), SEEDS)
def test_twins_look_alike_though_no_path_joins_them(kind: str, count: int, seed: int) -> None:
    world = settle(SyntheticRecipe(kind, count, 1, seed))
    reach, alike = paths(world.network.edges, count), background_correlation(world)
    for first, second in world.twins:
        assert not reach[first, second] and not reach[second, first]
        assert alike[first, second] > 0.95
    everyone = [sensor for pair in world.twins for sensor in pair]
    assert len(everyone) == len(set(everyone))


@pytest.mark.parametrize("kind", ["river", "road"])
def test_twins_stand_out_from_other_pairs(kind: str) -> None:
    world = settle(SyntheticRecipe(kind, 40, 1))
    assert len(world.twins) == 5
    alike = background_correlation(world)
    for pair in world.twins:
        alike[pair] = np.nan
    others = alike[np.triu_indices(40, 1)]
    assert np.nanmean(others > 0.95) < 0.03


@pytest.mark.parametrize("kind", ["river", "road"])
def test_the_number_of_twins_can_be_chosen(kind: str) -> None:
    for pairs in (0, 1, 7):
        assert len(settle(SyntheticRecipe(kind, 40, 1, twin_pairs=pairs)).twins) == pairs


def test_a_network_too_small_for_twins_has_none_unless_they_are_asked_for() -> None:
    for kind, count in [("river", 1), ("river", 2), ("road", 5)]:
        assert settle(SyntheticRecipe(kind, count, 1)).twins == ()
        with pytest.raises(InputError, match="twins"):
            settle(SyntheticRecipe(kind, count, 1, twin_pairs=1))


def test_a_river_follows_the_sun_and_a_road_the_working_week() -> None:
    river = settle(SyntheticRecipe("river", 60, 1)).background.between(0, 168).mean(axis=1)
    peaks = river.reshape(7, 24).argmax(axis=1)
    assert ((peaks >= 12) & (peaks <= 18)).all()
    road = settle(SyntheticRecipe("road", 60, 1)).background.between(0, 7 * 288).mean(axis=1)
    slowest = road.reshape(7, 288).min(axis=1)
    # The first day is a Wednesday: days 3 and 4 are the weekend.
    assert slowest[[3, 4]].min() > np.delete(slowest, [3, 4]).max()
