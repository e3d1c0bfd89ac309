"""What must be remembered of (forecast, target) pairs so that every score follows without them.

All of it is kept per cell of a grid (step x sensor), in float64. Means and spreads are pooled with
the update of Chan, Golub and LeVeque (1983), which stays accurate where values lie far from zero.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
ROUNDING = 1e-12  # a mean this small beside the spread of its values is zero but for rounding


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """Sufficient statistics of observed targets and their forecasts, one entry per cell.

    Args:
        count: how many pairs there are.
        absolute_error: sum of |forecast - target|, in the sensor's unit.
        squared_error: sum of (forecast - target)^2, in the unit squared.
        relative_error: sum of |(forecast - target) / target| over targets other than zero.
        nonzero_count: how many targets are not zero.
        target_mean: mean target, in the unit; 0 where there are no pairs.
        forecast_mean: mean forecast, in the unit; 0 where there are no pairs.
        target_spread: sum of squared deviations of the targets from their mean. It is exactly 0
            for a constant target, however the pairs were batched.
        forecast_spread: the same of the forecasts.
        shared_spread: sum of products of both deviations.
    """

    count: NDArray[np.int64]
    absolute_error: Numbers
    squared_error: Numbers
    relative_error: Numbers
    nonzero_count: NDArray[np.int64]
    target_mean: Numbers
    forecast_mean: Numbers
    target_spread: Numbers
    forecast_spread: Numbers
    shared_spread: Numbers

    @staticmethod
    def none(shape: tuple[int, ...]) -> "PairStatistics":
        """Returns the statistics of cells without any pairs."""
        whole, real = np.zeros(shape, np.int64), np.zeros(shape)
        return PairStatistics(whole, real, real, real, whole, real, real, real, real, real)

    @staticmethod
    def of_pairs(
        forecast: NDArray[np.floating], target: NDArray[np.floating], mask: NDArray[np.bool_]
    ) -> "PairStatistics":
        """Returns the statistics of single pairs, a cell each, without those the mask hides."""
        # Selected before any arithmetic, so that a NaN behind the mask cannot spread.
        seen_forecast = np.where(mask, forecast, 0.0).astype(np.float64)
        seen_target = np.where(mask, target, 0.0).astype(np.float64)
        error = np.abs(seen_forecast - seen_target)
        is_nonzero = seen_target != 0
        relative = np.divide(error, np.abs(seen_target), out=np.zeros_like(error), where=is_nonzero)
        no_spread = np.zeros_like(error)
        return PairStatistics(
            count=mask.astype(np.int64),
            absolute_error=error,
            squared_error=error**2,
            relative_error=relative,
            nonzero_count=is_nonzero.astype(np.int64),
            target_mean=seen_target,
            forecast_mean=seen_forecast,
            target_spread=no_spread,
            forecast_spread=no_spread,
            shared_spread=no_spread,
        )

    def pooled(self, axis: int) -> "PairStatistics":
        """Returns the statistics of all pairs along one axis of the cells taken together."""
        target_mean, target_offset = _pooled_mean(self.target_mean, self.count, axis)
        forecast_mean, forecast_offset = _pooled_mean(self.forecast_mean, self.count, axis)

        def spread(within: Numbers, first: Numbers, second: Numbers) -> Numbers:
            pooled: Numbers = (within + self.count * first * second).sum(axis)
            return pooled

        return PairStatistics(
            count=self.count.sum(axis),
            absolute_error=self.absolute_error.sum(axis),
            squared_error=self.squared_error.sum(axis),
            relative_error=self.relative_error.sum(axis),
            nonzero_count=self.nonzero_count.sum(axis),
            target_mean=target_mean,
            forecast_mean=forecast_mean,
            target_spread=spread(self.target_spread, target_offset, target_offset),
            forecast_spread=spread(self.forecast_spread, forecast_offset, forecast_offset),
            shared_spread=spread(self.shared_spread, target_offset, forecast_offset),
        )

    def merged(self, other: "PairStatistics") -> "PairStatistics":
        """Returns, cell by cell, the statistics of the pairs of both."""
        names = [field.name for field in fields(self)]
        both = {name: np.stack([getattr(self, name), getattr(other, name)]) for name in names}
        return PairStatistics(**both).pooled(axis=0)


def _pooled_mean(mean: Numbers, count: NDArray[np.int64], axis: int) -> tuple[Numbers, Numbers]:
    """Returns the mean over one axis of cells, and how far each cell's own mean lies from it."""
    # Measured from the first mean there is: equal means then differ by exactly nothing, and a
    # constant series is recognised as one instead of showing a spread made of rounding errors.
    first = np.argmax(count > 0, axis=axis, keepdims=True)
    anchor = np.take_along_axis(mean, first, axis)
    distance = mean - anchor
    total = np.maximum(count.sum(axis, keepdims=True), 1)
    centre = (count * distance).sum(axis, keepdims=True) / total
    return (anchor + centre).squeeze(axis), distance - centre
