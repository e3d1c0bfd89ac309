"""One forecast of CANDOR's stages, or of the account alone, part by part: a sentence, a table, a stacked picture."""

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from candor.core.text import amount, counted, date_time, duration, number, rounded_percent, sensor_label, significant
from candor.data.panel import Panel
from candor.explain.choices import choose_forecast
from candor.explain.explanation import Explanation, ModelFinding, Table
from candor.explain.forecast import picture_forecast
from candor.explain.overview import training_of
from candor.explain.pictures import AnyPicture, BreakdownPicture
from candor.explain.run import FORMAT, RunExplanation
from candor.forecasting.account import AccountForecaster
from candor.forecasting.breakdown import Breakdown, ForecastPart
from candor.forecasting.candor import Candor
from candor.forecasting.forecaster import Forecaster
from candor.runs.run import Run

_LEAST_SHARE = 0.1  # of all changes: smaller ones are left out of the sentence
_MOST_NAMED = 3
_MOST_STEPS = 6  # of the table
_LONGEST_LABEL = 44
_NAMES = {
    "usual": "usual", "storage": "storage", "shock": "shock", "arrived": "arrived before",
    "own": "own, beside these", "rest": "on average left over", "alike": "sensors that behave alike",
    "learned": "learned correction", "blend": "blend with simple rules",
}  # fmt: skip
_MOVES = {
    "usual": "is what usually happens",
    "storage": "is what it stores, draining or filling",
    "shock": "is a shock that dies away",
    "arrived": "is what arrived before, as it fades",
    "own": "follows from its own last readings",
    "rest": "is left over on average",
    "alike": "comes from sensors that behave alike",
    "learned": "is what the networks have learned",
    "blend": "is what simple rules say",
}


def explain_account(run: Run, sensor: str | None = None, time: datetime | str | None = None) -> RunExplanation:
    """Return where one forecast of a run came from, part by part.

    Args:
        run: of CANDOR's stages, or of the account.
        sensor: whose forecast is explained; None means the one with most readings in the test part.
        time: of its first step; None means the last one whose whole outcome is known.
    """
    task = run.as_measured(run.task())
    panel, forecaster = task.panel, run.forecaster
    assert isinstance(forecaster, AccountForecaster | Candor)
    column, origin = choose_forecast(task, forecaster, sensor, time)
    found = forecaster.break_down(panel, panel.sensor_ids[column], panel.times.start + origin * panel.times.interval)
    label = _label(panel, found.sensor)
    findings = [_find_parts(found, panel, forecaster, column, origin), *_find_blend(forecaster)]
    if (training := training_of(run.folder, panel.unit)) is not None:
        sentence = f"The last network looked at the validation part {counted(len(training.epochs), 'time')}."
        findings.append(ModelFinding("training", "How did its errors fall?", (sentence,), {}, {"training": training}))
    data = f"{run.record.model} on {run.record.data}"
    title = f"{label}, from {date_time(found.times[0], panel.times.interval)}"
    story = Explanation(title, f"Where this forecast of {data} came from.", (findings[0],))
    summary = {
        "format": FORMAT, "run": run.folder.name, "model": run.record.model, "data": run.record.data,
        "unit": found.unit, "sensor": found.sensor, "time": found.times[0].isoformat(),
        "sentence": findings[0].sentences[0], "numbers": dict(findings[0].numbers),
    }  # fmt: skip
    whole = Explanation(
        f"Reading {data}", f"Where a forecast came from; unit {found.unit or 'unknown'}.", tuple(findings)
    )
    circumstances = ("Changes are counted from the last reading; storage and shock are told apart by the past alone.",)
    return RunExplanation(whole, story, circumstances, summary)


def sentence_of(found: Breakdown, panel: Panel) -> str:
    """Return one plain sentence: how far the forecast goes by its last step, and what takes it there."""
    change = float(found.forecast[-1] - found.last)
    moves = sorted(_moves(found, panel), key=lambda move: -abs(move[0]))
    total = sum(abs(size) for size, _ in moves) or 1.0
    named = [move for move in moves[:_MOST_NAMED] if abs(move[0]) >= _LEAST_SHARE * total]
    digits = 2
    direction = "up" if change > 0 else "down" if change < 0 else "unchanged at"
    size = amount(abs(change) if change else found.last, found.unit, digits)
    when = date_time(found.times[-1], panel.times.interval)
    parts = ", ".join(f"{significant(size, digits)} {words}" for size, words in named)
    return f"{_label(panel, found.sensor)}: {direction} {size} by {when}" + (f": {parts}." if parts else ".")


def _moves(found: Breakdown, panel: Panel) -> Iterator[tuple[float, str]]:
    """Yield by how much each part moves the last step, and in words what it is."""
    for part in found.parts:
        size = float(part.changes[-1])
        if part.kind == "arrivals":
            way = "comes back from" if part.is_reverse else "arrives from"
            yield size, f"{way} {_label(panel, part.sender)}{_age(part, panel)}"
        else:
            yield size, _MOVES[part.kind]


def _age(part: ForecastPart, panel: Panel) -> str:
    if part.is_reverse:
        return ""
    return f", {duration(part.delay * panel.times.interval)} old" if part.is_told else ""


def _name(part: ForecastPart, panel: Panel) -> str:
    if part.kind != "arrivals":
        return _NAMES[part.kind]
    return f"{'back from' if part.is_reverse else 'from'} {_label(panel, part.sender)}{_age(part, panel)}"


def _find_parts(found: Breakdown, panel: Panel, forecaster: Forecaster, column: int, origin: int) -> ModelFinding:
    names = [_name(part, panel) for part in found.parts]
    steps = np.unique(np.linspace(0, len(found.times) - 1, min(len(found.times), _MOST_STEPS)).round().astype(int))
    head = ["part", *(date_time(found.times[step], panel.times.interval) for step in steps)]
    rows = [
        [name, *(number(part.values[step]) for step in steps)] for name, part in zip(names, found.parts, strict=True)
    ]
    rows.append(["forecast", *(number(found.forecast[step]) for step in steps)])
    shares = ", ".join(f"{name} {rounded_percent(share)}" for name, share in found.stages.items() if share)
    picture = BreakdownPicture(
        sensor=_label(panel, found.sensor), unit=found.unit, times=list(found.times),
        names=names, kinds=[part.kind for part in found.parts],
        changes=np.stack([part.changes for part in found.parts]),
        forecast=found.forecast, last=found.last,
    )  # fmt: skip
    pictures: dict[str, AnyPicture] = {
        "account": picture,
        "forecast": picture_forecast(forecaster, panel, column, origin),
    }
    numbers = {
        "last": found.last, "stages": found.stages, "forecast": found.forecast.tolist(),
        "parts": [
            {"kind": part.kind, "sender": part.sender, "delay": part.delay, "is_told": part.is_told,
             "is_reverse": part.is_reverse, "values": part.values.tolist()}
            for part in found.parts
        ],
    }  # fmt: skip
    sentences = (sentence_of(found, panel), f"Of all changes from the last reading, by stage: {shares}.")
    table = Table(f"Parts of the forecast in {found.unit or 'the unit of the readings'}", head, rows)
    return ModelFinding("account", "Where the forecast comes from", sentences, numbers, pictures, table)


def _find_blend(forecaster: Forecaster) -> Iterator[ModelFinding]:
    """Yield how much each member counts in the last word, of a model that has more than one."""
    if not isinstance(forecaster, Candor):
        return
    weights, members = forecaster.blend_weights(), forecaster.members()
    mean = dict(zip(members, weights.mean(axis=0).tolist(), strict=True))
    words = ", ".join(f"{name} {rounded_percent(share)}" for name, share in mean.items() if share >= 0.005)
    steps = np.unique(np.linspace(0, len(weights) - 1, min(len(weights), _MOST_STEPS)).round().astype(int))
    rows = [[name, *(number(weights[step, place], 2) for step in steps)] for place, name in enumerate(members)]
    table = Table("Weights of the blend by step", ["member", *(f"step {step + 1}" for step in steps)], rows)
    sentence = f"On the half of validation that chooses, this blend has the least error: {words}."
    yield ModelFinding("blend", "Who has the last word?", (sentence,), {"weights": mean}, {}, table)


def _label(panel: Panel, sensor: str) -> str:
    return sensor_label(sensor, panel.sensors[panel.sensor_ids.index(sensor)].name, _LONGEST_LABEL)
