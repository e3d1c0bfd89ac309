"""Where sensors and edges are drawn: on longitude and latitude where all are known, else on a circle."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.data.panel import Panel
from candor.explain.places import known_places, on_a_circle, shrinking_of, unwrapped

Numbers = NDArray[np.float64]
_BEND = 0.12  # how far an edge swings out, of its length: edges along one river would lie on one another
_STATIONS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])  # of the way, where the bent line has its corners
ARROW = 3  # the corner that carries the arrow
_LEAST_APART = 0.06  # of the wider side of the map
_MOST_APART = 60  # sensors; among more there is less room
_ANGLES = np.radians(np.arange(0, 360, 30))
_CLOCK = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)  # the directions of the hours


@dataclass(frozen=True, eq=False)
class Places:
    """Points of the sensors.

    Args:
        points: sensor x 2, longitude and latitude in degrees, or on a circle around zero.
        is_map: whether they are longitude and latitude.
        stretch: how much longer a degree of latitude is than one of longitude; 1 on a circle.
        is_parted: whether sensors that lie on one another were drawn apart.
    """

    points: Numbers
    is_map: bool
    stretch: float
    is_parted: bool = False

    @property
    def aspect(self) -> float:
        """Width through height of what is drawn, on the ground."""
        across, up = np.ptp(self.points * np.array([1.0, self.stretch]), axis=0)
        return float(np.clip(across / up, 0.5, 3.0)) if across and up else 1.0


def find_places(panel: Panel) -> Places:
    """Returns where the sensors of a panel are drawn."""
    points = known_places(panel)
    if points is None:
        return Places(on_a_circle(len(panel.sensors)), is_map=False, stretch=1.0)
    points, stretch = unwrapped(points), 1.0 / shrinking_of(points)
    parted = _parted(points, stretch)
    return Places(parted, is_map=True, stretch=stretch, is_parted=not np.array_equal(parted, points))


def _parted(points: Numbers, stretch: float) -> Numbers:
    """Returns the points with those that (nearly) lie on an earlier one put beside it."""
    scale = np.array([1.0, stretch])
    flat = points * scale
    share = _LEAST_APART if len(points) <= _MOST_APART else _LEAST_APART / 10
    apart = share * float(np.ptp(flat, axis=0).max() or 1.0)
    moved = points.copy()
    for place in range(1, len(flat)):
        distances = np.linalg.norm(flat[:place] - flat[place], axis=1)
        if distances.min() >= apart:
            continue
        beside = flat[distances.argmin()] + apart * _CLOCK
        room = np.linalg.norm(beside[:, None] - flat[None, :place], axis=2).min(axis=1)
        flat[place] = beside[room.argmax()]
        moved[place] = flat[place] / scale
    return moved


def bent_lines(places: Places, source: NDArray[np.integer], target: NDArray[np.integer]) -> tuple[Numbers, Numbers]:
    """Returns the corners of a line for every edge, edge x corner, across and up; the last is NaN, where the pen lifts.

    Lines swing out to the left of their way, so that there and back are two lines.
    """
    scale = np.array([1.0, places.stretch])
    start, end = (places.points[ends] * scale for ends in (source, target))
    way = end - start
    left = np.stack([-way[:, 1], way[:, 0]], axis=1)
    share = _STATIONS[:, None]
    swing = _BEND * 4 * share * (1 - share)
    corners = (start[:, None] + share * way[:, None] + swing * left[:, None]) / scale
    lifted = np.concatenate([corners, np.full((len(corners), 1, 2), np.nan)], axis=1)
    return lifted[..., 0], lifted[..., 1]
