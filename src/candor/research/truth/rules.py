"""Simple rules that answer the same questions without a model, from the same held-out readings.

They may look at the training part as the model may: for what is usual at a time of the week.
"""

import numpy as np
from numpy.typing import NDArray

from candor.data.panel import Panel
from candor.research.patterns import lagged_correlations, profiles_of, slots_of
from candor.research.rotation import Numbers


def usual_readings(panel: Panel, train_end: int) -> Numbers:
    """Returns what is usual for the time of the week of each row, time x sensor, in the sensors' units.

    Usual is the mean over the rows before `train_end`; a time of the week that they lack gets their overall mean.
    """
    training = panel.slice(0, train_end)
    profiles, _ = profiles_of(training)
    known, slots = np.unique(slots_of(training.times)), slots_of(panel.times)
    place = np.searchsorted(known, slots).clip(max=len(known) - 1)
    means = np.nanmean(training.values, axis=0, dtype=np.float64)
    usual = np.where((known[place] == slots)[:, None], profiles[place], np.nan)
    return np.where(np.isnan(usual), means, usual)


def residuals_of(panel: Panel, train_end: int) -> Numbers:
    """Returns readings minus what is usual, time x sensor, each sensor's in its standard deviations of training.

    A missing reading counts as usual.
    """
    residuals, deviations = _residuals(panel, train_end)
    return residuals / deviations


def deviations_of_residuals(panel: Panel, train_end: int) -> Numbers:
    """Returns the standard deviation of each sensor's residuals in training, by which `residuals_of` divides."""
    return _residuals(panel, train_end)[1]


def _residuals(panel: Panel, train_end: int) -> tuple[Numbers, Numbers]:
    residuals: Numbers = np.nan_to_num(panel.values - usual_readings(panel, train_end))
    deviations = residuals[:train_end].std(axis=0)
    return residuals, np.where(deviations > 0, deviations, 1.0)


def over_patches(series: Numbers, starts: NDArray[np.int64], length: int) -> Numbers:
    """Returns the rows of each patch, patch x row of the patch x sensor."""
    cut: Numbers = series[starts[:, None] + np.arange(length)]
    return cut


def lagged_peaks(
    series: Numbers, source: NDArray[np.integer], target: NDArray[np.integer], longest: int
) -> tuple[Numbers, Numbers]:
    """Returns the lag from 1 to `longest` steps at which the ends of each edge are most alike, and how much they are.

    Where nothing is known the lag is 1 and the correlation 0.
    """
    whole = lagged_correlations(series, source, target, longest)
    after = np.nan_to_num(whole[:, longest + 1 :])
    lags: Numbers = after.argmax(axis=1) + 1.0
    return lags, after.max(axis=1)
