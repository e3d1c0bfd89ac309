"""The arguments that determine a synthetic network, and the two kinds of network."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import index

import numpy as np

from candor.core.errors import InputError
from candor.core.registry import Registry


@dataclass(frozen=True)
class Kind:
    """What all networks of one kind have in common."""

    name: str  # what the kind is called
    unit: str  # of the readings and of every component
    interval: timedelta  # between two readings
    level: float  # what a sensor reads when nothing happens, on average over the sensors
    level_spread: float  # how far the level of one sensor may lie from `level`
    bounds: tuple[float, float]  # the smallest and largest reading; what lies beyond is clipped
    wave_speed: float  # of deviations on their way along an edge, km per hour
    reach: float  # the distance in km over which a travelling deviation falls to 1/e
    storage_size: float  # scales the stored amount; negative where a full store lowers the reading
    # in steps, until a store without inflow is down to 1/e; each sensor has one of these
    storage_lifetimes: tuple[float, ...]
    inflow_memory: float  # how long a burst of inflow lasts, in steps
    shock_lifetimes: tuple[float, ...]  # the same of shocks, in steps
    gap_length: float  # of missing readings on average, in steps
    # what is measured beside the readings, and in what unit
    covariate_units: Mapping[str, str] = field(default_factory=dict)

    @property
    def steps_per_day(self) -> int:
        """How many readings a day has."""
        return timedelta(days=1) // self.interval


KINDS: Registry[Kind] = Registry("kind of synthetic network")

for _kind in (
    Kind(
        name="river",
        unit="mg/L",  # of dissolved oxygen
        interval=timedelta(hours=1),
        level=8.8,
        level_spread=0.6,
        bounds=(0.0, 20.0),
        wave_speed=3.6,  # a metre per second, the pace of a lowland river
        reach=60.0,
        storage_size=2.5,
        storage_lifetimes=(12.0, 24.0, 48.0),
        inflow_memory=12.0,
        shock_lifetimes=(6.0, 12.0, 24.0),
        gap_length=12.0,
        covariate_units={"rain": "mm/h"},
    ),
    Kind(
        name="road",
        unit="mph",
        interval=timedelta(minutes=5),
        level=63.0,
        level_spread=2.0,
        bounds=(3.0, 75.0),
        wave_speed=20.0,  # congestion moves far slower than the cars in it
        reach=15.0,
        storage_size=-12.0,  # a queue is speed taken away
        storage_lifetimes=(6.0, 12.0, 24.0),
        inflow_memory=6.0,
        shock_lifetimes=(4.0, 6.0, 9.0),
        gap_length=24.0,
    ),
):
    KINDS.register(_kind.name)(_kind)

MOST_MISSING = 0.9

# Every ingredient draws from a stream of its own, in the order of time, so that neither the number of steps nor the
# pieces they are made in change a number. New streams go to the end.
_STREAMS = (
    *("network", "attenuation", "twins", "background", "lifetimes", "inflow"),
    *("regions", "shock times", "shock sizes", "rain lengths", "noise", "gaps"),
)


@dataclass(frozen=True)
class SyntheticRecipe:
    """What a synthetic network is made of; the same recipe gives the same numbers."""

    kind: str  # `river` or `road`
    sensors: int  # how many there are
    steps: int  # how many readings each sensor has
    seed: int = 0  # another seed gives another network with other weather
    noise: float = 0.01  # standard deviation of the noise as a share of the kind's level
    missing_share: float = 0.0  # share of the readings that is missing, in gaps, from 0 to 0.9
    # how many pairs of distant sensors share a background; None plants one pair for every eight sensors, at least 1 and
    # at most 64, or as many as the network has room for
    twin_pairs: int | None = None

    def __post_init__(self) -> None:
        KINDS.get(self.kind)
        for name, smallest in {"sensors": 1, "steps": 1, "seed": 0, "twin_pairs": 0}.items():
            number = getattr(self, name)
            if number is not None:
                if number < smallest:
                    _refuse(name, number, f"a whole number of at least {smallest}")
                object.__setattr__(self, name, index(number))  # NumPy's integers have no JSON
        if not 0 <= self.noise < math.inf:
            _refuse("noise", self.noise, "a number of zero or more")
        if not 0 <= self.missing_share <= MOST_MISSING:
            _refuse("missing_share", self.missing_share, f"a share from 0 to {MOST_MISSING}")

    @property
    def physics(self) -> Kind:
        """The numbers that all networks of this kind share."""
        return KINDS.get(self.kind)

    def stream(self, name: str) -> np.random.Generator:
        """Return the random numbers of one ingredient, from their beginning."""
        return stream_of(self.seed, _STREAMS, name)


def stream_of(seed: int, streams: Sequence[str], name: str) -> np.random.Generator:
    """Return the random numbers of one ingredient among `streams`, from their beginning."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(streams.index(name),)))


def _refuse(name: str, found: float, expected: str) -> None:
    raise InputError(f"{name} is {found}; expected {expected}", where="synthetic network")
