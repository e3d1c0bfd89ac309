"""What is usual for each sensor at a time of the calendar, and how far its readings are from it."""

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

from candor.core.progress import Report, silent
from candor.data.panel import Panel
from candor.data.times import BINS_PER_DAY, DAY, TimeAxis, calendar_of
from candor.research.rotation import (
    FEWEST_PAIRS,
    LEAST_VARIANCE,
    Numbers,
    correlations,
    spectra_of,
    standardise,
)

_EDGES_AT_A_TIME = 16


def slots_of(times: TimeAxis) -> NDArray[np.int64]:
    """Returns the slot of each moment: its time of the week on the local clock, or for days its week of the year."""
    calendar = calendar_of(times)
    if times.interval >= DAY:
        return calendar.week_of_year.astype(np.int64)
    return calendar.day_of_week.astype(np.int64) * BINS_PER_DAY + calendar.time_of_day


def profiles_of(panel: Panel) -> tuple[Numbers, NDArray[np.int64]]:
    """Returns the mean reading of each slot, slot x sensor, NaN where there is none, and the slot of each row."""
    _, place = np.unique(slots_of(panel.times), return_inverse=True)
    slots = int(place.max(initial=-1)) + 1
    profiles = np.full((slots, len(panel.sensors)), np.nan)
    for column in range(len(panel.sensors)):
        known = panel.mask[:, column]
        count = np.bincount(place[known], minlength=slots)
        total = np.bincount(place[known], weights=panel.values[known, column], minlength=slots)
        profiles[count > 0, column] = total[count > 0] / count[count > 0]
    return profiles, place


def deviations_of(panel: Panel) -> Numbers:
    """Returns the readings minus what is usual for their slot, time x sensor, in the sensors' units."""
    profiles, place = profiles_of(panel)
    deviations: Numbers = panel.values - profiles[place]
    return deviations


def lagged_correlations(
    deviations: Numbers,
    source: NDArray[np.integer],
    target: NDArray[np.integer],
    longest: int,
    report: Report = silent,
) -> Numbers:
    """Returns the correlation along each edge, edge x lag from -longest to longest; positive: the target follows.

    Pairs overlap plainly: nothing comes round from the other end of the record.
    """
    length = next_fast_len(len(deviations) + longest, real=True)
    padded = np.pad(deviations, ((0, length - len(deviations)), (0, 0)), constant_values=np.nan)
    found = np.full((len(source), 2 * longest + 1), np.nan)
    lags = np.arange(-longest, longest + 1)  # negative ones count from the end, as rotations do
    for first in range(0, len(source), _EDGES_AT_A_TIME):
        edges = slice(first, first + _EDGES_AT_A_TIME)
        whole = correlations(spectra_of(padded[:, target[edges]]), spectra_of(padded[:, source[edges]]))
        found[edges] = whole[lags].T
        report("comparing the ends of edges", min(first + _EDGES_AT_A_TIME, len(source)) / len(source))
    return found


def pair_correlations(series: Numbers) -> Numbers:
    """Returns the correlation of every two series over what both know, series x series, NaN where that is too little.

    Too little is fewer than `FEWEST_PAIRS` pairs, or hardly any change over them, as for `rotation.correlations`.
    """
    known = (~np.isnan(series)).astype(np.float64)
    values = np.nan_to_num(standardise(series))
    count = known.T @ known
    divisor = np.maximum(count, 1)
    mean = values.T @ known / divisor  # of the first over what both know; transposed it is that of the second
    variance = (values**2).T @ known / divisor - mean**2
    covariance = values.T @ values / divisor - mean * mean.T
    is_known = (count >= FEWEST_PAIRS) & (np.minimum(variance, variance.T) >= LEAST_VARIANCE)
    scale = np.sqrt(np.where(is_known, variance * variance.T, 1.0))
    return np.where(is_known, (covariance / scale).clip(-1, 1), np.nan)
