"""Edges from coordinates alone, for networks whose connections are not known."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from candor.core.errors import InputError
from candor.graph.weights import EdgeList

EARTH_RADIUS_KM = 6371.0088  # mean radius of the Earth (IUGG)

_TIE_KM = 1e-6  # neighbours whose distances agree to the millimetre are equally near

# Added to every search radius on the unit sphere; about 6 mm, so no tied neighbour is missed.
_SEARCH_MARGIN = 1e-9


def great_circle_km(
    latitude: ArrayLike,
    longitude: ArrayLike,
    other_latitude: ArrayLike,
    other_longitude: ArrayLike,
) -> NDArray[np.float64]:
    """Returns the great-circle distance in km between points given in degrees (haversine).

    The arguments broadcast against each other. The distance is NaN where a coordinate is NaN.

    Raises:
        InputError: if a latitude is beyond 90 or a longitude beyond 360 degrees.
    """
    latitude, longitude = _degrees(latitude, longitude)
    other_latitude, other_longitude = _degrees(other_latitude, other_longitude)
    north, other_north = np.radians(latitude), np.radians(other_latitude)
    half_height = (other_north - north) / 2
    half_width = np.radians(other_longitude - longitude) / 2
    shrinking = np.cos(north) * np.cos(other_north)  # degrees of longitude shorten poleward
    haversine = np.sin(half_height) ** 2 + shrinking * np.sin(half_width) ** 2
    # Rounding can push antipodes a little over 1, where the arc sine is not defined.
    angle = 2 * np.arcsin(np.sqrt(np.minimum(haversine, 1.0)))
    return np.asarray(EARTH_RADIUS_KM * angle, dtype=np.float64)


def nearest_neighbours(latitude: ArrayLike, longitude: ArrayLike, k: int) -> EdgeList:
    """Returns edges to every sensor from each of its `k` nearest others, with lengths in km.

    The source of an edge is the neighbour, its target the sensor, so a sensor receives from the
    sensors around it: every placed sensor has min(k, placed sensors - 1) incoming edges, and any
    number of outgoing ones.

    Neighbours equally near to the millimetre are taken from south to north, then from west to
    east, then by position; so the edges do not depend on the order of the sensors, except among
    sensors at the very same place.

    Args:
        latitude: degrees north, one for each sensor; NaN where unknown.
        longitude: degrees east, one for each sensor; NaN where unknown. A sensor with an unknown
            coordinate has no edges.
        k: how many neighbours, at least 1; where there are fewer others, all of them.

    Returns:
        source and target positions (int32) and great-circle distances in km (float64), sorted by
        (source, target).

    Raises:
        InputError: if `k` is below 1, a latitude beyond 90 or a longitude beyond 360 degrees.
    """
    if k < 1:
        raise InputError(f"the number of neighbours is {k}; expected at least 1")
    latitude, longitude = _degrees(latitude, longitude)
    if latitude.ndim != 1 or latitude.shape != longitude.shape:
        raise ValueError(f"coordinates have shapes {latitude.shape} and {longitude.shape}")
    # Counting the placed sensors from the south-west makes ties independent of their order.
    placed = np.lexsort((longitude, latitude))
    placed = placed[~np.isnan(latitude[placed] + longitude[placed])]
    neighbours = min(k, len(placed) - 1)
    if neighbours < 1:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64)
    latitude, longitude = latitude[placed], longitude[placed]
    near, sensor = _candidates(latitude, longitude, neighbours)
    km = great_circle_km(latitude[near], longitude[near], latitude[sensor], longitude[sensor])
    order = np.lexsort((near, np.round(km / _TIE_KM), sensor))
    first_of_sensor = np.searchsorted(sensor[order], sensor[order])
    order = order[np.arange(len(order)) - first_of_sensor < neighbours]
    source, target, km = placed[near[order]], placed[sensor[order]], km[order]
    order = np.lexsort((target, source))
    return source[order].astype(np.int32), target[order].astype(np.int32), km[order]


def _candidates(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64], neighbours: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Returns pairs (near, sensor) that hold each sensor's nearest others and all ties with them.

    The straight line through the Earth grows with the arc over it, so the nearest in space are
    the nearest on the ground, and a tree over points in space finds them across the date line.
    """
    north, east = np.radians(latitude), np.radians(longitude)
    from_axis = np.cos(north)
    points = np.stack([from_axis * np.cos(east), from_axis * np.sin(east), np.sin(north)], axis=1)
    tree = cKDTree(points)
    radius, _ = tree.query(points, k=[neighbours + 1])  # one more: each sensor finds itself too
    around = tree.query_ball_point(points, radius[:, 0] + _SEARCH_MARGIN)
    sensor = np.repeat(np.arange(len(points)), [len(found) for found in around])
    near = np.concatenate([np.asarray(found, np.intp) for found in around])
    is_other = near != sensor
    return near[is_other], sensor[is_other]


def _degrees(
    latitude: ArrayLike,
    longitude: ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns both coordinates as arrays, after a look at their range; NaN passes."""
    north = np.asarray(latitude, dtype=np.float64)
    east = np.asarray(longitude, dtype=np.float64)
    for name, degrees, largest in (("latitude", north, 90), ("longitude", east, 360)):
        outside = np.flatnonzero(np.abs(degrees) > largest)
        if len(outside):
            raise InputError(
                f"the {name} is {degrees.flat[outside[0]]}; expected -{largest} to {largest}",
                where=f"sensor at position {outside[0]}",
                hint="give degrees, and look whether latitude and longitude were swapped",
            )
    return north, east
