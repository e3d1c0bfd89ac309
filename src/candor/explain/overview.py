"""Everything about a run at a glance, for any forecaster, as plain data: what `candor report` shows."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from candor.core.progress import Report, silent
from candor.core.text import NOTHING, counted, duration, percent
from candor.data.catalog import datasets
from candor.data.checks import CheckReport, check_panel
from candor.data.panel import Panel
from candor.data.protocol import Task
from candor.data.units import distinct_units
from candor.explain.choices import best_observed_sensor
from candor.explain.learned import Learned, find_learned
from candor.explain.outlook import Outlook, look_ahead
from candor.explain.pictures import Epoch, TrainingPicture
from candor.explain.scores import Scores, score_run
from candor.forecasting.candor import Candor
from candor.runs.run import TRAINING, Run, RunRecord
from candor.training.checkpoint import Checkpoint


@dataclass(frozen=True, eq=False)
class Overview:
    """Everything a report says of a run; what a run does not have is None or empty.

    Args:
        record: what was trained on what.
        panel: the readings as they were measured.
        introduction: sentences that say what was trained on what.
        shown: column of the sensor with most readings in the test part, which is shown first.
        outlook: the last known and the next forecast of every sensor.
        scores: on the test part; None where that holds no windows.
        learned: where the forecasts of CANDOR come from; None for other models.
        training: errors by epoch of a network; None for a model that was fitted in one go.
        check: what a check of the data found.
        settings: the model's settings, by dotted name.
    """

    record: RunRecord
    panel: Panel
    introduction: tuple[str, ...]
    shown: int
    outlook: Outlook
    scores: Scores | None
    learned: Learned | None
    training: TrainingPicture | None
    check: CheckReport
    settings: Mapping[str, str]

    @property
    def unit(self) -> str:
        """The unit of readings and errors; empty where it is unknown."""
        return self.panel.unit

    @property
    def ahead(self) -> str:
        """How far forecasts reach, in words."""
        return duration(self.record.protocol.horizon * self.panel.times.interval)


def overview_of(run: Run, report: Report = silent) -> Overview:
    """Returns everything a report says of a run."""
    task = run.task()
    shown = run.as_measured(task)
    report("checking the data", None)
    check = check_panel(shown.panel)
    report("forecasting", None)
    return Overview(
        record=run.record,
        panel=shown.panel,
        introduction=tuple(_introduce(run, task, check)),
        shown=best_observed_sensor(shown),
        outlook=look_ahead(run.forecaster, task.panel, shown.panel.values),
        scores=score_run(run, task, report),
        learned=find_learned(run.forecaster, task, report) if isinstance(run.forecaster, Candor) else None,
        training=training_of(run.folder, task.panel.unit),
        check=check,
        settings=dict(_flattened(run.forecaster.settings())),
    )


def training_of(folder: Path, unit: str) -> TrainingPicture | None:
    """Returns the errors by epoch of the training in a run directory; None where there was none."""
    epochs = [
        Epoch(
            line["epoch"],
            line["train_error"],
            math.nan if line["validation_error"] is None else line["validation_error"],
            line["prefix"],
        )
        for line in Checkpoint(folder / TRAINING).read_log()
    ]
    return TrainingPicture(epochs, unit) if epochs else None


def _introduce(run: Run, task: Task, check: CheckReport) -> Iterator[str]:
    record, panel, protocol = run.record, task.panel, task.protocol
    title = datasets.get(record.data).title if record.is_catalogued else ""
    edges = counted(len(panel.edges), "directed edge") if len(panel.edges) else "no edges"
    first, last = ((moment or "")[:16].replace("T", " ") for moment in (check.first, check.last))
    interval = panel.times.interval
    yield (
        f"{record.label} was trained on {record.data}{f' ({title})' if title else ''}: "
        f"{counted(len(panel.sensors), 'sensor')} with {edges}, a reading every {check.interval} from {first} to "
        f"{last} on the clock of {panel.times.zone}; {percent(check.missing_share)} of the readings are missing."
    )
    yield (
        f"A forecast reads the last {counted(protocol.history, 'step')} ({duration(protocol.history * interval)}) and "
        f"gives the next {protocol.horizon} ({duration(protocol.horizon * interval)}) of every sensor."
    )
    units = distinct_units(sensor.unit or "one that is not stated" for sensor in panel.sensors)
    if len(units) > 1:
        yield (
            f"Sensors measure in different units ({', '.join(units)}): the errors of one sensor are in its own, and "
            "those over several sensors mix them."
        )
    train, validation, test = (len(getattr(task.split, part)) for part in ("train", "validation", "test"))
    yield (
        f"The record was cut in order of time: {counted(train, 'window')} to learn from, {validation:,} to choose and "
        f"calibrate by, {f'{test:,} to judge by' if test else 'none to judge by, so that nothing is said of errors'}."
    )


def _flattened(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yields the settings inside settings under dotted names, as text."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", NOTHING if value is None else str(value)
