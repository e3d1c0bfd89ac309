"""The card of a model: what somebody who was given it has to know, in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from candor.core.text import duration, number, percent
from candor.data.catalog import datasets
from candor.data.protocol import Task
from candor.data.times import DAY
from candor.data.units import distinct_units, plain_unit
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.network import NetworkForecaster
from candor.runs.run import RunRecord

_MOST_SENSORS = 40
_ERRORS = {"mae": "MAE{unit}", "rmse": "RMSE{unit}", "mape": "MAPE [%]"}


def model_card(record: RunRecord, forecaster: Forecaster, task: Task, evaluation: Mapping[str, Any] | None) -> str:
    """Return the card of a fitted forecaster; `evaluation` is the content of the run's evaluation.json, if any."""
    parts = [
        _title(record, forecaster, task),
        _training(record, forecaster, task),
        _scores(record, task, evaluation),
        _use(forecaster, task),
        _limits(forecaster, evaluation),
        _sensors(task),
        _making(record),
    ]
    return "\n\n".join(parts) + "\n"


def _title(record: RunRecord, forecaster: Forecaster, task: Task) -> str:
    panel, protocol = task.panel, task.protocol
    ahead, back = (duration(steps * panel.times.interval) for steps in (protocol.horizon, forecaster.rows_needed))
    return (
        f"# {record.label} on {_plain(record.data)}\n\n"
        f"Forecasts {len(panel.sensors):,} connected sensors {ahead} ahead ({protocol.horizon} steps of "
        f"{duration(panel.times.interval)}) from their last {back}. Readings, forecasts and errors are in "
        f"{_plain(panel.unit) or 'the unit of the readings, which was not named'}; times are on the clock of "
        f"{panel.times.zone}."
    )


def _training(record: RunRecord, forecaster: Forecaster, task: Task) -> str:
    panel, split = task.panel, task.split
    rows = [
        ("model", f"{record.label}, seed {record.seed}, {_numbers(forecaster):,} learned numbers"),
        ("data", _plain(record.data)),
        ("record that was used", _stretch(task, 0, panel.times.length)),
        ("of it for training", _stretch(task, 0, split.train_end)),
        ("windows", f"{len(split.train):,} training, {len(split.validation):,} validation, {len(split.test):,} test"),
        ("network", f"{len(panel.sensors):,} sensors, {len(panel.edges):,} directed edges"),
        ("gaps in what is read", f"filled by the rule `{task.protocol.fill}`"),
        ("content of the data", f"SHA-256 {record.fingerprint}"),
    ]
    if record.data in datasets and record.is_catalogued:
        entry = datasets.get(record.data)
        rows += [("source of the data", entry.source), ("licence of the data", entry.licence)]
    return "## What was trained on what\n\n" + _table(("fact", "value"), rows)


def _scores(record: RunRecord, task: Task, evaluation: Mapping[str, Any] | None) -> str:
    if evaluation is None:
        return "## Scores\n\nThis model was not evaluated before it was exported: nothing is known of its errors."
    unit = f" [{_plain(task.panel.unit)}]" if task.panel.unit else ""
    by_step, overall = evaluation["by_step"], evaluation["overall"]
    rows = [
        (str(step), duration(step * task.panel.times.interval), *(number(by_step[name][step - 1]) for name in _ERRORS))
        for step in task.protocol.reported_steps()
    ]
    rows.append(("all", "", *(number(overall[name]) for name in _ERRORS)))
    heads = ("step", "ahead", *(head.format(unit=unit) for head in _ERRORS.values()))
    text = (
        f"## Scores\n\nOn {evaluation['windows']:,} windows of the test part, which the model has not seen "
        f"({evaluation['mask']}):\n\n{_table(heads, rows)}"
    )
    if len(distinct_units(sensor.unit for sensor in task.panel.sensors)) > 1:
        text += "\n\nSensors measure in different units, and these errors, which are over all of them, mix them."
    if simple := evaluation.get("simple_forecasters"):
        others = [(name, one["overall"], one["skill"]) for name, one in simple.items() if name != record.model]
        names = [(record.label, overall, None), *others]
        beside = [
            (name, number(scores["mae"]), number(scores["rmse"]), "" if skill is None else f"{100 * skill:+.1f} %")
            for name, scores, skill in names
        ]
        heads = ("model", f"MAE{unit}", f"RMSE{unit}", f"skill of {record.label}")
        text += f"\n\nBeside simple rules, all steps:\n\n{_table(heads, beside)}"
    return text


def _use(forecaster: Forecaster, task: Task) -> str:
    history = duration(forecaster.rows_needed * task.panel.times.interval)
    intervals = "with intervals and probabilities" if forecaster.calibration_ is not None else "without intervals"
    return (
        f"## Intended use\n\nForecasting the sensors below, {intervals}, from their readings of the last {history} "
        f"on a grid of {duration(task.panel.times.interval)}, by people who know the place. Nothing about the future "
        "has to be known.\n\n"
        "    candor forecast BUNDLE                      # from the readings inside, if there are any\n"
        "    candor forecast BUNDLE --readings FILE      # from your own\n"
        "    candor serve BUNDLE"
    )


def _limits(forecaster: Forecaster, evaluation: Mapping[str, Any] | None) -> str:
    lines = [
        "It knows these sensors only, on this interval and in their units. Readings of others are left out; another "
        "unit or a finer interval is brought to these where that takes no guess, and refused where it does.",
        f"In training, readings lay {_ranges(forecaster)}. What lies beyond, or a change of sensors or of the network, "
        "it has not seen.",
        "It learned what goes together, not what causes what.",
        "It is no warning system. Do not let it decide alone where people can come to harm.",
    ]
    intervals = (evaluation or {}).get("intervals")
    if intervals and intervals["overall"]["coverage"] is not None:
        lines.append(
            f"Intervals asked to hold {100 * intervals['asked_coverage']:g} % of the readings held "
            f"{percent(intervals['overall']['coverage'])} in the test part."
        )
    return "## Limits\n\n" + "\n".join(f"- {line}" for line in lines)


def _ranges(forecaster: Forecaster) -> str:
    """Return between which numbers readings lay in training, for each unit."""
    known = forecaster.trained_on_
    units, told = [sensor.unit for sensor in known.panel.sensors], []
    for unit in distinct_units(units):
        places = [place for place, other in enumerate(units) if plain_unit(other) == plain_unit(unit)]
        lowest, highest = (_known(ends[place] for place in places) for ends in (known.lowest, known.highest))
        told.append(f"between {number(min(lowest))} and {number(max(highest))} {_plain(unit)}".rstrip())
    return ", ".join(told)


def _sensors(task: Task) -> str:
    sensors = task.panel.sensors
    rows = [
        (_plain(one.id), _plain(one.name), _plain(one.unit), _degrees(one.latitude), _degrees(one.longitude))
        for one in sensors[:_MOST_SENSORS]
    ]
    text = "## Sensors\n\n" + _table(("id", "name", "unit", "latitude", "longitude"), rows)
    more = len(sensors) - len(rows)
    return f"{text}\n\nand {more:,} more, see `model/model.json`." if more else text


def _making(record: RunRecord) -> str:
    made = f"Trained on {record.made:%Y-%m-%d} (UTC) with " if record.made else "Trained with "
    packages = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return (
        f"## How it was made\n\n{made}{packages}. All settings: `model/model.json`. Every file is listed with its "
        "SHA-256 in `manifest.json`; none of them can execute."
    )


def _stretch(task: Task, first: int, last: int) -> str:
    times = task.panel.times.local[first:last]
    if not len(times):
        return "nothing"
    clock = "%Y-%m-%d" if task.panel.times.interval >= DAY else "%Y-%m-%d %H:%M"
    return f"{times[0].strftime(clock)} to {times[-1].strftime(clock)}, {len(times):,} rows"


def _numbers(forecaster: Forecaster) -> int:
    """Return how many numbers were learned; beside its weights a network keeps edges, scales and tables."""
    if isinstance(forecaster, NetworkForecaster):
        return sum(parameter.numel() for parameter in forecaster.trained().network.parameters())
    return sum(array.size for array in forecaster.state_.values())


def _known(values: Iterable[float]) -> list[float]:
    return [value for value in values if value == value] or [float("nan")]


def _degrees(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _plain(text: str) -> str:
    """Return text of others so that Markdown shows it as it is, on one line."""
    escaped = "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|!" else letter for letter in text)
    return " ".join(escaped.split())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
