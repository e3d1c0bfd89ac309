"""Scores of prediction intervals in the sensors' own units, computed in one pass over batches of windows.

In the formulas y is an observed target, l and u are the ends of its interval, a is the miss rate the interval was made
for (1 - coverage) and n is the number of targets.
"""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from candor.metrics.statistics import Numbers

_NUMBERS_AT_A_TIME = 1_000_000  # 8 MB per working array, however large the batch


class IntervalAccumulator:
    """Scores of intervals that arrive batch by batch; no batch is kept.

    How the windows are divided into batches and in which order accumulators are merged makes no difference beyond
    rounding in float64.

    Args:
        horizon: how many steps each forecast has.
        sensors: how many sensors are forecast.
        coverage: the share of targets the intervals are meant to hold, between 0 and 1.
    """

    def __init__(self, horizon: int, sensors: int, coverage: float = 0.9) -> None:
        if horizon < 1 or sensors < 1:
            raise ValueError(f"steps and sensors must be at least 1, not {horizon} and {sensors}")
        if not 0 < coverage < 1:
            raise ValueError(f"the coverage must lie between 0 and 1, not {coverage}")
        self.horizon = horizon
        self.sensors = sensors
        self.coverage = coverage
        # Per step and sensor: how many targets, how many of them inside, sum of widths, sum of distances outside.
        self._sums = np.zeros((4, horizon, sensors))

    def update(
        self,
        lower: NDArray[np.floating],
        upper: NDArray[np.floating],
        target: NDArray[np.floating],
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Adds a batch of windows; a batch that is refused leaves the scores as they were.

        Args:
            lower: lower ends of the intervals, window x horizon x sensor, in the sensors' units.
            upper: upper ends, in the same shape and units.
            target: what was observed, in the same shape and units.
            mask: True where the target is observed; by default where it is not NaN. Values elsewhere are never
                looked at.
        """
        if mask is None:
            mask = ~np.isnan(target)
        self._check(lower, upper, target, mask)
        windows_at_a_time = max(1, _NUMBERS_AT_A_TIME // (self.horizon * self.sensors))
        for first in range(0, len(mask), windows_at_a_time):
            part = slice(first, first + windows_at_a_time)
            self._sums += _sums_of(lower[part], upper[part], target[part], mask[part])

    def merge(self, other: "IntervalAccumulator") -> "IntervalAccumulator":
        """Returns an accumulator of the windows of both, which stay as they are."""
        mine, others = ((part.horizon, part.sensors, part.coverage) for part in (self, other))
        if mine != others:
            raise ValueError(
                f"scores of {mine[0]} steps x {mine[1]} sensors at a coverage of {mine[2]} cannot be merged with "
                f"scores of {others[0]} steps x {others[1]} sensors at {others[2]}"
            )
        both = IntervalAccumulator(*mine)
        both._sums = self._sums + other._sums
        return both

    @overload
    def scores(self, over: Literal["overall"] = "overall") -> dict[str, float]: ...
    @overload
    def scores(self, over: Literal["step", "sensor"]) -> dict[str, NDArray[Any]]: ...
    def scores(
        self, over: Literal["overall", "step", "sensor"] = "overall"
    ) -> dict[str, float] | dict[str, NDArray[Any]]:
        """Returns the scores by name, NaN where nothing was observed.

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
            over: `step` pools the sensors and gives an array per score with an entry per step; `sensor` pools the
                steps and gives an entry per sensor; `overall` pools everything and gives numbers.
        """
        if over == "step":
            return self._scores_of(self._sums.sum(2))
        if over == "sensor":
            return self._scores_of(self._sums.sum(1))
        if over != "overall":
            raise ValueError(f"scores are over 'overall', 'step' or 'sensor', not {over!r}")
        return {name: score.item() for name, score in self._scores_of(self._sums.sum((1, 2))).items()}

    def _scores_of(self, sums: Numbers) -> dict[str, NDArray[Any]]:
        count, inside, width, outside = sums
        penalty = 2.0 / (1.0 - self.coverage)
        return {
            "coverage": _mean(inside, count),
            "width": _mean(width, count),
            "interval_score": _mean(width + penalty * outside, count),
            "count": np.asarray(count).astype(np.int64),
        }

    def _check(
        self,
        lower: NDArray[np.floating],
        upper: NDArray[np.floating],
        target: NDArray[np.floating],
        mask: NDArray[np.bool_],
    ) -> None:
        arrays = {"lower end": lower, "upper end": upper, "target": target, "mask": mask}
        for name, array in arrays.items():
            if array.ndim != 3 or array.shape[1:] != (self.horizon, self.sensors):
                raise ValueError(
                    f"the {name} has shape {array.shape}; expected are windows "
                    f"x {self.horizon} steps x {self.sensors} sensors"
                )
            if len(array) != len(mask):
                raise ValueError(f"{len(array)} windows of the {name} and {len(mask)} of the mask must be as many")
        if mask.dtype != np.bool_:
            raise ValueError(f"the mask must be boolean, not {mask.dtype}")
        for name in ("lower end", "upper end", "target"):
            wrong = np.count_nonzero(mask & ~np.isfinite(arrays[name]))
            if wrong:
                raise ValueError(f"{wrong} numbers of the {name} are not finite where the target is observed")
        crossed = np.count_nonzero(mask & (lower > upper))
        if crossed:
            raise ValueError(f"{crossed} intervals end below where they begin")


def _sums_of(
    lower: NDArray[np.floating],
    upper: NDArray[np.floating],
    target: NDArray[np.floating],
    mask: NDArray[np.bool_],
) -> Numbers:
    """Returns count, number inside, sum of widths and of distances outside, each step x sensor."""
    # Selected before any arithmetic, so that a NaN behind the mask cannot spread.
    low, high, observed = (np.where(mask, array, 0.0).astype(np.float64) for array in (lower, upper, target))
    outside = np.maximum(low - observed, 0.0) + np.maximum(observed - high, 0.0)
    return np.stack([part.sum(0) for part in (mask, mask & (outside == 0), high - low, outside)])


def _mean(total: Numbers, count: Numbers) -> Numbers:
    """Returns total / count, NaN where there is nothing to count."""
    mean = np.full(np.shape(count), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean
