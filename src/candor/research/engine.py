"""The engine of every study: cells of work, each done once in a folder of its own, in processes of this machine.

The grids of `candor benchmark`, `ablate` and `sweep`, the networks of `candor truth` and the models of `candor profile`
are lists of cells. A cell that is done, or that another process works on, is left alone; one that was stopped or killed
goes on from what it wrote; one that failed says why and is tried again the next time. `ray_cluster.py` runs the same
cells on a Ray cluster.

cell.json     what the cell is; another cell in its place is refused
scores.json   the result (of `candor truth`: truth.json); a cell that has it is done
status.json   what is being done now and by which process, for those who watch
failure.json  why it failed
"""

import multiprocessing
import os
import signal
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ClassVar

from candor.core.errors import InputError
from candor.core.files import MissingFileError, locked_folder, read_json, write_json
from candor.core.progress import Report
from candor.runs.fit import BusyError, TrainingStoppedError

CELL, SCORES, STATUS, FAILURE = "cell.json", "scores.json", "status.json", "failure.json"
_TRIES = 2  # a process may be killed through no fault of its cell
SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_BETWEEN_STATUS = 1.0


class CellState(StrEnum):
    """How far a cell is."""

    WAITING = "waiting"
    BEGUN = "begun"
    BUSY = "busy"
    DONE = "done"
    FAILED = "failed"


Interruption = Callable[[], str | None]
"""Returns why work should stop now, or None while it should go on."""


class Cell(ABC):
    """A piece of work with a name, a folder and a result. It must survive pickling: other processes are handed it."""

    result: ClassVar[str] = SCORES
    """The file that a cell writes last."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The cell's folder below that of all cells."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return what the cell is, as the content of cell.json."""

    @abstractmethod
    def work(self, folder: Path, report: Report, interruption: Interruption) -> None:
        """Do what is not done yet and write the result; raises `TrainingStoppedError` if it is interrupted."""

    def is_done(self, folder: Path) -> bool:
        """Return whether the result is there and still holds."""
        return (folder / self.result).is_file()

    def state(self, root: Path) -> CellState:
        """Return how far the cell is below the folder of all cells; another cell in its place is refused."""
        folder = root / self.name
        if not (folder / CELL).is_file():
            return CellState.WAITING
        mine = there = self.content()
        with suppress(MissingFileError):  # a run of a simple rule replaces its folder: the file is gone for a moment
            there = read_json(folder / CELL)
        if there != mine:
            differences = ", ".join(key for key in mine if there.get(key) != mine[key])
            raise InputError(
                f"there is a cell with another {differences or 'content'} in this place",
                where=str(folder),
                hint="give the same settings as before, or another folder (--out)",
            )
        if self.is_done(folder):
            return CellState.DONE
        return CellState.FAILED if (folder / FAILURE).is_file() else CellState.BEGUN


Watch = Callable[[Sequence[Cell]], None]
"""Is called again and again with the cells that are being worked on."""


def run_cell(cell: Cell, root: Path, interruption: Interruption = lambda: None) -> CellState:
    """Return the state of a cell after work on it in this process.

    It is busy, and left alone, while another process works on it, and only begun if it was interrupted. Failures are
    written down, whatever they are: they must not stop the other cells.
    """
    folder = root / cell.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked_folder(folder):
            state = cell.state(root)
            return state if state == CellState.DONE else _run_locked(cell, folder, interruption)
    except (BlockingIOError, BusyError):
        return CellState.BUSY


def _run_locked(cell: Cell, folder: Path, interruption: Interruption) -> CellState:
    written = 0.0

    def write_status(what: str, share: float | None) -> None:
        nonlocal written
        if time.monotonic() - written > _SECONDS_BETWEEN_STATUS:
            written = time.monotonic()
            shown = what.partition(" | ")[2] or what
            write_json(folder / STATUS, {"what": shown, "share": share, "process": os.getpid()})

    write_json(folder / CELL, cell.content())
    (folder / FAILURE).unlink(missing_ok=True)
    try:
        cell.work(folder, write_status, interruption)
        (folder / FAILURE).unlink(missing_ok=True)  # of another command that lost its process here
    except TrainingStoppedError:
        return CellState.BEGUN
    except BusyError:
        raise
    except Exception as error:
        _write_failure(cell, folder, error)
        return CellState.FAILED
    finally:
        (folder / STATUS).unlink(missing_ok=True)
    return CellState.DONE


def status_of(cell: Cell, root: Path) -> dict[str, Any]:
    """Return what a cell is doing now, the share of it that is done, and the process; empty if nothing is known."""
    try:
        content = read_json(root / cell.name / STATUS)
    except InputError:  # nothing yet, or no longer
        return {}
    return content if isinstance(content, dict) else {}


def _write_failure(cell: Cell, folder: Path, error: Exception) -> None:
    write_json(folder / CELL, cell.content())  # a process may have died before it could say which cell this is
    if isinstance(error, InputError):
        content = {"what": error.what, "where": error.where, "hint": error.hint}
    else:
        content = {"what": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    write_json(folder / FAILURE, content)


def write_loss(cell: Cell, root: Path, what: str) -> None:
    """Write down that the process of a cell was lost."""
    _write_failure(cell, root / cell.name, InputError(what))


def failure_of(cell: Cell, root: Path) -> InputError | None:
    """Return why a cell failed; None if it did not."""
    path = root / cell.name / FAILURE
    if not path.is_file():
        return None
    content = read_json(path)
    return InputError(str(content.get("what", "")), where=content.get("where", ""), hint=content.get("hint", ""))


def run_locally(
    cells: Sequence[Cell],
    root: Path,
    workers: int = 1,
    watch: Watch = lambda running: None,
    stopping: Callable[[], None] = lambda: None,
    *,
    tries: int = _TRIES,
) -> None:
    """Work on all cells, `workers` at a time, each in a process of its own with its share of the cores.

    An interruption (KeyboardInterrupt) lets the cells save and stop; they go on the next time. Models that are fitted
    in one go come to their end first; a second interruption ends all at once.

    Args:
        cells: what to do.
        root: the folder of all cells.
        workers: cells at a time.
        watch: see `Watch`.
        stopping: is called when an interruption came.
        tries: how often a cell whose process dies is given a new one.
    """
    waiting = deque((cell, 1) for cell in cells)
    running: dict[str, tuple[BaseProcess, Cell, int]] = {}
    threads = max(1, usable_cores() // workers)
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                cell, attempt = waiting.popleft()
                process = _prepare(cell, root)
                running[cell.name] = process, cell, attempt  # before it starts: an interruption must find it here
                with _environment("OMP_NUM_THREADS", str(threads)):  # read when PyTorch is imported in the new process
                    process.start()
            watch([cell for _, cell, _ in running.values()])
            time.sleep(SECONDS_BETWEEN_LOOKS)
            for name, (process, cell, attempt) in list(running.items()):
                if process.is_alive():
                    continue
                del running[name]
                if process.exitcode and attempt < tries:
                    waiting.append((cell, attempt + 1))
                elif process.exitcode:
                    times = f", {attempt} times" if attempt > 1 else ""
                    cause = ": was it stopped, or did memory run out?" if process.exitcode == -signal.SIGKILL else ""
                    write_loss(cell, root, f"its process ended with code {process.exitcode}{times}{cause}")
    except KeyboardInterrupt:
        stopping()
        raise
    finally:
        _end_processes(process for process, _, _ in running.values())


def _end_processes(processes: Iterable[BaseProcess]) -> None:
    """Ask those that were started to end, and wait for them; an interruption while it waits ends them at once."""
    started = [process for process in processes if process.pid is not None]
    try:
        for process in started:
            process.terminate()
        for process in started:
            process.join()
    except KeyboardInterrupt:
        for process in started:
            process.kill()
        for process in started:
            process.join()
        raise


def usable_cores() -> int:
    """Return the cores that this process may use: fewer than the machine has under `taskset` or in a container."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _prepare(cell: Cell, root: Path) -> BaseProcess:
    return multiprocessing.get_context("spawn").Process(target=_work, args=(cell, root), daemon=False)


def _work(cell: Cell, root: Path) -> None:
    """Work on one cell in a process of its own; being asked to stop saves and stops."""
    asked: list[str] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.append("the command was stopped"))
    with suppress(OSError):  # where memory runs out, Linux shall end this process and no other
        Path("/proc/self/oom_score_adj").write_text("1000")
    run_cell(cell, root, lambda: asked[0] if asked else None)


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Make SIGTERM what Ctrl-C is: cells under way are told to save and stop, and none lives on alone."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before
