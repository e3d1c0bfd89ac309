"""Working on a cell: train, judge, score.

A cell that is done, or that another process works on, is left alone, one that was stopped or killed goes on from its
checkpoint, one that failed says why and is tried again the next time.
"""

import os
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from candor.core.errors import InputError
from candor.core.files import locked_folder, read_json, write_json
from candor.core.progress import Report
from candor.data.catalog import load_dataset
from candor.data.protocol import make_task
from candor.forecasting.own_data import choose_protocol, choose_settings
from candor.presets import load_preset
from candor.research.cells import CELL, FAILURE, STATUS, THREADS, Cell, CellState, write_failure
from candor.research.results import write_scores
from candor.runs.evaluation import evaluate_run
from candor.runs.fit import TRAINING, BusyError, Limits, TrainingStoppedError, resume_run, train_model
from candor.runs.run import RECORD, Run, RunState, load_run, summarise_run

_SECONDS_BETWEEN_STATUS = 1.0
Interruption = Callable[[], str | None]


def run_cell(cell: Cell, grid: Path, interruption: Interruption = lambda: None) -> CellState:
    """Returns the state of a cell after work on it: done, failed, begun if it was interrupted, or busy.

    A cell is busy, and left alone, while another process works on it.
    """
    folder = grid / cell.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked_folder(folder):
            state = cell.state(grid)
            return state if state == CellState.DONE else _run_alone(cell, grid, interruption)
    except (BlockingIOError, BusyError):
        return CellState.BUSY


def _run_alone(cell: Cell, grid: Path, interruption: Interruption) -> CellState:
    folder = grid / cell.name
    write_json(folder / CELL, cell.model_dump(mode="json"))
    (folder / FAILURE).unlink(missing_ok=True)
    report = _Status(folder / STATUS)
    try:
        threads = _threads(cell, folder)
        run = train_cell(folder, cell.budget_minutes, partial(_begin, cell, folder, report), report, interruption)
        write_json(folder / CELL, cell.model_dump(mode="json"))  # a run made in one go replaces its folder
        if summarise_run(folder).state != RunState.EVALUATED:
            evaluate_run(run, report)
        write_scores(cell, folder, threads)
        (folder / FAILURE).unlink(missing_ok=True)
    except TrainingStoppedError:
        return CellState.BEGUN
    except BusyError:
        raise
    except InputError as error:
        write_failure(cell, grid, str(error))
        return CellState.FAILED
    except Exception as error:  # whatever it is, it must not stop the other cells
        write_failure(cell, grid, f"{type(error).__name__}: {error}", trace=traceback.format_exc())
        return CellState.FAILED
    finally:
        (folder / STATUS).unlink(missing_ok=True)
    return CellState.DONE


def _threads(cell: Cell, folder: Path) -> int | None:
    """Returns how many threads a network is trained with, or was if a session before had trained it; None for others.

    None too where a network was trained before this was noted.
    """
    if not cell.contender.is_network:
        return None
    if not (folder / "model").is_dir():
        import torch

        if (folder / THREADS).is_file():
            torch.set_num_threads(int(read_json(folder / THREADS)["threads"]))  # goes on with as many as it began with
        else:
            write_json(folder / THREADS, {"threads": torch.get_num_threads()})
    return int(read_json(folder / THREADS)["threads"]) if (folder / THREADS).is_file() else None


def train_cell(
    folder: Path,
    budget_minutes: float | None,
    begin: Callable[[Limits], Run],
    report: Report,
    interruption: Interruption = lambda: None,
) -> Run:
    """Returns the trained run of a cell, which may be there already, or goes on, or begins within its limits.

    Args:
        folder: of the cell.
        budget_minutes: of training; None trains to the end.
        begin: trains the run from its beginning.
        report: is told how far it has come.
        interruption: says why training should stop, if it should.
    """
    if (folder / "model").is_dir():
        return load_run(folder)
    limits = Limits(_minutes_left(folder, budget_minutes), interruption, fits_schedule=True)
    if (folder / RECORD).is_file():
        return resume_run(folder, report=report, limits=limits)
    return begin(limits)


def _minutes_left(folder: Path, budget_minutes: float | None) -> float | None:
    if budget_minutes is None or not (folder / TRAINING).is_dir():
        return budget_minutes
    from candor.training.checkpoint import Checkpoint

    return max(0.0, budget_minutes - Checkpoint(folder / TRAINING).progress().seconds / 60)


def _begin(cell: Cell, folder: Path, report: Report, limits: Limits) -> Run:
    preset = load_preset(cell.task.preset)
    panel, overrides = load_dataset(preset.data), dict(cell.contender.settings)
    if cell.task.horizon is not None:
        overrides["horizon"] = cell.task.horizon
        if cell.task.horizon != preset.protocol.horizon:  # the preset's steps are chosen for its own horizon
            overrides.setdefault("steps", ())
    protocol, rest = choose_protocol(panel, cell.task.preset, overrides)
    settings, _ = choose_settings(cell.contender.model, make_task(panel, protocol), cell.task.preset, rest)
    return train_model(
        panel, protocol, cell.contender.model, settings, folder, seed=cell.seed, is_catalogued=True, report=report,
        limits=limits,
    )  # fmt: skip


class _Status:
    """Writes what is being done to a file, now and then."""

    def __init__(self, path: Path) -> None:
        self._path, self._written = path, 0.0

    def __call__(self, what: str, share: float | None) -> None:
        if time.monotonic() - self._written > _SECONDS_BETWEEN_STATUS:
            self._written = time.monotonic()
            shown = what.partition(" | ")[2] or what
            write_json(self._path, {"what": shown, "share": share, "process": os.getpid()})
