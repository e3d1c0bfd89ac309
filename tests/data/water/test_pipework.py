"""Water takes as long through a link as it takes to fill it, and edges are ways that it always goes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.data.water.layout import chains_from, choose_nodes, find_ways
from candor.data.water.pipework import Pipework

MOMENTS, SECONDS = 400, 900


def made_pipework(
    ends: list[tuple[int, int]], flow: np.ndarray, volume: list[float], others: tuple[int, ...] = (0,)
) -> Pipework:
    """Returns links between numbered nodes, of which `others` are no junctions."""
    nodes = 1 + max(max(pair) for pair in ends)
    return Pipework(
        nodes=tuple(f"n{number}" for number in range(nodes)),
        is_junction=~np.isin(np.arange(nodes), others),
        places=np.stack([np.arange(nodes), np.zeros(nodes)], axis=1).astype(float),
        start=np.array([start for start, _ in ends]),
        end=np.array([end for _, end in ends]),
        length=np.full(len(ends), 1000.0),
        volume=np.array(volume, float),
        flow=np.broadcast_to(flow, (MOMENTS, len(ends))).astype(float),
        supply=np.zeros((MOMENTS, nodes)),
        seconds=SECONDS,
    )


def followed(flow: np.ndarray, volumes: list[float]) -> np.ndarray:
    """Returns the steps that the water of each moment needs, by following one parcel after the other."""
    parts, found = 500, []
    for moment in range(len(flow)):
        row, place = moment * parts, 0
        for link, volume in enumerate(volumes):
            left = volume
            while left > 1e-12 and row < len(flow) * parts:
                left -= flow[row // parts, link] * SECONDS / parts
                row += 1
            place += left <= 1e-12
        found.append(row / parts - moment if place == len(volumes) else np.nan)
    return np.array(found)


def test_steady_water_takes_volume_over_flow() -> None:
    pipework = made_pipework([(0, 1), (1, 2)], np.array([0.02, 0.01]), [45.0, 18.0])
    found = pipework.travel_times((0, 1))
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], 45 / 0.02 / SECONDS + 18 / 0.01 / SECONDS)
    assert known.sum() == MOMENTS - np.ceil(4.5) + 1


@given(st.integers(0, 1000))
def test_travel_times_are_those_of_parcels_that_are_followed(seed: int) -> None:
    generator = np.random.default_rng(seed)
    flow, volumes = generator.uniform(0.005, 0.03, (20, 2)), [20.0, 35.0]
    pipework = made_pipework([(0, 1), (1, 2)], np.tile(flow, (MOMENTS // 20, 1)), volumes)
    slow = followed(flow, volumes)
    known = np.isfinite(slow)
    np.testing.assert_allclose(pipework.travel_times((0, 1))[:20][known], slow[known], atol=0.01)


def test_water_leaves_in_the_order_in_which_it_came() -> None:
    flow = np.random.default_rng(0).uniform(0.001, 0.05, (MOMENTS, 1))
    found = made_pipework([(0, 1)], flow, [60.0]).travel_times((0,))
    leaves = (np.arange(MOMENTS) + found)[np.isfinite(found)]
    assert (np.diff(leaves) > 0).all() and (found[np.isfinite(found)] > 0).all()


def test_a_link_whose_water_turns_has_no_direction() -> None:
    turning = np.where(np.arange(MOMENTS) % 96 < 60, 0.01, -0.01)
    flow = np.stack([np.full(MOMENTS, 0.01), np.full(MOMENTS, -0.01), turning, np.zeros(MOMENTS)], axis=1)
    pipework = made_pipework([(0, 1), (2, 1), (1, 3), (1, 4)], flow, 4 * [9.0])
    assert pipework.direction.tolist() == [1, -1, 0, 0]
    assert (pipework.sender[1], pipework.receiver[1]) == (1, 2)
    assert pipework.always_wet().tolist() == [False, True, True, False, False]


def test_shares_are_those_of_the_water_that_arrives() -> None:
    flow = np.array([0.03, 0.01, 0.04])
    pipework = made_pipework([(0, 2), (1, 2), (2, 3)], flow, [9.0, 9.0, 9.0], others=(0, 1))
    np.testing.assert_allclose(pipework.share, [0.75, 0.25, 1.0])


def test_chains_end_at_the_next_sensor_and_in_tanks() -> None:
    # 1 - 2 - 3 - 5, and 2 - 4 (a tank) - 5; sensors at 1, 3 and 5.
    ends = [(0, 1), (1, 2), (2, 3), (3, 5), (2, 4), (4, 5)]
    pipework = made_pipework(ends, np.array([0.04, 0.04, 0.03, 0.03, 0.01, 0.01]), 6 * [18.0], others=(0, 4))
    (links, target, share), *rest = chains_from(pipework, 1, {1, 3, 5})
    assert (links, target, rest) == ((1, 2), 3, [])
    assert share == pytest.approx(1.0)
    ((links, target, share),) = chains_from(pipework, 3, {1, 3, 5})
    assert (links, target) == ((3,), 5)
    assert share == pytest.approx(0.75)


def test_sensors_stand_at_least_a_step_apart_and_the_busiest_comes_first() -> None:
    ends = list(pairwise(range(7)))
    pipework = made_pipework(ends, np.full(6, 0.02), [9.0, 9.0, 12.0, 12.0, 30.0, 9.0])  # half a step is 9 m3
    chosen = choose_nodes(pipework)
    assert chosen == [1, 3, 5]
    ways = find_ways(pipework, chosen, 24.0)
    assert [(way.source, way.target, way.links) for way in ways] == [(1, 3, (1, 2)), (3, 5, (3, 4))]
    assert [way.travel[1] for way in ways] == pytest.approx([21 / 18, 42 / 18])
