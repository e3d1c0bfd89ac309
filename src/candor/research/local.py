"""Cells in processes of this machine, so that one that dies takes no other with it."""

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from candor.research.cells import Cell, parse_cell, write_failure
from candor.research.running import run_cell

_TRIES = 2  # a process may be killed through no fault of its cell
_SECONDS_BETWEEN_LOOKS = 0.2
Watch = Callable[[Sequence[Cell]], None]
"""Is told every moment which cells are being worked on."""


def run_locally(
    cells: Sequence[Cell],
    grid: Path,
    workers: int,
    watch: Watch = lambda running: None,
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Works on all cells, `workers` at a time, each with its share of the cores.

    An interruption (KeyboardInterrupt) lets the cells save and stop; they go on the next time. Models that are made in
    one go come to their end first; a second interruption ends all at once.

    Args:
        cells: what to do.
        grid: their folder.
        workers: cells at a time.
        watch: is told every moment which cells are being worked on.
        stopping: is called when an interruption came.
    """
    waiting = deque((cell, 1) for cell in cells)
    running: dict[str, tuple[BaseProcess, Cell, int]] = {}
    threads = max(1, usable_cores() // workers)
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                cell, attempt = waiting.popleft()
                process = _prepare(cell, grid)
                running[cell.name] = process, cell, attempt  # before it starts: an interruption must find it here
                with _environment(OMP_NUM_THREADS=str(threads)):  # read when PyTorch is imported in the new process
                    process.start()
            watch([cell for _, cell, _ in running.values()])
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            for name, (process, cell, attempt) in list(running.items()):
                if process.is_alive():
                    continue
                del running[name]
                if process.exitcode and attempt < _TRIES:
                    waiting.append((cell, attempt + 1))
                elif process.exitcode:
                    write_failure(cell, grid, f"its process ended with code {process.exitcode}, {attempt} times")
    except KeyboardInterrupt:
        stopping()
        raise
    finally:
        end_processes(process for process, _, _ in running.values())


def end_processes(processes: Iterable[BaseProcess]) -> None:
    """Asks those that were started to end, and waits for them; an interruption while it waits ends them at once."""
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
    """Returns the cores that this process may use: fewer than the machine has under `taskset` or in a container."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _prepare(cell: Cell, grid: Path) -> BaseProcess:
    return multiprocessing.get_context("spawn").Process(
        target=work, args=(cell.model_dump(mode="json"), str(grid)), daemon=False
    )


def work(content: Any, grid: str) -> str:
    """Works on one cell in a process of its own; being asked to stop saves and stops."""
    asked: list[str] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.append("the grid was stopped"))
    return run_cell(parse_cell(content), Path(grid), lambda: asked[0] if asked else None).value


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Makes SIGTERM what Ctrl-C is: cells under way are told to save and stop, and none lives on alone."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
