"""A rolling origin: forecasts made one after the other, each with nothing but what was known by then.

A forecast at origin o (the row of its first target) may use the rows before o: to forecast, to learn anew if the model
is refitted, and to adapt the intervals.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.progress import Report, silent, within
from candor.data.protocol import Origins, Task, split_origins
from candor.forecasting.forecaster import Forecaster, IntervalForecast
from candor.forecasting.intervals import AdaptiveCoverage, Calibration
from candor.metrics import IntervalAccumulator, ScoreAccumulator
from candor.runs.evaluation import Evaluation, Part, check_part
from candor.runs.fit import is_network

_WORK_OF_A_REFIT = 9  # times that of the forecasts between two of them, more or less


@dataclass(frozen=True)
class Pace:
    """How a rolling origin proceeds."""

    every: int = 1
    """Steps from one forecast to the next."""
    refit: int | None = None
    """Forecasts after which the model learns anew; None never."""
    is_adaptive: bool = False
    """Whether intervals adapt to their coverage of the readings so far."""
    coverage: float = 0.9
    """The share of observations the intervals should cover."""

    def __post_init__(self) -> None:
        if self.every < 1 or (self.refit is not None and self.refit < 1):
            raise InputError("forecasts and refits can be one step or more apart, not fewer", hint="give 1 or more")
        if not 0 < self.coverage < 1:
            raise InputError(f"a coverage must lie between 0 and 1, not {self.coverage}", hint="give 0.9 for 90 %")


class Refits:
    """Models that learn anew on the way; see candor.runs.refits for those that outlast a kill."""

    def is_kept(self, row: int) -> bool:
        """Return whether the model for the forecasts from a row on is there already."""
        return False

    def learned_before(self, row: int, forecaster: Forecaster, task: Task, report: Report) -> Forecaster:
        """Return a forecaster with the same settings that learned from the rows before `row`."""
        return learn_anew(row, forecaster, task, report)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Forecasts of one model in a row."""

    origins: Origins
    """The rows of their first targets."""
    forecast: NDArray[np.float32]
    """Origin x horizon x sensor, in the sensors' units."""
    intervals: IntervalForecast | None
    """The same forecasts with the ends of their intervals; None if the model is not calibrated."""
    refits: int
    """How often the model had been refitted."""


@dataclass(frozen=True, eq=False)
class Backtest:
    """The scores of a rolling origin, and when the model was refitted (on the local clock)."""

    evaluation: Evaluation
    pace: Pace
    refits: tuple[datetime, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the scores with everything they depend on."""
        content = self.evaluation.to_json()
        content["backtest"] = {
            "every": self.pace.every,
            "refit_after": self.pace.refit,
            "refits": [moment.isoformat() for moment in self.refits],
            "refitted_on": "all rows before the forecast, training and validation in the proportion of the protocol",
            "refitted_by": "the settings of the model, to the end of their schedules",
            "is_adaptive": self.pace.is_adaptive,
        }
        if self.refits and content["intervals"] is not None:  # these tell of the first model only
            for name in ("most_residuals_of_a_step_and_sensor", "borrowing"):
                content["intervals"].pop(name, None)
        if self.pace.is_adaptive and content["intervals"] is not None:
            content["intervals"]["method"] = "adaptive conformal per step and sensor, from the calibrated intervals"
        return content


def backtest(
    forecaster: Forecaster,
    task: Task,
    part: Part = "test",
    pace: Pace | None = None,
    report: Report = silent,
    refits: Refits | None = None,
) -> Backtest:
    """Return the scores of a fitted forecaster that goes through a part of a task.

    Args:
        forecaster: left as it is; a refit makes another one with the same settings.
        task: the readings and their parts.
        part: on `validation`, which chose the model and calibrated it, scores are too good, and there are no intervals
            before the first refit.
        pace: how often it forecasts and learns anew, and which intervals it gives.
        report: progress callback.
        refits: where models that learned anew are kept, see `candor.runs.keeping_refits`; None keeps none.
    """
    if part not in ("validation", "test"):
        raise InputError(f"a model cannot be backtested on its {part} part", hint="choose test or validation")
    check_part(task, part)
    pace, panel, horizon = pace or Pace(), task.panel, task.protocol.horizon
    scores = ScoreAccumulator(horizon, len(panel.sensors))
    intervals = IntervalAccumulator(horizon, len(panel.sensors), pace.coverage)
    windows, has_intervals = 0, False
    moments: dict[int, datetime] = {}
    for stretch in walk(forecaster, task, part, pace, report, refits):
        rows = stretch.origins[:, None] + np.arange(horizon)
        scores.update(stretch.forecast, panel.values[rows], panel.mask[rows])
        if stretch.intervals is not None:
            has_intervals = True
            intervals.update(stretch.intervals.lower, stretch.intervals.upper, panel.values[rows], panel.mask[rows])
        windows += len(stretch.origins)
        if stretch.refits:
            moments.setdefault(stretch.refits, panel.times.local[stretch.origins[0]].to_pydatetime())
    evaluation = Evaluation(forecaster, task, part, windows, scores, intervals if has_intervals else None)
    return Backtest(evaluation, pace, tuple(moments.values()))


def rows_of_refits(task: Task, part: Part, pace: Pace) -> list[int]:
    """Return the rows of the forecasts before which the model learns anew."""
    origins: Origins = getattr(task.split, part)[:: pace.every]
    return [] if pace.refit is None else [int(row) for row in origins[pace.refit :: pace.refit]]


def walk(
    forecaster: Forecaster, task: Task, part: Part, pace: Pace, report: Report = silent, refits: Refits | None = None
) -> Iterator[Stretch]:
    """Yield the forecasts of a part in order of time; none of them depends on readings from its origin on."""
    origins: Origins = getattr(task.split, part)[:: pace.every]
    length, refits = pace.refit or max(len(origins), 1), refits or Refits()
    models = -(-len(origins) // length)
    # What is kept takes no time.
    works = [0 if refits.is_kept(row) else _WORK_OF_A_REFIT for row in rows_of_refits(task, part, pace)]
    name, whole, worked = f"backtesting {forecaster.name}", models + sum(works), 0
    calibration = None if part == "validation" else forecaster.calibration_
    ends = _Ends(task, pace)
    for number in range(models):
        stretch = origins[number * length : (number + 1) * length]
        if number:
            ends_at = worked + works[number - 1]
            listen = within(report, name, f"refit {number} of {models - 1}", worked / whole, ends_at / whole)
            forecaster, worked = refits.learned_before(int(stretch[0]), forecaster, task, listen), ends_at
            calibration = forecaster.calibration_
        done = 0
        for batch, forecast in forecaster.predict_in_batches(task.panel, stretch):
            intervals = None if calibration is None else ends.around(batch, forecast, calibration)
            yield Stretch(batch, forecast, intervals, number)
            done += len(batch)
            whose = f" | {name}, model {number + 1} of {models}" if models > 1 else ""
            report(f"{name}{whose}", (worked + done / len(stretch)) / whole)
        worked += 1


class _Ends:
    """The ends of intervals around forecasts in order of time, fixed or adaptive."""

    def __init__(self, task: Task, pace: Pace) -> None:
        self._readings, self._pace = task.panel.values, pace
        self._adaptive: AdaptiveCoverage | None = None
        self._known = 0  # the adaptive intervals have observed the rows before it

    def around(self, origins: Origins, forecast: NDArray[np.float32], calibration: Calibration) -> IntervalForecast:
        """Return the forecasts with their intervals."""
        if not self._pace.is_adaptive:
            lower, upper = calibration.interval(forecast, self._pace.coverage)
            return IntervalForecast(forecast, lower.astype(np.float32), upper.astype(np.float32))
        if self._adaptive is None:
            self._adaptive, self._known = AdaptiveCoverage(calibration, self._pace.coverage), int(origins[0])
        # After a refit the levels that were learned go on with the residuals of the new model.
        self._adaptive.calibration = calibration
        for row in range(self._known, int(origins[0])):
            self._adaptive.observe(row, self._readings[row])
        self._known = int(origins[-1])
        lower, upper = self._adaptive.walk(origins, forecast, self._readings)
        return IntervalForecast(forecast, lower.astype(np.float32), upper.astype(np.float32))


def learn_anew(
    row: int, forecaster: Forecaster, task: Task, report: Report = silent, training: Path | None = None
) -> Forecaster:
    """Return a forecaster with the same settings that learned from the rows before `row`.

    A network keeps the state of its training in the folder `training`, if given, and goes on if there is one.
    """
    protocol, known = task.protocol, task.panel.slice(0, row)
    learn, validate, _ = protocol.shares
    shares = (learn / (learn + validate), validate / (learn + validate), 0.0)
    split = split_origins(row, protocol.history, protocol.horizon, protocol.split, shares)
    anew = type(forecaster)(**forecaster.settings())
    if training is None or not is_network(forecaster.name):
        return anew.fit(known, split, report)
    from candor.forecasting.network import NetworkForecaster

    assert isinstance(anew, NetworkForecaster)
    return anew.fit(known, split, report, folder=training)
