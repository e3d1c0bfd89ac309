"""Which windows each step of the optimiser sees, which part each process takes, and how many an epoch takes.

Order and seeds follow from the seed, the epoch and the number of the batch, so that a resumed training needs no stored
random state: it draws the same windows and the same dropout masks again.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.nets.recipe import in_whole_batches

Indices = NDArray[np.int64]
_SHARE_OF_TRAINING = 0.95  # of the time that is left; the rest is a margin for a last epoch slower than the others


def epoch_order(windows: int, seed: int, epoch: int) -> Indices:
    """Return the windows of an epoch in random order, each once."""
    return np.random.default_rng([seed, epoch]).permutation(windows)


def spread_evenly(windows: int, wanted: int | None) -> Indices:
    """Return at most `wanted` windows, evenly spread from the first to the last; None means all."""
    return np.unique(np.linspace(0, windows - 1, min(windows, wanted or windows)).round().astype(np.int64))


def share_of(indices: Indices, rank: int, processes: int) -> Indices:
    """Return the part of a batch that one of several processes takes; together they take each window once."""
    return np.array_split(indices, processes)[rank]


def micro_batches(indices: Indices, size: int) -> Iterator[Indices]:
    """Yield parts of at most `size` windows."""
    for first in range(0, len(indices), size):
        yield indices[first : first + size]


def batch_seed(seed: int, epoch: int, batch: int, rank: int) -> int:
    """Return the random seed of one process in one step."""
    return int(np.random.SeedSequence([seed, epoch, batch, rank]).generate_state(1, np.uint64)[0] >> 1)


@dataclass(frozen=True)
class Pacing:
    """How many windows an epoch may take, so that schedules end together with a budget of time.

    The time per window that was measured before training is a guess; every epoch after the first goes by what the one
    before it took.
    """

    ends_at: float
    """When the last epoch should have ended, on the monotonic clock in seconds."""
    most: int
    """Windows of an epoch, if there is time enough."""

    @classmethod
    def over(cls, seconds: float, most: int) -> "Pacing":
        """Return the pacing of a training that begins, or go on, now and may take so long."""
        return cls(time.monotonic() + _SHARE_OF_TRAINING * seconds, most)

    def windows(self, learned: int, learning: float, validating: float, epochs: int, batch: int) -> int:
        """Return how many windows each of the remaining epochs may take: whole batches, one at least.

        The last epoch took `learning` seconds for `learned` windows, and `validating` seconds for validation.
        """
        for_learning = (self.ends_at - time.monotonic()) / max(epochs, 1) - validating
        affordable = int(for_learning * learned / learning) if learning > 0 else self.most
        return in_whole_batches(affordable, batch, self.most)
