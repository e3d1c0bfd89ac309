"""One cell of a grid: a model on a task with a seed, kept as a run directory that remembers how far it came.

cell.json     what the cell is; another cell in its place is refused
scores.json   what it scored, once it is done; with cell.json it stands for the whole run directory
threads.json  how many threads a network is trained with, noted before: it may be judged by another process
status.json   what is being done now and by which process, for those who watch
failure.json  why it failed
"""

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import PositiveFloat

from candor.core.errors import InputError
from candor.core.files import MissingFileError, read_json, write_json
from candor.core.settings import Settings, parse_settings
from candor.research.suites import Contender, Suite, SuiteTask

CELL, SCORES, STATUS, FAILURE = "cell.json", "scores.json", "status.json", "failure.json"
THREADS = "threads.json"


class CellState(StrEnum):
    """How far a cell is."""

    WAITING = "waiting"
    BEGUN = "begun"
    BUSY = "busy"
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
        refuse_another(self, folder)
        if (folder / SCORES).is_file():
            return CellState.DONE
        return CellState.FAILED if (folder / FAILURE).is_file() else CellState.BEGUN


def refuse_another(cell: Settings, folder: Path) -> None:
    """Refuses a folder that holds another cell, of a grid or of `candor truth`."""
    mine = there = cell.model_dump(mode="json")
    with suppress(MissingFileError):  # not there yet, or just now no longer: a run made in one go replaces its folder
        there = read_json(folder / CELL)
    if there != mine:
        differences = ", ".join(key for key in mine if there.get(key) != mine[key])
        raise InputError(
            f"there is a cell with another {differences or 'content'} in this place",
            where=str(folder),
            hint="give the same settings as before, or another folder (--out)",
        )


def cells_of(suite: Suite) -> list[Cell]:
    """Returns all cells of a suite, seed by seed, so that a grid that is stopped has whole rounds."""
    return [
        Cell(suite=suite.name, task=task, contender=contender, seed=seed, budget_minutes=suite.budget_minutes)
        for seed in suite.seeds
        for task in suite.tasks
        for contender in suite.contenders
    ]


def status_of(cell: Cell, grid: Path) -> dict[str, Any]:
    """Returns what a cell is doing now, the share of it that is done, and the process; empty if nothing is known."""
    try:
        content = read_json(grid / cell.name / STATUS)
    except InputError:  # nothing yet, or no longer
        return {}
    return content if isinstance(content, dict) else {}


def write_failure(cell: Cell, grid: Path, what: str, **more: str) -> None:
    """Notes why a cell failed, also one that ended before it could say which it is."""
    write_json(grid / cell.name / CELL, cell.model_dump(mode="json"))
    write_json(grid / cell.name / FAILURE, {"what": what, **more})


def failure_of(cell: Cell, grid: Path) -> str:
    """Returns why a cell failed."""
    path = grid / cell.name / FAILURE
    return str(read_json(path).get("what", "")) if path.is_file() else ""


def parse_cell(content: Any) -> Cell:
    """Returns a cell from plain content, as another process or machine is handed it."""
    return parse_settings(Cell, content, "cell")
