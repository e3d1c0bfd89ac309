"""All questions to one run of CANDOR on a network whose truth is known."""

from dataclasses import dataclass

import numpy as np
import torch

from candor.core.progress import Report, silent
from candor.data.protocol import Task
from candor.data.synthetic import Truth
from candor.forecasting.candor import Candor
from candor.research.rotation import Numbers
from candor.research.truth.edges import score_edges
from candor.research.truth.pulses import Curve, Readings, curves_by_delay, pulse_responses
from candor.research.truth.regression import regression_responses
from candor.research.truth.rules import deviations_of_residuals, residuals_of, usual_readings
from candor.research.truth.scores import Score
from candor.research.truth.shocks import score_shocks
from candor.research.truth.storage import score_storage
from candor.research.truth.told import listen
from candor.research.truth.twins import score_twins
from candor.runs.run import Run
from candor.training.batches import spread_evenly

PULSE_WINDOWS = 16
PULSE_SIZE = 1.0  # in standard deviations of the training part's readings
LONGEST_LAG = 12  # steps, if history and horizon have as many
CHANCE_SEED = 0


@dataclass(frozen=True)
class Findings:
    """What all answers score, and how forecasts answer pulses."""

    scores: tuple[Score, ...]
    curves: tuple[Curve, ...]


def question_run(run: Run, truth: Truth, report: Report = silent) -> Findings:
    """Returns what a run of CANDOR and the rules beside it score on the test part of the run's data.

    Args:
        run: a fitted CANDOR.
        truth: about the data it was fitted on.
        report: is told how far it has come.
    """
    candor, task = run.candor(), run.task()
    if truth.components["shock"].shape != task.panel.values.shape:
        raise ValueError("the truth is not that of the run's data, or the protocol cuts the record")
    told = listen(candor, task, report)
    longest = min(LONGEST_LAG, candor.history, candor.horizon)
    responses = respond(candor, task, longest, report)
    report("comparing with the truth", None)
    test, train_end = task.split.test, task.split.train_end
    rows = slice(int(test[0]) - candor.history, int(test[-1]))  # what the test windows read
    usual, residuals = usual_readings(task.panel, train_end), residuals_of(task.panel, train_end)
    readings = task.panel.values.astype(np.float64)
    edges, spread = task.panel.edges, deviations_of_residuals(task.panel, train_end)
    of_regression = regression_responses(residuals[:train_end], spread, edges, candor.history, candor.horizon, longest)
    chance = np.random.default_rng(CHANCE_SEED)
    scores = (
        *score_shocks(truth, told, residuals, chance),
        *score_edges(truth, told, responses, of_regression, edges, readings[rows], residuals[rows], chance),
        *score_twins(truth, told, readings[rows], usual[rows], chance),
        *score_storage(truth, told, residuals, chance),
    )
    curves = (
        *curves_by_delay("candor", responses, truth.delays, is_ours=True),
        *curves_by_delay("regression", of_regression, truth.delays),
    )
    return Findings(scores, curves)


def respond(candor: Candor, task: Task, longest: int, report: Report = silent) -> Numbers:
    """Returns how the forecasts of a fitted CANDOR respond to pulses in test windows, edge x lag; see `pulses`."""
    trainable = candor.trained()
    chosen = spread_evenly(len(task.split.test), PULSE_WINDOWS)
    batch = candor.windows(task.panel, task.split.test[chosen]).batch(slice(None)).tensors()

    @torch.no_grad()
    def forecast(histories: Readings) -> Readings:
        copies = len(histories) // len(chosen)
        repeated = {name: tensor.repeat(copies, *[1] * (tensor.ndim - 1)) for name, tensor in batch.items()}
        found = trainable.forecast(repeated | {"inputs": torch.from_numpy(histories)})
        scores: Readings = trainable.scaler.scale(found.numpy())
        return scores

    return pulse_responses(forecast, batch["inputs"].numpy(), task.panel.edges, longest, PULSE_SIZE, report)
