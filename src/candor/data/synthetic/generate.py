"""Synthetic networks in memory: a panel and the truth about it.

reading     = background + storage + shock + transported + noise, clipped, then NaN where missing
transported = sum over incoming edges of attenuation x (storage + shock + transported) upstream,
              `delay` steps ago
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.panel import Covariate, Edges, Panel
from candor.data.synthetic.network import Network, build_network, choose_twins
from candor.data.synthetic.recipe import Kind, Recipe
from candor.data.synthetic.series import Background, DecayingSum, Gaps, Storage, Transport, draw_background, shocks_of
from candor.data.times import TimeAxis

# In the order in which they are summed.
COMPONENTS = ("background", "storage", "shock", "transported", "noise")


@dataclass(frozen=True, eq=False)
class Shocks:
    """Injected jumps, in the order of time: when (step), where (position), how large (signed)."""

    time: NDArray[np.int64]
    sensor: NDArray[np.int64]
    size: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class Truth:
    """The parts that the readings are the sum of, and the laws that made them.

    All series are time x sensor, in the unit of the readings; before the first step every storage,
    shock and transport is zero. Edges and sensors are numbered as in the panel.

    Args:
        delays: per edge, in steps.
        attenuation: per edge, the share of a deviation that arrives.
        shocks: every jump that was injected; it then fades by `shock_retention` per step.
        components: background, storage, shock, transported and noise.
        twins: pairs of positions of sensors that share a background and no path.
        storage_retention: per sensor, the share of what is stored that is left one step later.
        shock_retention: per sensor, the share of a shock that is left one step later.
        bounds: the smallest and largest reading; the sum is clipped to them.
    """

    delays: NDArray[np.int64]
    attenuation: NDArray[np.float64]
    shocks: Shocks
    components: Mapping[str, NDArray[np.float32]]
    twins: tuple[tuple[int, int], ...]
    storage_retention: NDArray[np.float64]
    shock_retention: NDArray[np.float64]
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        ordered = {name: self.components[name] for name in COMPONENTS}
        object.__setattr__(self, "components", MappingProxyType(ordered))

    @property
    def accumulation(self) -> NDArray[np.float32]:
        """By how much the stored amount rose in each step, zero where it fell."""
        return np.maximum(self._storage_change, 0)

    @property
    def release(self) -> NDArray[np.float32]:
        """By how much the stored amount fell in each step, zero where it rose."""
        return np.maximum(-self._storage_change, 0)

    @cached_property
    def clipped(self) -> NDArray[np.bool_]:
        """Where the sum of the components lies beyond the bounds, so that the reading does not."""
        low, high = self.bounds
        total = total_of(self.components)
        return (total < low) | (total > high)

    @property
    def _storage_change(self) -> NDArray[np.float32]:
        storage = self.components["storage"]
        return np.diff(storage, axis=0, prepend=np.zeros_like(storage[:1]))


def total_of(components: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    """Returns the sum of the components, which the readings are before clipping."""
    total = components[COMPONENTS[0]].astype(np.float64)
    for name in COMPONENTS[1:]:
        total += components[name]
    return total


ZONE = "UTC-08:00"  # a fixed offset: no day of a synthetic network has 23 or 25 hours
START = datetime(2020, 1, 1, 8, tzinfo=UTC)  # midnight there
_MOST_ARRIVING = 0.8  # share of what the upstream sensors have; below 1 nothing can build up


@dataclass(frozen=True, eq=False)
class World:
    """A network and the laws it will follow.

    Args:
        recipe: what it was made from.
        times: of the readings.
        network: sensors and edges.
        delays: per edge, in steps, at least 1.
        attenuation: per edge, the share of a deviation that arrives, between 0 and 1.
        twins: pairs of positions of sensors that share a background.
        background: what the sensors read when nothing happens.
        storage_retention: per sensor, the share of what is stored that is left one step later.
        shock_retention: per sensor, the share of a shock that is left one step later.
    """

    recipe: Recipe
    times: TimeAxis
    network: Network
    delays: NDArray[np.int64]
    attenuation: NDArray[np.float64]
    twins: tuple[tuple[int, int], ...]
    background: Background
    storage_retention: NDArray[np.float64]
    shock_retention: NDArray[np.float64]

    @property
    def name(self) -> str:
        """What people call the panel."""
        return f"synthetic {self.recipe.kind}"

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the panel comes from: the recipe that makes it again."""
        return {"source": "candor.data.synthetic", "recipe": asdict(self.recipe)}


def settle(recipe: Recipe) -> World:
    """Returns the world that the recipe describes."""
    kind = recipe.physics
    network = build_network(recipe)
    twins = choose_twins(network, recipe)
    lifetimes = recipe.stream("lifetimes")
    return World(
        recipe=recipe,
        times=TimeAxis(START, kind.interval, recipe.steps, ZONE),
        network=network,
        delays=_delays(network.edges, kind),
        attenuation=_attenuation(network.edges, kind, recipe),
        twins=twins,
        background=draw_background(recipe, twins),
        storage_retention=np.exp(-1 / lifetimes.choice(kind.storage_lifetimes, recipe.sensors)),
        shock_retention=np.exp(-1 / lifetimes.choice(kind.shock_lifetimes, recipe.sensors)),
    )


def _kilometres(edges: Edges) -> NDArray[np.float64]:
    assert edges.distance is not None  # every synthetic network knows its distances
    return edges.distance.astype(np.float64)


def _delays(edges: Edges, kind: Kind) -> NDArray[np.int64]:
    """Returns the steps that a deviation takes along each edge, rounded, at least 1."""
    kilometres_per_step = kind.wave_speed * (kind.interval / timedelta(hours=1))
    return np.maximum(np.rint(_kilometres(edges) / kilometres_per_step), 1).astype(np.int64)


def _attenuation(edges: Edges, kind: Kind, recipe: Recipe) -> NDArray[np.float64]:
    """Returns the share that arrives along each edge: it falls with distance and mixes at joints.

    The shares that arrive at one sensor sum to less than 1, so that deviations stay bounded
    whatever the network looks like.
    """
    flow = recipe.stream("attenuation").uniform(0.5, 1.5, len(edges))
    together = np.bincount(edges.target, weights=flow, minlength=recipe.sensors)
    mixing = flow / together[edges.target]
    return _MOST_ARRIVING * mixing * np.exp(-_kilometres(edges) / kind.reach)


_NUMBERS_PER_CHUNK = 2_000_000
_FEWEST_STEPS = 256  # Parquet files of very short row groups are mostly headings


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive steps of a synthetic network; all series are time x sensor."""

    start: int
    stop: int
    readings: NDArray[np.float32]
    covariates: dict[str, NDArray[np.float32]]
    components: dict[str, NDArray[np.float32]]
    shocks: Shocks


def chunks_of(world: World, chunk_steps: int | None = None) -> Iterator[Chunk]:
    """Yields all steps of the world in order; the length of a chunk changes no number."""
    if chunk_steps is not None and chunk_steps < 1:
        raise InputError(f"a chunk of {chunk_steps} steps is too short; expected 1 or more")
    recipe, network = world.recipe, world.network
    length = chunk_steps or max(_FEWEST_STEPS, _NUMBERS_PER_CHUNK // recipe.sensors)
    source = shocks_of(recipe, network)
    storing = Storage(recipe, world.storage_retention)
    fading = DecayingSum(world.shock_retention)
    moving = Transport(network.edges, world.delays, world.attenuation, recipe.sensors)
    noise = recipe.stream("noise")
    noise_size = recipe.noise * recipe.physics.level
    gaps = Gaps(recipe)
    for start in range(0, recipe.steps, length):
        stop = min(start + length, recipe.steps)
        steps = stop - start
        jumps, covariates = source.advance(steps)
        storage, shock = storing.advance(steps), fading.advance(jumps)
        components = {
            "background": world.background.between(start, stop),
            "storage": storage,
            "shock": shock,
            "transported": moving.advance(storage + shock),
            "noise": noise.standard_normal((steps, recipe.sensors)) * noise_size,
        }
        rounded = {name: part.astype(np.float32) for name, part in components.items()}
        # The rounded components are summed, so that the truth on record sums to the readings.
        readings = total_of(rounded).clip(*recipe.physics.bounds).astype(np.float32)
        readings[gaps.advance(steps)] = np.nan
        time, sensor = np.nonzero(jumps)
        yield Chunk(
            start=start,
            stop=stop,
            readings=readings,
            covariates={name: part.astype(np.float32) for name, part in covariates.items()},
            components=rounded,
            shocks=Shocks(time + start, sensor, jumps[time, sensor]),
        )


_A_YEAR_OF_HOURS = 8_760
_EIGHT_WEEKS_OF_FIVE_MINUTES = 8 * 7 * 288


def generate_river(
    sensors: int = 24,
    steps: int = _A_YEAR_OF_HOURS,
    seed: int = 0,
    *,
    noise: float = 0.01,
    missing_share: float = 0.0,
    twin_pairs: int | None = None,
) -> tuple[Panel, Truth]:
    """Returns hourly dissolved oxygen (mg/L) of a river, its covariate `rain`, and the truth.

    Args:
        sensors: how many there are.
        steps: how many hours.
        seed: another seed gives another river with other weather.
        noise: standard deviation of the noise as a share of the mean level, 8.8 mg/L.
        missing_share: share of the readings that is missing, in gaps, from 0 to 0.9.
        twin_pairs: pairs of sensors that share a background; None lets the size decide.
    """
    return generate(Recipe("river", sensors, steps, seed, noise, missing_share, twin_pairs))


def generate_road(
    sensors: int = 40,
    steps: int = _EIGHT_WEEKS_OF_FIVE_MINUTES,
    seed: int = 0,
    *,
    noise: float = 0.01,
    missing_share: float = 0.0,
    twin_pairs: int | None = None,
) -> tuple[Panel, Truth]:
    """Returns speeds (mph) on a road network every five minutes, and the truth about them.

    Args:
        sensors: how many there are.
        steps: how many times five minutes.
        seed: another seed gives another network with other incidents.
        noise: standard deviation of the noise as a share of the mean free flow, 63 mph.
        missing_share: share of the readings that is missing, in gaps, from 0 to 0.9.
        twin_pairs: pairs of sensors that share a background; None lets the size decide.
    """
    return generate(Recipe("road", sensors, steps, seed, noise, missing_share, twin_pairs))


def generate(recipe: Recipe, chunk_steps: int | None = None) -> tuple[Panel, Truth]:
    """Returns the panel and the truth of a recipe; the length of a chunk changes no number."""
    world, kind = settle(recipe), recipe.physics
    shape = (recipe.steps, recipe.sensors)
    readings = np.empty(shape, np.float32)
    covariates = {name: np.empty(shape, np.float32) for name in kind.covariate_units}
    components = {name: np.empty(shape, np.float32) for name in COMPONENTS}
    shocks: list[Shocks] = []
    for chunk in chunks_of(world, chunk_steps):
        rows = slice(chunk.start, chunk.stop)
        readings[rows] = chunk.readings
        for name, series in covariates.items():
            series[rows] = chunk.covariates[name]
        for name, series in components.items():
            series[rows] = chunk.components[name]
        shocks.append(chunk.shocks)
    for series in (readings, *covariates.values(), *components.values()):
        series.flags.writeable = False
    units = kind.covariate_units
    panel = Panel(
        values=readings,
        times=world.times,
        sensors=world.network.sensors,
        edges=world.network.edges,
        covariates={name: Covariate(covariates[name], units[name]) for name in covariates},
        name=world.name,
        provenance=world.provenance,
    )
    truth = Truth(
        delays=world.delays,
        attenuation=world.attenuation,
        shocks=Shocks(
            np.concatenate([part.time for part in shocks]),
            np.concatenate([part.sensor for part in shocks]),
            np.concatenate([part.size for part in shocks]),
        ),
        components=components,
        twins=world.twins,
        storage_retention=world.storage_retention,
        shock_retention=world.shock_retention,
        bounds=kind.bounds,
    )
    return panel, truth
