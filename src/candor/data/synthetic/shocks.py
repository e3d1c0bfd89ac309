"""Sudden jumps at known times: rain over a region of a river, incidents at single road sensors.

Both kinds are made piece by piece: `advance(steps)` returns the jumps of the next steps, time x
sensor, in the unit of the readings, and what is measured beside the readings meanwhile.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from candor.data.synthetic.network import Network
from candor.data.synthetic.recipe import Recipe

Measured = dict[str, NDArray[np.float64]]  # covariate -> time x sensor


class ShockSource(Protocol):
    """A source of jumps."""

    def advance(self, steps: int) -> tuple[NDArray[np.float64], Measured]:
        """Returns jumps and covariates of the next steps."""
        ...


def shocks_of(recipe: Recipe, network: Network) -> ShockSource:
    """Returns the source of jumps that suits the kind of network, at its first step."""
    return Rain(recipe, network) if recipe.kind == "river" else Incidents(recipe)


class Rain:
    """Rain that falls on a whole region at once and reaches its sensors a little later.

    In a region about every eighth day it starts to rain, hardest in the first hour. `RUNOFF_LAG`
    hours later all its sensors jump in proportion to the rain of that first hour: most down,
    because the runoff consumes oxygen, one in five up, because it is cold and clear.
    """

    RUNOFF_LAG = 2
    LONGEST = 8  # hours
    CHANCE = 1 / (8 * 24)  # that rain starts, per hour and region
    LIGHTEST, HEAVIEST = 3.0, 18.0  # mm in the first hour, before local differences
    FADE = 0.75  # from one hour of rain to the next
    SENSORS_PER_REGION = 8

    def __init__(self, recipe: Recipe, network: Network) -> None:
        generator = recipe.stream("regions")
        count = len(network.places)
        regions = max(1, round(count / self.SENSORS_PER_REGION))
        centres = generator.choice(count, regions, replace=False)
        _, self.region = KDTree(network.places[centres]).query(network.places)
        self.exposure = generator.uniform(0.8, 1.2, count)  # rain here per rain in the region
        sign = np.where(generator.random(count) < 0.2, 1.0, -1.0)
        self.response = sign * generator.uniform(0.08, 0.15, count)  # mg/L per mm
        self._times = recipe.stream("shock times")
        self._sizes = recipe.stream("shock sizes")
        self._lengths = recipe.stream("rain lengths")
        self._rain_to_come = np.zeros((self.LONGEST, regions))
        self._runoff_to_come = np.zeros((self.RUNOFF_LAG, regions))

    def advance(self, steps: int) -> tuple[NDArray[np.float64], Measured]:
        """Returns jumps (mg/L) and `rain` (mm per hour) of the next steps."""
        regions = self._rain_to_come.shape[1]
        when, where = np.nonzero(self._times.random((steps, regions)) < self.CHANCE)
        # The square makes light rain frequent and heavy rain rare.
        first_hour = self._sizes.random(len(when)) ** 2 * (self.HEAVIEST - self.LIGHTEST)
        first_hour += self.LIGHTEST
        hours = 1 + (self._lengths.random(len(when)) * self.LONGEST).astype(int)

        runoff = np.concatenate([self._runoff_to_come, np.zeros((steps, regions))])
        runoff[when + self.RUNOFF_LAG, where] = first_hour
        rain = np.concatenate([self._rain_to_come, np.zeros((steps, regions))])
        for hour in range(self.LONGEST):
            lasts = hours > hour
            cells = when[lasts] + hour, where[lasts]
            # Where two spells overlap the heavier one counts: unlike a sum, this comes out the
            # same whichever of them was drawn in an earlier piece.
            rain[cells] = np.maximum(rain[cells], first_hour[lasts] * self.FADE**hour)
        self._runoff_to_come, self._rain_to_come = runoff[steps:], rain[steps:]
        jumps = runoff[:steps, self.region] * (self.exposure * self.response)
        return jumps, {"rain": rain[:steps, self.region] * self.exposure}


class Incidents:
    """Accidents and broken-down cars: one sensor at a time loses 8 to 28 mph at once."""

    CHANCE = 1 / (10 * 288)  # per step and sensor: one in ten days
    SMALLEST, LARGEST = 8.0, 28.0  # mph

    def __init__(self, recipe: Recipe) -> None:
        self._sensors = recipe.sensors
        self._times = recipe.stream("shock times")
        self._sizes = recipe.stream("shock sizes")

    def advance(self, steps: int) -> tuple[NDArray[np.float64], Measured]:
        """Returns jumps (mph) of the next steps; nothing is measured beside the speeds."""
        happens = self._times.random((steps, self._sensors)) < self.CHANCE
        jumps = np.zeros(happens.shape)
        share = self._sizes.random(np.count_nonzero(happens))
        jumps[happens] = -(self.SMALLEST + (self.LARGEST - self.SMALLEST) * share)
        return jumps, {}
