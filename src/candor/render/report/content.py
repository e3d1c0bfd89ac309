"""What a report says: all words and numbers about a run, gathered before anything is drawn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from candor.core.progress import Report, silent
from candor.core.text import counted, duration, percent
from candor.data.catalog import datasets
from candor.data.checks import CheckReport, check_panel
from candor.data.panel import Panel
from candor.data.protocol import Task
from candor.data.units import distinct_units
from candor.forecasting.candor import Candor
from candor.render.figures.runs import read_epochs
from candor.render.figures.training import Epoch
from candor.render.report.judgement import Judgement, judge_run
from candor.render.report.outlook import Outlook, look_ahead
from candor.render.report.places import Places, find_places
from candor.render.report.reasons import Reasons, find_reasons
from candor.runs.run import Run, RunRecord


@dataclass(frozen=True, eq=False)
class Content:
    """Everything a report says of a run; what a run does not have is None or empty.

    Args:
        record: what was trained on what.
        panel: the readings as they were measured.
        introduction: sentences that say what was trained on what.
        liveliest: place of the sensor with most readings in the test part, which is shown first.
        places: where sensors are drawn.
        outlook: the last known and the next forecast of every sensor.
        judgement: scores on the test part; None where that holds no windows.
        reasons: what CANDOR says of its forecasts; None for other models.
        epochs: the training of a network.
        check: what a check of the data found.
        settings: the model's settings, by dotted name.
    """

    record: RunRecord
    panel: Panel
    introduction: tuple[str, ...]
    liveliest: int
    places: Places
    outlook: Outlook
    judgement: Judgement | None
    reasons: Reasons | None
    epochs: tuple[Epoch, ...]
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


def gather(run: Run, report: Report = silent) -> Content:
    """Returns what a report says of a run.

    Args:
        run: the run.
        report: is told how far it has come.
    """
    task = run.task()
    shown = run.as_measured(task)
    report("checking the data", None)
    check = check_panel(shown.panel)
    report("forecasting", None)
    return Content(
        record=run.record,
        panel=shown.panel,
        introduction=tuple(_introduce(run, task, check)),
        liveliest=_liveliest(shown),
        places=find_places(shown.panel),
        outlook=look_ahead(run.forecaster, task.panel, shown.panel.values),
        judgement=judge_run(run, task, report),
        reasons=find_reasons(run.forecaster, task, report) if isinstance(run.forecaster, Candor) else None,
        epochs=tuple(read_epochs(run.folder)),
        check=check,
        settings=dict(_flattened(run.forecaster.settings())),
    )


def _liveliest(task: Task) -> int:
    begin = task.split.test[0] if len(task.split.test) else 0
    return int(np.argmax(task.panel.mask[begin:].sum(axis=0)))


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
            yield f"{before}{name}", "–" if value is None else str(value)
