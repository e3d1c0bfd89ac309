"""The series that readings are made of: background, storage, shocks, transport along edges, and gaps.

The moving parts start from nothing before the first step, and `advance` goes on where it left off: a series made in
many pieces has the same numbers as one made at once.

    background(t) = level + sum over shapes k of amplitude_k x shape_k(t - phase_k)

Every shape repeats after a week. Twins have the same phases and, up to one common factor, the same amplitudes; their
levels differ.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from candor.core.arrays import Booleans, Doubles
from candor.data.panel import Edges
from candor.data.synthetic.network import Network
from candor.data.synthetic.recipe import SyntheticRecipe

_FIRST_WEEKDAY = 2  # the first of January 2020 is a Wednesday
_DAYS = 7

Series = Doubles  # time x sensor
Measured = dict[str, Series]  # by covariate


@dataclass(frozen=True, eq=False)
class Background:
    """The weekly shapes and what each sensor makes of them."""

    level: Doubles  # per sensor, in the unit of the readings
    amplitude: Doubles  # shape x sensor, in the unit of the readings
    phase: NDArray[np.int64]  # shape x sensor, in steps
    shapes: Doubles  # shape x step of the week, without unit

    def between(self, start: int, stop: int) -> Series:
        """Return the background of the steps `start` to `stop - 1`, time x sensor."""
        steps = np.arange(start, stop)[:, None]
        values = np.repeat(self.level[None], stop - start, axis=0)
        for shape, amplitude, phase in zip(self.shapes, self.amplitude, self.phase, strict=True):
            values += amplitude * shape[(steps - phase) % len(shape)]
        return values


def draw_background(recipe: SyntheticRecipe, twins: tuple[tuple[int, int], ...]) -> Background:
    """Return a background of own amplitudes and phases for every sensor, alike for twins."""
    generator, kind = recipe.stream("background"), recipe.physics
    level = kind.level + generator.uniform(-1, 1, recipe.sensors) * kind.level_spread
    draw = _river_shapes if kind.name == "river" else _road_shapes
    amplitude, phase, shapes = draw(kind.steps_per_day, recipe.sensors, generator)
    for first, second in twins:
        amplitude[:, second] = amplitude[:, first] * generator.uniform(0.85, 1.15)
        phase[:, second] = phase[:, first]
    return Background(level, amplitude, phase, shapes)


def _river_shapes(day: int, count: int, generator: np.random.Generator) -> tuple[Doubles, NDArray[np.int64], Doubles]:
    """Return amplitude, phase and shapes of oxygen that peaks in the afternoon, twice a day and once a week."""
    turns = 2 * np.pi * np.arange(_DAYS * day) / day
    afternoon = np.rint(generator.normal(9, 2.5, count)).astype(np.int64)  # a sine peaks six hours later
    ranges = [(0.5, 1.1), (0.15, 0.45), (0.15, 0.45)]  # mg/L
    amplitude = np.stack([generator.uniform(*ends, count) for ends in ranges])
    phase = [afternoon, generator.integers(day // 2, size=count), generator.integers(_DAYS * day, size=count)]
    return amplitude, np.stack(phase), np.stack([np.sin(turns), np.sin(2 * turns), np.sin(turns / _DAYS)])


def _road_shapes(day: int, count: int, generator: np.random.Generator) -> tuple[Doubles, NDArray[np.int64], Doubles]:
    """Return amplitude, phase and shapes of speeds that fall on working mornings and evenings, and on weekends."""
    step = np.arange(_DAYS * day)
    hour = step % day * 24 / day
    is_weekend = (_FIRST_WEEKDAY + step // day) % _DAYS >= 5
    morning = np.where(is_weekend, 0.0, _dip(hour, at=7.75, width=0.9))
    evening = np.where(is_weekend, 0.0, _dip(hour, at=17.25, width=1.3))
    outing = np.where(is_weekend, _dip(hour, at=14.0, width=2.2), 0.0)
    minutes_apart = generator.normal(0, 60, (3, count)).clip(-150, 150)
    ranges = [(1.0, 22.0), (1.0, 22.0), (0.5, 8.0)]  # mph
    amplitude = np.stack([generator.uniform(*ends, count) for ends in ranges])
    phase = np.rint(minutes_apart / (24 * 60 / day)).astype(np.int64)
    return amplitude, phase, np.stack([morning, evening, outing])


def _dip(hour: Doubles, at: float, width: float) -> Doubles:
    """Return a bell of depth -1 around the hour `at`, `width` hours from centre to shoulder."""
    return -np.exp(-0.5 * ((hour - at) / width) ** 2)


class DecayingSum:
    """A level that keeps a share of itself from step to step: y(t) = retention y(t - 1) + x(t)."""

    def __init__(self, retention: Doubles) -> None:
        self._retention = retention
        self._kept = np.zeros(len(retention))  # what the last level leaves for the next step

    def advance(self, inputs: Series) -> Series:
        """Return the level at the next steps, given what comes in at each of them."""
        from scipy.signal import lfilter  # slow to import, and every command imports this module

        levels = np.empty(inputs.shape)
        for retention in np.unique(self._retention):  # a handful of different ones
            columns = self._retention == retention
            levels[:, columns], kept = lfilter(
                [1.0], [1.0, -retention], inputs[:, columns], axis=0, zi=self._kept[None, columns]
            )
            self._kept[columns] = kept[0]
        return levels


class Storage:
    """What a linear reservoir holds: it fills in bursts of inflow and empties by a fixed share.

    Inflow is what a slowly wandering random series has above one standard deviation, so that it comes in smooth bursts
    and is zero about five sixths of the time.
    """

    def __init__(self, recipe: SyntheticRecipe, retention: Doubles) -> None:
        kind = recipe.physics
        memory = float(np.exp(-1 / kind.inflow_memory))
        self._generator = recipe.stream("inflow")
        self._step_size = np.sqrt(1 - memory**2)  # gives the wandering series a variance of one
        self._wandering = DecayingSum(np.full(recipe.sensors, memory))
        self._reservoir = DecayingSum(retention)
        self._inflow_size = kind.storage_size * (1 - retention)  # alike for slow and fast stores

    def advance(self, steps: int) -> Series:
        """Return the stored amount at the next steps, in the unit of the readings."""
        impulses = self._generator.standard_normal((steps, len(self._inflow_size)))
        wandering = self._wandering.advance(impulses * self._step_size)
        return self._reservoir.advance(np.maximum(wandering - 1, 0) * self._inflow_size)


class Transport:
    """What arrives from upstream: sum over incoming edges of attenuation x delayed total.

    The total deviation of a sensor is its own plus all that arrived there, so that a deviation travels on from sensor
    to sensor.
    """

    def __init__(self, edges: Edges, delays: NDArray[np.int64], attenuation: Doubles, sensors: int) -> None:
        self._edges = edges
        self._delays = delays
        self._attenuation = attenuation
        # The totals of the last steps, as many as the longest delay looks back.
        self._past = np.zeros((int(delays.max(initial=0)), sensors))

    def advance(self, own: Series) -> Series:
        """Return what arrives at the next steps, given the sensors' own deviations."""
        arrived = np.zeros(own.shape)
        if not len(self._edges):
            return arrived
        source, target = self._edges.source, self._edges.target
        longest, sensors = self._past.shape
        total = np.concatenate([self._past, own])
        # Step by step, because the shortest delay is one step and totals feed on totals.
        for step, row in enumerate(range(longest, len(total))):
            under_way = self._attenuation * total[row - self._delays, source]
            arrived[step] = np.bincount(target, weights=under_way, minlength=sensors)
            total[row] += arrived[step]
        self._past = total[len(own) :].copy()  # a view would keep the whole piece in memory
        return arrived


class RandomGaps:
    """When readings are missing: gaps of random length, each sensor for itself.

    Of a uniform number per step and sensor, a small one starts a gap, a large one ends it, and all others leave things
    as they were. Starts and ends are as frequent as the wanted share and the mean length of a gap ask for.
    """

    def __init__(self, generator: np.random.Generator, sensors: int, share: float, length: float) -> None:
        self._generator = generator
        self._end_chance = 1 / length  # the mean length of a gap, in steps
        self._start_chance = self._end_chance * share / (1 - share)
        self._is_missing = generator.random(sensors) < share

    def advance(self, steps: int) -> Booleans:
        """Return whether each reading of the next steps is missing, time x sensor."""
        draw = self._generator.random((steps, len(self._is_missing)))
        starts, ends = draw < self._start_chance, draw >= 1 - self._end_chance
        states = np.concatenate([self._is_missing[None], starts])
        decided = np.concatenate([np.ones((1, draw.shape[1]), bool), starts | ends])
        latest = np.maximum.accumulate(np.where(decided, np.arange(steps + 1)[:, None], 0), axis=0)
        missing = np.take_along_axis(states, latest, axis=0)[1:]
        self._is_missing = missing[-1]
        return missing


class Rain:
    """Rain that falls on a whole region at once and reaches its sensors a little later.

    In a region about every eighth day it starts to rain, hardest in the first hour. `RUNOFF_LAG` hours later all its
    sensors jump in proportion to the rain of that first hour: most down, because the runoff consumes oxygen, one in
    five up, because it is cold and clear.
    """

    RUNOFF_LAG = 2
    LONGEST = 8  # hours
    CHANCE = 1 / (8 * 24)  # that rain starts, per hour and region
    LIGHTEST, HEAVIEST = 3.0, 18.0  # mm in the first hour, before local differences
    FADE = 0.75  # from one hour of rain to the next
    SENSORS_PER_REGION = 8

    def __init__(self, recipe: SyntheticRecipe, network: Network) -> None:
        generator, count = recipe.stream("regions"), len(network.places)
        regions = max(1, round(count / self.SENSORS_PER_REGION))
        centres = generator.choice(count, regions, replace=False)
        _, self.region = KDTree(network.places[centres]).query(network.places)
        self.exposure = generator.uniform(0.8, 1.2, count)  # rain here per rain in the region
        sign = np.where(generator.random(count) < 0.2, 1.0, -1.0)
        self.response = sign * generator.uniform(0.08, 0.15, count)  # mg/L per mm
        streams = ("shock times", "shock sizes", "rain lengths")
        self._times, self._sizes, self._lengths = (recipe.stream(name) for name in streams)
        self._rain_to_come = np.zeros((self.LONGEST, regions))
        self._runoff_to_come = np.zeros((self.RUNOFF_LAG, regions))

    def advance(self, steps: int) -> tuple[Series, Measured]:
        """Return jumps (mg/L) and `rain` (mm per hour) of the next steps."""
        regions = self._rain_to_come.shape[1]
        when, where = np.nonzero(self._times.random((steps, regions)) < self.CHANCE)
        # The square makes light rain frequent and heavy rain rare.
        first_hour = self._sizes.random(len(when)) ** 2 * (self.HEAVIEST - self.LIGHTEST) + self.LIGHTEST
        hours = 1 + (self._lengths.random(len(when)) * self.LONGEST).astype(int)

        runoff, rain = (
            np.concatenate([to_come, np.zeros((steps, regions))])
            for to_come in (self._runoff_to_come, self._rain_to_come)
        )
        runoff[when + self.RUNOFF_LAG, where] = first_hour
        for hour in range(self.LONGEST):
            lasts = hours > hour
            cells = when[lasts] + hour, where[lasts]
            # Where two spells overlap the heavier one counts: unlike a sum, this comes out the same whichever of them
            # was drawn in an earlier piece.
            rain[cells] = np.maximum(rain[cells], first_hour[lasts] * self.FADE**hour)
        self._runoff_to_come, self._rain_to_come = runoff[steps:], rain[steps:]
        jumps = runoff[:steps, self.region] * (self.exposure * self.response)
        return jumps, {"rain": rain[:steps, self.region] * self.exposure}


class Incidents:
    """Accidents and broken-down cars: one sensor at a time loses 8 to 28 mph at once."""

    CHANCE = 1 / (10 * 288)  # per step and sensor: one in ten days
    SMALLEST, LARGEST = 8.0, 28.0  # mph

    def __init__(self, recipe: SyntheticRecipe) -> None:
        self._sensors = recipe.sensors
        self._times, self._sizes = recipe.stream("shock times"), recipe.stream("shock sizes")

    def advance(self, steps: int) -> tuple[Series, Measured]:
        """Return jumps (mph) of the next steps; nothing is measured beside the speeds."""
        happens = self._times.random((steps, self._sensors)) < self.CHANCE
        jumps = np.zeros(happens.shape)
        share = self._sizes.random(np.count_nonzero(happens))
        jumps[happens] = -(self.SMALLEST + (self.LARGEST - self.SMALLEST) * share)
        return jumps, {}
