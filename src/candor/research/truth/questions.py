"""All questions to one run of CANDOR on a network whose truth is known.

| question | asked of |
|---|---|
| are shock gates open where a shock was injected? | every patch of every sensor |
| how long do deviations travel along an edge, and how much of them arrives? | every edge |
| do functional relations find the sensors that were made to behave alike? | every planted twin |
| do accumulation and release follow what is stored? | the patches of each sensor |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from candor.core.arrays import Doubles
from candor.core.progress import Report, silent
from candor.data.panel import Edges
from candor.data.protocol import Task
from candor.data.synthetic import Truth
from candor.forecasting.candor import Candor
from candor.nets.trainable import tensors_of
from candor.research.patterns import pair_correlations
from candor.research.truth.answers import ModelAnswers, collect_answers
from candor.research.truth.pulses import Curve, Readings, curves_by_delay, peaks_of, pulse_responses
from candor.research.truth.rules import (
    lagged_peaks,
    over_patches,
    regression_responses,
    residuals_of,
    usual_readings,
)
from candor.research.truth.scores import (
    Answer,
    Score,
    area_under_curve,
    average_precision,
    mean_rank_correlation,
    rank_correlation,
    score_answers,
    share_found,
    share_in_order,
)
from candor.training.batches import spread_evenly

PULSE_WINDOWS = 16
PULSE_SIZE = 1.0  # in standard deviations of the training part's readings
LONGEST_LAG = 12  # steps, if history and horizon have as many
RANDOM_SEED = 0


def question_candor(
    candor: Candor, task: Task, truth: Truth, report: Report = silent
) -> tuple[tuple[Score, ...], tuple[Curve, ...]]:
    """Return what a fitted CANDOR and the rules beside it score on the test part, and how forecasts answer pulses."""
    if truth.components["shock"].shape != task.panel.values.shape:
        raise ValueError("the truth is not that of the data, or the protocol cuts the record")
    model = collect_answers(candor, task, report)
    longest = min(LONGEST_LAG, candor.history, candor.horizon)
    responses = respond(candor, task, longest, report)
    report("comparing with the truth", None)
    test, train_end = task.split.test, task.split.train_end
    rows = slice(int(test[0]) - candor.history, int(test[-1]))  # what the test windows read
    usual, (residuals, spread) = usual_readings(task.panel, train_end), residuals_of(task.panel, train_end)
    readings, edges = task.panel.values.astype(np.float64), task.panel.edges
    of_regression = regression_responses(residuals[:train_end], spread, edges, candor.history, candor.horizon, longest)
    generator = np.random.default_rng(RANDOM_SEED)
    scores = (
        *score_shocks(truth, model, residuals, generator),
        *score_edges(truth, model, responses, of_regression, edges, readings[rows], residuals[rows], generator),
        *score_twins(truth, model, readings[rows], usual[rows], generator),
        *score_storage(truth, model, residuals, generator),
    )
    curves = (
        *curves_by_delay("candor", responses, truth.delays, is_ours=True),
        *curves_by_delay("regression", of_regression, truth.delays),
    )
    return scores, curves


def respond(candor: Candor, task: Task, longest: int, report: Report = silent) -> Doubles:
    """Return how the forecasts of a fitted CANDOR respond to pulses in test windows, edge x lag; see `pulses`."""
    trainable = candor.trained()
    chosen = spread_evenly(len(task.split.test), PULSE_WINDOWS)
    batch = tensors_of(candor.windows(task.panel, task.split.test[chosen]).batch(slice(None)))

    @torch.no_grad()
    def forecast(histories: Readings) -> Readings:
        copies = len(histories) // len(chosen)
        repeated = {name: tensor.repeat(copies, *[1] * (tensor.ndim - 1)) for name, tensor in batch.items()}
        found = trainable.forecast(repeated | {"inputs": torch.from_numpy(histories)})
        scores: Readings = trainable.scaler.scale(found.numpy())
        return scores

    return pulse_responses(forecast, batch["inputs"].numpy(), task.panel.edges, longest, PULSE_SIZE, report)


def score_shocks(truth: Truth, model: ModelAnswers, residuals: Doubles, generator: np.random.Generator) -> list[Score]:
    """Return how well gates and rules separate patches with an injected shock from those without.

    Residuals are readings minus what is usual, time x sensor, in standard deviations.
    """
    ours = [
        Answer("shock gates", model.by_patch["shock gates"], is_ours=True),
        Answer("size of shock", model.by_patch["shock"], is_ours=True),
    ]
    return ask_shocks(truth, ours, model.starts, model.patch_length, residuals, generator)


def ask_shocks(
    truth: Truth,
    ours: Sequence[Answer],
    starts: NDArray[np.int64],
    length: int,
    residuals: Doubles,
    generator: np.random.Generator,
) -> list[Score]:
    """Return what answers about shocks score, patch x sensor, beside those of rules; see `score_shocks`."""
    is_shocked = shocked_patches(truth, starts, length)
    changes = np.abs(np.diff(residuals, axis=0, prepend=residuals[:1]))
    answers = [
        *ours,
        Answer("largest residual", np.abs(over_patches(residuals, starts, length)).max(axis=1)),
        Answer("largest change of the residual", over_patches(changes, starts, length).max(axis=1)),
    ]
    measures = {
        "AUROC": partial(area_under_curve, is_shocked),
        "average precision": partial(average_precision, is_shocked),
    }
    return score_answers("shocks", measures, answers, generator)


def shocked_patches(truth: Truth, starts: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Return whether a shock was injected at the sensor in a row of the patch, patch x sensor.

    What was injected upstream and only passes by is no shock of this sensor.
    """
    injected = np.zeros(truth.components["shock"].shape)
    injected[truth.shocks.time, truth.shocks.sensor] = 1
    is_shocked: NDArray[np.bool_] = over_patches(injected, starts, length).max(axis=1) > 0
    return is_shocked


def score_edges(
    truth: Truth,
    model: ModelAnswers,
    responses: Doubles,
    of_regression: Doubles,
    edges: Edges,
    readings: Doubles,
    residuals: Doubles,
    generator: np.random.Generator,
) -> list[Score]:
    """Return how the model and rules order the edges by delay and by attenuation.

    Args:
        truth: delay and attenuation of every edge.
        model: its answers.
        responses: of the model to pulses, edge x lag.
        of_regression: of a linear regression to pulses, edge x lag.
        edges: in the order of both.
        readings: of the test windows, time x sensor.
        residuals: of the same rows, readings minus what is usual, time x sensor.
        generator: of the random answers.
    """
    own_lags, own_heights = peaks_of(responses)
    ours = EdgeAnswers(
        lags=[Answer("peak of the pulse response", own_lags, is_ours=True)],
        ages=[Answer("age of what arrives by position", mean_age(model.arrived), is_ours=True)],
        shares=[
            Answer("height of the pulse response", own_heights, is_ours=True),
            Answer("edge weights", model.weights.mean(axis=1), is_ours=True),
        ],
    )
    return ask_edges(truth, ours, of_regression, edges, readings, residuals, generator)


@dataclass(frozen=True, eq=False)
class EdgeAnswers:
    """What a model answers about every edge: delays in steps, what only orders them, and how much arrives."""

    lags: Sequence[Answer]
    shares: Sequence[Answer]
    ages: Sequence[Answer] = ()


def ask_edges(
    truth: Truth,
    ours: EdgeAnswers,
    of_regression: Doubles,
    edges: Edges,
    readings: Doubles,
    residuals: Doubles,
    generator: np.random.Generator,
) -> list[Score]:
    """Return what answers about edges score beside those of rules; see `score_edges`."""
    longest = of_regression.shape[1]
    regression_lags, regression_heights = peaks_of(of_regression)
    raw_lags, raw_heights = lagged_peaks(readings, edges.source, edges.target, longest)
    lags, heights = lagged_peaks(residuals, edges.source, edges.target, longest)
    in_steps = [
        *ours.lags,
        Answer("pulse response of a regression", regression_lags),
        Answer("raw cross-correlation", raw_lags),
        Answer("cross-correlation of residuals", lags),
    ]
    attenuation = [
        *ours.shares,
        Answer("pulse response of a regression", regression_heights),
        Answer("one over the number of senders", 1 / np.bincount(edges.target)[edges.target]),
        Answer("raw cross-correlation", raw_heights),
        Answer("cross-correlation of residuals", heights),
    ]
    delays = truth.delays.astype(np.float64)
    in_order = {"rank correlation": partial(rank_correlation, delays)}
    exactly = {"found exactly": partial(_share_of_hits, delays)}
    by_attenuation = {
        "rank correlation": partial(rank_correlation, truth.attenuation),
        "in order where edges join": partial(share_in_order, truth.attenuation, edges.target),
    }
    draw = partial(_draw_lags, longest)
    first = len(ours.lags)
    ordered = [*in_steps[:first], *ours.ages, *in_steps[first:]]
    return [
        *score_answers("delays", in_order, ordered, generator, draw),
        *score_answers("delays", exactly, in_steps, generator, draw),
        *score_answers("attenuation", by_attenuation, attenuation, generator),
    ]


def mean_age(arrived: Doubles) -> Doubles:
    """Return how many patches old what arrives along each edge is, from its size: edge x position, oldest first."""
    ages = np.arange(arrived.shape[1])[::-1]
    total = arrived.sum(axis=1)
    weighted: Doubles = np.where(total > 0, arrived @ ages / np.where(total > 0, total, 1.0), ages.mean())
    return weighted


def _share_of_hits(delays: Doubles, lags: Doubles) -> float | None:
    return float((lags == delays).mean()) if len(delays) else None


def _draw_lags(longest: int, generator: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
    return generator.integers(1, longest + 1, shape).astype(np.float64)


def score_twins(
    truth: Truth, model: ModelAnswers, readings: Doubles, usual: Doubles, generator: np.random.Generator
) -> list[Score]:
    """Return how often the planted twin of a sensor is the first, or among the first three, of all others.

    A sensor has one twin: the share of firsts is the precision of the first, and the second measure counts near misses.
    Readings are those of the test windows, beside what is usual at their time of the week, both time x sensor.
    """
    ours = [
        Answer("functional relations", model.likeness, is_ours=True),
        Answer("resemblance of backgrounds", model.resemblance, is_ours=True),
    ]
    return ask_twins(truth, ours, readings, usual, generator)


def ask_twins(
    truth: Truth, ours: Sequence[Answer], readings: Doubles, usual: Doubles, generator: np.random.Generator
) -> list[Score]:
    """Return what answers about likeness score, sensor x sensor, beside those of rules; see `score_twins`."""
    answers = [
        *ours,
        Answer("raw correlation", np.nan_to_num(pair_correlations(readings))),
        Answer("correlation of usual weeks", np.nan_to_num(pair_correlations(usual))),
    ]
    measures = {
        "precision of the first": partial(share_found, truth.twins, 1),
        "found among three": partial(share_found, truth.twins, 3),
    }
    return score_answers("twins", measures, answers, generator)


def score_storage(truth: Truth, model: ModelAnswers, residuals: Doubles, generator: np.random.Generator) -> list[Score]:
    """Return how components, gates and a rule order the patches of a sensor by what its store took in or gave out."""
    ours = {
        question: [
            Answer(f"size of {question}", model.by_patch[question], is_ours=True),
            Answer(f"{question} gate", model.by_patch[f"{question} gate"], is_ours=True),
        ]
        for question in ("accumulation", "release")
    }
    return ask_storage(truth, ours, model.starts, model.patch_length, residuals, generator)


def ask_storage(
    truth: Truth,
    ours: Mapping[str, Sequence[Answer]],
    starts: NDArray[np.int64],
    length: int,
    residuals: Doubles,
    generator: np.random.Generator,
) -> list[Score]:
    """Return what answers about accumulation and release score, patch x sensor, beside a rule; see `score_storage`."""
    changes = over_patches(stored_changes(truth), starts, length)
    distance = over_patches(np.abs(residuals), starts, length)
    half = length // 2
    growth = distance[:, length - half :].mean(axis=1) - distance[:, :half].mean(axis=1)
    found = []
    for question, sign in (("accumulation", 1), ("release", -1)):
        amount = np.maximum(sign * changes, 0).sum(axis=1)  # patch sensor
        rule = Answer("residual grows" if sign > 0 else "residual shrinks", sign * growth)
        measures = {"rank correlation": partial(mean_rank_correlation, amount)}
        found += score_answers(question, measures, [*ours[question], rule], generator)
    return found


def stored_changes(truth: Truth) -> Doubles:
    """Return by how much the store of each sensor filled (above zero) or emptied (below) in each step, time x sensor.

    A full store lowers the reading of a road and raises that of a river; filling is what moves it away from empty.
    """
    stored = np.abs(truth.components["storage"].astype(np.float64))
    return np.diff(stored, axis=0, prepend=0.0)
