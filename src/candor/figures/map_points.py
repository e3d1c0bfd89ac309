"""Where sensors stand in a small picture: as on a map where their places are known, else on a circle."""

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
_KM_PER_DEGREE = 111.195  # of latitude
_ROUNDS = 300


def on_a_circle(count: int) -> Points:
    """Returns so many points on a circle around zero, the first one on top, clockwise."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def on_a_map(degrees: NDArray[np.floating]) -> Points:
    """Returns places in km from their middle, east and north; right for a region, also across the date line.

    Args:
        degrees: longitude and latitude, place x 2.
    """
    east = (degrees[:, 0] - degrees[0, 0] + 180) % 360 - 180
    shrinking = np.cos(np.radians(degrees[:, 1].mean()))  # degrees of longitude shorten poleward
    points = np.stack([east * shrinking, degrees[:, 1]], axis=1) * _KM_PER_DEGREE
    return np.asarray(points - (points.max(axis=0) + points.min(axis=0)) / 2)


def moved_apart(points: Points, least: float) -> Points:
    """Returns points that have at least about this distance from one another, found by pushing pairs apart."""
    points = points + 1e-6 * least * on_a_circle(len(points))  # two at one place need a direction to part in
    for _ in range(_ROUNDS):
        offsets = points[:, None] - points
        distances = np.linalg.norm(offsets, axis=-1)
        np.fill_diagonal(distances, np.inf)
        lacking = np.maximum(1.01 * least - distances, 0)
        if not np.any(distances < least):
            break
        points = points + 0.5 * (offsets / distances[..., None] * lacking[..., None]).sum(axis=1)
    return points
