"""What the directed network of a panel says about its river: order, upstream, confluences, lengths, travel times.

Water flows along the edges, from source to target. The edges of a river panel join every sensor with all that lie
downstream of it, not only with the next one; `direct_edges` tells which ones lead to the next.
"""

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.graph import components, downstream_pairs, great_circle_km

METRES = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}
_SECONDS_PER_HOUR = 3600.0
_MOST_NAMES = 6  # of the sensors of a cycle in a message


@dataclass(frozen=True)
class Confluence:
    """A sensor that hears from two or more branches; sensors at one place are one branch (ids, in panel order)."""

    sensor: str
    branches: tuple[tuple[str, ...], ...]


def topological_order(panel: Panel) -> tuple[str, ...]:
    """Return the ids of the sensors, each after all that lie upstream of it; where that allows, in panel order.

    A network in which water could flow in a circle is refused, here and wherever an order is needed.
    """
    if circle := find_cycle(panel):
        names = [*circle[:_MOST_NAMES], *(["..."] if len(circle) > _MOST_NAMES else []), circle[0]]
        raise InputError(
            f"the edges lead in a circle: {' -> '.join(names)}; a river has none",
            where=panel.name or "panel",
            hint="turn round or remove the edge that leads upstream",
        )
    sorter, order = _sorter(panel), []
    sorter.prepare()
    ready = list(sorter.get_ready())
    while ready:
        heapify(ready)
        order.append(heappop(ready))
        sorter.done(order[-1])
        ready += sorter.get_ready()
    return tuple(panel.sensor_ids[position] for position in order)


def find_cycle(panel: Panel) -> tuple[str, ...] | None:
    """Return the ids of sensors that water would pass again and again, in its direction, or None where it cannot."""
    try:
        _sorter(panel).prepare()
    except CycleError as error:
        return tuple(panel.sensor_ids[position] for position in error.args[1][:-1])
    return None


def _sorter(panel: Panel) -> TopologicalSorter[int]:
    sorter = TopologicalSorter(dict.fromkeys(range(len(panel.sensors)), ()))
    for source, target in zip(panel.edges.source.tolist(), panel.edges.target.tolist(), strict=True):
        sorter.add(target, source)
    return sorter


def upstream_sets(panel: Panel) -> dict[str, frozenset[str]]:
    """Return for every sensor the ids of those whose water reaches it, near or far; never itself."""
    ids = panel.sensor_ids
    reaching = _is_downstream(panel)
    return {ids[end]: frozenset(ids[start] for start in np.flatnonzero(reaching[:, end])) for end in range(len(ids))}


def direct_edges(panel: Panel) -> NDArray[np.bool_]:
    """Return for every edge whether it is the only way: no other sensor lies between its two ends."""
    topological_order(panel)
    reaching = _is_downstream(panel).astype(np.float32)  # counts ways exactly, and fast
    has_stop = reaching @ reaching > 0
    return ~has_stop[panel.edges.source, panel.edges.target]


def confluences(panel: Panel, same_place_km: float = 0.5) -> tuple[Confluence, ...]:
    """Return the sensors where branches meet, in panel order, with the sensors directly upstream on each branch.

    Sensors directly upstream that stand nearer than `same_place_km` to one another, such as one at the surface and one
    at the bottom, are one branch. Where coordinates are unknown each sensor is a branch.
    """
    is_direct = direct_edges(panel)
    source, target = panel.edges.source[is_direct], panel.edges.target[is_direct]
    found = []
    for position, sensor in enumerate(panel.sensor_ids):
        branches = _grouped_by_place(panel, np.sort(source[target == position]), same_place_km)
        if len(branches) > 1:
            found.append(Confluence(sensor, branches))
    return tuple(found)


def path_lengths(panel: Panel) -> NDArray[np.float64]:
    """Return the length of the shortest way with the water, sensor x sensor, in the unit of the edges' distances.

    Entry (i, j) leads from i to j; it is infinite where no way does, and zero from a sensor to itself.
    """
    if panel.edges.distance is None:
        raise InputError(
            "the edges have no distances",
            where=panel.name or "panel",
            hint="give the edges a column distance_km, the length of the river between the two sensors",
        )
    return _shortest_ways(panel, panel.edges.distance)


def travel_hours(panel: Panel, metres_per_second: float) -> NDArray[np.float64]:
    """Return how long water takes from sensor to sensor, sensor x sensor, in hours: a prior for learned delays.

    The edges have distances in m, km, mi or ft. Rivers flow at about 0.3 (slow, wide) to 1.5 metres per second (steep).
    Entries are infinite where no way leads, and zero from a sensor to itself.
    """
    if not 0 < metres_per_second < np.inf:
        raise InputError(
            f"the speed of the water is {metres_per_second} m/s; expected a positive number",
            hint="give metres per second, about 0.3 to 1.5 for rivers",
        )
    lengths = path_lengths(panel)
    unit = panel.edges.distance_unit
    if unit not in METRES:
        raise InputError(
            f"the unit of the edges' distances is {unit!r}; expected one of {', '.join(METRES)}",
            where=panel.name or "panel",
            hint="name the column of the edges with its unit, such as distance_km",
        )
    return lengths * (METRES[unit] / metres_per_second / _SECONDS_PER_HOUR)


def _is_downstream(panel: Panel) -> NDArray[np.bool_]:
    """Return at (i, j) whether water of sensor i reaches sensor j, another one."""
    is_reached = np.isfinite(_shortest_ways(panel, np.ones(len(panel.edges))))
    np.fill_diagonal(is_reached, False)
    return is_reached


def _shortest_ways(panel: Panel, length: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return at (i, j) how far it is from sensor i to sensor j with the water, infinite where no way leads there."""
    count = len(panel.sensors)
    lengths = np.full((count, count), np.inf)
    np.fill_diagonal(lengths, 0.0)
    start, end, found = downstream_pairs(panel.edges.source, panel.edges.target, length, count)
    lengths[start, end] = found
    return lengths


def _grouped_by_place(panel: Panel, positions: NDArray[Any], same_place_km: float) -> tuple[tuple[str, ...], ...]:
    sensors = [panel.sensors[position] for position in positions]
    places = np.array([(sensor.latitude, sensor.longitude) for sensor in sensors], np.float64).reshape(-1, 2)
    latitude, longitude = places.T
    is_near = great_circle_km(latitude[:, None], longitude[:, None], latitude, longitude) <= same_place_km
    one, other = np.nonzero(is_near)
    group = components(one, other, len(sensors))
    ids = np.array([sensor.id for sensor in sensors], object)
    return tuple(tuple(ids[group == number]) for number in range(group.max(initial=-1) + 1))
