"""Which sensors behave alike: those whose deviations from what is usual rise and fall together, map or no map."""

import numpy as np

from candor.account.usual import Values
from candor.core.arrays import Doubles, Integers

_MOST_ROWS = 4_000
_SENSORS_AT_A_TIME = 512
_FARTHEST = 8.0  # robust spreads: one storm must not make all sensors alike


def most_alike(filled: Values, count: int) -> tuple[Integers, Doubles]:
    """Return for each sensor the others that are most alike, and how much: sensor x rank, correlations.

    Args:
        filled: deviations of the training part, time x sensor, without gaps.
        count: how many to find; fewer where there are not so many sensors.
    """
    sensors = filled.shape[1]
    count = max(0, min(count, sensors - 1))
    rows = np.unique(np.linspace(0, len(filled) - 1, min(len(filled), _MOST_ROWS)).round().astype(int))
    some = np.clip(filled[rows], -_FARTHEST, _FARTHEST).astype(np.float32)
    some = some - some.mean(axis=0)
    size = np.sqrt((some**2).sum(axis=0))
    some = some / np.where(size > 0, size, 1.0)
    found = np.empty((sensors, count), np.int64)
    likeness = np.empty((sensors, count))
    for first in range(0, sensors if count else 0, _SENSORS_AT_A_TIME):
        block = np.arange(first, min(first + _SENSORS_AT_A_TIME, sensors))
        correlation = some[:, block].T @ some
        correlation[np.arange(len(block)), block] = -np.inf
        order = np.argsort(-correlation, axis=1, kind="stable")[:, :count]
        found[block], likeness[block] = order, np.take_along_axis(correlation, order, axis=1)
    return found, likeness
