"""Finds what other commands left behind in some folders.

results.parquet, cell.json  grids of `candor benchmark`, `candor ablate` and `candor sweep`, with or without their cells
profile.json                `candor profile`
shock-rain.json             `candor shock-rain`
truth.json                  `candor truth`, the one for all cells
run.json                    runs; those named on the command line, and those that belong to no grid
"""

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from candor.core.errors import InputError
from candor.core.files import is_of_format, read_json
from candor.data.catalog import datasets
from candor.research.ablations import CHANGES, FULL, PUBLISHED, VARIANTS
from candor.research.engine import CELL
from candor.research.grid import RESULTS, GridCell, cells_of_results, collect, parse_cell, read_results, unique
from candor.research.profiling import PROFILE
from candor.research.shock_rain_runs import NAME
from candor.research.suites import Contender, Suite, SuiteTask, load_suite, suite_names
from candor.research.table_notes import budgets_of
from candor.research.truth.cells import TRUTH
from candor.runs.run import RECORD, RunRecord, load_record

MARK, FORMAT = "paper.json", "candor-paper"
UNKNOWN = "not recorded"
_SHOCK_RAIN = f"{NAME}.json"
Outcome = TypeVar("Outcome")


class GridKind(StrEnum):
    """What a grid compares."""

    BENCHMARK = "benchmark"
    ABLATIONS = "ablations"
    SWEEP = "sweep"


@dataclass(frozen=True, eq=False)
class FoundGrid:
    """A grid with results."""

    folder: Path  # where it is
    kind: GridKind  # what it compares
    suite: Suite  # how its tables are made
    cells: tuple[GridCell, ...]  # those whose folders are there, and those of the results
    results: pd.DataFrame  # as `candor.research.grid.collect` gives them

    @property
    def tasks(self) -> list[str]:
        """The tasks that have results."""
        return unique(self.results, "task")

    @property
    def models(self) -> list[str]:
        """The models that have results."""
        return unique(self.results, "model")

    @property
    def setting(self) -> str:
        """The setting that a sweep varies."""
        return self.models[0].partition("=")[0]

    def of_task(self, task: str) -> pd.DataFrame:
        """Return the results on a task."""
        return self.results[self.results["task"] == task]

    def known(self) -> set[tuple[str, str, int]]:
        """Return task, model and seed of all cells with results."""
        return set(self.results[["task", "model", "seed"]].itertuples(index=False, name=None))

    def candor_runs(self) -> dict[str, Path]:
        """Return the run of the full CANDOR with the first seed, by task; none of a sweep."""
        found: dict[str, Path] = {}
        known = self.known()
        for cell in sorted(self.cells, key=lambda cell: (cell.contender.name != FULL, cell.contender.name, cell.seed)):
            is_full = cell.contender.model == FULL and (self.kind == GridKind.BENCHMARK or cell.contender.name == FULL)
            if is_full and cell.place in known and (self.folder / cell.name / RECORD).is_file():
                found.setdefault(cell.task.label, self.folder / cell.name)
        return found

    def command(self, *, is_whole: bool = False) -> str:
        """Return the command that makes these results, or with `is_whole` also what was begun or its suite has."""
        if self.kind == GridKind.BENCHMARK and self.suite.name not in suite_names():
            return UNKNOWN
        begun = self.cells if is_whole else ()
        models = list(dict.fromkeys([*self.models, *(cell.contender.name for cell in begun)]))
        seeds = sorted({*self.results["seed"].tolist(), *(cell.seed for cell in begun)})
        if self.kind == GridKind.BENCHMARK:
            words = list(self._benchmark(models, is_whole))
        else:
            preset = self.cells[0].task.preset if self.cells else self.tasks[0]
            words = list((self._ablation if self.kind == GridKind.ABLATIONS else self._sweep)(preset, models))
        if self.kind != GridKind.BENCHMARK or not is_whole:
            words += ["--seeds", ",".join(str(seed) for seed in seeds)]
        for budget in budgets_of(self.results)[:1]:
            words += ["--budget-minutes", budget]
        return shlex.join(["candor", *words, "--out", str(self.folder)])

    def _benchmark(self, models: Sequence[str], is_whole: bool) -> Iterator[str]:
        usual = {contender.name: contender.settings for contender in self.suite.contenders}
        given: dict[str, Any] = {}
        for cell in self.cells:
            own = usual.get(cell.contender.name, {})
            given |= {key: value for key, value in cell.contender.settings.items() if key not in own}
        yield from ("benchmark", self.suite.name, *_written(given))
        if not is_whole and set(models) != set(usual):
            yield from ("--models", ",".join(models))
        if not is_whole and set(self.tasks) < {task.label for task in self.suite.tasks}:
            yield from ("--tasks", ",".join(self.tasks))

    def _ablation(self, preset: str, models: Sequence[str]) -> Iterator[str]:
        shared = next((cell.contender.settings for cell in self.cells if cell.contender.name == FULL), {})
        yield from ("ablate", preset, *_written(_but_for(PUBLISHED, shared)))
        variants = [name for name in CHANGES if name in models]
        if variants and variants != list(VARIANTS):
            yield from ("--variants", ",".join(variants))

    def _sweep(self, preset: str, models: Sequence[str]) -> Iterator[str]:
        values = ",".join(model.partition("=")[2] for model in models)
        own = self.cells[0].contender.settings if self.cells else {}
        shared = _but_for({self.setting, *PUBLISHED}, own)
        yield from ("sweep", preset, f"{self.setting}={values}", *_written(shared))


def _but_for(keys: Collection[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in keys}


def _written(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()]


def read_grid(folder: Path, cells: Sequence[GridCell] = ()) -> FoundGrid | None:
    """Return the grid in a folder; None if it has no results yet.

    Where results.parquet is not there, what the cells scored is collected: those whose cell.json is there.
    """
    path = folder / RESULTS
    results = read_results(path) if path.is_file() else collect(cells, folder)
    if results.empty:
        return None
    there = {cell.name for cell in cells}
    cells = (*cells, *(cell for cell in cells_of_results(results) if cell.name not in there))
    suite = _suite(folder, cells, results)
    kind = GridKind(suite.name) if suite.name in (GridKind.ABLATIONS, GridKind.SWEEP) else GridKind.BENCHMARK
    return FoundGrid(folder, kind, suite, cells, results)


def _suite(folder: Path, cells: Sequence[GridCell], results: pd.DataFrame) -> Suite:
    """Return the suite of a grid: named by its cells, or guessed from the names of its models where there are none."""
    models = unique(results, "model")
    names = {cell.suite for cell in cells}
    name = names.pop() if len(names) == 1 else _guessed(models) or folder.name.removeprefix("benchmark-")
    if name in suite_names():
        return load_suite(name)
    known = {cell.contender.name: cell.contender for cell in cells}
    content: dict[str, Any] = {
        "name": name,
        "title": folder.name,
        "tasks": [SuiteTask(preset=task) for task in unique(results, "task")],
        "models": [known.get(model) or Contender(name=model, model=model) for model in models],
        "has_rivals": name not in (GridKind.ABLATIONS, GridKind.SWEEP),
        "metric": "mse" if all(json.loads(text).get("is_river") for text in unique(results, "protocol")) else "mae",
    }
    return Suite(**content)


def _guessed(models: Sequence[str]) -> str | None:
    if len(models) > 1 and FULL in models and all(model == FULL or model in CHANGES for model in models):
        return GridKind.ABLATIONS.value
    settings = {model.partition("=")[0] for model in models if "=" in model}
    return GridKind.SWEEP.value if len(settings) == 1 and all("=" in model for model in models) else None


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
    """What there is, each kind in the order of its paths."""

    folders: tuple[Path, ...]  # that were searched
    grids: list[FoundGrid] = field(default_factory=list)  # with results
    profiles: list[Path] = field(default_factory=list)  # files
    shock_rains: list[Path] = field(default_factory=list)  # files
    truths: list[Path] = field(default_factory=list)  # files
    runs: list[FoundRun] = field(default_factory=list)  # of CANDOR whose figures are drawn
    others: list[Path] = field(default_factory=list)  # runs of CANDOR that belong to no grid and were not named
    troubles: list[Trouble] = field(default_factory=list)  # what could not be read


def find_results(folders: Sequence[Path]) -> Found:
    """Return everything that is in some folders and the folders in them; a folder that is a run is drawn itself."""
    for folder in folders:
        if not folder.is_dir():
            hint = "name folders that commands of candor wrote to"
            raise InputError("there is no such folder", where=str(folder), hint=hint)
    found = Found(tuple(folders))
    files = _files(folders)
    found.profiles, found.shock_rains = files[PROFILE], files[_SHOCK_RAIN]
    cells = _cells(files[CELL], found.troubles)
    found.truths = [path for path in files[TRUTH] if not (path.parent / CELL).is_file()]
    for grid in sorted({*(path.parent for path in files[RESULTS]), *cells}):
        if (read := _tried(found.troubles, grid, partial(read_grid, grid, cells.get(grid, [])))) is not None:
            found.grids.append(read)
    in_cells = {grid / cell.name for grid, members in cells.items() for cell in members}
    found.runs = list(_runs(found, folders))
    drawn = {run.folder.resolve() for run in found.runs}
    found.others = [
        run
        for run in (path.parent for path in files[RECORD])
        if run not in in_cells and not (run / CELL).is_file() and run.resolve() not in drawn and _is_candor(run)
    ]
    return found


def _files(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files that hold results, each once, by name; hidden folders and those of `candor paper` left out."""
    found: dict[str, dict[Path, Path]] = {name: {} for name in (RESULTS, CELL, PROFILE, _SHOCK_RAIN, TRUTH, RECORD)}
    for folder in folders:
        for place, inside, files in os.walk(folder):
            if MARK in files and is_paper(Path(place)):
                inside.clear()
                continue
            inside[:] = sorted(name for name in inside if not name.startswith("."))
            for name in found.keys() & set(files):
                path = Path(place) / name
                found[name].setdefault(path.resolve(), path)
    return {name: sorted(paths.values()) for name, paths in found.items()}


def is_paper(folder: Path) -> bool:
    """Return whether a folder was written by `candor paper`."""
    return is_of_format(folder / MARK, FORMAT)


def _cells(paths: Sequence[Path], troubles: list[Trouble]) -> dict[Path, list[GridCell]]:
    """Return the cells of grids by the grid's folder; cells of `candor truth` have no suite and are left out."""
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
    """Yield the runs that were named, then CANDOR's first seed on each task of the grids; no two are called alike."""
    used: set[str] = set()

    def opened(name: str, folder: Path) -> Iterator[FoundRun]:
        if (record := _tried(found.troubles, folder, partial(load_record, folder))) is not None:
            unlike = str(folder) if name in used else name
            used.add(unlike)
            yield FoundRun(unlike, folder, record)

    for folder in folders:
        if (folder / RECORD).is_file():
            yield from opened(folder.name or folder.resolve().name, folder)
    tasks: set[str] = set()
    for grid in sorted(found.grids, key=lambda grid: (grid.kind != GridKind.BENCHMARK, str(grid.folder))):
        for task, folder in grid.candor_runs().items():
            if task not in tasks:
                for run in opened(task, folder):
                    tasks.add(task)
                    yield run


def _is_candor(run: Path) -> bool:
    try:
        return load_record(run).model == "candor"
    except InputError:  # a damaged run has no figures either way
        return False


def _tried(troubles: list[Trouble], where: Path, work: Callable[[], Outcome]) -> Outcome | None:
    """Return what some work gives, or None after noting why it could not be done."""
    try:
        return work()
    except InputError as error:
        place = error.where if error.where.startswith(str(where)) else str(where)
        troubles.append(Trouble(place, error.what))
    except (OSError, KeyError, TypeError, ValueError) as error:  # content that is not what commands write
        troubles.append(Trouble(str(where), f"{type(error).__name__}: {error}"))
    return None


def data_of_runs(runs: Sequence[FoundRun]) -> dict[str, Path]:
    """Return the folders of somebody's own data that runs carry with them, by the name of the data.

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
    """Return the names of all data that grids and runs were made with, in their order."""
    of_grids = (name for grid in found.grids for name in unique(grid.results, "data"))
    catalogued = (run.record.data for run in found.runs if run.record.is_catalogued)
    return list(dict.fromkeys([*of_grids, *catalogued, *data_of_runs(found.runs)]))


def is_here(name: str) -> bool:
    """Return whether a dataset of the catalogue is on this machine."""
    return name in datasets and datasets.get(name).is_available()
