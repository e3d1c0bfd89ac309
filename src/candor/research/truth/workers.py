"""Cells of `candor truth` in processes of this machine, several at a time.

A cell whose process fails stops no other: what is done is kept, and the next time only the rest is worked on.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from candor.core.errors import InputError
from candor.core.files import read_json, write_json
from candor.core.progress import Report, silent
from candor.core.settings import parse_settings
from candor.research.cells import FAILURE
from candor.research.local import end_processes, stopped_by_sigterm, usable_cores
from candor.research.truth.cells import Cell, Scored, run_cell

_REFUSED = 2  # exit code of a process whose cell was refused in plain words


def run_cells(cells: Sequence[Cell], out: Path, workers: int = 1, report: Report = silent) -> list[Scored]:
    """Returns the scores of all cells, trained and judged now or before.

    Args:
        cells: what to do.
        out: the folder of all cells.
        workers: cells at a time, each in a process with its share of the cores; one alone works in this process.
        report: is told how far it has come.
    """
    if workers > 1:
        _run_apart(cells, out, workers, report)
    return [run_cell(cell, out, _named(cell.name, report)) for cell in cells]


def _run_apart(cells: Sequence[Cell], out: Path, workers: int, report: Report) -> None:
    """Works on all cells, and says at the end why the first one failed, if one did."""
    waiting = deque(cells)
    running: dict[str, BaseProcess] = {}
    codes: dict[str, int] = {}
    threads = max(1, usable_cores() // workers)
    with stopped_by_sigterm():
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    cell = waiting.popleft()
                    process = _prepare(cell, out, threads)
                    running[cell.name] = process  # before it starts: an interruption must find it here
                    process.start()
                report(f"cells | {len(codes)} of {len(cells)} cells done", len(codes) / len(cells))
                wait([process.sentinel for process in running.values()])
                for name, process in list(running.items()):
                    if not process.is_alive():
                        del running[name]
                        codes[name] = process.exitcode or 0
        finally:
            end_processes(running.values())
    for name, code in codes.items():
        if code:
            raise _failure(out / name, code)


def _prepare(cell: Cell, out: Path, threads: int) -> BaseProcess:
    arguments = cell.model_dump(mode="json"), str(out), threads
    return multiprocessing.get_context("spawn").Process(target=work, args=arguments, daemon=False)


def work(content: Any, out: str, threads: int) -> None:
    """Works on one cell in a process of its own, which ends with code 2 if the cell is refused."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the one that started this ends it
    torch.set_num_threads(threads)
    cell = parse_settings(Cell, content, "cell")
    failure = Path(out) / cell.name / FAILURE
    failure.unlink(missing_ok=True)
    try:
        run_cell(cell, Path(out))
    except InputError as error:
        write_json(failure, {"what": error.what, "where": error.where, "hint": error.hint})
        raise SystemExit(_REFUSED) from None


def _failure(folder: Path, code: int) -> InputError:
    if code == _REFUSED and (folder / FAILURE).is_file():
        content = read_json(folder / FAILURE)
        return InputError(content["what"], where=content["where"] or str(folder), hint=content["hint"])
    return InputError(
        f"the process of this cell ended with code {code}",
        where=str(folder),
        hint="what is done is kept: give the command again, with fewer workers if memory ran out",
    )


def _named(cell: str, report: Report) -> Report:
    """Returns a listener that says which cell it hears of."""

    def listen(what: str, share: float | None) -> None:
        working, _, detail = what.partition(" | ")
        report(f"{cell}: {working} | {cell}: {detail or working}", share)

    return listen
