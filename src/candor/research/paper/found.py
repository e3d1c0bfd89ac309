"""Finds what other commands left behind in some folders.

results.parquet, cell.json  grids of `candor benchmark`, `candor ablate` and `candor sweep`, with or without their cells
profile.json                `candor profile`
shock-rain.json             `candor shock-rain`
truth.json                  `candor truth`, the one for all cells
run.json                    runs; those named on the command line, and those that belong to no grid
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from candor.core.errors import InputError
from candor.core.files import is_of_format, read_json
from candor.data.catalog import datasets
from candor.research.engine import CELL
from candor.research.grid import GridCell, parse_cell
from candor.research.paper.grid import FoundGrid, Kind, read_grid
from candor.research.profiling import PROFILE
from candor.research.results import RESULTS
from candor.runs.run import RECORD, RunRecord, load_record

MARK, FORMAT = "paper.json", "candor-paper"
SHOCK_RAIN, TRUTH = "shock-rain.json", "truth.json"
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Trouble:
    """A result that could not be read or drawn, and why."""

    where: str
    what: str


@dataclass(frozen=True, eq=False)
class FoundRun:
    """A run of CANDOR and what it is called: the task of its grid or the name of its folder; if taken, its path."""

    name: str
    folder: Path
    record: RunRecord


@dataclass(eq=False)
class Found:
    """What there is, each kind in the order of its paths.

    Args:
        folders: that were searched.
        grids: with results.
        profiles: files.
        shock_rains: files.
        truths: files.
        runs: of CANDOR whose figures are drawn.
        others: runs of CANDOR that belong to no grid and were not named.
        troubles: what could not be read.
    """

    folders: tuple[Path, ...]
    grids: list[FoundGrid] = field(default_factory=list)
    profiles: list[Path] = field(default_factory=list)
    shock_rains: list[Path] = field(default_factory=list)
    truths: list[Path] = field(default_factory=list)
    runs: list[FoundRun] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)


def find_results(folders: Sequence[Path]) -> Found:
    """Returns everything that is in some folders and the folders in them; a folder that is a run is drawn itself."""
    for folder in folders:
        if not folder.is_dir():
            raise InputError(
                "there is no such folder", where=str(folder), hint="name folders that commands of candor wrote to"
            )
    found = Found(tuple(folders))
    files = _files(folders)
    found.profiles = [path for path in files if path.name == PROFILE]
    found.shock_rains = [path for path in files if path.name == SHOCK_RAIN]
    cells = _cells([path for path in files if path.name == CELL], found.troubles)
    found.truths = [path for path in files if path.name == TRUTH and not (path.parent / CELL).is_file()]
    grids = dict.fromkeys([path.parent for path in files if path.name == RESULTS] + list(cells))
    for grid in sorted(grids):
        if (read := _tried(found.troubles, grid, partial(read_grid, grid, cells.get(grid, [])))) is not None:
            found.grids.append(read)
    in_cells = {grid / cell.name for grid, members in cells.items() for cell in members}
    runs = [path.parent for path in files if path.name == RECORD]
    found.runs = list(_runs(found, folders))
    drawn = {run.folder.resolve() for run in found.runs}
    found.others = [
        run
        for run in runs
        if run not in in_cells and not (run / CELL).is_file() and run.resolve() not in drawn and _is_candor(run)
    ]
    return found


def _files(folders: Sequence[Path]) -> list[Path]:
    """Returns the files that tell of results, each once; hidden folders and folders of this command are left out."""
    wanted = {RESULTS, CELL, PROFILE, SHOCK_RAIN, TRUTH, RECORD}
    found: dict[Path, Path] = {}
    for folder in folders:
        for place, inside, files in os.walk(folder):
            if MARK in files and is_paper(Path(place)):
                inside.clear()
                continue
            inside[:] = sorted(name for name in inside if not name.startswith("."))
            for name in wanted.intersection(files):
                path = Path(place) / name
                found.setdefault(path.resolve(), path)
    return sorted(found.values())


def is_paper(folder: Path) -> bool:
    """Returns whether a folder was written by this command."""
    return is_of_format(folder / MARK, FORMAT)


def _cells(paths: Sequence[Path], troubles: list[Trouble]) -> dict[Path, list[GridCell]]:
    """Returns the cells of grids by the grid's folder; cells of `candor truth` have no suite and are left out."""
    found: dict[Path, list[GridCell]] = {}
    for path in paths:
        content = _tried(troubles, path, partial(read_json, path))
        if not isinstance(content, dict) or "suite" not in content:
            continue
        if (cell := _tried(troubles, path, partial(parse_cell, content))) is None:
            continue
        parts = Path(cell.name).parts
        if path.parent.parts[-len(parts) :] == parts:  # a cell that was copied elsewhere is a run like any other
            found.setdefault(path.parents[len(parts)], []).append(cell)
    return found


def _runs(found: Found, folders: Sequence[Path]) -> Iterator[FoundRun]:
    """Yields the runs that were named, then CANDOR's first seed on each task of the grids; no two are called alike."""
    used: set[str] = set()

    def called(name: str, folder: Path) -> str:
        unlike = str(folder) if name in used else name
        used.add(unlike)
        return unlike

    for folder in folders:
        if not (folder / RECORD).is_file():
            continue
        if (record := _tried(found.troubles, folder, partial(load_record, folder))) is not None:
            yield FoundRun(called(folder.name or folder.resolve().name, folder), folder, record)
    tasks: set[str] = set()
    for grid in sorted(found.grids, key=lambda grid: (grid.kind != Kind.BENCHMARK, str(grid.folder))):
        for task, folder in grid.candor_runs().items():
            if task in tasks:
                continue
            if (record := _tried(found.troubles, folder, partial(load_record, folder))) is not None:
                tasks.add(task)
                yield FoundRun(called(task, folder), folder, record)


def _is_candor(run: Path) -> bool:
    try:
        return load_record(run).model == "candor"
    except InputError:  # a damaged run has no figures either way
        return False


def _tried(troubles: list[Trouble], where: Path, work: Callable[[], Outcome]) -> Outcome | None:
    """Returns what some work gives, or None after noting why it could not be done."""
    try:
        return work()
    except InputError as error:
        place = error.where if error.where.startswith(str(where)) else str(where)
        troubles.append(Trouble(place, error.what))
    except (OSError, KeyError, TypeError, ValueError) as error:  # content that is not what commands write
        troubles.append(Trouble(str(where), f"{type(error).__name__}: {error}"))
    return None


def data_of_runs(runs: Sequence[FoundRun]) -> dict[str, Path]:
    """Returns the folders of somebody's own data that runs carry with them, by the name of the data.

    Many files are called readings: where others have the name already, the run is named too.
    """
    found: dict[str, Path] = {}
    seen: set[tuple[str, str]] = set()
    for run in runs:
        data = (run.record.data, run.record.fingerprint)
        if run.record.is_catalogued or data in seen:
            continue
        seen.add(data)
        name = f"{run.record.data} of {run.name}" if run.record.data in found else run.record.data
        found[name] = run.folder / "data"
    return found


def data_names(found: Found) -> list[str]:
    """Returns the names of all data that grids and runs were made with, in their order."""
    of_grids = (str(name) for grid in found.grids for name in grid.results["data"].unique())
    catalogued = (run.record.data for run in found.runs if run.record.is_catalogued)
    return list(dict.fromkeys([*of_grids, *catalogued, *data_of_runs(found.runs)]))


def is_here(name: str) -> bool:
    """Returns whether a dataset of the catalogue is on this machine."""
    return name in datasets and datasets.get(name).is_available()
