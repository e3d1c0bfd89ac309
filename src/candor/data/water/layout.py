"""Where the sensors of a water network stand, and which edges join them.

Sensors stand at junctions that always carry water, at least a step of travel apart. An edge is a chain of links from
one sensor to the next through junctions without one, whose water always flows the same way; of several such chains the
one that brings most counts. A delay says something only where it is a matter of hours and much the same all day.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from candor.core.arrays import Doubles
from candor.data.panel import Edges, Sensor
from candor.data.synthetic.network import sensors_on_map
from candor.data.water.pipework import Pipework
from candor.data.water.recipe import UNIT, WaterRecipe

_LEAST_SHARE = 0.05  # of what flows into the receiver, for an edge to be one
_SHORTEST = 0.5  # steps; rounded, the delay is 1 or more
_LONGEST = 6.0  # hours
_WIDEST, _STEPS_OF_GRACE = 1.0, 2.0  # of the delay, or steps: how far the travel times of a day may lie apart
_TENTHS = (0.1, 0.5, 0.9)
_METRES = 1000.0


@dataclass(frozen=True, eq=False)
class Way:
    """A way of the water from one sensor to the next."""

    source: int  # positions of nodes
    target: int
    links: tuple[int, ...]
    share: float  # of the water at the target that came this way
    travel: tuple[float, float, float]  # steps: the first tenth, the median and the last tenth


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Sensors, edges, and how long the water takes along each, in steps."""

    nodes: NDArray[np.int64]  # of the sensors, positions in the pipework
    sensors: tuple[Sensor, ...]
    edges: Edges
    share: Doubles  # by edge
    travel: Doubles  # by edge, the median over the moments of departure
    travel_range: Doubles  # edge x 2: the first and the last tenth of the travel times


def lay_out(pipework: Pipework, recipe: WaterRecipe) -> Layout:
    """Return at most as many sensors as the recipe says, and the edges between them.

    Places at edges come first, then those where most water passes.
    """
    candidates = choose_nodes(pipework)
    longest = recipe.steps_in(_LONGEST)
    at_edges = {node for way in find_ways(pipework, candidates, longest) for node in (way.source, way.target)}
    order = sorted(candidates, key=lambda node: node not in at_edges)  # keeps the busier one first
    nodes = np.array(sorted(order[: recipe.sensors]), np.int64)
    place = {node: position for position, node in enumerate(nodes.tolist())}
    ways = find_ways(pipework, list(place), longest)
    lengths = [pipework.length[list(way.links)].sum() / _METRES for way in ways]
    travel = np.array([way.travel for way in ways], np.float64).reshape(-1, 3)
    return Layout(
        nodes=nodes,
        sensors=_on_map(pipework, nodes),
        edges=Edges(
            np.array([place[way.source] for way in ways], np.int32),
            np.array([place[way.target] for way in ways], np.int32),
            distance=np.array(lengths, np.float32),
            distance_unit="km",
        ),
        share=np.array([way.share for way in ways], np.float64),
        travel=travel[:, 1],
        travel_range=travel[:, [0, 2]],
    )


def find_ways(pipework: Pipework, nodes: list[int], longest: float) -> list[Way]:
    """Return the ways between neighbouring sensors whose delay says something; `longest` is in steps."""
    found = []
    for node in nodes:
        for links, target, share in chains_from(pipework, node, set(nodes)):
            travel = pipework.travel_times(links)
            if np.isfinite(travel).mean() > 1 / 2:
                early, median, late = (float(steps) for steps in np.nanquantile(travel, _TENTHS))
                widest = max(_WIDEST * median, _STEPS_OF_GRACE)
                if _SHORTEST <= median <= longest and late - early <= widest:
                    found.append(Way(node, target, links, share, (early, median, late)))
    return found


def choose_nodes(pipework: Pipework) -> list[int]:
    """Return the junctions that can have a sensor, the busiest first: always wet, and a step of travel apart."""
    graph = _fastest(pipework)
    turned = graph.T.tocsr()
    can_be = pipework.is_junction & pipework.always_wet()
    chosen: list[int] = []
    for node in np.argsort(-pipework.inflow.mean(axis=0), kind="stable").tolist():
        if can_be[node]:
            chosen.append(node)
            for way in (graph, turned):
                can_be &= ~np.isfinite(dijkstra(way, indices=node, limit=1.0))
    return chosen


def _fastest(pipework: Pipework) -> csr_array:
    """Return how many steps links that keep their direction take at their mean flow, sender x receiver."""
    steady = np.flatnonzero(pipework.direction)
    # A pump takes no time, which a sparse matrix could not say.
    steps = pipework.volume[steady] / np.abs(pipework.flow[:, steady]).mean(axis=0) / pipework.seconds + 1e-9
    fastest: dict[tuple[int, int], float] = {}
    for link, taken in zip(steady.tolist(), steps.tolist(), strict=True):
        ends = int(pipework.sender[link]), int(pipework.receiver[link])
        fastest[ends] = min(taken, fastest.get(ends, np.inf))  # of two side by side
    pairs = np.array(list(fastest), np.int64).reshape(-1, 2)
    nodes = len(pipework.nodes)
    return csr_array((np.array(list(fastest.values())), (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes))


def chains_from(pipework: Pipework, node: int, sensors: set[int]) -> list[tuple[tuple[int, ...], int, float]]:
    """Return the links to each next sensor, that sensor, and its share: of several ways the one that brings most."""
    leaving: dict[int, list[int]] = {}
    for link in np.flatnonzero(pipework.direction).tolist():
        leaving.setdefault(int(pipework.sender[link]), []).append(link)
    heap: list[tuple[float, int, tuple[int, ...]]] = [(-1.0, node, ())]
    done: set[int] = set()
    found = []
    while heap:
        negative, here, links = heappop(heap)
        if here in done:
            continue
        done.add(here)
        if here != node and here in sensors:
            found.append((links, here, -negative))
        elif here == node or pipework.is_junction[here]:  # a tank keeps what comes in
            for link in leaving.get(here, []):
                share = -negative * float(pipework.share[link])
                if share >= _LEAST_SHARE:
                    heappush(heap, (-share, int(pipework.receiver[link]), (*links, link)))
    return found


def _on_map(pipework: Pipework, nodes: NDArray[np.int64]) -> tuple[Sensor, ...]:
    """Return the sensors at their places in the file, which has no longitudes: its unit is what pipes are long."""
    between = np.linalg.norm(pipework.places[pipework.end] - pipework.places[pipework.start], axis=1)
    is_drawn = (between > 0) & (pipework.length > 0)
    kilometres = np.median(pipework.length[is_drawn] / between[is_drawn]) / _METRES if is_drawn.any() else 0.0
    centred = (pipework.places - pipework.places.mean(axis=0))[nodes] * kilometres
    return sensors_on_map([pipework.nodes[node] for node in nodes], centred, UNIT)
