"""Scores of prediction intervals in the sensors' own units, computed in one pass over batches of windows."""

import numpy as np

from candor.core.arrays import Booleans, Doubles, Floats
from candor.metrics.scores import Accumulator, Scores, ratio


class IntervalAccumulator(Accumulator):
    """Scores of intervals from l to u around observed targets y, with a miss rate of a = 1 - coverage.

    coverage
        Share of the targets with l <= y <= u, without unit; near the coverage the intervals were made for is good.
    width
        Mean of u - l, in the sensor's unit; among intervals of the same coverage smaller is better.
    interval_score
        Mean of u - l + 2 / a max(l - y, 0) + 2 / a max(y - u, 0), in the sensor's unit; smaller is better (Winkler,
        1972; Gneiting and Raftery, 2007).
    count
        Number of observed targets.

    Args:
        horizon: how many steps each forecast has.
        sensors: how many sensors are forecast.
        coverage: the share of targets the intervals are meant to hold, between 0 and 1.
    """

    def __init__(self, horizon: int, sensors: int, coverage: float = 0.9) -> None:
        super().__init__(horizon, sensors)
        if not 0 < coverage < 1:
            raise ValueError(f"the coverage must lie between 0 and 1, not {coverage}")
        self.coverage = coverage
        # Per step and sensor: how many targets, how many of them inside, sum of widths, sum of distances outside.
        self._statistics = np.zeros((4, horizon, sensors))

    def __str__(self) -> str:
        return f"{super().__str__()} at a coverage of {self.coverage}"

    def update(self, lower: Floats, upper: Floats, target: Floats, mask: Booleans | None = None) -> None:
        """Add a batch of windows; a batch that is refused leaves the scores as they were.

        Args:
            lower: lower ends of the intervals, window x horizon x sensor, in the sensors' units.
            upper: upper ends, in the same shape and units.
            target: what was observed, in the same shape and units.
            mask: True where the target is observed; by default where it is not NaN. Values elsewhere are never
                looked at.
        """
        if mask is None:
            mask = ~np.isnan(target)
        self._check({"lower end": lower, "upper end": upper, "target": target}, mask)
        if crossed := np.count_nonzero(mask & (lower > upper)):
            raise ValueError(f"{crossed} intervals end below where they begin")
        for part in self._parts(len(mask)):
            seen = mask[part]
            # Selected before any arithmetic, so that a NaN behind the mask cannot spread.
            low, high, observed = (np.where(seen, array[part], 0.0).astype(float) for array in (lower, upper, target))
            outside = np.maximum(low - observed, 0.0) + np.maximum(observed - high, 0.0)
            sums = [numbers.sum(0) for numbers in (seen, seen & (outside == 0), high - low, outside)]
            self._statistics = self._statistics + np.stack(sums)

    def _by_step(self) -> Scores:
        return self._scores_of(self._statistics.sum(2))

    def _by_sensor(self) -> Scores:
        return self._scores_of(self._statistics.sum(1))

    def _overall(self) -> Scores:
        return self._scores_of(self._statistics.sum((1, 2)))

    def _scores_of(self, sums: Doubles) -> Scores:
        count, inside, width, outside = sums
        return {
            "coverage": ratio(inside, count),
            "width": ratio(width, count),
            "interval_score": ratio(width + 2.0 / (1.0 - self.coverage) * outside, count),
            "count": np.asarray(count).astype(np.int64),
        }
