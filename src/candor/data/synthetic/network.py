"""Where the sensors of a synthetic network lie and how they are connected.

A river is a tree: every sensor but the outlet has one downstream neighbour, and at a confluence two reaches join. A
road network is a set of one-way corridors; each leaves an earlier one at a junction, or joins it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from candor.core.errors import InputError
from candor.data.panel import Edges, Sensor
from candor.data.synthetic.recipe import SyntheticRecipe

_ORIGIN = (45.0, -122.0)  # latitude, longitude
_KM_PER_DEGREE = 111.2
_CONFLUENCE_CHANCE = 0.4
_WINDING = 1.3  # km of river per km as the crow flies
_SENSORS_PER_CORRIDOR = 7
_SENSORS_PER_PAIR, _MOST_PAIRS = 8, 64

Links = dict[tuple[int, int], float]  # (from, to) -> km


@dataclass(frozen=True, eq=False)
class Network:
    """Sensors, the directed edges between them, and their places in km east and north."""

    sensors: tuple[Sensor, ...]
    edges: Edges
    places: NDArray[np.float64]


def build_network(recipe: SyntheticRecipe) -> Network:
    """Return the network that the recipe asks for."""
    lay_out = _river if recipe.kind == "river" else _road
    places, links = lay_out(recipe.sensors, recipe.stream("network"))
    ends = np.array(list(links), np.int32).reshape(-1, 2)
    lengths = np.array(list(links.values()), np.float32)
    edges = Edges(ends[:, 0], ends[:, 1], distance=lengths, distance_unit="km")
    return Network(_sensors_at(places, recipe), edges, places)


def _river(count: int, generator: np.random.Generator) -> tuple[NDArray[np.float64], Links]:
    """Return places and links of a river; sensor 0 is the outlet, at the origin."""
    places = np.zeros((count, 2))
    headings = np.zeros(count)  # upstream, in radians from north
    links: Links = {}
    springs: list[int] = [0]  # sensors with no tributary so far
    reaches: list[int] = []  # sensors with one
    for sensor in range(1, count):
        joins = bool(reaches) and generator.random() < _CONFLUENCE_CHANCE
        downstream = _take_any(reaches if joins else springs, generator)
        if not joins:
            reaches.append(downstream)
        springs.append(sensor)
        fork = generator.choice([-0.7, 0.7]) if joins else 0.0
        headings[sensor] = 0.8 * headings[downstream] + fork + generator.normal(0, 0.2)
        length = 3.0 + min(generator.gamma(2.0, 3.5), 30.0)
        links[sensor, downstream] = length
        places[sensor] = places[downstream] + length / _WINDING * _toward(headings[sensor])
    return places, links


def _take_any(pool: list[int], generator: np.random.Generator) -> int:
    """Return a member taken out of the pool, without shifting the others."""
    place = int(generator.integers(len(pool)))
    pool[place], pool[-1] = pool[-1], pool[place]
    return pool.pop()


def _road(count: int, generator: np.random.Generator) -> tuple[NDArray[np.float64], Links]:
    """Return places and links of a road network; the first corridor starts at the origin."""
    places = np.zeros((count, 2))
    headings = np.zeros(count)  # away from the origin, in radians from north
    links: Links = {}
    junctions = max(1, round(count / _SENSORS_PER_CORRIDOR)) - 1
    starts_corridor = np.zeros(count, bool)
    starts_corridor[1 + generator.choice(count - 1, junctions, replace=False)] = True
    flows_outward = True
    for sensor in range(1, count):
        at_junction = starts_corridor[sensor]
        before = int(generator.integers(sensor)) if at_junction else sensor - 1
        bend = generator.choice([-1.3, 1.3]) if at_junction else 0.0
        if at_junction:
            flows_outward = generator.random() < 0.5
        headings[sensor] = headings[before] + bend + generator.normal(0, 0.15)
        length = generator.uniform(0.5, 8.0)
        links[(before, sensor) if flows_outward else (sensor, before)] = length
        places[sensor] = places[before] + length * _toward(headings[sensor])
    return places, links


def _toward(heading: float) -> NDArray[np.float64]:
    """Return the step of one km east and north that leads toward `heading`."""
    return np.array([np.sin(heading), np.cos(heading)])


def _sensors_at(places: NDArray[np.float64], recipe: SyntheticRecipe) -> tuple[Sensor, ...]:
    digits = len(str(len(places)))
    ids = [f"{recipe.kind}-{number + 1:0{digits}d}" for number in range(len(places))]
    return sensors_on_map(ids, places, recipe.physics.unit)


def sensors_on_map(ids: Sequence[str], places: NDArray[np.float64], unit: str) -> tuple[Sensor, ...]:
    """Return sensors at places given in km east and north of a made-up origin."""
    latitude = _ORIGIN[0] + places[:, 1] / _KM_PER_DEGREE
    longitude = _ORIGIN[1] + places[:, 0] / (_KM_PER_DEGREE * np.cos(np.radians(_ORIGIN[0])))
    return tuple(
        Sensor(id=name, latitude=round(float(north), 5), longitude=round(float(east), 5), unit=unit)
        for name, north, east in zip(ids, latitude, longitude, strict=True)
    )


def choose_twins(network: Network, recipe: SyntheticRecipe) -> tuple[tuple[int, int], ...]:
    """Return pairs of sensor positions, no sensor in two pairs, without a path either way.

    The second of a pair is one of the farther half of the sensors that the first could have. A network too small for
    the default number has fewer pairs, or none; a number that was asked for and does not fit is refused.
    """
    generator, count, wanted = recipe.stream("twins"), len(network.sensors), recipe.twin_pairs
    most = min(max(1, count // _SENSORS_PER_PAIR), _MOST_PAIRS) if wanted is None else wanted
    ends = network.edges.source, network.edges.target
    downstream = csr_array((np.ones(len(network.edges)), ends), shape=(count, count))
    graphs = downstream, downstream.T.tocsr()
    is_free = np.ones(count, bool)
    pairs: list[tuple[int, int]] = []
    for first in generator.permutation(count).tolist():
        if len(pairs) == most:
            break
        if not is_free[first]:
            continue
        can_be = is_free.copy()
        for graph in graphs:
            can_be[breadth_first_order(graph, first, return_predecessors=False)] = False
        candidates = np.flatnonzero(can_be)
        if not len(candidates):
            continue
        away = np.linalg.norm(network.places[candidates] - network.places[first], axis=1)
        second = int(generator.choice(candidates[away >= np.median(away)]))
        is_free[[first, second]] = False
        pairs.append((first, second))
    if wanted is not None and len(pairs) < wanted:
        raise InputError(
            f"there is room for {len(pairs)} pairs of twins, not for {wanted}",
            where="synthetic network",
            hint="ask for more sensors, or for fewer twin_pairs",
        )
    return tuple(pairs)
