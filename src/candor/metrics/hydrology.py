"""Scores that hydrologists use, of one observed series and its forecast."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from candor.metrics.statistics import ROUNDING, Numbers


def nash_sutcliffe(observed: ArrayLike, forecast: ArrayLike) -> float:
    """Returns 1 - sum (f - y)^2 / sum (y - mean y)^2, without unit (Nash and Sutcliffe, 1970).

    1 is perfect, 0 as good as the mean of the observations. Steps where either series is NaN are
    left out; NaN if the observations that remain are constant or none.
    """
    observations, forecasts = _pairs_of(observed, forecast)
    if _is_constant(observations):
        return float("nan")
    unexplained = np.sum((forecasts - observations) ** 2)
    return float(1.0 - unexplained / np.sum((observations - observations.mean()) ** 2))


def kling_gupta(observed: ArrayLike, forecast: ArrayLike) -> float:
    """Returns 1 - sqrt((r - 1)^2 + (alpha - 1)^2 + (beta - 1)^2), without unit.

    Gupta, Kling, Yilmaz and Martinez (2009): r is the correlation of forecast and observation,
    alpha the ratio of their standard deviations and beta the ratio of their means. 1 is perfect.
    Steps where either series is NaN are left out; NaN if either series is constant or none of it
    remains, or if the mean observation is zero to within rounding.
    """
    observations, forecasts = _pairs_of(observed, forecast)
    if _is_constant(observations) or _is_constant(forecasts):
        return float("nan")
    if abs(observations.mean()) <= ROUNDING * observations.std():
        return float("nan")
    correlation = np.corrcoef(observations, forecasts)[0, 1]
    alpha = forecasts.std() / observations.std()
    beta = forecasts.mean() / observations.mean()
    return float(1.0 - np.linalg.norm([correlation - 1.0, alpha - 1.0, beta - 1.0]))


@dataclass(frozen=True)
class PeakTiming:
    """How far forecast peaks lie from observed ones.

    Args:
        mean_absolute_steps: mean distance in time steps, early and late alike; NaN without peaks.
        peaks: how many observed peaks were compared.
    """

    mean_absolute_steps: float
    peaks: int


def peak_timing(
    observed: ArrayLike,
    forecast: ArrayLike,
    window: int,
    prominence: float | None = None,
) -> PeakTiming:
    """Returns the mean distance, in steps, from observed peaks to the highest forecast near each.

    A peak counts if the series is observed and forecast throughout `window` steps on both sides
    (so none counts nearer than that to either end) and nothing observed there is higher: a lesser
    peak beside a greater one would charge even a perfect forecast. Of several equally high
    forecasts the nearest is taken; a forecast that is flat throughout has no peak, and counts as
    `window` steps away.

    Args:
        observed: observations on a regular time axis, NaN where missing.
        forecast: forecasts for the same steps, in the same unit.
        window: how many steps before and after an observed peak its forecast may lie.
        prominence: how far a peak must rise above its surroundings, in the unit of the
            observations; by default one standard deviation of the observations.
    """
    observations, forecasts = _two_series(observed, forecast)
    if window < 1:
        raise ValueError(f"the window must be at least one step, not {window}")
    if prominence is not None and not prominence >= 0:
        raise ValueError(f"the prominence must be zero or more, not {prominence}")
    distances = []
    for peak in _prominent_peaks(observations, prominence):
        if peak < window or peak + window >= len(observations):
            continue
        around = slice(peak - window, peak + window + 1)
        if _can_be_timed(observations[around], forecasts[around]):
            distances.append(_distance_to_highest(forecasts[around]))
    mean = float(np.mean(distances)) if distances else float("nan")
    return PeakTiming(mean_absolute_steps=mean, peaks=len(distances))


def _prominent_peaks(observations: Numbers, prominence: float | None) -> list[int]:
    """Returns the positions of the peaks; the surroundings of a peak end where a gap begins."""
    from scipy.signal import find_peaks  # slow to import, and needed by nobody but rivers

    is_observed = ~np.isnan(observations)
    if not is_observed.any():
        return []
    least = float(observations[is_observed].std()) if prominence is None else prominence
    borders = np.flatnonzero(np.diff(is_observed, prepend=False, append=False))
    peaks: list[int] = []
    for first, stop in borders.reshape(-1, 2):
        found, _ = find_peaks(observations[first:stop], prominence=least)
        peaks.extend((found + first).tolist())
    return peaks


def _can_be_timed(observations: Numbers, forecasts: Numbers) -> bool:
    """Returns whether both series are whole, and the middle observation is the highest."""
    if np.isnan(observations).any() or not np.isfinite(forecasts).all():
        return False
    # A plateau that fills the whole window does not tell when it peaked.
    middle = observations[len(observations) // 2]
    return bool(observations.min() < observations.max() == middle)


def _distance_to_highest(forecasts: Numbers) -> int:
    """Returns the steps from the middle of the forecasts to the nearest of the highest."""
    middle = len(forecasts) // 2
    highest = np.flatnonzero(forecasts == forecasts.max())
    if len(highest) == len(forecasts):
        return middle
    return int(np.abs(highest - middle).min())


def _pairs_of(observed: ArrayLike, forecast: ArrayLike) -> tuple[Numbers, Numbers]:
    """Returns both series at the steps where neither is NaN."""
    observations, forecasts = _two_series(observed, forecast)
    if np.isinf(forecasts).any():
        raise ValueError("the forecasts hold infinite numbers")
    is_pair = ~(np.isnan(observations) | np.isnan(forecasts))
    return observations[is_pair], forecasts[is_pair]


def _two_series(observed: ArrayLike, forecast: ArrayLike) -> tuple[Numbers, Numbers]:
    observations, forecasts = np.asarray(observed, np.float64), np.asarray(forecast, np.float64)
    if observations.ndim != 1 or observations.shape != forecasts.shape:
        raise ValueError(
            "observations and forecasts must be two series of one length, "
            f"not of shapes {observations.shape} and {forecasts.shape}"
        )
    if np.isinf(observations).any():
        raise ValueError("the observations hold infinite numbers; what is missing must be NaN")
    return observations, forecasts


def _is_constant(series: Numbers) -> bool:
    return len(series) == 0 or bool(series.min() == series.max())
