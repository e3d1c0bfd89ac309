"""Epochs that take as many windows as the time left allows, so that schedules come to their end together with a budget.

What a window takes is found out before training, in a few moments that may be slow or fast ones; every epoch after the
first goes by what the one before it showed.
"""

import time
from dataclasses import dataclass

from candor.nets.recipe import in_whole_batches

_SHARE_OF_TRAINING = 0.95  # of the time that is left; the rest is a margin for a last epoch slower than the others


@dataclass(frozen=True)
class Lap:
    """What an epoch took, in seconds, and from how many windows it learned meanwhile."""

    windows: int
    learning: float
    judging: float


@dataclass(frozen=True)
class Pacing:
    """How many windows an epoch may take.

    Args:
        ends_at: when the last epoch should have ended, on the monotonic clock in seconds.
        most: windows of an epoch, if there is time enough.
    """

    ends_at: float
    most: int

    @classmethod
    def over(cls, seconds: float, most: int) -> "Pacing":
        """Returns that of a training which begins, or goes on, now and may take so long."""
        return cls(time.monotonic() + _SHARE_OF_TRAINING * seconds, most)

    def windows(self, lap: Lap, epochs: int, batch: int) -> int:
        """Returns how many windows each of the epochs that are left may take after one that took `lap`: whole batches,
        one at least."""
        for_learning = (self.ends_at - time.monotonic()) / max(epochs, 1) - lap.judging
        affordable = int(for_learning * lap.windows / lap.learning) if lap.learning > 0 else self.most
        return in_whole_batches(affordable, batch, self.most)
