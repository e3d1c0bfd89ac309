"""From a panel and the name of a model to a run directory, in one go or in pieces.

A network's run directory is there from the first step of its training:

training/settings.json   the model's settings
training/start...        first weights that came from another run, see candor.runs.starting
training/machine.json    what was found out about the machine, see candor.training.machine
training/...             the state of training, see candor.training.checkpoint
"""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from candor.core.errors import InputError
from candor.core.files import WriteError, locked_folder, read_json, remove_leftovers, write_json
from candor.core.progress import Report, silent
from candor.core.settings import parse_settings
from candor.data.panel import Panel
from candor.data.panel_store import save_panel
from candor.data.protocol import Protocol, Task, make_task
from candor.forecasting.forecaster import Forecaster, forecasters
from candor.forecasting.own_data import choose_settings
from candor.runs.run import RECORD, Run, RunRecord, load_record, save_run
from candor.runs.run import TRAINING as TRAINING  # those who look into a run find it here

if TYPE_CHECKING:
    from candor.nets.recipe import TrainingSettings
    from candor.runs.starting import FirstWeights

SETTINGS = "settings.json"
# What the grids of `candor benchmark` and `candor truth` note in the folder of a run before it is trained.
_NOTES = {"cell.json", "status.json", "threads.json", "failure.json"}


def check_budget(minutes: float | None) -> None:
    """Refuses a budget in which nothing can be trained, or that never ends."""
    if minutes is not None and not (isfinite(minutes) and minutes > 0):
        raise InputError(f"{minutes:g} minutes are no time to train in", hint="give more than 0, e.g. 0.5 or 20")


@dataclass(frozen=True)
class Limits:
    """What may stop a training before its end.

    Args:
        budget_minutes: minutes of this stretch of training.
        interruption: says why training should stop now, or None while it should go on.
        fits_schedule: whether a training that begins shortens its schedules to the budget.
    """

    budget_minutes: float | None = None
    interruption: Callable[[], str | None] = lambda: None
    fits_schedule: bool = False

    def begin(self) -> Callable[[], str | None]:
        """Returns what says why to stop, with the time running from now."""
        began = time.monotonic()

        def reason() -> str | None:
            is_over = self.budget_minutes is not None and time.monotonic() - began > 60 * self.budget_minutes
            return self.interruption() or ("the budget is used up" if is_over else None)

        return reason


class TrainingStoppedError(InputError):
    """Training stopped before its end; it can go on.

    Args:
        reason: why it stopped.
        folder: the run directory.
        is_interrupted: whether somebody asked for it, rather than a budget.
    """

    def __init__(self, reason: str, folder: Path, *, is_interrupted: bool = False) -> None:
        super().__init__(f"training stopped: {reason}", where=str(folder), hint=_how_to_go_on(folder))
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
    """Returns the run of a model fitted to a panel under a protocol.

    Args:
        panel: the readings.
        protocol: how they are cut and judged.
        model: name of a model.
        settings: of the model, beside those that follow from the protocol; without a recipe one is chosen.
        folder: the run directory; nothing else may be in it.
        seed: where chance begins.
        is_catalogued: whether the panel is a dataset of the catalogue.
        report: is told how far training has come.
        limits: what may stop the training of a network before its end.
        start_from: a run of the same model whose weights training begins with.
        reasons: why the settings are as they are, in sentences, to be kept with the run.
        replaces: whether the run of a simple model takes the place of an earlier one of the same model.
    """
    task = make_task(panel, protocol)
    _refuse_nothing_to_learn(task)
    if "recipe" not in settings:
        chosen, why = choose_settings(model, task, None, {})
        settings, reasons = chosen | dict(settings), reasons or why
    forecaster = _make(protocol, model, settings, seed)
    facts: dict[str, Any] = {"is_catalogued": is_catalogued, "reasons": reasons}
    if not is_network(model):
        if start_from is not None:
            raise InputError(f"{model} has no weights to begin with", hint="leave out --init")
        check_run_place(folder, model, replaces=replaces)
        budget = None if limits.budget_minutes is None else 60 * limits.budget_minutes
        forecaster.fit(task.panel, task.split, report, budget_seconds=budget)
        check_run_place(folder, model, replaces=replaces)  # another session may have begun one there meanwhile
        seconds = forecaster.learning_seconds_
        return save_run(folder, forecaster, panel, protocol, learning_seconds=seconds, **facts)
    from candor.training.processes import in_main_process

    check_place = partial(check_run_place, folder, model)
    in_main_process(check_place)  # before anything is left in a folder that is not to be touched
    first = None if start_from is None else _first_weights(start_from, model, forecaster, task)
    record = RunRecord.of(model, panel, protocol, seed=seed, **facts)
    with _alone(folder):
        in_main_process(check_place)  # another session may have begun since
        record = in_main_process(partial(_begin, folder, record, forecaster, panel, first))
        return _train_network(Run(folder, record, forecaster), task, report, limits)


def resume_run(folder: Path, *, report: Report = silent, limits: Limits = Limits()) -> Run:  # noqa: B008 - frozen
    """Returns the run in a folder after its training went on, to the end or to a limit."""
    record, path = load_record(folder), folder / TRAINING / SETTINGS
    if not path.is_file():
        what = f"a run of {record.model} is made in one go"
        hint = "make another: candor train DATA --model NAME --run NAME"
        if is_network(record.model):
            what, hint = "the state of its training is not here, as in a bundle", "resume the run it was made from"
        raise InputError(f"{what}: it cannot be resumed", where=str(folder), hint=f"use it as it is, or {hint}")
    forecaster = parse_settings(forecasters.get(record.model), read_json(path), str(path))
    run = Run(folder, record, forecaster)
    task = run.task()
    from candor.training.processes import in_main_process

    with _alone(folder):
        in_main_process(partial(_tidy, folder))
        return _train_network(run, task, report, limits)


def check_run_place(folder: Path, model: str, *, replaces: bool = False) -> None:
    """Refuses a folder in which something would be lost, or mixed with the run of a model that is to be made there.

    Args:
        folder: the run directory that is to be.
        model: name of the model.
        replaces: whether an earlier run of the same model may be there.
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
    ours, training = set(_NOTES), folder / TRAINING
    if is_network(model) and training.is_dir():
        begun = {place.name for place in training.iterdir()}
        if SETTINGS in begun and "last.safetensors" not in begun:
            ours |= {TRAINING, "data"}
        elif all(name.startswith(f".{SETTINGS}.") for name in begun):  # killed at its first word
            ours.add(TRAINING)
    half_written = tuple(f".{name}." for name in ours | {RECORD})
    names = {place.name for place in folder.iterdir()} if folder.is_dir() else set()
    if others := sorted(name for name in names - ours if not name.startswith(half_written)):
        raise InputError(
            f"this folder holds other things, such as {others[0]}",
            where=str(folder),
            hint="choose a new folder for the run (--run NAME)",
        )


def _refuse_nothing_to_learn(task: Task) -> None:
    """Refuses a training part without windows or without readings, of which a model would learn nothing."""
    hint = ""
    if not len(task.split.train):
        hint = "train with shares that leave some for it, e.g. shares=[0.6,0.2,0.2]"
    elif not task.panel.mask[: task.split.train_end].any():
        hint = "begin where sensors report: first=DATE"
    if hint:
        raise InputError("there is nothing to learn from in the training part", where=task.panel.name, hint=hint)


def _first_weights(run: Path, model: str, forecaster: Forecaster, task: Task) -> "FirstWeights":
    """Returns the weights of another run, if they fit the network that is to be trained."""
    from candor.forecasting.network import NetworkForecaster
    from candor.runs.starting import find_first_weights

    assert isinstance(forecaster, NetworkForecaster)
    first = find_first_weights(run, model)
    if first.sensors != task.panel.sensor_ids:  # of as many others the shapes are the same
        raise InputError(
            "the weights to begin with are of other sensors, or of the same in another order",
            where=str(run),
            hint="begin with a run on the same sensors in the same order",
        )
    try:
        forecaster.check_start(task.panel, first.state)
    except InputError as error:
        raise InputError(error.what, where=str(run), hint=error.hint) from None
    return first


def _begin(
    folder: Path, record: RunRecord, forecaster: Forecaster, panel: Panel, first: "FirstWeights | None"
) -> RunRecord:
    """Writes all that a resumed training needs to know; run.json comes last, from then on it is a run."""
    from candor.runs.starting import START

    write_json(folder / TRAINING / SETTINGS, forecaster.settings())
    if not record.is_catalogued:
        save_panel(panel, folder / "data")
    (folder / TRAINING / START).unlink(missing_ok=True)  # of a beginning that was killed before this one
    if first is not None:
        record = record.model_copy(update={"start": first.save(folder / TRAINING)})
    write_json(folder / RECORD, record.model_dump(mode="json"))
    return record


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps other sessions off a run: two would write its state in turn, and remove what the other is writing."""
    from candor.training.processes import in_main_process

    with ExitStack() as held:
        in_main_process(partial(_hold, held, folder))
        yield


def _hold(held: ExitStack, folder: Path) -> None:
    try:
        held.enter_context(locked_folder(folder / TRAINING))
    except BlockingIOError:
        what = "another session is training in this folder"
        raise BusyError(what, where=str(folder), hint="wait for it, or stop it first") from None


def _tidy(folder: Path) -> None:
    """Removes what was half-written when an earlier session was killed."""
    from candor.training.checkpoint import Checkpoint

    Checkpoint(folder / TRAINING).remove_leftovers()
    for name in (RECORD, "model", "data"):
        remove_leftovers(folder / name)


def _make(protocol: Protocol, model: str, settings: Mapping[str, Any], seed: int) -> Forecaster:
    kind = forecasters.get(model)
    known = {field.name for field in fields(kind)}
    shared = {"history": protocol.history, "horizon": protocol.horizon, "seed": seed, "fill": protocol.fill}
    own = {key: value for key, value in shared.items() if key in known}
    return parse_settings(kind, own | dict(settings), f"model {model}")


def is_network(model: str) -> bool:
    """Returns whether training is long and kept in pieces; the simple rules need no PyTorch to be told apart."""
    return hasattr(forecasters.get(model), "trained")


def _train_network(run: Run, task: Task, report: Report, limits: Limits) -> Run:
    """Trains as far as the limits allow; at the end of a budget the best weights so far make the model."""
    from candor.forecasting.network import NetworkForecaster
    from candor.runs.starting import load_first_weights
    from candor.training.checkpoint import Checkpoint
    from candor.training.loop import Stopped
    from candor.training.processes import in_main_process

    forecaster, folder = run.forecaster, run.folder / TRAINING
    assert isinstance(forecaster, NetworkForecaster)
    stop_reason = limits.begin()
    budget = None if limits.budget_minutes is None or not limits.fits_schedule else 60 * limits.budget_minutes
    kept: dict[str, Any] = {"folder": folder, "budget_seconds": budget}
    kept["start_from"] = load_first_weights(folder, run.record.start)
    fit = partial(forecaster.fit, task.panel, task.split, report, **kept)
    try:
        fit(stop_reason=stop_reason)
    except Stopped as stopped:
        # Before its own training, which follows other stages, a network has learned nothing that could forecast.
        is_unlearned = forecaster.stages() != () and not Checkpoint(folder).exists
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
            hint=f"make room, then: {_how_to_go_on(folder)}",
        ) from error


def _how_to_go_on(folder: Path) -> str:
    """Returns the command as it can be copied: runs are named after files, whose names often have blanks in them."""
    return shlex.join(["candor", "train", "--resume", str(folder)])


def notes_on_training(folder: Path) -> list[str]:
    """Returns what one should know of the training in a run directory before its model is used, in sentences."""
    from candor.training.checkpoint import Checkpoint

    training = folder / TRAINING
    checkpoint = Checkpoint(training)
    if not checkpoint.exists:
        return []
    progress = checkpoint.progress()
    epochs = (_schedule_in(training) or _settled_in(training)).epochs
    notes = []
    if not progress.is_finished:
        notes.append(
            f"training was cut short in epoch {progress.epoch + 1} of {epochs}: the model has the best weights so far. "
            f"To go on: {_how_to_go_on(folder)}"
        )
    if progress.best_epoch is not None and progress.best_error is None:
        notes.append(
            "nothing was measured in the part of validation that chooses the best weights: the latest ones are kept"
        )
    return notes


def notes_on_refits(folder: Path) -> list[str]:
    """Returns how a training anew by the settings of a run differs from its own, in sentences."""
    from candor.runs.starting import START
    from candor.training.checkpoint import Checkpoint

    training = folder / TRAINING
    checkpoint = Checkpoint(training)
    if not checkpoint.exists:
        return []
    whole, shortened, progress = _settled_in(training), _schedule_in(training), checkpoint.progress()
    anew = f"refits learn by its settings as they are, {whole.epochs} epochs each"
    # Where more seemed to fit in than did, epochs after the first took fewer windows.
    taken = {line["windows"] for line in checkpoint.read_log() if "windows" in line}
    notes = []
    if shortened is not None and (shortened != whole or len(taken) > 1):
        notes.append(f"a budget shortened the schedules of this run: {anew}")
    elif not progress.is_finished:
        notes.append(f"the training of this run was cut short in epoch {progress.epoch + 1}: {anew}")
    if (training / START).is_file():
        notes.append("this run began with the weights of another (--init): refits begin with weights drawn by chance")
    return notes


def _settled_in(training: Path) -> "TrainingSettings":
    """Returns the schedules that the settings of a network's training state."""
    from candor.nets.recipe import TrainingSettings

    path = training / SETTINGS
    return parse_settings(TrainingSettings, read_json(path)["recipe"]["training"], str(path))


def _schedule_in(training: Path) -> "TrainingSettings | None":
    """Returns the schedules that a budget shortened, if one did."""
    from candor.nets.recipe import TrainingSettings

    path = training / "schedule.json"
    return parse_settings(TrainingSettings, read_json(path), str(path)) if path.is_file() else None
