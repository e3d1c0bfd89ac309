"""The arguments that determine the readings of a water network."""

import math
from dataclasses import dataclass
from datetime import timedelta
from operator import index

import numpy as np

from candor.core.errors import InputError
from candor.data.synthetic.recipe import MOST_MISSING, stream_of
from candor.data.times import DAY

UNIT = "mg/L"
LEVEL = 1.0  # mg/L, what the sources are dosed with on average

# New streams go to the end; see `candor.data.synthetic.recipe`.
_STREAMS = ("demands", "dosing", "injection times", "injection sizes", "lifetimes", "noise", "gaps")
_WHERE = "water network"


@dataclass(frozen=True)
class WaterRecipe:
    """What the readings of a water network are made of; the same recipe gives the same numbers."""

    source: str = "Net3"  # a network that ships with wntr, or the path of an EPANET input file (.inp)
    seed: int = 0  # another seed gives other demands, other dosing and other injections in the same network
    steps: int = 8 * 7 * 96  # how many readings each sensor has
    sensors: int = 40  # at most; places at edges come first
    noise: float = 0.03  # standard deviation of the noise as a share of the mean dose, 1 mg/L
    missing_share: float = 0.0  # share of the readings that is missing, in gaps, from 0 to 0.9
    minutes: int = 15  # between two readings; a day must be a whole number of them

    def __post_init__(self) -> None:
        for name, smallest in {"seed": 0, "steps": 2, "sensors": 1, "minutes": 1}.items():
            number = getattr(self, name)
            if number < smallest:
                _refuse(name, number, f"a whole number of at least {smallest}")
            object.__setattr__(self, name, index(number))  # NumPy's integers have no JSON
        if DAY % self.interval:
            _refuse("minutes", self.minutes, "a number that divides the 1,440 minutes of a day")
        if not 0 <= self.noise < math.inf:
            _refuse("noise", self.noise, "a number of zero or more")
        if not 0 <= self.missing_share <= MOST_MISSING:
            _refuse("missing_share", self.missing_share, f"a share from 0 to {MOST_MISSING}")

    @property
    def interval(self) -> timedelta:
        """The time between two readings."""
        return timedelta(minutes=self.minutes)

    @property
    def seconds(self) -> int:
        """The seconds between two readings."""
        return 60 * self.minutes

    @property
    def steps_per_day(self) -> int:
        """How many readings a day has."""
        return DAY // self.interval

    def steps_in(self, hours: float) -> float:
        """Return how many steps a number of hours are."""
        return hours * self.steps_per_day / 24

    def stream(self, name: str) -> np.random.Generator:
        """Return the random numbers of one ingredient, from their beginning."""
        return stream_of(self.seed, _STREAMS, name)


def _refuse(name: str, found: float, expected: str) -> None:
    raise InputError(f"{name} is {found}; expected {expected}", where=_WHERE)
