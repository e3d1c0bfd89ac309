"""Everything about a run at a glance, for any forecaster, as plain data: what `candor report` shows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeGuard

import numpy as np
import torch

from candor.core.arrays import Floats
from candor.core.progress import Report, silent
from candor.core.settings import flattened
from candor.core.text import NOTHING, counted, duration, percent, time_unit
from candor.data.catalog import datasets
from candor.data.checks import CheckReport, check_panel
from candor.data.panel import Panel
from candor.data.protocol import Task
from candor.data.units import distinct_units
from candor.explain.analyses.fusion import fusion_weights
from candor.explain.analyses.operator import mean_edge_weights
from candor.explain.choices import best_observed_sensor, choose_windows, last_known_origin
from candor.explain.forecast import COVERAGE, PAST_HORIZONS, forecast_all, picture_components
from candor.explain.pictures import ComponentPicture, Epoch, TrainingPicture, WeightedEdges
from candor.explain.scores import Scores, score_run
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states, split_history
from candor.forecasting.forecaster import Forecaster
from candor.nets.trainable import tensors_of
from candor.runs.run import TRAINING, Run, RunRecord
from candor.training.checkpoint import Checkpoint

_MOST_READINGS = 400_000  # over all sensors: 2 MB of a report


@dataclass(frozen=True, eq=False)
class Forecasts:
    """One forecast of all sensors, step x sensor, in their units; without ends if errors are not known."""

    times: Sequence[datetime]  # of the steps, on the local clock
    forecast: Floats
    lower: Floats | None = None  # ends of the intervals
    upper: Floats | None = None


@dataclass(frozen=True, eq=False)
class Outlook:
    """Recent readings with the forecast that was made a horizon ago, and the one that can be made now."""

    times: Sequence[datetime]  # of the readings, on the local clock
    readings: Floats  # time x sensor, NaN where there is none
    known: Forecasts  # the last forecast whose outcome is known
    ahead: Forecasts  # of the steps after the last reading
    coverage: float = COVERAGE  # probability that an interval contains the reading


@dataclass(frozen=True, eq=False)
class Learned:
    """Where the forecasts of CANDOR come from, for all sensors at once."""

    components: ComponentPicture | None  # of the history before the next forecast, sensor x patch; None if not split
    ahead: Sequence[float]  # middle of each target patch, in `ahead_unit` after the last reading
    ahead_unit: str  # such as days
    fusion: Mapping[str, Floats]  # by branch, how much it counts in the next forecast, sensor x target patch
    usual_fusion: Mapping[str, Floats]  # the same by target patch, mean over sensors and windows
    edges: Mapping[str, WeightedEdges]  # by direction, with weights that are means over windows
    windows: int  # how many windows the means are over


@dataclass(frozen=True, eq=False)
class Overview:
    """Everything a report says of a run; what a run does not have is None or empty."""

    record: RunRecord
    panel: Panel  # the readings as they were measured
    introduction: tuple[str, ...]  # sentences about what was trained on what
    shown: int  # column of the sensor with most readings in the test part, which is shown first
    outlook: Outlook
    scores: Scores | None  # None where the test part holds no windows
    learned: Learned | None  # None for other models than CANDOR
    training: TrainingPicture | None  # None for a model that was fitted in one go
    check: CheckReport
    settings: Mapping[str, str]  # of the model, by dotted name

    @property
    def unit(self) -> str:
        """The unit of readings and errors; empty where it is unknown."""
        return self.panel.unit

    @property
    def ahead(self) -> str:
        """How far forecasts reach, in words."""
        return duration(self.record.protocol.horizon * self.panel.times.interval)


def overview_of(run: Run, report: Report = silent) -> Overview:
    """Return everything a report says of a run."""
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
        learned=find_learned(run.forecaster, task, report) if is_published(run.forecaster) else None,
        training=training_of(run.folder, task.panel.unit),
        check=check,
        settings={
            name: NOTHING if value is None else str(value)
            for name, value in flattened(run.forecaster.settings()).items()
        },
    )


def is_published(forecaster: Forecaster) -> TypeGuard[Candor]:
    """Return whether a model is the published network, whose states can be looked into."""
    return isinstance(forecaster, Candor) and not forecaster.is_additive


def look_ahead(forecaster: Forecaster, panel: Panel, measured: Floats) -> Outlook:
    """Return the outlook at the end of a panel, of which only some readings may have been measured: time x sensor."""
    length, horizon = panel.times.length, forecaster.horizon
    origin = last_known_origin(panel, forecaster)
    shown = max(forecaster.history, PAST_HORIZONS * horizon) + length - origin
    begin = max(0, length - min(shown, max(horizon, _MOST_READINGS // len(panel.sensors))))

    def times(first: int, end: int) -> list[datetime]:
        return list(panel.times.slice(first, end).local.to_pydatetime())

    known, ahead = (
        Forecasts(times(row, row + horizon), *forecast_all(forecaster, panel, row)) for row in (origin, length)
    )
    return Outlook(times(begin, length), measured[begin:], known, ahead)


def find_learned(candor: Candor, task: Task, report: Report = silent) -> Learned:
    """Return where the forecasts of CANDOR come from, by some windows of the test part and the next forecast."""
    panel, length = task.panel, task.panel.times.length
    _, origins = choose_windows(task.split, length)
    usual, following = fusion_weights(candor, panel, origins), fusion_weights(candor, panel, np.array([length]))
    unit, size = time_unit(panel.times.interval)
    return Learned(
        components=_components(candor, panel),
        ahead=[panel.times.interval / size * (first + last) / 2 for first, last in usual.steps],
        ahead_unit=unit,
        fusion={branch: weights[0] for branch, weights in following.weights.items()},
        usual_fusion={branch: weights.mean(axis=(0, 1)) for branch, weights in usual.weights.items()},
        edges=mean_edge_weights(candor, panel, origins, report),
        windows=len(origins),
    )


@torch.no_grad()
def _components(candor: Candor, panel: Panel) -> ComponentPicture | None:
    """Return what the history before the next forecast was split into, sensor x patch."""
    trainable, origins = candor.trained(), np.array([panel.times.length])
    states, _ = network_states(trainable, tensors_of(candor.windows(panel, origins).batch(np.array([0]))))
    components, gates = split_history(states, slice(None), trainable.network.settings.gates_shocks)
    one = candor.explain(panel, panel.sensor_ids[0])  # has the times of the patches
    return picture_components(replace(one, components=components, gates=gates), "")


def training_of(folder: Path, unit: str) -> TrainingPicture | None:
    """Return the errors by epoch of the training in a run directory; None where there was none."""
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
    tested = f"{test:,} to test on" if test else "none to test on, so that nothing is said of errors"
    yield (
        f"The record was cut in order of time: {counted(train, 'window')} to learn from, {validation:,} to choose and "
        f"calibrate by, {tested}."
    )
