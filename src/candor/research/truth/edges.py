"""Does the model know how long deviations travel along an edge, and how much of them arrives?"""

from functools import partial

import numpy as np

from candor.data.panel import Edges
from candor.data.synthetic import Truth
from candor.research.rotation import Numbers
from candor.research.truth.pulses import peak_heights, peak_lags
from candor.research.truth.ranking import rank_correlation, share_in_order
from candor.research.truth.rules import lagged_peaks
from candor.research.truth.scores import Answer, Score, judge
from candor.research.truth.told import Told

DELAYS, ATTENUATION = "delays", "attenuation"


def score_edges(
    truth: Truth,
    told: Told,
    responses: Numbers,
    of_regression: Numbers,
    edges: Edges,
    readings: Numbers,
    residuals: Numbers,
    chance: np.random.Generator,
) -> list[Score]:
    """Returns how the model and rules order the edges by delay and by attenuation.

    Args:
        truth: delay and attenuation of every edge.
        told: what the model says.
        responses: of the model to pulses, edge x lag.
        of_regression: of a linear regression to pulses, edge x lag.
        edges: in the order of both.
        readings: of the test windows, time x sensor.
        residuals: of the same rows, readings minus what is usual, time x sensor.
        chance: where random numbers come from.
    """
    longest = responses.shape[1]
    raw_lags, raw_peaks = lagged_peaks(readings, edges.source, edges.target, longest)
    lags, peaks = lagged_peaks(residuals, edges.source, edges.target, longest)
    in_steps = [
        Answer("peak of the pulse response", peak_lags(responses), is_ours=True),
        Answer("pulse response of a regression", peak_lags(of_regression)),
        Answer("raw cross-correlation", raw_lags),
        Answer("cross-correlation of residuals", lags),
    ]
    age = Answer("age of what arrives by position", mean_age(told.arrived), is_ours=True)
    attenuation = [
        Answer("height of the pulse response", peak_heights(responses), is_ours=True),
        Answer("edge weights", told.weights.mean(axis=1), is_ours=True),
        Answer("pulse response of a regression", peak_heights(of_regression)),
        Answer("one over the number of senders", 1 / np.bincount(edges.target)[edges.target]),
        Answer("raw cross-correlation", raw_peaks),
        Answer("cross-correlation of residuals", peaks),
    ]
    delays = truth.delays.astype(np.float64)
    by_attenuation = {
        "rank correlation": partial(rank_correlation, truth.attenuation),
        "in order where edges join": partial(share_in_order, truth.attenuation, edges.target),
    }
    draw = partial(_draw_lags, longest)
    return [
        *judge(
            DELAYS,
            {"rank correlation": partial(rank_correlation, delays)},
            [in_steps[0], age, *in_steps[1:]],
            chance,
            draw,
        ),
        *judge(DELAYS, {"found exactly": partial(_share_of_hits, delays)}, in_steps, chance, draw),
        *judge(ATTENUATION, by_attenuation, attenuation, chance),
    ]


def mean_age(arrived: Numbers) -> Numbers:
    """Returns how many patches old what arrives along each edge is on average, from its size by position.

    Args:
        arrived: edge x position, oldest first.
    """
    ages = np.arange(arrived.shape[1])[::-1]
    total = arrived.sum(axis=1)
    weighted: Numbers = np.where(total > 0, arrived @ ages / np.where(total > 0, total, 1.0), ages.mean())
    return weighted


def _share_of_hits(delays: Numbers, lags: Numbers) -> float | None:
    """Returns the share of edges whose delay is told to the step."""
    return float((lags == delays).mean()) if len(delays) else None


def _draw_lags(longest: int, chance: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    return chance.integers(1, longest + 1, shape).astype(np.float64)
