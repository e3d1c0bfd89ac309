"""The training of a network in its run directory, in sessions that may be stopped or killed and are resumed.

The directory is there from the first step on:

training/settings.json       the model's settings
training/start.safetensors   initial weights that came from another run: weights and what earlier stages found
training/machine.json        micro-batch size and threads, see candor.training.batch_plan
training/...                 the state of training, see candor.training.checkpoint
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from candor.core.errors import InputError
from candor.core.files import (
    WriteError,
    atomic_file,
    locked_folder,
    read_json,
    remove_leftovers,
    sha256_of_file,
    write_json,
)
from candor.core.progress import Report
from candor.core.settings import parse_settings
from candor.data.panel import Panel
from candor.data.panel_store import save_panel
from candor.data.protocol import Task
from candor.forecasting.forecaster import Forecaster, State, forecasters
from candor.forecasting.network import FOUND, WEIGHTS, NetworkForecaster, found_state
from candor.nets.recipe import TrainingSettings
from candor.runs.fit import SETTINGS, BusyError, Limits, TrainingStoppedError, check_run_place, resume_command
from candor.runs.run import RECORD, TRAINING, Run, RunRecord, Start, is_finished, load_record, load_run, load_task
from candor.training.checkpoint import Checkpoint
from candor.training.loop import Stopped
from candor.training.processes import in_main_process

START = "start.safetensors"
WeightsKind = Literal["model", "best", "last"]


def begin_training(run: Run, task: Task, panel: Panel, start_from: Path | None, report: Report, limits: Limits) -> Run:
    """Return a run whose network was trained in a new directory, as far as the limits allow.

    The panel, of which the task is a part, is kept with the run unless it is in the catalogue.
    """
    folder, record, forecaster = run.folder, run.record, run.forecaster
    check_place = partial(check_run_place, folder, record.model)
    in_main_process(check_place)  # before anything is left in a folder that is not to be touched
    first = None if start_from is None else _fitting_weights(start_from, forecaster, task)
    with _locked(folder):
        in_main_process(check_place)  # another session may have begun since
        record = in_main_process(partial(_write_beginning, run, panel, start_from, first))
        return _train(Run(folder, record, forecaster), task, report, limits)


def resume_training(folder: Path, record: RunRecord, report: Report, limits: Limits) -> Run:
    """Return the run in a folder after its training went on, as far as the limits allow."""
    path = folder / TRAINING / SETTINGS
    run = Run(folder, record, parse_settings(forecasters.get(record.model), read_json(path), str(path)))
    task = run.task()
    with _locked(folder):
        in_main_process(partial(_remove_leftovers, folder))
        return _train(run, task, report, limits)


def notes_on_training(folder: Path) -> list[str]:
    """Return what one should know of the training in a run directory before its model is used, in sentences."""
    training = folder / TRAINING
    checkpoint = Checkpoint(training)
    if not checkpoint.exists:
        return []
    progress = checkpoint.progress()
    epochs = (_shortened_schedule(training) or _own_schedule(training)).epochs
    notes = []
    if not progress.is_finished:
        notes.append(
            f"training was cut short in epoch {progress.epoch + 1} of {epochs}: the model has the best weights so far. "
            f"To go on: {resume_command(folder)}"
        )
    if progress.best_epoch is not None and progress.best_error is None:
        notes.append(
            "nothing was measured in the part of validation that chooses the best weights: the latest ones are kept"
        )
    return notes


def notes_on_refits(folder: Path) -> list[str]:
    """Return how refits by the settings of a run differ from its own training, in sentences."""
    training = folder / TRAINING
    checkpoint = Checkpoint(training)
    if not checkpoint.exists:
        return []
    whole, shortened, progress = _own_schedule(training), _shortened_schedule(training), checkpoint.progress()
    anew = f"refits learn by its settings as they are, {whole.epochs} epochs each"
    # A budget that fitted the whole schedule at first may still have given later epochs fewer windows.
    taken = {line["windows"] for line in checkpoint.read_log() if "windows" in line}
    notes = []
    if shortened is not None and (shortened != whole or len(taken) > 1):
        notes.append(f"a budget shortened the schedules of this run: {anew}")
    elif not progress.is_finished:
        notes.append(f"the training of this run was cut short in epoch {progress.epoch + 1}: {anew}")
    if (training / START).is_file():
        notes.append("this run began with the weights of another (--init): refits begin with weights drawn by chance")
    return notes


def find_initial_weights(run: Path, model: str) -> tuple[State, WeightsKind, tuple[str, ...]]:
    """Return the weights of a run for a model of the same name, which of its weights they are, and of which sensors.

    They are those of its fitted model; of an unfinished run the best, or the last before any epoch has ended.
    """
    record, checkpoint = load_record(run), Checkpoint(run / TRAINING)
    if record.model != model:
        raise InputError(
            f"this is a run of {record.model}, and {model} cannot begin with its weights",
            where=str(run),
            hint=f"name a run of {model}, or train {record.model}",
        )
    if is_finished(run):
        forecaster = load_run(run).forecaster
        state = {name: part for name, part in forecaster.state_.items() if name.startswith((WEIGHTS, FOUND))}
        return state, "model", forecaster.trained_on_.panel.sensor_ids
    if not checkpoint.exists:
        raise InputError(
            "this run has learned nothing yet that another could begin with",
            where=str(run),
            hint="wait for its training, or go on with it: candor train --resume RUN",
        )
    has_best = checkpoint.progress().best_epoch is not None
    learned = checkpoint.load_best() if has_best else checkpoint.load_last()
    found = checkpoint.folder / "found.json"
    state = found_state(read_json(found) if found.is_file() else {})
    state |= {f"{WEIGHTS}{name}": tensor.numpy() for name, tensor in learned.items()}
    return state, "best" if has_best else "last", load_task(run, record).panel.sensor_ids


def _load_initial_weights(folder: Path, start: Start | None) -> State | None:
    """Return the weights that the training in a folder began with, by its run's record; None if drawn at random."""
    path = folder / START
    if start is None:
        return None
    try:
        if sha256_of_file(path) != start.sha256:
            raise InputError("the first weights of this training were changed", where=str(path), hint="begin it anew")
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"the first weights of this training cannot be read ({error})", where=str(path)) from None


def _fitting_weights(run: Path, forecaster: Forecaster, task: Task) -> tuple[State, WeightsKind]:
    """Return the weights of another run, if they fit the network that is to be trained, and which they are."""
    assert isinstance(forecaster, NetworkForecaster)
    state, kind, sensors = find_initial_weights(run, forecaster.name)
    if sensors != task.panel.sensor_ids:  # embeddings have a row for each sensor; the shapes of weights cannot tell
        raise InputError(
            "the weights to begin with are of other sensors, or of the same in another order",
            where=str(run),
            hint="begin with a run on the same sensors in the same order",
        )
    try:
        forecaster.check_start(task.panel, state)
    except InputError as error:
        raise InputError(error.what, where=str(run), hint=error.hint) from None
    return state, kind


def _write_beginning(
    run: Run, panel: Panel, start_from: Path | None, first: tuple[State, WeightsKind] | None
) -> RunRecord:
    """Write all that a resumed training needs; run.json comes last, from then on it is a run."""
    folder, record = run.folder, run.record
    write_json(folder / TRAINING / SETTINGS, run.forecaster.settings())
    if not record.is_catalogued:
        save_panel(panel, folder / "data")
    path = folder / TRAINING / START
    path.unlink(missing_ok=True)  # of a beginning that was killed before this one
    if first is not None:
        state, kind = first
        with atomic_file(path) as temporary:
            save_file({name: np.ascontiguousarray(array) for name, array in state.items()}, temporary)
        start = Start(run=str(start_from), weights=kind, sha256=sha256_of_file(path))
        record = record.model_copy(update={"start": start})
    write_json(folder / RECORD, record.model_dump(mode="json"))
    return record


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other sessions off a run: two would overwrite each other's state."""

    def lock() -> None:
        try:
            held.enter_context(locked_folder(folder / TRAINING))
        except BlockingIOError:
            what = "another session is training in this folder"
            raise BusyError(what, where=str(folder), hint="wait for it, or stop it first") from None

    with ExitStack() as held:
        in_main_process(lock)
        yield


def _remove_leftovers(folder: Path) -> None:
    """Remove what was half-written when an earlier session was killed."""
    Checkpoint(folder / TRAINING).remove_leftovers()
    for name in (RECORD, "model", "data"):
        remove_leftovers(folder / name)


def _train(run: Run, task: Task, report: Report, limits: Limits) -> Run:
    """Train as far as the limits allow; at the end of a budget the best weights so far make the model."""
    forecaster, folder = run.forecaster, run.folder / TRAINING
    assert isinstance(forecaster, NetworkForecaster)
    stop_reason = limits.begin()
    fit = partial(
        forecaster.fit,
        task.panel,
        task.split,
        report,
        folder=folder,
        budget_seconds=limits.budget_seconds if limits.fits_schedule else None,
        start_from=_load_initial_weights(folder, run.record.start),
    )
    try:
        fit(stop_reason=stop_reason)
    except Stopped as stopped:
        # Before its own training, which follows other stages, a network has learned nothing that could forecast.
        is_unlearned = forecaster.earlier_stages() != () and not Checkpoint(folder).exists
        is_interrupted = limits.interruption() is not None
        if is_unlearned and limits.fits_schedule and not is_interrupted:  # with the same budget it would not go on
            what = "the budget was used up before the network itself began to learn"
            raise InputError(what, where=str(run.folder), hint="give more minutes") from None
        if is_unlearned or is_interrupted:
            raise TrainingStoppedError(str(stopped), run.folder, is_interrupted=is_interrupted) from None
        fit(trains_on=False)
    in_main_process(partial(_save_model, forecaster, run.folder))
    return run


def _save_model(forecaster: Forecaster, folder: Path) -> None:
    try:
        forecaster.save(folder / "model")
    except WriteError as error:
        raise WriteError(
            f"the trained model cannot be saved ({error.__cause__}); its training is kept",
            where=error.where,
            hint=f"make room, then: {resume_command(folder)}",
        ) from error


def _own_schedule(training: Path) -> TrainingSettings:
    path = training / SETTINGS
    return parse_settings(TrainingSettings, read_json(path)["recipe"]["training"], str(path))


def _shortened_schedule(training: Path) -> TrainingSettings | None:
    """Return the schedule that a budget shortened, if one did."""
    path = training / "schedule.json"
    return parse_settings(TrainingSettings, read_json(path), str(path)) if path.is_file() else None
