"""Where sensors stand in a small picture: as on a map where their places are known, else on a plan or a circle."""

from typing import Any

import numpy as np
from scipy.spatial import KDTree

from candor.core.arrays import Booleans, Doubles, Floats
from candor.core.errors import InputError
from candor.core.text import sensor_label
from candor.data.panel import Panel
from candor.explain.pictures import RiverMapPicture
from candor.river.toolbox import direct_edges, find_cycle, topological_order

Points = Doubles
_KM_PER_DEGREE = 111.195  # of latitude
_LEAST_SHRINKING = 0.05  # nearer to a pole a map would be all width
_ROUNDS = 300
_LONGEST_NAME = 100
_LINE = 0.7  # of the distance between columns of a plan


def on_a_circle(count: int) -> Points:
    """Return so many points on a circle around zero, the first one on top, clockwise."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def known_places(panel: Panel) -> Points | None:
    """Return longitude and latitude in degrees, sensor x 2; None where some are unknown."""
    places = np.array([(sensor.longitude, sensor.latitude) for sensor in panel.sensors], np.float64).reshape(-1, 2)
    return None if np.isnan(places).any() else places


def sensors_of(panel: Panel, longest: int) -> dict[str, Any]:
    """Return ids, names of so many letters, and places of all sensors, for a `MapPicture`."""
    names = [sensor_label(sensor.id, sensor.name, longest) for sensor in panel.sensors]
    return {"sensors": panel.sensor_ids, "names": names, "places": known_places(panel)}


def shrinking_of(degrees: Floats) -> float:
    """Return how long a degree of longitude is in the middle of some places, in degrees of latitude."""
    return max(float(np.cos(np.radians(degrees[:, 1].mean()))), _LEAST_SHRINKING)


def on_a_map(degrees: Floats) -> Points:
    """Return places (longitude and latitude, place x 2) in km from their middle, east and north, for a region."""
    points = unwrapped(degrees) * [shrinking_of(degrees), 1.0] * _KM_PER_DEGREE
    return np.asarray(points - (points.max(axis=0) + points.min(axis=0)) / 2)


def unwrapped(degrees: Floats) -> Points:
    """Return longitude and latitude so that neighbours across the date line are: longitudes count on beyond 180."""
    first = degrees[0, 0]
    return np.stack([first + (degrees[:, 0] - first + 180) % 360 - 180, degrees[:, 1]], axis=1)


def moved_apart(points: Points, least: float) -> Points:
    """Return points of which every two have about this distance at least; the very same if they have it already."""
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


def picture_river_map(panel: Panel) -> RiverMapPicture:
    """Return the network of a panel, with a plan of it where the places of some sensors are unknown.

    Edges that only sum up a way over other sensors are not direct. Where the edges lead in a circle there is no next
    sensor, and all of them are.
    """
    if not panel.sensors:
        raise InputError("there are no sensors to draw", where=panel.name or "panel")
    has_cycle = find_cycle(panel) is not None
    is_direct = np.ones(len(panel.edges), np.bool_) if has_cycle else direct_edges(panel)
    return RiverMapPicture(
        name=panel.name,
        **sensors_of(panel, _LONGEST_NAME),
        plan=on_a_circle(len(panel.sensors)) if has_cycle else _from_left_to_right(panel, is_direct),
        source=panel.edges.source,
        target=panel.edges.target,
        is_direct=is_direct,
        has_cycle=has_cycle,
        distance=panel.edges.distance,
        distance_unit=panel.edges.distance_unit,
    )


def _from_left_to_right(panel: Panel, is_drawn: Booleans) -> Points:
    """Return a plan: every sensor to the right of all upstream of it, branches one above the other."""
    place = {sensor: position for position, sensor in enumerate(panel.sensor_ids)}
    points = np.zeros((len(place), 2))
    source, target = panel.edges.source[is_drawn], panel.edges.target[is_drawn]
    columns: dict[float, list[float]] = {}
    for sensor in topological_order(panel):
        position = place[sensor]
        above = source[target == position]
        across = float(points[above, 0].max()) + 1 if len(above) else 0.0
        column = columns.setdefault(across, [])
        # Level with what comes in; what nothing comes into begins a new line.
        up = float(points[above, 1].mean()) if len(above) else -_LINE * len(column)
        while any(abs(up - other) < 0.99 * _LINE for other in column):
            up -= _LINE
        column.append(up)
        points[position] = across, up
    return points
