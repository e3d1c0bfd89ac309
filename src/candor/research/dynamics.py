"""Background, rises, falls and shocks of one sensor by plain statistics: what a model is to tell apart, without one."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.panel import Panel
from candor.data.times import DAY, TimeAxis
from candor.research.rotation import Numbers

_MONTH = 29  # days; odd, so that the middle is a day
_SLOPES_MARKED = 0.75  # quantile of the sizes of slopes from which on they are rises and falls
_ROBUST_DEVIATIONS = 6.0  # from which on a step is a shock
_MEDIAN_TO_DEVIATION = 1.4826  # of normal numbers
_MOST_MISSING = 0.1


@dataclass(frozen=True, eq=False)
class Dynamics:
    """What happens at one sensor, by step.

    Args:
        background: running median of the readings over a day (over 29 steps where a step is a day or longer).
        is_rise: where the smoothed deviation from the background climbs fast: the quarter of steepest slopes, upward.
        is_fall: the same, downward.
        is_shock: where a reading differs from the one before by more than 6 robust deviations of such differences.
    """

    background: Numbers
    is_rise: NDArray[np.bool_]
    is_fall: NDArray[np.bool_]
    is_shock: NDArray[np.bool_]


def find_dynamics(readings: NDArray[np.floating], times: TimeAxis) -> Dynamics:
    """Returns the dynamics of a series of readings, NaN where missing."""
    period = _MONTH if times.interval >= DAY else DAY // times.interval
    series = pd.Series(readings.astype(np.float64))
    background = series.rolling(period, center=True, min_periods=max(1, period // 4)).median()
    span = max(3, period // 12)
    smooth = (series - background).rolling(span, center=True, min_periods=(span + 1) // 2).mean().to_numpy()
    half = (span + 1) // 2
    slope = np.full(len(smooth), np.nan)
    slope[half : len(smooth) - half] = smooth[2 * half :] - smooth[: len(smooth) - 2 * half]
    steep = _quantile(np.abs(slope), _SLOPES_MARKED)
    change = np.diff(series.to_numpy(), prepend=np.nan)
    middle = _quantile(change, 0.5)
    spread = _MEDIAN_TO_DEVIATION * _quantile(np.abs(change - middle), 0.5)
    if spread == 0:  # rounded readings hardly ever change: fall back on the plain deviation
        spread = float(np.std(change[~np.isnan(change)])) if not np.isnan(change).all() else 0.0
    return Dynamics(
        background=background.to_numpy(),
        is_rise=slope > max(steep, 0.0),
        is_fall=slope < -max(steep, 0.0),
        is_shock=np.abs(change - middle) > _ROBUST_DEVIATIONS * spread,
    )


def liveliest(panel: Panel, deviations: Numbers, most: int) -> list[int]:
    """Returns columns of sensors with many readings, first those that deviate much compared with how they jitter.

    Args:
        panel: the readings; many are 95 % of the most that a sensor has.
        deviations: from what is usual, time x sensor.
        most: how many columns at most.
    """
    counts = panel.mask.sum(axis=0)
    columns = np.flatnonzero(counts >= 0.95 * counts.max())
    ratios = []
    for column in columns.tolist():
        known = deviations[~np.isnan(deviations[:, column]), column]
        jitter = float(np.diff(known).std()) if len(known) > 1 else 0.0
        ratios.append(float(known.std()) / jitter if jitter > 0 else 0.0)
    order = np.argsort(-np.array(ratios), kind="stable")
    return [int(column) for column in columns[order[:most]]]


def choose_stretch(readings: NDArray[np.floating], dynamics: Dynamics, times: TimeAxis) -> slice:
    """Returns the stretch in which all dynamics coexist: few gaps, and even the rarest of the three kinds often.

    It is as long as people look at: 3 days of minutes, 10 days of hours, a year of days.
    """
    length = len(readings)
    wanted = timedelta(days=3) if times.interval < timedelta(minutes=30) else timedelta(days=10)
    steps = min(length, 365 if times.interval >= DAY else wanted // times.interval)
    best, best_score = slice(0, steps), -np.inf
    kinds = (dynamics.is_rise, dynamics.is_fall, dynamics.is_shock)
    shares = [max(float(kind.mean()), 1e-12) for kind in kinds]
    for start in range(0, length - steps + 1, max(1, steps // 3)):
        rows = slice(start, start + steps)
        missing = float(np.isnan(readings[rows]).mean())
        # More than half again as many as usual is no better: a stretch of nothing but shocks shows no coexistence.
        score = min(min(float(kind[rows].mean()) / share, 1.5) for kind, share in zip(kinds, shares, strict=True))
        score -= 10 * max(missing - _MOST_MISSING, 0) + missing
        if score > best_score:
            best, best_score = rows, score
    return best


def _quantile(values: NDArray[np.floating], share: float) -> float:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, share)) if len(known) else 0.0
