"""The account's answers to the questions of `candor truth`, over the test part, in closed form.

| question | the account's answer |
|---|---|
| shocks | the largest evidence of a jump in the patch: standard errors by which one differs from none |
| delays, attenuation | the delay of the edge, and the share of what its sender holds that arrives |
| twins | correlation of usual weeks, of which days that are alike lend each other readings |
| accumulation, release | by how much the store rose, or fell, during the patch |
| storage, arrivals | the series themselves |

Stores fill in bursts and empty slowly: full is where the longer tail of a store lies, whatever it does to the reading.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from candor.account.flow import Parts, decompose, fit_flow
from candor.account.usual import Season, fit_usual, spread_of
from candor.core.arrays import Doubles
from candor.core.progress import Report, silent
from candor.data.panel import Panel
from candor.data.protocol import Task
from candor.data.synthetic import Truth
from candor.data.times import calendar_of
from candor.nets.candor.settings import ModelSettings
from candor.research.patterns import pair_correlations
from candor.research.truth.pulses import Curve, curves_by_delay
from candor.research.truth.questions import (
    LONGEST_LAG,
    RANDOM_SEED,
    EdgeAnswers,
    ask_edges,
    ask_shocks,
    ask_storage,
    ask_twins,
)
from candor.research.truth.rules import over_patches, regression_responses, residuals_of, usual_readings
from candor.research.truth.scores import Answer, Score, mean_correlation, score_answers


def question_account(
    task: Task, truth: Truth, settings: ModelSettings, report: Report = silent
) -> tuple[tuple[Score, ...], tuple[Curve, ...]]:
    """Return what the account and the rules beside it score on the test part, and how a regression answers pulses.

    The settings are those of CANDOR's network: patches are the same for both.
    """
    report("splitting readings into their parts", None)
    panel, train_end, test, protocol = task.panel, task.split.train_end, task.split.test, task.protocol
    parts, spread, week = account_of(panel, train_end)
    usual = usual_readings(panel, train_end)
    report("comparing with the truth", None)
    residuals, deviations = residuals_of(panel, train_end)
    edges, history = panel.edges, protocol.history
    longest = min(LONGEST_LAG, history, protocol.horizon)
    of_regression = regression_responses(
        residuals[:train_end], deviations, edges, history, protocol.horizon, longest
    )  # fmt: skip
    rows = slice(int(test[0]) - history, int(test[-1]))
    length, readings = settings.patch_length, panel.values.astype(np.float64)
    starts = patch_starts(test, settings, history)
    evidence = over_patches(np.abs(parts.jump_score), starts, length).max(axis=1)
    shares = parts.flow.shares * spread[edges.target] / spread[edges.source]
    of_edges = EdgeAnswers(
        lags=[Answer("delay", parts.flow.delays.steps.astype(np.float64), is_ours=True)],
        shares=[Answer("share that arrives", shares, is_ours=True)],
    )
    likeness = Answer("likeness of usual weeks", np.nan_to_num(pair_correlations(week[rows])), is_ours=True)
    generator = np.random.default_rng(RANDOM_SEED)
    scores = (
        *ask_shocks(
            truth, [Answer("evidence of a jump", evidence, is_ours=True)], starts, length, residuals, generator
        ),
        *ask_edges(truth, of_edges, of_regression, edges, readings[rows], residuals[rows], generator),
        *ask_twins(truth, [likeness], readings[rows], usual[rows], generator),
        *ask_storage(truth, _changes(parts, starts, length, train_end), starts, length, residuals, generator),
        *score_series(truth, parts, spread, residuals, rows, generator),
    )
    return scores, tuple(curves_by_delay("regression", of_regression, truth.delays))


def account_of(panel: Panel, train_end: int) -> tuple[Parts, Doubles, Doubles]:
    """Return the parts of all readings in robust spreads, these spreads, and what is usual, time x sensor.

    All of it is fitted to the training part.
    """
    training, calendar = panel.slice(0, train_end), calendar_of(panel.times)
    week = fit_usual(training.values, calendar_of(training.times), panel.times.interval, Season("week"))
    usual = week.at(calendar).astype(np.float64)
    deviations = panel.values - usual
    spread = spread_of(deviations[:train_end].astype(np.float32), training.values).astype(np.float64)
    scaled = deviations / spread
    flow = fit_flow(scaled[:train_end], panel.edges.source, panel.edges.target)
    return decompose(scaled, flow), spread, usual


def patch_starts(origins: NDArray[np.int64], settings: ModelSettings, history: int) -> NDArray[np.int64]:
    """Return the rows with which the patches of the windows at some origins begin, ascending."""
    places = np.arange(0, history - settings.patch_length + 1, settings.patch_stride)
    return np.unique(origins[:, None] - history + places)


def score_series(
    truth: Truth, parts: Parts, spread: Doubles, residuals: Doubles, rows: slice, generator: np.random.Generator
) -> list[Score]:
    """Return how storage and arrivals follow the true series, and the residual beside them, mean over sensors."""
    receivers = np.unique(parts.flow.target)
    sensors = np.arange(len(spread))
    found = []
    for question, component, series, chosen in (
        ("storage", "storage", parts.storage, sensors),
        ("arrivals", "transported", parts.arrivals, receivers),
    ):
        if len(chosen):
            true = truth.components[component][rows, chosen].astype(np.float64)
            answers = [
                Answer(question, series[rows, chosen].astype(np.float64), is_ours=True),
                Answer("residual", residuals[rows, chosen]),
            ]
            measures = {"correlation": partial(mean_correlation, true)}
            found += score_answers(question, measures, answers, generator)
    return found


def _changes(parts: Parts, starts: NDArray[np.int64], length: int, train_end: int) -> dict[str, list[Answer]]:
    """Return by how much stores rose and fell in each patch, patch x sensor."""
    storage = parts.storage - parts.storage[:train_end].mean(axis=0)
    full = np.where((storage[:train_end] ** 3).sum(axis=0) < 0, -1.0, 1.0)
    changes = over_patches(np.diff(full * storage, axis=0, prepend=0.0), starts, length)
    return {
        question: [Answer(name, np.maximum(sign * changes, 0).sum(axis=1), is_ours=True)]
        for question, name, sign in (("accumulation", "rise of storage", 1), ("release", "fall of storage", -1))
    }
