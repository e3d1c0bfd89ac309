"""A linear regression along edges, read by the same pulses as the model: what any forecaster could have learned."""

import numpy as np
from numpy.typing import NDArray

from candor.data.panel import Edges
from candor.research.rotation import Numbers
from candor.research.truth.pulses import Readings, pulse_responses

_RIDGE = 1e-3  # share of the mean variance of the inputs


def regression_responses(
    residuals: Numbers, deviations: Numbers, edges: Edges, history: int, horizon: int, longest: int
) -> Numbers:
    """Returns the responses to pulses of regressions from each sensor's and its senders' past, edge x lag.

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
    maps: dict[int, tuple[list[int], Numbers]] = {}
    for target in np.unique(edges.target).tolist():
        read = [target, *edges.source[edges.target == target].tolist()]
        maps[target] = read, _solve(_beside(past, read), ahead[:, :, target])

    def forecast(histories: Readings) -> Readings:
        found = np.zeros((len(histories), horizon, sensors))
        for target, (read, weights) in maps.items():
            found[:, :, target] = _beside(histories, read) @ weights
        return found

    # What a linear forecaster makes of a pulse is the same in every window.
    responses = pulse_responses(forecast, np.zeros((1, history, sensors)), edges, longest)
    return responses * (deviations[edges.target] / deviations[edges.source])[:, None]


def _beside(series: Readings, sensors: list[int]) -> NDArray[np.float64]:
    """Returns the past of some sensors side by side, window x (row sensor)."""
    chosen: NDArray[np.float64] = series[:, :, sensors].astype(np.float64)
    return chosen.reshape(len(series), -1)


def _solve(inputs: Numbers, targets: Numbers) -> Numbers:
    ridge = _RIDGE * max(float((inputs**2).sum(axis=0).mean()), 1e-12)
    solved = np.linalg.solve(inputs.T @ inputs + ridge * np.eye(inputs.shape[1]), inputs.T @ targets)
    return solved.astype(np.float64)
