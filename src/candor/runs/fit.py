"""From a panel and the name of a model to a run directory.

Models that are fitted in one go are written as a whole; networks are trained in sessions that can be stopped and
resumed, see `candor.runs.resumable`.
"""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

from candor.core.errors import InputError
from candor.core.progress import Report, silent
from candor.core.settings import parse_settings
from candor.data.panel import Panel
from candor.data.protocol import Protocol, make_task
from candor.forecasting.forecaster import forecasters
from candor.forecasting.own_data import choose_settings
from candor.runs.run import RECORD, TRAINING, Run, RunRecord, load_record, save_run

SETTINGS = "settings.json"
STAGED_MINUTES = 10.0
"""Budget of the stages of CANDOR where none is given."""
# What the grids of `candor benchmark` and `candor truth` write to the folder of a run before it is trained.
_FILES_OF_GRIDS = {"cell.json", "status.json", "threads.json", "failure.json"}


def check_budget(minutes: float | None) -> None:
    """Refuse a budget in which nothing can be trained, or that never ends."""
    if minutes is not None and not (isfinite(minutes) and minutes > 0):
        raise InputError(f"{minutes:g} minutes are no time to train in", hint="give more than 0, e.g. 0.5 or 20")


@dataclass(frozen=True)
class Limits:
    """What may stop a training before its end."""

    budget_minutes: float | None = None
    """Of this call; a training may take several."""
    interruption: Callable[[], str | None] = lambda: None
    """Returns why training should stop now, or None while it should go on."""
    fits_schedule: bool = False
    """Whether a training that begins shortens its schedules to the budget."""

    @property
    def budget_seconds(self) -> float | None:
        """The budget in seconds."""
        return None if self.budget_minutes is None else 60 * self.budget_minutes

    def begin(self) -> Callable[[], str | None]:
        """Return what says why to stop, with the time running from now."""
        began = time.monotonic()

        def reason() -> str | None:
            is_over = self.budget_seconds is not None and time.monotonic() - began > self.budget_seconds
            return self.interruption() or ("the budget is used up" if is_over else None)

        return reason


class TrainingStoppedError(InputError):
    """Training stopped before its end, by a person or the system or at the end of a budget; it can go on."""

    def __init__(self, reason: str, folder: Path, *, is_interrupted: bool = False) -> None:
        super().__init__(f"training stopped: {reason}", where=str(folder), hint=resume_command(folder))
        self.is_interrupted = is_interrupted


class BusyError(InputError):
    """Another session is training in a folder."""


def train_model(
    panel: Panel,
    protocol: Protocol,
    model: str,
    settings: Mapping[str, Any],
    folder: Path,
    *,
    seed: int = 0,
    is_catalogued: bool,
    report: Report = silent,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    start_from: Path | None = None,
    reasons: Sequence[str] = (),
    replaces: bool = False,
) -> Run:
    """Return the run of a model fitted to a panel under a protocol.

    Args:
        panel: the readings.
        protocol: how they are cut and evaluated.
        model: name of a model.
        settings: of the model, beside those that follow from the protocol; without a recipe one is chosen.
        folder: the run directory; nothing else may be in it.
        seed: of all random numbers.
        is_catalogued: whether the panel is a dataset of the catalogue.
        report: progress callback.
        limits: of the training of a network.
        start_from: a run of the same model whose weights training begins with.
        reasons: why the settings are as they are, in sentences, to be kept with the run.
        replaces: whether the run of a simple model takes the place of an earlier one of the same model.
    """
    task = make_task(panel, protocol)
    hint = ""
    if not len(task.split.train):
        hint = "train with shares that leave some for it, e.g. shares=[0.6,0.2,0.2]"
    elif not task.panel.mask[: task.split.train_end].any():
        hint = "begin where sensors report: first=DATE"
    if hint:
        raise InputError("there is nothing to learn from in the training part", where=panel.name, hint=hint)
    if not {"recipe", "stages"} & settings.keys():
        chosen, why = choose_settings(model, task, None, {})
        settings, reasons = chosen | dict(settings), reasons or why
    kind = forecasters.get(model)
    shared = {"history": protocol.history, "horizon": protocol.horizon, "seed": seed, "fill": protocol.fill}
    own = {field.name: shared[field.name] for field in fields(kind) if field.name in shared}
    forecaster = parse_settings(kind, own | dict(settings), f"model {model}")
    facts: dict[str, Any] = {"is_catalogued": is_catalogued, "reasons": reasons}
    if is_network(model):
        from candor.runs.resumable import begin_training

        record = RunRecord.of(model, panel, protocol, seed=seed, **facts)
        return begin_training(Run(folder, record, forecaster), task, panel, start_from, report, limits)
    if start_from is not None:
        raise InputError(f"{model} has no weights to begin with", hint="leave out --init")
    check_run_place(folder, model, replaces=replaces)
    forecaster.fit(task.panel, task.split, report, budget_seconds=limits.budget_seconds)
    check_run_place(folder, model, replaces=replaces)  # another session may have begun one there meanwhile
    seconds = forecaster.learning_seconds_
    return save_run(folder, forecaster, panel, protocol, learning_seconds=seconds, **facts)


def resume_run(folder: Path, *, report: Report = silent, limits: Limits = Limits()) -> Run:  # noqa: B008 - frozen
    """Return the run in a folder after its training went on, to the end or to a limit."""
    record = load_record(folder)
    if (folder / TRAINING / SETTINGS).is_file():
        from candor.runs.resumable import resume_training

        return resume_training(folder, record, report, limits)
    what = f"a run of {record.model} is made in one go"
    hint = "make another: candor train DATA --model NAME --run NAME"
    if is_network(record.model):
        what, hint = "the state of its training is not here, as in a bundle", "resume the run it was made from"
    raise InputError(f"{what}: it cannot be resumed", where=str(folder), hint=f"use it as it is, or {hint}")


def resume_command(folder: Path) -> str:
    """Return the command that resumes a run, quoted for a shell."""
    return shlex.join(["candor", "train", "--resume", str(folder)])


def is_network(model: str) -> bool:
    """Return whether a model is trained in sessions; for simple rules PyTorch is not loaded to find out."""
    return hasattr(forecasters.get(model), "trained")


def is_staged(model: str, settings: Mapping[str, Any]) -> bool:
    """Return whether settings of a model are those of CANDOR's stages, whose budget is planned from the beginning."""
    return model == "candor" and list(settings.get("stages") or ()) != ["network"]


def check_run_place(folder: Path, model: str, *, replaces: bool = False) -> None:
    """Refuse a folder in which something would be lost, or mixed with the run that is to be made there.

    With `replaces`, an earlier run of the same model may be there.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file, and a folder is needed", where=str(folder), hint="choose another --run NAME")
    if (folder / RECORD).exists():
        if replaces and load_record(folder).model == model:
            return
        goes_on = "go on with it (candor train --resume RUN), " if is_network(model) else ""
        raise InputError(
            "there is a run in this folder already",
            where=str(folder),
            hint=f"{goes_on}choose another folder (--run NAME), or delete it",
        )
    # A training that was killed before run.json was written, and so before its first step, begins again there.
    ours, training = set(_FILES_OF_GRIDS), folder / TRAINING
    if is_network(model) and training.is_dir():
        begun = {place.name for place in training.iterdir()}
        if SETTINGS in begun and "last.safetensors" not in begun:
            ours |= {TRAINING, "data"}
        elif all(name.startswith(f".{SETTINGS}.") for name in begun):  # killed while the first file was written
            ours.add(TRAINING)
    half_written = tuple(f".{name}." for name in ours | {RECORD})
    names = {place.name for place in folder.iterdir()} if folder.is_dir() else set()
    if others := sorted(name for name in names - ours if not name.startswith(half_written)):
        raise InputError(
            f"this folder holds other things, such as {others[0]}",
            where=str(folder),
            hint="choose a new folder for the run (--run NAME)",
        )
