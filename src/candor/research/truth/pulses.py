"""How a forecast downstream answers a pulse upstream: the delay and the strength of an edge, read from what a model
does and not from any of its weights.

A pulse is added to one reading of one sensor, `age` readings before the last one, once upward and once downward. Half
the difference of the two forecasts is what the model makes of it, step by step. What is `step` steps ahead of the first
forecast lies

    lag = age + 1 + step

steps after the pulse. The response of an edge at a lag is the mean over windows and over all ages that reach it:

    response[edge, lag] = mean over age < lag of (forecast with pulse up - forecast with pulse down) / (2 x size)

at the target of the edge. Ages must be mixed: a forecaster that knows the transport copies the reading of `lag` steps
before into every step that it reaches, whereas a jump of the last reading alone is also the beginning of a slope, which
it continues, so that the response to that keeps growing beyond the delay.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Doubles
from candor.core.progress import Report, silent
from candor.data.panel import Edges

Readings = NDArray[np.floating]
Forecast = Callable[[Readings], Readings]
"""Takes histories, window x history x sensor, and returns forecasts, window x horizon x sensor, on the same scale."""


@dataclass(frozen=True)
class Curve:
    """What arrives of a pulse along edges with the same delay (steps): the mean response per unit by lag, 1 first."""

    answer: str
    is_ours: bool
    delay: int
    edges: int
    response: tuple[float, ...]


def pulse_responses(
    forecast: Forecast, histories: Readings, edges: Edges, longest: int, size: float = 1.0, report: Report = silent
) -> Doubles:
    """Return what arrives at the target of each edge per unit of a pulse at its source, edge x lag (1 comes first).

    Args:
        forecast: the model.
        histories: of some windows, window x history x sensor.
        edges: from whose sources pulses are sent.
        longest: the longest lag, in steps; neither history nor horizon may be shorter.
        size: of the pulse, on the scale of the histories.
        report: progress callback.
    """
    if size <= 0 or not 1 <= longest <= histories.shape[1]:
        raise ValueError("a pulse needs a size above zero, and its ages must lie in the history")
    responses = np.zeros((len(edges), longest))
    sources = np.unique(edges.source)
    for place, source in enumerate(sources.tolist()):
        by_lag = _by_lag(_effects(forecast, histories, source, longest, size))  # lag sensor
        sent = edges.source == source
        responses[sent] = by_lag[:, edges.target[sent]].T
        report("sending pulses", (place + 1) / len(sources))
    return responses


def peaks_of(responses: Doubles) -> tuple[Doubles, Doubles]:
    """Return the lag, in steps, at which each response (edge x lag, 1 first) is largest, and that largest value.

    Of equal ones the first counts.
    """
    return responses.argmax(axis=1) + 1.0, responses.max(axis=1)


def curves_by_delay(
    answer: str, responses: Doubles, delays: NDArray[np.integer], *, is_ours: bool = False
) -> list[Curve]:
    """Return the mean responses of edges with the same delay: those of a forecaster that knows delays differ."""
    found = []
    for delay in np.unique(delays).tolist():
        alike = responses[delays == delay]
        found.append(Curve(answer, is_ours, delay, len(alike), tuple(alike.mean(axis=0).tolist())))
    return found


def _effects(forecast: Forecast, histories: Readings, source: int, longest: int, size: float) -> Doubles:
    """Return what pulses of all ages do to the forecasts of all sensors, age x step x sensor, mean over windows."""
    windows, length, _ = histories.shape
    ages = np.arange(longest)
    moved = np.repeat(histories[None], longest, axis=0)  # age window history sensor
    pulses = np.zeros_like(moved)
    pulses[ages, :, length - 1 - ages, source] = size
    up, down = (
        forecast((moved + sign * pulses).reshape(-1, *histories.shape[1:])).astype(np.float64) for sign in (1, -1)
    )
    effects: Doubles = ((up - down) / (2 * size)).reshape(longest, windows, *up.shape[1:]).mean(axis=1)
    return effects


def _by_lag(effects: Doubles) -> Doubles:
    """Return the mean over all ages and steps that lie the same number of steps apart, lag x sensor."""
    longest = len(effects)
    if effects.shape[1] < longest:
        raise ValueError(f"the horizon of {effects.shape[1]} steps is shorter than the longest lag, {longest}")
    lags = range(1, longest + 1)
    return np.stack([np.mean([effects[age, lag - 1 - age] for age in range(lag)], axis=0) for lag in lags])
