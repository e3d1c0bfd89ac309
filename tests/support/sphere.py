"""Distances on the Earth by another route than the haversine."""

import numpy as np
from numpy.typing import NDArray

from candor.graph.weights import EARTH_RADIUS_KM


def angle_between_vectors_km(latitude, longitude) -> NDArray[np.float64]:
    """Distances between all pairs of points, from cross and dot products in space."""
    north, east = np.radians(latitude), np.radians(longitude)
    equatorial = np.cos(north) * np.array([np.cos(east), np.sin(east)])
    points = np.vstack([equatorial, np.sin(north)]).T
    cross = np.linalg.norm(np.cross(points[:, None], points[None, :]), axis=-1)
    return EARTH_RADIUS_KM * np.arctan2(cross, points @ points.T)
