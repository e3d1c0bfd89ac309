"""Sensors are drawn where they are, or where their edges put them."""

from dataclasses import replace

import numpy as np
import pytest

from candor.data.panel import Edges, Panel, Sensor
from candor.forecasting.contract import sample_panel
from candor.service.map_layout import has_coordinates, map_positions


def network(sensors: tuple[Sensor, ...], pairs: list[tuple[int, int]]) -> Panel:
    panel = sample_panel()
    values = np.zeros((600, len(sensors)), np.float32)
    source, target = (np.array([pair[end] for pair in pairs], np.int32) for end in (0, 1))
    return replace(panel, values=values, sensors=sensors, edges=Edges(source, target))


def unplaced(count: int) -> tuple[Sensor, ...]:
    return tuple(Sensor(f"s{i}") for i in range(count))


def lengths(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def test_coordinates_become_a_map_true_to_scale_with_north_up() -> None:
    # At 60 degrees north a degree of longitude is half as long as one of latitude.
    corners = [(59.5, 10.0), (59.5, 12.0), (60.5, 12.0), (60.5, 10.0)]
    sensors = tuple(Sensor(f"s{i}", latitude=up, longitude=across) for i, (up, across) in enumerate(corners))
    panel = network(sensors, [(0, 1)])
    assert has_coordinates(panel)
    np.testing.assert_allclose(map_positions(panel), [[0, 0], [1, 0], [1, 1], [0, 1]], atol=1e-9)


def test_the_date_line_is_no_border() -> None:
    sensors = tuple(Sensor(f"s{i}", latitude=1.0, longitude=across) for i, across in enumerate((179.9, -179.9, 179.8)))
    assert map_positions(network(sensors, [(0, 1)]))[:, 0].argsort().tolist() == [2, 0, 1]


def test_one_unknown_place_makes_the_edges_decide() -> None:
    sensors = (Sensor("a", latitude=1.0, longitude=1.0), Sensor("b", latitude=2.0, longitude=2.0), Sensor("c"))
    panel = network(sensors, [(0, 1), (1, 2)])
    assert not has_coordinates(panel)
    found = lengths(map_positions(panel))
    assert found[0, 2] == pytest.approx(found[0, 1] + found[1, 2], rel=0.02)


def test_a_chain_is_drawn_as_a_line_and_a_ring_as_a_ring() -> None:
    chain = lengths(map_positions(network(unplaced(8), [(i, i + 1) for i in range(7)])))
    order = np.arange(8)
    np.testing.assert_allclose(chain, np.abs(order[:, None] - order) / 7 * chain[0, 7], atol=0.06)
    ring = map_positions(network(unplaced(8), [(i, (i + 1) % 8) for i in range(8)]))
    radius = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    np.testing.assert_allclose(radius, radius.mean(), rtol=0.05)


@pytest.mark.parametrize(
    ("count", "pairs"),
    [
        (1, []),
        (2, [(0, 1)]),
        (7, []),
        (6, [(0, 1), (2, 3), (4, 5)]),  # three parts
        (5, [(0, 0), (1, 2), (2, 1)]),  # a loop and two ways
        (30, [(0, i) for i in range(1, 30)]),  # a star
        (2000, [(i, i + 1) for i in range(1999)]),
    ],
)
def test_every_sensor_has_a_place_of_its_own_on_the_drawing(count: int, pairs) -> None:
    points = map_positions(network(unplaced(count), pairs))
    assert points.shape == (count, 2)
    assert (points >= 0).all() and (points <= 1).all()
    assert len(np.unique(points.round(5), axis=0)) == count
