"""The moving parts of a synthetic network, each made piece by piece.

Every ingredient starts from nothing before the first step, and `advance` takes up where it left
off: a series made in many pieces has the same numbers as one made at once.
"""

import numpy as np
from numpy.typing import NDArray

from candor.data.panel import Edges
from candor.data.synthetic.recipe import Recipe

Series = NDArray[np.float64]  # time x sensor


class DecayingSum:
    """A level that keeps a share of itself from step to step: y(t) = retention y(t - 1) + x(t)."""

    def __init__(self, retention: NDArray[np.float64]) -> None:
        self._retention = retention
        self._kept = np.zeros(len(retention))  # what the last level leaves for the next step

    def advance(self, inputs: Series) -> Series:
        """Returns the level at the next steps, given what comes in at each of them."""
        from scipy.signal import lfilter  # slow to import, and every command knows this room

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

    Inflow is what a slowly wandering random series has above one standard deviation, so that it
    comes in smooth bursts and is zero about five sixths of the time.
    """

    def __init__(self, recipe: Recipe, retention: NDArray[np.float64]) -> None:
        kind = recipe.physics
        memory = float(np.exp(-1 / kind.inflow_memory))
        self._generator = recipe.stream("inflow")
        self._step_size = np.sqrt(1 - memory**2)  # gives the wandering series a variance of one
        self._wandering = DecayingSum(np.full(recipe.sensors, memory))
        self._reservoir = DecayingSum(retention)
        self._inflow_size = kind.storage_size * (1 - retention)  # alike for slow and fast stores

    def advance(self, steps: int) -> Series:
        """Returns the stored amount at the next steps, in the unit of the readings."""
        impulses = self._generator.standard_normal((steps, len(self._inflow_size)))
        wandering = self._wandering.advance(impulses * self._step_size)
        return self._reservoir.advance(np.maximum(wandering - 1, 0) * self._inflow_size)


class Transport:
    """What arrives from upstream: sum over incoming edges of attenuation x delayed total.

    The total deviation of a sensor is its own plus all that arrived there, so that a deviation
    travels on from sensor to sensor.
    """

    def __init__(
        self,
        edges: Edges,
        delays: NDArray[np.int64],
        attenuation: NDArray[np.float64],
        sensors: int,
    ) -> None:
        self._edges = edges
        self._delays = delays
        self._attenuation = attenuation
        # The totals of the last steps, as many as the longest delay looks back.
        self._past = np.zeros((int(delays.max(initial=0)), sensors))

    def advance(self, own: Series) -> Series:
        """Returns what arrives at the next steps, given the sensors' own deviations."""
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


class Gaps:
    """When readings are missing: gaps of random length, each sensor for itself.

    Of a uniform number per step and sensor, a small one starts a gap, a large one ends it, and all
    others leave things as they were. Starts and ends are as frequent as the wanted share and the
    mean length of a gap ask for.
    """

    def __init__(self, recipe: Recipe) -> None:
        share = recipe.missing_share
        self._generator = recipe.stream("gaps")
        self._end_chance = 1 / recipe.physics.gap_length
        self._start_chance = self._end_chance * share / (1 - share)
        self._is_missing = self._generator.random(recipe.sensors) < share

    def advance(self, steps: int) -> NDArray[np.bool_]:
        """Returns whether each reading of the next steps is missing, time x sensor."""
        draw = self._generator.random((steps, len(self._is_missing)))
        starts, ends = draw < self._start_chance, draw >= 1 - self._end_chance
        states = np.concatenate([self._is_missing[None], starts])
        decided = np.concatenate([np.ones((1, draw.shape[1]), bool), starts | ends])
        latest = np.maximum.accumulate(np.where(decided, np.arange(steps + 1)[:, None], 0), axis=0)
        missing = np.take_along_axis(states, latest, axis=0)[1:]
        self._is_missing = missing[-1]
        return missing
