"""Simple rules that answer the same questions without a model, from the same held-out readings.

Like the model they may use the training part: for what is usual at a time of the week, and to fit a linear regression
along edges, which shows what any forecaster could have learned there.
"""

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Doubles
from candor.data.panel import Edges, Panel
from candor.research.patterns import lagged_correlations, profiles_of, slots_of
from candor.research.truth.pulses import Readings, peaks_of, pulse_responses

_RIDGE = 1e-3  # share of the mean variance of the inputs


def usual_readings(panel: Panel, train_end: int) -> Doubles:
    """Return what is usual for the time of the week of each row, time x sensor, in the sensors' units.

    Usual is the mean over the rows before `train_end`; a time of the week that they lack gets their overall mean.
    """
    training = panel.slice(0, train_end)
    profiles, _ = profiles_of(training)
    known, slots = np.unique(slots_of(training.times)), slots_of(panel.times)
    place = np.searchsorted(known, slots).clip(max=len(known) - 1)
    means = np.nanmean(training.values, axis=0, dtype=np.float64)
    usual = np.where((known[place] == slots)[:, None], profiles[place], np.nan)
    return np.where(np.isnan(usual), means, usual)


def residuals_of(panel: Panel, train_end: int) -> tuple[Doubles, Doubles]:
    """Return readings minus what is usual, time x sensor, in standard deviations of training, and these deviations.

    A missing reading counts as usual.
    """
    residuals: Doubles = np.nan_to_num(panel.values - usual_readings(panel, train_end))
    deviations = residuals[:train_end].std(axis=0)
    deviations = np.where(deviations > 0, deviations, 1.0)
    return residuals / deviations, deviations


def over_patches(series: Doubles, starts: NDArray[np.int64], length: int) -> Doubles:
    """Return the rows of each patch, patch x row of the patch x sensor."""
    cut: Doubles = series[starts[:, None] + np.arange(length)]
    return cut


def lagged_peaks(
    series: Doubles, source: NDArray[np.integer], target: NDArray[np.integer], longest: int
) -> tuple[Doubles, Doubles]:
    """Return the lag from 1 to `longest` steps at which the ends of each edge are most alike, and how much they are.

    Where nothing is known the lag is 1 and the correlation 0.
    """
    whole = lagged_correlations(series, source, target, longest)
    return peaks_of(np.nan_to_num(whole[:, longest + 1 :]))


def regression_responses(
    residuals: Doubles, deviations: Doubles, edges: Edges, history: int, horizon: int, longest: int
) -> Doubles:
    """Return the responses to pulses of regressions from each sensor's and its senders' past, edge x lag.

    Every step ahead of every sensor that edges lead to has a ridge regression of its own on the last `history`
    residuals of the sensor and of those that send to it.

    Args:
        residuals: of the training part, readings minus what is usual in deviations of each sensor, time x sensor.
        deviations: by which each sensor's were divided; what arrives is a share of what was sent, not of these.
        edges: of the network.
        history: rows that are read.
        horizon: rows that are forecast.
        longest: the longest lag, in steps.
    """
    sensors = residuals.shape[1]
    origins = np.arange(history, len(residuals) - horizon + 1)
    past = residuals[origins[:, None] - history + np.arange(history)]  # origin row sensor
    ahead = residuals[origins[:, None] + np.arange(horizon)]
    maps: dict[int, tuple[list[int], Doubles]] = {}
    for target in np.unique(edges.target).tolist():
        read = [target, *edges.source[edges.target == target].tolist()]
        inputs = _beside(past, read)
        ridge = _RIDGE * max(float((inputs**2).sum(axis=0).mean()), 1e-12) * np.eye(inputs.shape[1])
        maps[target] = read, np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ ahead[:, :, target])

    def forecast(histories: Readings) -> Readings:
        found = np.zeros((len(histories), horizon, sensors))
        for target, (read, weights) in maps.items():
            found[:, :, target] = _beside(histories, read) @ weights
        return found

    # What a linear forecaster makes of a pulse is the same in every window.
    responses = pulse_responses(forecast, np.zeros((1, history, sensors)), edges, longest)
    return responses * (deviations[edges.target] / deviations[edges.source])[:, None]


def _beside(series: Readings, sensors: list[int]) -> NDArray[np.float64]:
    """Return the past of some sensors side by side, window x (row sensor)."""
    chosen: NDArray[np.float64] = series[:, :, sensors].astype(np.float64)
    return chosen.reshape(len(series), -1)
