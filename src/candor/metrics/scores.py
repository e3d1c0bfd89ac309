"""Scores of forecasts in the sensors' own units, computed in one pass over batches of windows.

A score is a formula over the statistics of (forecast, target) pairs. The statistics are kept per
step and sensor, so the same formula gives a score per step, per sensor, or over everything.
In the formulas y is an observed target, f its forecast and n the number of pairs.
"""

from collections.abc import Mapping
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from candor.metrics.statistics import ROUNDING, Numbers, PairStatistics

_NUMBERS_AT_A_TIME = 1_000_000  # 8 MB per working array, however large the batch


class ScoreAccumulator:
    """Scores of forecasts that arrive batch by batch; no batch is kept.

    How the windows are divided into batches and in which order accumulators are merged makes no
    difference beyond rounding in float64.

    Args:
        horizon: how many steps each forecast has.
        sensors: how many sensors are forecast.
    """

    def __init__(self, horizon: int, sensors: int) -> None:
        if horizon < 1 or sensors < 1:
            raise ValueError(f"steps and sensors must be at least 1, not {horizon} and {sensors}")
        self.horizon = horizon
        self.sensors = sensors
        self._statistics = PairStatistics.none((horizon, sensors))

    def update(
        self,
        forecast: NDArray[np.floating],
        target: NDArray[np.floating],
        mask: NDArray[np.bool_],
    ) -> None:
        """Adds a batch of windows; a batch that is refused leaves the scores as they were.

        Args:
            forecast: what was forecast, window x horizon x sensor, in the sensors' units.
            target: what was observed, in the same shape and units.
            mask: True where the target is observed. Values elsewhere are never looked at.
        """
        self._check(forecast, target, mask)
        windows_at_a_time = max(1, _NUMBERS_AT_A_TIME // (self.horizon * self.sensors))
        for first in range(0, len(mask), windows_at_a_time):
            part = slice(first, first + windows_at_a_time)
            pairs = PairStatistics.of_pairs(forecast[part], target[part], mask[part])
            self._statistics = self._statistics.merged(pairs.pooled(axis=0))

    def merge(self, other: "ScoreAccumulator") -> "ScoreAccumulator":
        """Returns an accumulator of the windows of both, which stay as they are."""
        if (self.horizon, self.sensors) != (other.horizon, other.sensors):
            raise ValueError(
                f"scores of {self.horizon} steps x {self.sensors} sensors cannot be merged with "
                f"scores of {other.horizon} steps x {other.sensors} sensors"
            )
        both = ScoreAccumulator(self.horizon, self.sensors)
        both._statistics = self._statistics.merged(other._statistics)
        return both

    @overload
    def scores(self, over: Literal["overall"] = "overall") -> dict[str, float]: ...
    @overload
    def scores(self, over: Literal["step", "sensor"]) -> dict[str, NDArray[Any]]: ...
    def scores(
        self, over: Literal["overall", "step", "sensor"] = "overall"
    ) -> dict[str, float] | dict[str, NDArray[Any]]:
        """Returns the scores by name, NaN where a score is undefined.

        Args:
            over: `step` pools the sensors and gives an array per score with an entry per step;
                `sensor` pools the steps and gives an entry per sensor; `overall` gives numbers.

        `mae`, `mse`, `rmse` and `mape` overall pool all windows, steps and sensors. `nse` and `kge`
        overall and by step are the mean over sensors of the value per sensor: pooled, sensors that
        lie far from each other would seem well forecast by that alone. `nse_median` (overall only)
        is the median; sensors whose value is undefined are left out of mean and median. `count`
        is the number of observed targets.
        """
        if over == "step":
            cells = {
                "nse": nash_sutcliffe_efficiency(self._statistics),
                "kge": kling_gupta_efficiency(self._statistics),
            }
            means = {name: _mean_of_defined(by_sensor, axis=1) for name, by_sensor in cells.items()}
            return _all_scores(self._statistics.pooled(axis=1)) | means
        by_sensor = self._statistics.pooled(axis=0)
        if over == "sensor":
            return _all_scores(by_sensor)
        if over != "overall":
            raise ValueError(f"scores are over 'overall', 'step' or 'sensor', not {over!r}")
        everything = by_sensor.pooled(axis=0)
        efficiencies = nash_sutcliffe_efficiency(by_sensor)
        return {
            "mae": float(mean_absolute_error(everything)),
            "mse": float(mean_squared_error(everything)),
            "rmse": float(root_mean_squared_error(everything)),
            "mape": float(mean_absolute_percentage_error(everything)),
            "nse": float(_mean_of_defined(efficiencies)),
            "nse_median": _median_of_defined(efficiencies),
            "kge": float(_mean_of_defined(kling_gupta_efficiency(by_sensor))),
            "count": int(everything.count),
        }

    def _check(
        self,
        forecast: NDArray[np.floating],
        target: NDArray[np.floating],
        mask: NDArray[np.bool_],
    ) -> None:
        for name, array in (("forecast", forecast), ("target", target), ("mask", mask)):
            if array.ndim != 3 or array.shape[1:] != (self.horizon, self.sensors):
                raise ValueError(
                    f"the {name} has shape {array.shape}; expected are windows "
                    f"x {self.horizon} steps x {self.sensors} sensors"
                )
        if not len(forecast) == len(target) == len(mask):
            raise ValueError(
                f"{len(forecast)} windows of forecasts, {len(target)} of targets and {len(mask)} "
                "of masks: these must be as many"
            )
        if mask.dtype != np.bool_:
            raise ValueError(f"the mask must be boolean, not {mask.dtype}")
        for name, array in (("forecasts", forecast), ("targets", target)):
            wrong = np.count_nonzero(mask & ~np.isfinite(array))
            if wrong:
                raise ValueError(f"{wrong} {name} are not finite where the target is observed")


def mean_absolute_error(pairs: PairStatistics) -> Numbers:
    """Returns sum |f - y| / n, in the sensor's unit (Willmott and Matsuura, 2005); 0 is perfect."""
    return _ratio(pairs.absolute_error, pairs.count)


def mean_squared_error(pairs: PairStatistics) -> Numbers:
    """Returns sum (f - y)^2 / n, in the unit squared (Hyndman and Koehler, 2006); 0 is perfect."""
    return _ratio(pairs.squared_error, pairs.count)


def root_mean_squared_error(pairs: PairStatistics) -> Numbers:
    """Returns sqrt(sum (f - y)^2 / n), in the sensor's unit (Hyndman and Koehler, 2006).

    The root is taken once, of the mean over all pooled pairs; 0 is perfect.
    """
    return np.sqrt(mean_squared_error(pairs))


def mean_absolute_percentage_error(pairs: PairStatistics) -> Numbers:
    """Returns 100 / n0 sum |(f - y) / y|, in per cent (Hyndman and Koehler, 2006); 0 is perfect.

    The sum and its count n0 leave out targets of zero, and no others.
    """
    return 100.0 * _ratio(pairs.relative_error, pairs.nonzero_count)


def nash_sutcliffe_efficiency(pairs: PairStatistics) -> Numbers:
    """Returns 1 - sum (f - y)^2 / sum (y - mean y)^2, without unit (Nash and Sutcliffe, 1970).

    1 is perfect, 0 as good as the mean of the observations; undefined for a constant target.
    """
    return 1.0 - _ratio(pairs.squared_error, pairs.target_spread)


def kling_gupta_efficiency(pairs: PairStatistics) -> Numbers:
    """Returns 1 - sqrt((r - 1)^2 + (alpha - 1)^2 + (beta - 1)^2), without unit.

    Gupta, Kling, Yilmaz and Martinez (2009): r is the correlation of f and y, alpha the ratio of
    their standard deviations and beta the ratio of their means. 1 is perfect. Undefined for a
    constant target or forecast, and for a mean target that is zero to within rounding.
    """
    target_width, forecast_width = np.sqrt(pairs.target_spread), np.sqrt(pairs.forecast_spread)
    correlation = _ratio(_ratio(pairs.shared_spread, target_width), forecast_width)
    alpha = _ratio(forecast_width, target_width)
    mean_is_zero = np.abs(pairs.target_mean) <= ROUNDING * target_width
    beta = _ratio(pairs.forecast_mean, np.where(mean_is_zero, 0.0, pairs.target_mean))
    return 1.0 - np.sqrt((correlation - 1.0) ** 2 + (alpha - 1.0) ** 2 + (beta - 1.0) ** 2)


@overload
def skill(score: float, reference: float) -> float: ...
@overload
def skill(score: NDArray[Any], reference: float | NDArray[Any]) -> Numbers: ...
def skill(score: float | NDArray[Any], reference: float | NDArray[Any]) -> float | Numbers:
    """Returns 1 - score / reference, the share of the reference's error that is avoided.

    Without unit (Murphy, 1988); for errors such as `mae`, where 0 is perfect. 1 is perfect, 0 as
    good as the reference, below 0 worse. NaN where the reference is 0 or either is NaN.
    """
    share = 1.0 - _ratio(np.asarray(score, np.float64), np.asarray(reference, np.float64))
    return share if share.ndim else float(share)


def as_json(scores: Mapping[str, float | NDArray[Any]]) -> dict[str, Any]:
    """Returns the scores as plain numbers and lists, with None where a score is undefined."""
    return {name: _without_nan(np.asarray(score).tolist()) for name, score in scores.items()}


def _without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and np.isnan(value) else value


def _all_scores(pairs: PairStatistics) -> dict[str, NDArray[Any]]:
    return {
        "mae": mean_absolute_error(pairs),
        "mse": mean_squared_error(pairs),
        "rmse": root_mean_squared_error(pairs),
        "mape": mean_absolute_percentage_error(pairs),
        "nse": nash_sutcliffe_efficiency(pairs),
        "kge": kling_gupta_efficiency(pairs),
        "count": pairs.count,
    }


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Numbers:
    """Returns numerator / denominator, NaN where the denominator is zero."""
    ratio = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=ratio, where=denominator != 0)
    return ratio


def _mean_of_defined(values: Numbers, axis: int = 0) -> Numbers:
    """Returns the mean of what is defined along an axis, NaN where nothing is."""
    is_defined = ~np.isnan(values)
    return _ratio(np.where(is_defined, values, 0.0).sum(axis), is_defined.sum(axis))


def _median_of_defined(values: Numbers) -> float:
    defined = values[~np.isnan(values)]
    return float(np.median(defined)) if len(defined) else float("nan")
