"""How good the forecasts of a run are: against simple rules, by step, by sensor, by the clock, and in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from candor.core.arrays import Doubles
from candor.core.progress import Report, silent
from candor.core.text import amount, counted, percent
from candor.data.protocol import Task
from candor.data.times import DAY
from candor.forecasting.forecaster import Forecaster
from candor.metrics import as_json, skill
from candor.runs.evaluation import SIMPLE, evaluate, evaluate_simple
from candor.runs.run import Run
from candor.runs.summary import summarise_run

_MEANINGS = {
    "last-value": "the last reading goes on",
    "seasonal-naive": "as it was one season (a day, a week or a year) ago",
    "historical-average": "the usual reading at this time of the week",
    "linear": "a weighted sum of the sensor's own recent readings",
}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOST_WINDOWS = 1_000  # for errors by the clock, which evaluation.json does not hold
_NEAR = 0.02  # a coverage that is off by less is what was asked


@dataclass(frozen=True)
class Rule:
    """A simple rule on the same windows: errors in the sensors' unit, and the skill of the model against it."""

    name: str
    meaning: str
    mae: float | None
    rmse: float | None
    skill: float | None


@dataclass(frozen=True, eq=False)
class ClockErrors:
    """Mean absolute errors in the sensors' unit by the hour or the day that was forecast, on the local clock."""

    word: str  # hour of the day or day of the week
    names: tuple[str, ...]  # of the hours or days
    mae: Doubles
    windows: int  # how many forecasts were looked at


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a run on its test part, in the sensors' unit; None where a score is undefined."""

    windows: int  # how many forecasts were scored
    overall: Mapping[str, float | None]  # by name, over all steps and sensors
    by_step: Mapping[str, list[float | None]]  # by name, an entry per step
    by_sensor: Mapping[str, Mapping[str, float | None]]  # by sensor id and name
    intervals: Mapping[str, Any] | None  # as in evaluation.json; None if there are none
    rules: tuple[Rule, ...]  # the simple rules on the same windows, without the model itself if it is one
    clock: ClockErrors | None  # None where there is but one hour or day


def score_run(run: Run, task: Task, report: Report = silent) -> Scores | None:
    """Return the scores on the test part; those in evaluation.json if they are of this model. None without windows."""
    if not len(task.split.test):
        return None
    content = _saved_scores(run, task) or evaluate(run.forecaster, task, report=report).to_json()
    simple = content.get("simple_forecasters")
    if not isinstance(simple, dict) or not set(SIMPLE) <= set(simple):
        simple = {name: {"overall": as_json(found.overall())} for name, found in evaluate_simple(task, report).items()}
    mae = content["overall"]["mae"]
    rules = (
        _rule(name, simple[name]["overall"], mae) for name in SIMPLE if name != run.record.model and name in simple
    )
    return Scores(
        **{name: content[name] for name in ("windows", "overall", "by_step", "by_sensor", "intervals")},
        rules=tuple(rules),
        clock=errors_by_clock(run.forecaster, task, report),
    )


def _saved_scores(run: Run, task: Task) -> Mapping[str, Any] | None:
    """Return evaluation.json if it covers all of this model on the test part."""
    content = summarise_run(run.folder).evaluation
    if content is None or content.get("part") != "test" or "intervals" not in content or "windows" not in content:
        return None
    steps, sensors = content.get("by_step", {}).get("mae", ()), content.get("by_sensor", {})
    is_whole = len(steps) == task.protocol.horizon and set(sensors) == set(task.panel.sensor_ids)
    return content if is_whole else None


def _rule(name: str, overall: Mapping[str, float | None], mae: float | None) -> Rule:
    other = overall["mae"]
    gain = None if mae is None or other is None else float(skill(mae, other))
    return Rule(name, _MEANINGS[name], other, overall["rmse"], None if gain is None or np.isnan(gain) else gain)


def errors_by_clock(forecaster: Forecaster, task: Task, report: Report = silent) -> ClockErrors | None:
    """Return the errors by hour of the day, or by day of the week for daily readings; None if there is but one.

    Where the test part is large, windows are drawn at random, always the same: evenly spaced ones might all begin
    at the same hour.
    """
    panel, origins = task.panel, task.split.test
    if len(origins) > _MOST_WINDOWS:
        origins = np.sort(np.random.default_rng(0).choice(origins, _MOST_WINDOWS, replace=False))
    is_daily = panel.times.interval >= DAY
    local = panel.times.local
    groups = np.asarray(local.day_of_week if is_daily else local.hour, dtype=np.int64)
    totals, counts = np.zeros(24), np.zeros(24)
    done = 0
    for batch, forecast in forecaster.predict_in_batches(panel, origins):
        rows = batch[:, None] + np.arange(task.protocol.horizon)
        misses = np.abs(forecast - panel.values[rows]).astype(np.float64)
        found = groups[rows].ravel()
        totals += np.bincount(found, np.nansum(misses, axis=2).ravel(), minlength=24)
        counts += np.bincount(found, panel.mask[rows].sum(axis=2).ravel(), minlength=24)
        done += len(batch)
        report("scoring forecasts by the clock", done / len(origins))
    known = np.flatnonzero(counts)
    if len(known) < 2:
        return None
    names = tuple(_DAYS[place] if is_daily else f"{place:02d}:00" for place in known)
    word = "day of the week" if is_daily else "hour of the day"
    return ClockErrors(word, names, totals[known] / counts[known], len(origins))


def skill_in_words(scores: Scores, model: str, unit: str, steps: int) -> list[str]:
    """Return sentences about how far the forecasts are off and how that compares with the simple rules."""
    windows = counted(scores.windows, "forecast")
    said = [
        f"In {windows} of the test part, which the model never saw, {model} was off by "
        f"{amount(scores.overall['mae'], unit)} on average (mean absolute error over all {steps} steps and sensors)."
    ]
    known = [(rule.name, rule.skill) for rule in scores.rules if rule.skill is not None]
    if not known:
        return said
    beaten = sum(gain > 0 for _, gain in known)
    best, gain = min(known, key=lambda one: one[1])
    compared = f"its error is {percent(abs(gain))} {'below' if gain > 0 else 'above'} that of {best}"
    if beaten == len(known):
        said.append(f"It beats all {len(known)} simple rules, also the best of them: {compared}.")
    elif beaten:
        said.append(f"It beats {beaten} of {len(known)} simple rules, but not the best of them: {compared}.")
    else:
        said.append(f"It beats none of the {len(known)} simple rules: {compared}.")
    return said


def coverage_in_words(intervals: Mapping[str, Any], unit: str) -> list[str]:
    """Return sentences about whether the intervals hold the share of readings they were made for."""
    overall, asked = intervals["overall"], float(intervals["asked_coverage"])
    held = overall["coverage"]
    if held is None:
        return []
    said = (
        f"Intervals made to hold {100 * asked:g} % of the readings held {percent(held)} of the {overall['count']:,} in "
        f"the test part. They are {amount(overall['width'], unit)} wide on average."
    )
    if abs(held - asked) <= _NEAR:
        return [said, "That is what was asked."]
    if held < asked:
        return [said, "That is less than was asked, as it can be where times change after those they were made from."]
    return [said, "That is more than was asked: narrower ones would have done."]
