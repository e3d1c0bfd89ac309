"""Where sensors stand in a small picture: as on a map where their places are known, else on a circle."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from candor.data.panel import Panel

Points = NDArray[np.float64]
_KM_PER_DEGREE = 111.195  # of latitude
_LEAST_SHRINKING = 0.05  # nearer to a pole a map would be all width
_ROUNDS = 300


def on_a_circle(count: int) -> Points:
    """Returns so many points on a circle around zero, the first one on top, clockwise."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def known_places(panel: Panel) -> Points | None:
    """Returns longitude and latitude in degrees, sensor x 2; None where some are unknown."""
    places = np.array([(sensor.longitude, sensor.latitude) for sensor in panel.sensors], np.float64).reshape(-1, 2)
    return None if np.isnan(places).any() else places


def shrinking_of(degrees: NDArray[np.floating]) -> float:
    """Returns how long a degree of longitude is in the middle of some places, in degrees of latitude."""
    return max(float(np.cos(np.radians(degrees[:, 1].mean()))), _LEAST_SHRINKING)


def on_a_map(degrees: NDArray[np.floating]) -> Points:
    """Returns places in km from their middle, east and north; right for a region, also across the date line.

    Args:
        degrees: longitude and latitude, place x 2.
    """
    points = unwrapped(degrees) * [shrinking_of(degrees), 1.0] * _KM_PER_DEGREE
    return np.asarray(points - (points.max(axis=0) + points.min(axis=0)) / 2)


def unwrapped(degrees: NDArray[np.floating]) -> Points:
    """Returns longitude and latitude so that neighbours across the date line are: longitudes count on beyond 180."""
    first = degrees[0, 0]
    return np.stack([first + (degrees[:, 0] - first + 180) % 360 - 180, degrees[:, 1]], axis=1)


def moved_apart(points: Points, least: float) -> Points:
    """Returns points of which every two have about this distance at least; the very same if they have it already."""
    if len(KDTree(points).query_pairs(1e-6 * least)):  # two at one place need a direction to part in
        points = points + 1e-6 * least * on_a_circle(len(points))
    for _ in range(_ROUNDS):
        near, other = KDTree(points).query_pairs(1.01 * least, output_type="ndarray").T
        offsets = points[near] - points[other]
        distances = np.linalg.norm(offsets, axis=1)
        if not np.any(distances < least):
            break
        steps = 0.5 * offsets * (1.01 * least / distances - 1)[:, None]
        points = points.copy()
        np.add.at(points, near, steps)
        np.subtract.at(points, other, steps)
    return points
