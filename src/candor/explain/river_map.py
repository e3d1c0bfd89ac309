"""The map of a directed network as plain data."""

import numpy as np

from candor.core.arrays import Booleans, Doubles
from candor.core.errors import InputError
from candor.core.text import sensor_label
from candor.data.panel import Panel
from candor.explain.pictures import RiverMapPicture
from candor.explain.places import known_places, on_a_circle
from candor.river.toolbox import direct_edges, find_cycle, topological_order

_LONGEST_NAME = 100
_LINE = 0.7  # of the distance between columns of a plan


def picture_river_map(panel: Panel) -> RiverMapPicture:
    """Returns the network of a panel, with a plan of it where the places of some sensors are unknown.

    Edges that only sum up a way over other sensors are not direct. Where the edges lead in a circle there is no next
    sensor, and all of them are.
    """
    if not panel.sensors:
        raise InputError("there are no sensors to draw", where=panel.name or "panel")
    has_cycle = find_cycle(panel) is not None
    is_direct = np.ones(len(panel.edges), np.bool_) if has_cycle else direct_edges(panel)
    return RiverMapPicture(
        name=panel.name,
        sensors=panel.sensor_ids,
        names=[sensor_label(sensor.id, sensor.name, _LONGEST_NAME) for sensor in panel.sensors],
        places=known_places(panel),
        plan=on_a_circle(len(panel.sensors)) if has_cycle else _from_left_to_right(panel, is_direct),
        source=panel.edges.source,
        target=panel.edges.target,
        is_direct=is_direct,
        has_cycle=has_cycle,
        distance=panel.edges.distance,
        distance_unit=panel.edges.distance_unit,
    )


def _from_left_to_right(panel: Panel, is_drawn: Booleans) -> Doubles:
    """Returns a plan: every sensor to the right of all upstream of it, branches one above the other."""
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
