"""Filling of model inputs: a named step of its own, never part of a panel.

zero
    Missing inputs are zero in the sensor's unit: the protocol of the traffic benchmarks.
last
    The last reading before the gap; before the first reading, a given value per sensor (the training mean). It never
    looks ahead, so it is the rule for data with real gaps.
forward-backward
    The last reading before the gap; before the first reading, the first one. It looks ahead at the start of a record:
    only for the paper's basins, whose protocol it is.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Fill = Literal["zero", "last", "forward-backward"]


def fill(
    values: NDArray[np.float32], how: Fill, before_first: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Returns the values with every gap filled; a sensor without any reading gets `before_first`, or zero.

    Args:
        values: time x sensor, NaN where missing.
        how: one of the rules above.
        before_first: a value per sensor for the time before its first reading (rule `last`); NaN counts as zero.
    """
    if how == "zero":
        return np.nan_to_num(values, nan=0.0)
    if len(values) == 0:
        return values.copy()
    start = np.zeros(values.shape[1]) if before_first is None else np.nan_to_num(before_first, nan=0.0)
    if how == "forward-backward":
        first = values[np.argmax(~np.isnan(values), axis=0), np.arange(values.shape[1])]
        start = np.where(np.isnan(first), start, first)
    filled = np.take_along_axis(values, last_reading(values), axis=0)  # NaN only before the first reading
    return np.where(np.isnan(filled), start.astype(np.float32), filled)


def last_reading(values: NDArray[np.float32]) -> NDArray[np.int32]:
    """Returns for each cell the row of the latest reading at or before it, and 0 where there is none yet."""
    rows = np.arange(len(values), dtype=np.int32)[:, None]
    return np.maximum.accumulate(np.where(np.isnan(values), np.int32(0), rows), axis=0)
