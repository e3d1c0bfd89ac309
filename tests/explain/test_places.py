"""Where sensors stand in pictures: true to scale, readable, and the same in all of them."""

from dataclasses import replace

import numpy as np
import pytest

from candor.data.panel import Sensor
from candor.explain.places import known_places, moved_apart, on_a_circle, on_a_map, shrinking_of
from candor.forecasting.contract import sample_panel


def test_a_map_keeps_directions_and_distances() -> None:
    degrees = np.array([[-122.0, 42.0], [-121.0, 42.0], [-122.0, 43.0], [-122.0, 42.0]])
    points = on_a_map(degrees)
    east, north = points[1] - points[0], points[2] - points[0]
    assert east[0] == pytest.approx(111.2 * np.cos(np.radians(42.25)), rel=1e-3) and east[1] == 0
    assert north[1] == pytest.approx(111.2, rel=1e-3) and north[0] == 0
    across = on_a_map(np.array([[179.9, 0.0], [-179.9, 0.0]]))  # the date line is no border
    assert across[1, 0] - across[0, 0] == pytest.approx(0.2 * 111.2, rel=1e-3)


def test_points_move_apart_only_as_far_as_they_must() -> None:
    points = np.array([[0.0, 0.0], [0.0, 0.0], [10.0, 0.0]])
    moved = moved_apart(points, 1.0)
    distances = np.linalg.norm(moved[:, None] - moved, axis=-1)[np.triu_indices(3, 1)]
    assert distances.min() >= 0.99
    np.testing.assert_allclose(moved[2], points[2], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(on_a_circle(7), axis=1), 1)


def test_points_that_are_apart_stay_and_those_in_a_line_stay_in_it() -> None:
    points = np.array([[0.0, 0.0], [3.0, 0.0], [6.0, 0.0]])
    assert moved_apart(points, 2.0) is points
    assert (moved_apart(points, 4.0)[:, 1] == 0).all()


def test_one_unknown_coordinate_makes_no_map() -> None:
    panel = sample_panel()
    placed = [Sensor(sensor.id, latitude=42.0 + i, longitude=-122.0) for i, sensor in enumerate(panel.sensors)]
    found = known_places(replace(panel, sensors=tuple(placed)))
    assert found is not None and found.tolist() == [[-122.0, 42.0 + i] for i in range(5)]
    placed[3] = Sensor(placed[3].id)
    assert known_places(replace(panel, sensors=tuple(placed))) is None


def test_a_map_at_a_pole_keeps_some_height() -> None:
    assert shrinking_of(np.array([[0.0, 60.0]])) == pytest.approx(0.5)
    assert shrinking_of(np.array([[0.0, 89.9]])) == 0.05
