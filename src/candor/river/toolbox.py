"""What the directed network of a panel says about its river: order, upstream, confluences, lengths, travel times.

Water flows along the edges, from source to target. The edges of a river panel join every sensor with all that lie
downstream of it, not only with the next one; `direct_edges` tells which ones lead to the next.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.graph import downstream_pairs, great_circle_km

METRES = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}
_SECONDS_PER_HOUR = 3600.0
_MOST_NAMES = 6  # of the sensors of a cycle in a message


@dataclass(frozen=True)
class Confluence:
    """A sensor that hears from two or more branches; sensors at one place are one branch (ids, in panel order)."""

    sensor: str
    branches: tuple[tuple[str, ...], ...]


def topological_order(panel: Panel) -> tuple[str, ...]:
    """Returns the ids of the sensors, each after all that lie upstream of it; where that allows, in panel order.

    Raises:
        InputError: if water could flow in a circle; the circle is named.
    """
    order = _topological_positions(panel)
    if len(order) < len(panel.sensors):
        circle = find_cycle(panel)
        assert circle is not None  # what cannot be peeled off lies on or below a circle
        names = list(circle[:_MOST_NAMES]) + (["..."] if len(circle) > _MOST_NAMES else []) + [circle[0]]
        raise InputError(
            f"the edges lead in a circle: {' -> '.join(names)}; a river has none",
            where=panel.name or "panel",
            hint="turn round or remove the edge that leads upstream",
        )
    return tuple(panel.sensor_ids[position] for position in order)


def find_cycle(panel: Panel) -> tuple[str, ...] | None:
    """Returns the ids of sensors that water would pass again and again, in its direction, or None where it cannot."""
    left = np.ones(len(panel.sensors), np.bool_)
    left[_topological_positions(panel)] = False
    if not left.any():
        return None
    # Every sensor that is left has a source that is left too, so that walking against the water must meet itself.
    kept = left[panel.edges.source] & left[panel.edges.target]
    came_from = dict(zip(panel.edges.target[kept].tolist(), panel.edges.source[kept].tolist(), strict=True))
    walk = [int(np.flatnonzero(left)[0])]
    while walk[-1] not in walk[:-1]:
        walk.append(came_from[walk[-1]])
    circle = walk[walk.index(walk[-1]) + 1 :]
    return tuple(panel.sensor_ids[position] for position in reversed(circle))


def upstream_sets(panel: Panel) -> dict[str, frozenset[str]]:
    """Returns for every sensor the ids of those whose water reaches it, near or far; never itself."""
    ids = panel.sensor_ids
    reaching = _is_downstream(panel)
    return {ids[end]: frozenset(ids[start] for start in np.flatnonzero(reaching[:, end])) for end in range(len(ids))}


def direct_edges(panel: Panel) -> NDArray[np.bool_]:
    """Returns for every edge whether it is the only way: no other sensor lies between its two ends.

    Raises:
        InputError: if water could flow in a circle, where there is no next sensor.
    """
    topological_order(panel)
    reaching = _is_downstream(panel).astype(np.float32)  # counts ways exactly, and fast
    has_stop = reaching @ reaching > 0
    return ~has_stop[panel.edges.source, panel.edges.target]


def confluences(panel: Panel, same_place_km: float = 0.5) -> tuple[Confluence, ...]:
    """Returns the sensors where branches meet, in panel order, with the sensors directly upstream on each branch.

    Args:
        panel: sensors and edges.
        same_place_km: sensors directly upstream that stand this near to one another, such as one at the surface and
            one at the bottom, are one branch. Where coordinates are unknown each sensor is a branch.

    Raises:
        InputError: if water could flow in a circle.
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
    """Returns the length of the shortest way with the water, sensor x sensor, in the unit of the edges' distances.

    Entry (i, j) leads from i to j; it is infinite where no way does, and zero from a sensor to itself.
    """
    if panel.edges.distance is None:
        raise InputError(
            "the edges have no distances",
            where=panel.name or "panel",
            hint="give the edges a column distance_km, the length of the river between the two sensors",
        )
    count = len(panel.sensors)
    lengths = np.full((count, count), np.inf)
    np.fill_diagonal(lengths, 0.0)
    start, end, length = downstream_pairs(panel.edges.source, panel.edges.target, panel.edges.distance, count)
    lengths[start, end] = length
    return lengths


def travel_hours(panel: Panel, metres_per_second: float) -> NDArray[np.float64]:
    """Returns how long water takes from sensor to sensor, sensor x sensor, in hours: a prior for learned delays.

    Args:
        panel: sensors and edges with distances in m, km, mi or ft.
        metres_per_second: mean speed of the water; rivers have about 0.3 (slow, wide) to 1.5 (steep).

    Returns:
        The hours from i to j at (i, j): infinite where no way leads, zero from a sensor to itself.
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


def _topological_positions(panel: Panel) -> list[int]:
    """Returns positions, each after all its sources, the lowest first; those on a circle or below one are left out."""
    source, target = panel.edges.source, panel.edges.target
    waiting = np.bincount(target, minlength=len(panel.sensors))
    targets: dict[int, list[int]] = {}
    for start, end in zip(source.tolist(), target.tolist(), strict=True):
        targets.setdefault(start, []).append(end)
    ready: list[int] = np.flatnonzero(waiting == 0).tolist()  # ascending, hence a heap
    order = []
    while ready:
        position = heappop(ready)
        order.append(position)
        for end in targets.get(position, []):
            waiting[end] -= 1
            if waiting[end] == 0:
                heappush(ready, end)
    return order


def _is_downstream(panel: Panel) -> NDArray[np.bool_]:
    """Returns at (i, j) whether water of sensor i reaches sensor j, another one."""
    count = len(panel.sensors)
    start, end, _ = downstream_pairs(panel.edges.source, panel.edges.target, np.ones(len(panel.edges)), count)
    reaching = np.zeros((count, count), np.bool_)
    reaching[start, end] = True
    return reaching


def _grouped_by_place(panel: Panel, positions: NDArray[Any], same_place_km: float) -> tuple[tuple[str, ...], ...]:
    sensors = [panel.sensors[position] for position in positions]
    latitude, longitude = (
        np.array([getattr(sensor, name) for sensor in sensors], np.float64) for name in ("latitude", "longitude")
    )
    apart = great_circle_km(latitude[:, None], longitude[:, None], latitude, longitude)
    _, group = connected_components(csr_array(apart <= same_place_km), directed=False)
    return tuple(
        tuple(sensor.id for sensor, own in zip(sensors, group, strict=True) if own == number)
        for number in dict.fromkeys(group.tolist())
    )
