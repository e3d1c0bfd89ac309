"""Global z-scores, fitted on training inputs only."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Scaler:
    """One mean and one population standard deviation for all sensors, in the sensors' unit."""

    mean: float
    deviation: float

    def scale(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns z-scores."""
        return ((values - self.mean) / self.deviation).astype(np.float32)

    def unscale(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns values in the sensors' unit."""
        return (scores * self.deviation + self.mean).astype(np.float32)


def fit_scaler(values: NDArray[np.float32], row_weights: NDArray[np.int64] | None = None) -> Scaler:
    """Returns the scaler of all readings, each row counted `row_weights` times; NaN does not count.

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
