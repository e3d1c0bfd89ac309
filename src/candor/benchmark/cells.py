"""One cell of a grid: a model on a task with a seed, kept as a run directory that remembers how far it came.

A cell that is done is left alone, one that was stopped or killed goes on from its checkpoint, one that failed says why
and is tried again the next time.

cell.json     what the cell is; another cell in its place is refused
status.json   what is being done now and by which process, for those who watch
failure.json  why it failed
"""

import os
import time
import traceback
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import PositiveFloat

from candor.benchmark.suites import Contender, Suite, SuiteTask
from candor.data.catalog import load_dataset
from candor.data.protocol import make_task
from candor.errors import InputError
from candor.evaluation.judging import evaluate
from candor.files import read_json, write_json
from candor.forecasting.choices import choose_protocol, choose_settings
from candor.forecasting.runs import EVALUATION, RECORD, Run, RunState, load_run, model_checksum, summarise_run
from candor.forecasting.train import TRAINING, Limits, TrainingStoppedError, resume_run, train_model
from candor.presets import load_preset
from candor.settings import Settings, parse_settings

CELL, STATUS, FAILURE = "cell.json", "status.json", "failure.json"
_SECONDS_BETWEEN_STATUS = 1.0
Interruption = Callable[[], str | None]


class CellState(StrEnum):
    """How far a cell is."""

    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


class Cell(Settings):
    """A model on a task with a seed."""

    suite: str
    task: SuiteTask
    contender: Contender
    seed: int
    budget_minutes: PositiveFloat | None = None

    @property
    def name(self) -> str:
        """The cell's folder below that of the grid."""
        return f"{self.task.label}/{self.contender.name}/seed-{self.seed}"

    def state(self, grid: Path) -> CellState:
        """Returns how far the cell is in the folder of a grid; another cell in its place is refused."""
        folder = grid / self.name
        if not (folder / CELL).is_file():
            return CellState.WAITING
        if (there := read_json(folder / CELL)) != (mine := self.model_dump(mode="json")):
            differences = ", ".join(key for key in mine if there.get(key) != mine[key])
            raise InputError(
                f"there is a cell with another {differences or 'content'} in this place",
                where=str(folder),
                mend="give the same settings as before, or another folder (--out)",
            )
        if (folder / FAILURE).is_file():
            return CellState.FAILED
        if (folder / RECORD).is_file() and summarise_run(folder).state == RunState.EVALUATED:
            return CellState.DONE
        return CellState.BEGUN


def cells_of(suite: Suite) -> list[Cell]:
    """Returns all cells of a suite, seed by seed, so that a grid that is stopped has whole rounds."""
    return [
        Cell(suite=suite.name, task=task, contender=contender, seed=seed, budget_minutes=suite.budget_minutes)
        for seed in suite.seeds
        for task in suite.tasks
        for contender in suite.contenders
    ]


def run_cell(cell: Cell, grid: Path, interruption: Interruption = lambda: None) -> CellState:
    """Returns the state of a cell after work on it: done, failed, or begun if it was interrupted."""
    state, folder = cell.state(grid), grid / cell.name
    if state == CellState.DONE:
        return state
    write_json(folder / CELL, cell.model_dump(mode="json"))
    (folder / FAILURE).unlink(missing_ok=True)
    report = _Status(folder / STATUS)
    try:
        run = _train(cell, folder, report, interruption)
        write_json(folder / CELL, cell.model_dump(mode="json"))  # a run made in one go replaces its folder
        _judge(run, report)
    except TrainingStoppedError:
        return CellState.BEGUN
    except InputError as error:
        write_json(folder / FAILURE, {"what": str(error)})
        return CellState.FAILED
    except Exception as error:  # whatever it is, it must not stop the other cells
        write_json(folder / FAILURE, {"what": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})
        return CellState.FAILED
    finally:
        (folder / STATUS).unlink(missing_ok=True)
    return CellState.DONE


def _train(cell: Cell, folder: Path, report: "_Status", interruption: Interruption) -> Run:
    """Returns the trained run, which may be there already, or goes on, or begins."""
    if (folder / "model").is_dir():
        return load_run(folder)
    limits = Limits(_minutes_left(cell, folder), interruption, fits_schedule=True)
    if (folder / RECORD).is_file():
        return resume_run(folder, report=report, limits=limits)
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


def _minutes_left(cell: Cell, folder: Path) -> float | None:
    if cell.budget_minutes is None:
        return None
    if not (folder / TRAINING).is_dir():
        return cell.budget_minutes
    from candor.training.checkpoint import Checkpoint

    return max(0.0, cell.budget_minutes - Checkpoint(folder / TRAINING).progress().seconds / 60)


def _judge(run: Run, report: "_Status") -> None:
    judged = evaluate(run.forecaster, run.task(), report=report)
    write_json(run.folder / EVALUATION, judged.to_json() | {"model_sha256": model_checksum(run.folder)})


class _Status:
    """Writes what is being done to a file, now and then."""

    def __init__(self, path: Path) -> None:
        self._path, self._written = path, 0.0

    def __call__(self, what: str, share: float | None) -> None:
        if time.monotonic() - self._written > _SECONDS_BETWEEN_STATUS:
            self._written = time.monotonic()
            shown = what.partition(" | ")[2] or what
            write_json(self._path, {"what": shown, "share": share, "process": os.getpid()})


def status_of(cell: Cell, grid: Path) -> dict[str, Any]:
    """Returns what a cell is doing now, the share of it that is done, and the process; empty if nothing is known."""
    try:
        content = read_json(grid / cell.name / STATUS)
    except InputError:  # nothing yet, or no longer
        return {}
    return content if isinstance(content, dict) else {}


def failure_of(cell: Cell, grid: Path) -> str:
    """Returns why a cell failed."""
    path = grid / cell.name / FAILURE
    return str(read_json(path).get("what", "")) if path.is_file() else ""


def parse_cell(content: Any) -> Cell:
    """Returns a cell from plain content, as another process or machine is handed it."""
    return parse_settings(Cell, content, "cell")
