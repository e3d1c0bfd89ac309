"""Edges from coordinates alone, for networks whose connections are not known."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from candor.core.errors import InputError
from candor.graph.weights import EdgeList, great_circle_km

_TIE_KM = 1e-6  # neighbours whose distances agree to the millimetre are equally near
_SEARCH_MARGIN = 1e-9  # added to search radii on the unit sphere, about 6 mm: no tied neighbour is missed


def nearest_neighbours(latitude: ArrayLike, longitude: ArrayLike, k: int) -> EdgeList:
    """Return edges to every sensor from each of its `k` nearest others, with lengths in km, by (source, target).

    A sensor with an unknown coordinate (NaN) has no edges; where there are fewer than `k` others, all of them count.
    Neighbours equally near are taken from south to north, then from west to east, then by position, so that the edges
    do not depend on the order of the sensors, except among sensors at the very same place.
    """
    if k < 1:
        raise InputError(f"the number of neighbours is {k}; expected at least 1")
    north, east = np.asarray(latitude, np.float64), np.asarray(longitude, np.float64)
    if north.ndim != 1 or north.shape != east.shape:
        raise ValueError(f"coordinates have shapes {north.shape} and {east.shape}")
    great_circle_km(north, east, 0.0, 0.0)  # refuses what is off the globe
    placed = np.lexsort((east, north))  # from the south-west on
    placed = placed[~np.isnan(north[placed] + east[placed])]
    neighbours = min(k, len(placed) - 1)
    if neighbours < 1:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64)
    north, east = north[placed], east[placed]
    # The straight line through the Earth grows with the arc over it, so a tree over points in space finds the nearest.
    upward, along = np.radians(north), np.radians(east)
    points = np.stack([np.cos(upward) * np.cos(along), np.cos(upward) * np.sin(along), np.sin(upward)], axis=1)
    tree = cKDTree(points)
    radius, _ = tree.query(points, k=[neighbours + 1])  # one more: each sensor finds itself too
    around = tree.query_ball_point(points, radius[:, 0] + _SEARCH_MARGIN)
    sensor = np.repeat(np.arange(len(points)), [len(found) for found in around])
    near = np.concatenate([np.asarray(found, np.intp) for found in around])
    sensor, near = sensor[near != sensor], near[near != sensor]
    km = great_circle_km(north[near], east[near], north[sensor], east[sensor])
    order = np.lexsort((near, np.round(km / _TIE_KM), sensor))
    order = order[np.arange(len(order)) - np.searchsorted(sensor[order], sensor[order]) < neighbours]
    source, target, km = placed[near[order]], placed[sensor[order]], km[order]
    order = np.lexsort((target, source))
    return source[order].astype(np.int32), target[order].astype(np.int32), km[order]
