"""Rivers as lines on a map: how long they are, where a site lies on them, and how they join.

A flowline of the National Hydrography Dataset runs from its upstream end to its downstream end, and the next one begins
at the very point where it ends. Lengths are the official ones where they are known, and else measured on the ellipsoid
(GRS 80), in kilometres.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGITS = 7  # of a degree: about a centimetre, by which ends of flowlines are told apart


@dataclass(frozen=True, eq=False)
class Flowline:
    """A stretch of river without a confluence, from upstream to downstream.

    Args:
        id: its number in the dataset (comid).
        points: vertex x (longitude, latitude), WGS 84 degrees.
        official: its length in kilometres as NHDPlus states it, or None where that is not known.
    """

    id: str
    points: NDArray[np.float64]
    official: float | None = None

    @cached_property
    def _kilometres(self) -> NDArray[np.float64]:
        """How far down the line each vertex lies; the official length is shared out by the geometry."""
        from pyproj import Geod

        steps = Geod(ellps="GRS80").line_lengths(self.points[:, 0], self.points[:, 1])
        measured: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(steps)]) / 1000.0
        if self.official is None or measured[-1] == 0:
            return measured
        return measured * (self.official / float(measured[-1]))

    @property
    def length(self) -> float:
        """Kilometres from end to end."""
        return float(self._kilometres[-1])

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The upstream and the downstream end, as places that can be compared."""
        (west, south), (east, north) = np.round(self.points[[0, -1]], _DIGITS).tolist()
        return (west, south), (east, north)

    def locate(self, longitude: float, latitude: float) -> tuple[float, float]:
        """Returns how far down the line the point of it nearest a place lies, and how far off the place is, in km."""
        from pyproj import Geod

        # Near the place a degree of longitude is shorter than one of latitude by the cosine of the latitude.
        shape = np.array([np.cos(np.radians(latitude)), 1.0])
        place, points = np.array([longitude, latitude]) * shape, self.points * shape
        steps = np.diff(points, axis=0)
        squares = np.maximum((steps**2).sum(axis=1), 1e-30)
        along = np.clip(((place - points[:-1]) * steps).sum(axis=1) / squares, 0.0, 1.0)
        feet = points[:-1] + along[:, None] * steps
        nearest = int(np.argmin(((feet - place) ** 2).sum(axis=1)))
        before, after = self._kilometres[nearest : nearest + 2]
        foot = feet[nearest] / shape
        _, _, metres = Geod(ellps="GRS80").inv(longitude, latitude, *foot)
        return float(before + along[nearest] * (after - before)), float(metres) / 1000.0


def read_flowlines(features: Iterable[Mapping[str, Any]]) -> dict[str, Flowline]:
    """Returns the flowlines of a GeoJSON collection by their ids; features without a line or an id are left out."""
    flowlines = {}
    for feature in features:
        properties, geometry = feature.get("properties") or {}, feature.get("geometry") or {}
        name = comid_of(properties)
        points = _points(geometry)
        if name and len(points) >= 2:
            flowlines[name] = Flowline(name, points)
    return flowlines


def comid_of(properties: Mapping[str, Any]) -> str:
    """Returns the number of the flowline that a feature speaks of, or an empty text; it comes as number or as text."""
    for name in ("nhdplus_comid", "comid"):
        text = str(properties.get(name) or "")
        if text.isdigit() and int(text) > 0:
            return text
    return ""


def _points(geometry: Mapping[str, Any]) -> NDArray[np.float64]:
    coordinates = geometry.get("coordinates") or []
    if geometry.get("type") == "MultiLineString":
        coordinates = [point for part in coordinates for point in part]
    elif geometry.get("type") != "LineString":
        coordinates = []
    return np.array([point[:2] for point in coordinates], np.float64).reshape(-1, 2)
