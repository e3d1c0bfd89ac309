"""From a panel's readings to model inputs: gaps are filled and numbers are scaled, as named steps outside the panel.

Rules of filling:

zero
    Missing inputs are zero in the sensor's unit: the protocol of the traffic benchmarks.
last
    The last reading before the gap; before the first reading, a given value per sensor (the training mean). It never
    looks ahead, so it is the rule for data with real gaps.
forward-backward
    The last reading before the gap; before the first reading, the first one. It looks ahead at the start of a record:
    only for the paper's basins, whose protocol it is.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Fill = Literal["zero", "last", "forward-backward"]


def fill(
    values: NDArray[np.float32], how: Fill, before_first: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return the values, time x sensor, with every gap (NaN) filled by one of the rules above.

    A sensor without any reading gets its value of `before_first`, or zero where that is NaN or not given; so does the
    time before a first reading by the rule `last`.
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
    """Return for each cell the row of the latest reading at or before it, and 0 where there is none yet."""
    rows = np.arange(len(values), dtype=np.int32)[:, None]
    return np.maximum.accumulate(np.where(np.isnan(values), np.int32(0), rows), axis=0)


@dataclass(frozen=True)
class Scaler:
    """One mean and one population standard deviation for all sensors, in the sensors' unit."""

    mean: float
    deviation: float

    def scale(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return z-scores."""
        return ((values - self.mean) / self.deviation).astype(np.float32)

    def unscale(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return values in the sensors' unit."""
        return (scores * self.deviation + self.mean).astype(np.float32)


def fit_scaler(values: NDArray[np.float32], row_weights: NDArray[np.int64] | None = None) -> Scaler:
    """Return the scaler of all readings, each row counted `row_weights` times; NaN does not count.

    With `count_inputs` of its windows as weights the result equals that of stacking all training windows (traffic
    protocol); without weights each row of the training period counts once (water and own data).
    """
    weights = np.ones(len(values)) if row_weights is None else row_weights.astype(np.float64)
    observed = ~np.isnan(values)
    count = float(weights @ observed.sum(axis=1))
    if count == 0:
        return Scaler(0.0, 1.0)
    # Around a guess near the mean of what counts, so that the sum of squares keeps its digits.
    counted = np.flatnonzero(weights * observed.any(axis=1))
    guess = float(np.nanmean(values[counted[:1000]]))
    shifted = np.where(observed, values, guess).astype(np.float64) - guess
    mean = float(weights @ shifted.sum(axis=1)) / count
    square = float(weights @ (shifted**2).sum(axis=1)) / count
    deviation = max(square - mean**2, 0.0) ** 0.5
    return Scaler(guess + mean, deviation if deviation > 0 else 1.0)
