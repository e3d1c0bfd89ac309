"""How far forecast peaks lie from observed ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from candor.core.arrays import Doubles


@dataclass(frozen=True)
class PeakTiming:
    """How far forecast peaks lie from observed ones."""

    mean_absolute_steps: float  # mean distance in time steps, early and late alike; NaN without peaks
    peaks: int  # how many observed peaks were compared


def peak_timing(observed: ArrayLike, forecast: ArrayLike, window: int, prominence: float | None = None) -> PeakTiming:
    """Return the mean distance, in steps, from observed peaks to the highest forecast near each.

    A peak counts if the series is observed and forecast throughout `window` steps on both sides (so none counts nearer
    than that to either end) and nothing observed there is higher: a lesser peak beside a greater one would charge even
    a perfect forecast. Of several equally high forecasts the nearest is taken; a forecast that is flat throughout has
    no peak, and counts as `window` steps away.

    Args:
        observed: observations on a regular time axis, NaN where missing.
        forecast: forecasts for the same steps, in the same unit.
        window: how many steps before and after an observed peak its forecast may lie.
        prominence: how far a peak must rise above its surroundings, in the unit of the observations; by default one
            standard deviation of the observations.
    """
    observations, forecasts = np.asarray(observed, np.float64), np.asarray(forecast, np.float64)
    if observations.ndim != 1 or observations.shape != forecasts.shape:
        raise ValueError(
            "observations and forecasts must be two series of one length, "
            f"not of shapes {observations.shape} and {forecasts.shape}"
        )
    if np.isinf(observations).any():
        raise ValueError("the observations hold infinite numbers; what is missing must be NaN")
    if window < 1:
        raise ValueError(f"the window must be at least one step, not {window}")
    if prominence is not None and not prominence >= 0:
        raise ValueError(f"the prominence must be zero or more, not {prominence}")
    distances = []
    for peak in _prominent_peaks(observations, prominence):
        if window <= peak < len(observations) - window:
            around = slice(peak - window, peak + window + 1)
            distance = _distance_to_highest(observations[around], forecasts[around])
            distances += [] if distance is None else [distance]
    mean = float(np.mean(distances)) if distances else float("nan")
    return PeakTiming(mean_absolute_steps=mean, peaks=len(distances))


def _prominent_peaks(observations: Doubles, prominence: float | None) -> list[int]:
    """Return the positions of the peaks; the surroundings of a peak end where a gap begins."""
    from scipy.signal import find_peaks  # slow to import, and needed for rivers only

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


def _distance_to_highest(observations: Doubles, forecasts: Doubles) -> int | None:
    """Return the steps from the middle, where the observed peak is, to the nearest of the highest forecasts.

    None where either series has a gap, or the middle observation is not the highest.
    """
    middle = len(forecasts) // 2
    if np.isnan(observations).any() or not np.isfinite(forecasts).all():
        return None
    # A plateau that fills the whole window has no time of its peak.
    if not observations.min() < observations.max() == observations[middle]:
        return None
    highest = np.flatnonzero(forecasts == forecasts.max())
    return middle if len(highest) == len(forecasts) else int(np.abs(highest - middle).min())
