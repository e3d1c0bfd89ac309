"""The arguments that settle a synthetic network down to its last digit."""

import math
from dataclasses import dataclass
from operator import index

import numpy as np

from candor.core.errors import InputError
from candor.data.synthetic.kinds import KINDS, Kind

MOST_MISSING = 0.9

# Every ingredient draws from a stream of its own, in the order of time, so that neither the
# number of steps nor the pieces they are made in change a number. New streams go to the end.
_STREAMS = (
    "network",
    "attenuation",
    "twins",
    "background",
    "lifetimes",
    "inflow",
    "regions",
    "shock times",
    "shock sizes",
    "rain lengths",
    "noise",
    "gaps",
)


@dataclass(frozen=True)
class Recipe:
    """What a synthetic network is made of; the same recipe gives the same numbers.

    Args:
        kind: `river` or `road`.
        sensors: how many there are.
        steps: how many readings each sensor has.
        seed: another seed gives another network with other weather.
        noise: standard deviation of the noise as a share of the kind's level.
        missing_share: share of the readings that is missing, in gaps, from 0 to 0.9.
        twin_pairs: how many pairs of distant sensors share a background; None plants one pair for
            every eight sensors, at least 1 and at most 64, or as many as the network has room for.
    """

    kind: str
    sensors: int
    steps: int
    seed: int = 0
    noise: float = 0.01
    missing_share: float = 0.0
    twin_pairs: int | None = None

    def __post_init__(self) -> None:
        KINDS.get(self.kind)
        least = {"sensors": 1, "steps": 1, "seed": 0, "twin_pairs": 0}
        for name, smallest in least.items():
            number = getattr(self, name)
            if number is None:
                continue
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
        """Returns the random numbers of one ingredient, from their beginning."""
        seeds = np.random.SeedSequence(self.seed, spawn_key=(_STREAMS.index(name),))
        return np.random.default_rng(seeds)


def _refuse(name: str, found: float, expected: str) -> None:
    raise InputError(f"{name} is {found}; expected {expected}", where="synthetic network")
