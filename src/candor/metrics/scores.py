"""Scores of forecasts in the sensors' own units, computed in one pass over batches of windows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Booleans, Doubles, Floats

_NUMBERS_AT_A_TIME = 1_000_000  # 8 MB per working array, however large the batch
_ROUNDING = 1e-12  # a mean this small beside the spread of its values is zero but for rounding

Scores = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """What must be remembered of (forecast, target) pairs so that every score follows without them.

    All of it is kept per cell of a grid, such as step x sensor, in float64. Means and spreads are pooled with the
    update of Chan, Golub and LeVeque (1983), which stays accurate where values lie far from zero.

    Args:
        sums: over the pairs of each cell: 1, |f - y|, (f - y)^2, |(f - y) / y| where y is not zero, and 1 there.
        means: of the targets and of the forecasts; 0 where there are no pairs.
        spreads: sums of squared deviations of the targets from their mean, the same of the forecasts, and sums of
            products of both. That of a constant series is exactly 0, however the pairs were batched.
    """

    sums: Doubles
    means: Doubles
    spreads: Doubles

    @staticmethod
    def of_pairs(forecast: Floats, target: Floats, mask: Booleans) -> "PairStatistics":
        """Return the statistics of single pairs, a cell each, without those the mask hides."""
        # Selected before any arithmetic, so that a NaN behind the mask cannot spread.
        seen, observed = (np.where(mask, array, 0.0).astype(np.float64) for array in (forecast, target))
        error, is_nonzero = np.abs(seen - observed), observed != 0
        relative = np.divide(error, np.abs(observed), out=np.zeros_like(error), where=is_nonzero)
        sums = np.stack([mask.astype(np.float64), error, error**2, relative, is_nonzero.astype(np.float64)])
        return PairStatistics(sums, np.stack([observed, seen]), np.zeros((3, *mask.shape)))

    def pooled(self, axis: int) -> "PairStatistics":
        """Return the statistics of all pairs along one axis of the cells taken together."""
        axis, count = axis + 1, self.sums[:1]
        # Measured from the first mean there is: equal means then differ by exactly nothing, and a constant series is
        # recognised as one instead of showing a spread made of rounding errors.
        first = np.argmax(count > 0, axis=axis, keepdims=True)
        anchor = np.take_along_axis(self.means, first, axis)
        distance = self.means - anchor
        centre = (count * distance).sum(axis, keepdims=True) / np.maximum(count.sum(axis, keepdims=True), 1)
        of_target, of_forecast = distance - centre
        between = np.stack([of_target**2, of_forecast**2, of_target * of_forecast])
        spreads = (self.spreads + count * between).sum(axis)
        return PairStatistics(self.sums.sum(axis), (anchor + centre).squeeze(axis), spreads)

    def __add__(self, other: "PairStatistics") -> "PairStatistics":
        """Return, cell by cell, the statistics of the pairs of both."""
        pairs = ((self.sums, other.sums), (self.means, other.means), (self.spreads, other.spreads))
        return PairStatistics(*(np.stack(both, axis=1) for both in pairs)).pooled(axis=0)

    def scores(self) -> Scores:
        """Return the scores of each cell by name, see `ScoreAccumulator`; NaN where one is undefined."""
        count, absolute, squared, relative, nonzero = self.sums
        (target_mean, forecast_mean), (target_spread, _, shared_spread) = self.means, self.spreads
        target_width, forecast_width = np.sqrt(self.spreads[:2])
        correlation = ratio(ratio(shared_spread, target_width), forecast_width)
        alpha = ratio(forecast_width, target_width)
        mean_is_zero = np.abs(target_mean) <= _ROUNDING * target_width
        beta = ratio(forecast_mean, np.where(mean_is_zero, 0.0, target_mean))
        mse = ratio(squared, count)
        return {
            "mae": ratio(absolute, count),
            "mse": mse,
            "rmse": np.sqrt(mse),
            "mape": 100.0 * ratio(relative, nonzero),
            "nse": 1.0 - ratio(squared, target_spread),
            "kge": 1.0 - np.sqrt((correlation - 1.0) ** 2 + (alpha - 1.0) ** 2 + (beta - 1.0) ** 2),
            "count": np.asarray(count).astype(np.int64),
        }


class Accumulator(ABC):
    """Scores of windows that arrive batch by batch; no batch is kept.

    How the windows are divided into batches and in which order accumulators are merged makes no difference beyond
    rounding in float64.

    Args:
        horizon: how many steps each forecast has.
        sensors: how many sensors are forecast.
    """

    _statistics: Any  # step x sensor; statistics of two sets of windows can be added

    def __init__(self, horizon: int, sensors: int) -> None:
        if horizon < 1 or sensors < 1:
            raise ValueError(f"steps and sensors must be at least 1, not {horizon} and {sensors}")
        self.horizon = horizon
        self.sensors = sensors

    def __str__(self) -> str:
        return f"{self.horizon} steps x {self.sensors} sensors"

    def merge(self, other: Self) -> Self:
        """Return an accumulator of the windows of both, which stay as they are."""
        if str(self) != str(other):
            raise ValueError(f"scores of {self} cannot be merged with scores of {other}")
        both = copy(self)
        both._statistics = self._statistics + other._statistics
        return both

    @overload
    def scores(self, over: Literal["overall"] = "overall") -> dict[str, float]: ...
    @overload
    def scores(self, over: Literal["step", "sensor"]) -> Scores: ...
    def scores(self, over: Literal["overall", "step", "sensor"] = "overall") -> dict[str, float] | Scores:
        """Return the scores by name, NaN where a score is undefined.

        Args:
            over: `step` pools the sensors and gives an array per score with an entry per step; `sensor` pools the
                steps and gives an entry per sensor; `overall` pools everything and gives numbers.
        """
        if over == "step":
            return self._by_step()
        if over == "sensor":
            return self._by_sensor()
        if over != "overall":
            raise ValueError(f"scores are over 'overall', 'step' or 'sensor', not {over!r}")
        return {name: score.item() for name, score in self._overall().items()}

    @abstractmethod
    def _by_step(self) -> Scores:
        """Return the scores of each step."""

    @abstractmethod
    def _by_sensor(self) -> Scores:
        """Return the scores of each sensor."""

    @abstractmethod
    def _overall(self) -> Scores:
        """Return the scores over everything."""

    def _check(self, arrays: Mapping[str, Floats], mask: Booleans) -> None:
        """Refuse arrays that are not window x horizon x sensor, or not finite where the target is observed."""
        for name, array in {**arrays, "mask": mask}.items():
            if array.ndim != 3 or array.shape[1:] != (self.horizon, self.sensors):
                raise ValueError(f"the {name} has shape {array.shape}; expected are windows x {self}")
            if len(array) != len(mask):
                raise ValueError(f"{len(array)} windows of the {name} and {len(mask)} of the mask must be as many")
        if mask.dtype != np.bool_:
            raise ValueError(f"the mask must be boolean, not {mask.dtype}")
        for name, array in arrays.items():
            if wrong := np.count_nonzero(mask & ~np.isfinite(array)):
                raise ValueError(f"{wrong} numbers of the {name} are not finite where the target is observed")

    def _parts(self, windows: int) -> Iterator[slice]:
        """Yield the windows in pieces of bounded size."""
        at_a_time = max(1, _NUMBERS_AT_A_TIME // (self.horizon * self.sensors))
        for first in range(0, windows, at_a_time):
            yield slice(first, first + at_a_time)


class ScoreAccumulator(Accumulator):
    """Scores of forecasts f of observed targets y; n is the number of pairs.

    mae
        sum |f - y| / n, in the sensor's unit (Willmott and Matsuura, 2005); 0 is perfect.
    mse, rmse
        sum (f - y)^2 / n, and its root, taken once of the mean over all pooled pairs (Hyndman and Koehler, 2006).
    mape
        100 / n0 sum |(f - y) / y|, in per cent, over the n0 targets that are not zero (Hyndman and Koehler, 2006).
    nse
        1 - sum (f - y)^2 / sum (y - mean y)^2, without unit (Nash and Sutcliffe, 1970). 1 is perfect, 0 as good as the
        mean of the observations; undefined for a constant target.
    kge
        1 - sqrt((r - 1)^2 + (alpha - 1)^2 + (beta - 1)^2), without unit (Gupta, Kling, Yilmaz and Martinez, 2009): r is
        the correlation of f and y, alpha the ratio of their standard deviations and beta the ratio of their means. 1 is
        perfect. Undefined for a constant target or forecast, and for a mean target that is zero to within rounding.
    count
        Number of observed targets.

    `nse` and `kge` overall and by step are the mean over sensors of the value per sensor: pooled, sensors that lie far
    from each other would seem well forecast by that alone. `nse_median` (overall only) is the median; sensors whose
    value is undefined are left out of mean and median.
    """

    _statistics: PairStatistics

    def __init__(self, horizon: int, sensors: int) -> None:
        super().__init__(horizon, sensors)
        self._statistics = PairStatistics(*(np.zeros((numbers, horizon, sensors)) for numbers in (5, 2, 3)))

    def update(self, forecast: Floats, target: Floats, mask: Booleans) -> None:
        """Add a batch of windows; a batch that is refused leaves the scores as they were.

        Args:
            forecast: what was forecast, window x horizon x sensor, in the sensors' units.
            target: what was observed, in the same shape and units.
            mask: True where the target is observed. Values elsewhere are never looked at.
        """
        self._check({"forecast": forecast, "target": target}, mask)
        for part in self._parts(len(mask)):
            pairs = PairStatistics.of_pairs(forecast[part], target[part], mask[part])
            self._statistics = self._statistics + pairs.pooled(axis=0)

    def _by_step(self) -> Scores:
        cells, scores = self._statistics.scores(), self._statistics.pooled(axis=1).scores()
        return scores | {name: _mean_of_defined(cells[name], axis=1) for name in ("nse", "kge")}

    def _by_sensor(self) -> Scores:
        return self._statistics.pooled(axis=0).scores()

    def _overall(self) -> Scores:
        by_sensor = self._by_sensor()
        scores = self._statistics.pooled(axis=0).pooled(axis=0).scores()
        nse, kge = by_sensor["nse"], by_sensor["kge"]
        known = nse[~np.isnan(nse)]
        median = np.median(known) if len(known) else np.array(np.nan)
        means = {"nse": _mean_of_defined(nse), "nse_median": median, "kge": _mean_of_defined(kge)}
        return {name: scores[name] for name in ("mae", "mse", "rmse", "mape")} | means | {"count": scores["count"]}


@overload
def skill(score: float, reference: float) -> float: ...
@overload
def skill(score: NDArray[Any], reference: float | NDArray[Any]) -> Doubles: ...
def skill(score: float | NDArray[Any], reference: float | NDArray[Any]) -> float | Doubles:
    """Return 1 - score / reference, the share of the reference's error that is avoided.

    Without unit (Murphy, 1988); for errors such as `mae`, where 0 is perfect. 1 is perfect, 0 as good as the
    reference, below 0 worse. NaN where the reference is 0 or either is NaN.
    """
    share = 1.0 - ratio(np.asarray(score, np.float64), np.asarray(reference, np.float64))
    return share if share.ndim else float(share)


def as_json(scores: Mapping[str, float | NDArray[Any]]) -> dict[str, Any]:
    """Return the scores as plain numbers and lists, with None where a score is undefined."""
    content = {}
    for name, score in scores.items():
        known = np.asarray(score).astype(object)
        known[np.isnan(score)] = None
        content[name] = known.tolist()
    return content


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Doubles:
    """Return numerator / denominator, NaN where the denominator is zero."""
    quotient = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def _mean_of_defined(values: Doubles, axis: int = 0) -> Doubles:
    """Return the mean of what is defined along an axis, NaN where nothing is."""
    is_defined = ~np.isnan(values)
    return ratio(np.where(is_defined, values, 0.0).sum(axis), is_defined.sum(axis))
