"""From a panel and the name of a model to a run directory, in one go or in pieces.

A network's run directory is there from the first step of its training:

training/settings.json   the model's settings
training/machine.json    what was found out about the machine, see candor.training.machine
training/...             the state of training, see candor.training.checkpoint
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from candor.data.panel import Panel
from candor.data.panel_store import save_panel
from candor.data.protocol import Protocol, Task, make_task
from candor.errors import InputError
from candor.files import read_json, write_json
from candor.forecasting.forecaster import Forecaster, forecasters
from candor.forecasting.runs import RECORD, Run, RunRecord, load_record, load_run, save_run
from candor.progress import Report, silent
from candor.settings import parse_settings

TRAINING, SETTINGS = "training", "settings.json"


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
    """Training stopped before its end; it can go on."""

    def __init__(self, reason: str, folder: Path) -> None:
        super().__init__(f"training stopped: {reason}", where=str(folder), mend=f"candor train --resume {folder}")


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
) -> Run:
    """Returns the run of a model fitted to a panel under a protocol.

    Args:
        panel: the readings.
        protocol: how they are cut and judged.
        model: name of a model.
        settings: of the model, beside those that follow from the protocol.
        folder: the run directory.
        seed: where chance begins.
        is_catalogued: whether the panel is a dataset of the catalogue.
        report: is told how far training has come.
        limits: what may stop the training of a network before its end.
        start_from: a run of the same model whose weights training begins with.
    """
    forecaster, task = _make(protocol, model, settings, seed), make_task(panel, protocol)
    if not _is_network(model):
        forecaster.fit(task.panel, task.split, report)
        return save_run(folder, forecaster, panel, protocol, is_catalogued=is_catalogued)
    record = RunRecord.of(model, panel, protocol, seed=seed, is_catalogued=is_catalogued)
    from candor.training.processes import in_main_process

    in_main_process(partial(_begin, folder, record, forecaster, panel))
    return _train_network(Run(folder, record, forecaster), task, report, limits, start_from)


def resume_run(folder: Path, *, report: Report = silent, limits: Limits = Limits()) -> Run:  # noqa: B008 - frozen
    """Returns the run in a folder after its training went on, to the end or to a limit."""
    record, path = load_record(folder), folder / TRAINING / SETTINGS
    if not path.is_file():
        raise InputError(f"a run of {record.model} is made in one go: it cannot be resumed", where=str(folder))
    forecaster = parse_settings(forecasters.get(record.model), read_json(path), str(path))
    run = Run(folder, record, forecaster)
    return _train_network(run, run.task(), report, limits, None)


def _begin(folder: Path, record: RunRecord, forecaster: Forecaster, panel: Panel) -> None:
    """Writes all that a resumed training needs to know; run.json comes last, from then on it is a run."""
    if (folder / RECORD).exists():
        raise InputError(
            "there is a run in this folder already",
            where=str(folder),
            mend="go on with it (candor train --resume RUN), choose another folder (--run NAME), or delete it",
        )
    if not record.is_catalogued:
        save_panel(panel, folder / "data")
    write_json(folder / TRAINING / SETTINGS, forecaster.settings())
    write_json(folder / RECORD, record.model_dump(mode="json"))


def _make(protocol: Protocol, model: str, settings: Mapping[str, Any], seed: int) -> Forecaster:
    kind = forecasters.get(model)
    known = {field.name for field in fields(kind)}
    shared = {"history": protocol.history, "horizon": protocol.horizon, "seed": seed, "fill": protocol.fill}
    own = {key: value for key, value in shared.items() if key in known}
    return parse_settings(kind, own | dict(settings), f"model {model}")


def _is_network(model: str) -> bool:
    """Returns whether training is long and kept in pieces; the simple rules need no PyTorch to be told apart."""
    return hasattr(forecasters.get(model), "trained")


def _train_network(run: Run, task: Task, report: Report, limits: Limits, start_from: Path | None) -> Run:
    """Trains as far as the limits allow; at the end of a budget the best weights so far make the model."""
    from candor.forecasting.network import NetworkForecaster
    from candor.training.checkpoint import Checkpoint
    from candor.training.loop import Stopped
    from candor.training.processes import in_main_process

    forecaster, folder = run.forecaster, run.folder / TRAINING
    assert isinstance(forecaster, NetworkForecaster)
    stop_reason = limits.begin()
    start = None if start_from is None else load_run(start_from).forecaster.state_
    budget = None if limits.budget_minutes is None or not limits.fits_schedule else 60 * limits.budget_minutes
    fit = partial(forecaster.fit, task.panel, task.split, report, folder=folder, budget_seconds=budget)
    try:
        fit(stop_reason=stop_reason, start_from=start)
    except Stopped as stopped:
        # Before its own training, which follows other stages, a network has learned nothing that could forecast.
        is_unlearned = forecaster.stages() != () and not limits.fits_schedule and not Checkpoint(folder).exists
        if is_unlearned or limits.interruption() is not None:
            raise TrainingStoppedError(str(stopped), run.folder) from None
        fit(trains_on=False)
    in_main_process(partial(forecaster.save, run.folder / "model"))
    return run
