"""Synthetic networks in memory: a panel and the truth about it.

reading     = background + storage + shock + transported + noise, clipped, then NaN where missing
transported = sum over incoming edges of attenuation x (storage + shock + transported) upstream, `delay` steps ago
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Booleans, Doubles
from candor.core.errors import InputError
from candor.data.panel import Covariate, Panel
from candor.data.synthetic.network import Network, build_network, choose_twins
from candor.data.synthetic.recipe import SyntheticRecipe
from candor.data.synthetic.series import (
    Background,
    DecayingSum,
    Incidents,
    Rain,
    RandomGaps,
    Storage,
    Transport,
    draw_background,
)
from candor.data.times import TimeAxis

COMPONENTS = ("background", "storage", "shock", "transported", "noise")
"""In the order in which they are summed."""
ZONE = "UTC-08:00"  # a fixed offset: no day of a synthetic network has 23 or 25 hours
START = datetime(2020, 1, 1, 8, tzinfo=UTC)  # midnight there
_MOST_ARRIVING = 0.8  # share of what the upstream sensors have; below 1 nothing can build up
_NUMBERS_PER_CHUNK = 2_000_000
_FEWEST_STEPS = 256  # Parquet files of very short row groups are mostly headings


@dataclass(frozen=True, eq=False)
class Shocks:
    """Injected jumps, in the order of time: when (step), where (position), how large (signed)."""

    time: NDArray[np.int64]
    sensor: NDArray[np.int64]
    size: Doubles

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False, kw_only=True)
class Laws:
    """What makes the readings of a network; edges and sensors are numbered as in the panel."""

    delays: NDArray[np.int64]  # per edge, in steps, at least 1
    attenuation: Doubles  # per edge, the share of a deviation that arrives
    twins: tuple[tuple[int, int], ...]  # pairs of positions of sensors that share a background and no path
    storage_retention: Doubles  # per sensor, the share of what is stored that is left one step later
    shock_retention: Doubles  # per sensor, the share of a shock that is left one step later
    bounds: tuple[float, float]  # the smallest and largest reading; the sum is clipped to them


@dataclass(frozen=True, eq=False, kw_only=True)
class Truth(Laws):
    """The laws, and the parts that the readings are the sum of.

    All series are time x sensor, in the unit of the readings; before the first step every storage, shock and transport
    is zero.
    """

    shocks: Shocks  # every jump that was injected; it then fades by `shock_retention` per step
    components: Mapping[str, NDArray[np.float32]]  # background, storage, shock, transported and noise

    def __post_init__(self) -> None:
        ordered = {name: self.components[name] for name in COMPONENTS}
        object.__setattr__(self, "components", MappingProxyType(ordered))

    @property
    def accumulation(self) -> NDArray[np.float32]:
        """By how much the stored amount rose in each step, zero where it fell."""
        return np.maximum(np.diff(self.components["storage"], axis=0, prepend=np.float32(0)), 0)

    @property
    def release(self) -> NDArray[np.float32]:
        """By how much the stored amount fell in each step, zero where it rose."""
        return np.maximum(-np.diff(self.components["storage"], axis=0, prepend=np.float32(0)), 0)

    @cached_property
    def clipped(self) -> Booleans:
        """Where the sum of the components lies beyond the bounds, so that the reading does not."""
        total = total_of(self.components)
        return (total < self.bounds[0]) | (total > self.bounds[1])


def total_of(components: Mapping[str, NDArray[np.float32]]) -> Doubles:
    """Return the sum of the components, which the readings are before clipping."""
    total = components[COMPONENTS[0]].astype(np.float64)
    for name in COMPONENTS[1:]:
        total += components[name]
    return total


@dataclass(frozen=True, eq=False, kw_only=True)
class World(Laws):
    """A network, what its sensors read when nothing happens, and the laws it will follow."""

    recipe: SyntheticRecipe
    times: TimeAxis
    network: Network
    background: Background

    @property
    def name(self) -> str:
        """What people call the panel."""
        return f"synthetic {self.recipe.kind}"

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the panel comes from: the recipe that makes it again."""
        return {"source": "candor.data.synthetic", "recipe": asdict(self.recipe)}


def settle(recipe: SyntheticRecipe) -> World:
    """Return the world that the recipe describes."""
    kind, network, lifetimes = recipe.physics, build_network(recipe), recipe.stream("lifetimes")
    twins = choose_twins(network, recipe)
    edges = network.edges
    assert edges.distance is not None  # every synthetic network knows its distances
    kilometres = edges.distance.astype(np.float64)
    kilometres_per_step = kind.wave_speed * (kind.interval / timedelta(hours=1))
    # What arrives mixes at joints: the shares that arrive at one sensor sum to less than 1, so that deviations stay
    # bounded whatever the network looks like.
    flow = recipe.stream("attenuation").uniform(0.5, 1.5, len(edges))
    mixing = flow / np.bincount(edges.target, weights=flow, minlength=recipe.sensors)[edges.target]
    return World(
        recipe=recipe,
        times=TimeAxis(START, kind.interval, recipe.steps, ZONE),
        network=network,
        delays=np.maximum(np.rint(kilometres / kilometres_per_step), 1).astype(np.int64),
        attenuation=_MOST_ARRIVING * mixing * np.exp(-kilometres / kind.reach),
        twins=twins,
        background=draw_background(recipe, twins),
        storage_retention=np.exp(-1 / lifetimes.choice(kind.storage_lifetimes, recipe.sensors)),
        shock_retention=np.exp(-1 / lifetimes.choice(kind.shock_lifetimes, recipe.sensors)),
        bounds=kind.bounds,
    )


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
    """Yield all steps of the world in order; the length of a chunk changes no number."""
    if chunk_steps is not None and chunk_steps < 1:
        raise InputError(f"a chunk of {chunk_steps} steps is too short; expected 1 or more")
    recipe, network = world.recipe, world.network
    length = chunk_steps or max(_FEWEST_STEPS, _NUMBERS_PER_CHUNK // recipe.sensors)
    shocks = Rain(recipe, network) if recipe.kind == "river" else Incidents(recipe)
    storing = Storage(recipe, world.storage_retention)
    fading = DecayingSum(world.shock_retention)
    moving = Transport(network.edges, world.delays, world.attenuation, recipe.sensors)
    noise, noise_size = recipe.stream("noise"), recipe.noise * recipe.physics.level
    gaps = RandomGaps(recipe.stream("gaps"), recipe.sensors, recipe.missing_share, recipe.physics.gap_length)
    for start in range(0, recipe.steps, length):
        stop = min(start + length, recipe.steps)
        steps = stop - start
        jumps, covariates = shocks.advance(steps)
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
        readings = total_of(rounded).clip(*world.bounds).astype(np.float32)
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


def generate_river(
    sensors: int = 24,
    steps: int = 8_760,
    seed: int = 0,
    *,
    noise: float = 0.01,
    missing_share: float = 0.0,
    twin_pairs: int | None = None,
) -> tuple[Panel, Truth]:
    """Return hourly dissolved oxygen (mg/L) of a river, its covariate `rain`, and the truth.

    Args:
        sensors: how many there are.
        steps: how many hours; by default a year.
        seed: another seed gives another river with other weather.
        noise: standard deviation of the noise as a share of the mean level, 8.8 mg/L.
        missing_share: share of the readings that is missing, in gaps, from 0 to 0.9.
        twin_pairs: pairs of sensors that share a background; None lets the size decide.
    """
    return generate(SyntheticRecipe("river", sensors, steps, seed, noise, missing_share, twin_pairs))


def generate_road(
    sensors: int = 40,
    steps: int = 8 * 7 * 288,
    seed: int = 0,
    *,
    noise: float = 0.01,
    missing_share: float = 0.0,
    twin_pairs: int | None = None,
) -> tuple[Panel, Truth]:
    """Return speeds (mph) on a road network every five minutes, by default for eight weeks, and the truth about them.

    The arguments are those of `generate_river`; the mean level that `noise` is a share of is the free flow, 63 mph.
    """
    return generate(SyntheticRecipe("road", sensors, steps, seed, noise, missing_share, twin_pairs))


def generate(recipe: SyntheticRecipe, chunk_steps: int | None = None) -> tuple[Panel, Truth]:
    """Return the panel and the truth of a recipe; the length of a chunk changes no number."""
    world, units = settle(recipe), recipe.physics.covariate_units
    chunks = list(chunks_of(world, chunk_steps))
    readings = _joined([chunk.readings for chunk in chunks])
    covariates = {name: _joined([chunk.covariates[name] for chunk in chunks]) for name in units}
    shocks = ([getattr(chunk.shocks, name) for chunk in chunks] for name in ("time", "sensor", "size"))
    panel = Panel(
        values=readings,
        times=world.times,
        sensors=world.network.sensors,
        edges=world.network.edges,
        covariates={name: Covariate(values, units[name]) for name, values in covariates.items()},
        name=world.name,
        provenance=world.provenance,
    )
    truth = Truth(
        **{field.name: getattr(world, field.name) for field in fields(Laws)},
        shocks=Shocks(*(np.concatenate(parts) for parts in shocks)),
        components={name: _joined([chunk.components[name] for chunk in chunks]) for name in COMPONENTS},
    )
    return panel, truth


def _joined(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    series = np.concatenate(parts)
    series.flags.writeable = False
    return series
