"""A grid as it was left behind: what it compares, its results, its cells, and the command that made it."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pandas as pd

from candor.research.ablations import CHANGES, FULL, VARIANTS
from candor.research.grid import GridCell
from candor.research.results import RESULTS, cells_of_results, collect, read_results
from candor.research.suites import Contender, Suite, SuiteTask, load_suite, suite_names
from candor.runs.run import RECORD

UNKNOWN = "not recorded"


class Kind(StrEnum):
    """What a grid compares."""

    BENCHMARK = "benchmark"
    ABLATIONS = "ablations"
    SWEEP = "sweep"


@dataclass(frozen=True, eq=False)
class FoundGrid:
    """A grid with results.

    Args:
        folder: where it is.
        kind: what it compares.
        suite: how its tables are made.
        cells: those whose folders are there, and those of the results.
        results: as `candor.research.results.collect` gives them.
    """

    folder: Path
    kind: Kind
    suite: Suite
    cells: tuple[GridCell, ...]
    results: pd.DataFrame

    @property
    def tasks(self) -> list[str]:
        """The tasks that have results."""
        return _unique(self.results, "task")

    @property
    def models(self) -> list[str]:
        """The models that have results."""
        return _unique(self.results, "model")

    @property
    def setting(self) -> str:
        """The setting that a sweep varies."""
        return self.models[0].partition("=")[0]

    def of_task(self, task: str) -> pd.DataFrame:
        """Returns the results on a task."""
        return self.results[self.results["task"] == task]

    def known(self) -> set[tuple[str, str, int]]:
        """Returns task, model and seed of all cells with results."""
        columns = (self.results[name].tolist() for name in ("task", "model", "seed"))
        return set(zip(*columns, strict=True))

    def candor_runs(self) -> dict[str, Path]:
        """Returns the run of the full CANDOR with the first seed, by task; none of a sweep."""
        found: dict[str, Path] = {}
        known = self.known()
        for cell in sorted(self.cells, key=lambda cell: (cell.contender.name != FULL, cell.contender.name, cell.seed)):
            is_full = cell.contender.model == FULL and (self.kind == Kind.BENCHMARK or cell.contender.name == FULL)
            has_results = (cell.task.label, cell.contender.name, cell.seed) in known
            if is_full and has_results and (self.folder / cell.name / RECORD).is_file():
                found.setdefault(cell.task.label, self.folder / cell.name)
        return found

    def command(self, *, is_whole: bool = False) -> str:
        """Returns the command that makes these results, or with `is_whole` also what was begun or its suite has."""
        if self.kind == Kind.BENCHMARK and self.suite.name not in suite_names():
            return UNKNOWN
        begun = self.cells if is_whole else ()
        models = list(dict.fromkeys([*self.models, *(cell.contender.name for cell in begun)]))
        seeds = sorted({*self.results["seed"].tolist(), *(cell.seed for cell in begun)})
        subject = {Kind.BENCHMARK: _of_benchmark, Kind.ABLATIONS: _of_ablations, Kind.SWEEP: _of_sweep}[self.kind]
        words = ["candor", *subject(self, models, is_whole)]
        if self.kind != Kind.BENCHMARK or not is_whole:
            words += ["--seeds", ",".join(str(seed) for seed in seeds)]
        for budget in sorted({float(budget) for budget in self.results["budget_minutes"].dropna()})[:1]:
            words += ["--budget-minutes", f"{budget:g}"]
        return shlex.join([*words, "--out", str(self.folder)])


def read_grid(folder: Path, cells: Sequence[GridCell] = ()) -> FoundGrid | None:
    """Returns the grid in a folder; None if it has no results yet.

    Args:
        folder: of the grid.
        cells: those whose cell.json is there. Where results.parquet is not, what they scored is collected.
    """
    path = folder / RESULTS
    results = read_results(path) if path.is_file() else collect(cells, folder)
    if results.empty:
        return None
    there = {cell.name for cell in cells}
    cells = (*cells, *(cell for cell in cells_of_results(results) if cell.name not in there))
    suite = _suite(folder, cells, results)
    kind = Kind(suite.name) if suite.name in (Kind.ABLATIONS, Kind.SWEEP) else Kind.BENCHMARK
    return FoundGrid(folder, kind, suite, cells, results)


def _suite(folder: Path, cells: Sequence[GridCell], results: pd.DataFrame) -> Suite:
    """Returns the suite of a grid: named by its cells, or guessed from the names of its models where there are none."""
    models = _unique(results, "model")
    names = {cell.suite for cell in cells}
    name = names.pop() if len(names) == 1 else _guessed(models) or folder.name.removeprefix("benchmark-")
    if name in suite_names():
        return load_suite(name)
    known = {cell.contender.name: cell.contender for cell in cells}
    content: dict[str, Any] = {
        "name": name,
        "title": folder.name,
        "tasks": [SuiteTask(preset=task) for task in _unique(results, "task")],
        "models": [known.get(model) or Contender(name=model, model=model) for model in models],
        "has_rivals": name not in (Kind.ABLATIONS, Kind.SWEEP),
        "metric": "mse" if all(json.loads(text).get("is_river") for text in _unique(results, "protocol")) else "mae",
    }
    return Suite(**content)


def _guessed(models: Sequence[str]) -> str | None:
    if len(models) > 1 and FULL in models and all(model == FULL or model in CHANGES for model in models):
        return Kind.ABLATIONS.value
    settings = {model.partition("=")[0] for model in models if "=" in model}
    return Kind.SWEEP.value if len(settings) == 1 and all("=" in model for model in models) else None


def _of_benchmark(grid: FoundGrid, models: Sequence[str], is_whole: bool) -> Iterator[str]:
    usual = {contender.name: contender.settings for contender in grid.suite.contenders}
    given: dict[str, Any] = {}
    for cell in grid.cells:
        own = usual.get(cell.contender.name, {})
        given |= {key: value for key, value in cell.contender.settings.items() if key not in own}
    yield from ("benchmark", grid.suite.name, *_written(given))
    if not is_whole and set(models) != set(usual):
        yield from ("--models", ",".join(models))
    if not is_whole and set(grid.tasks) < {task.label for task in grid.suite.tasks}:
        yield from ("--tasks", ",".join(grid.tasks))


def _of_ablations(grid: FoundGrid, models: Sequence[str], _: bool) -> Iterator[str]:
    shared = next((cell.contender.settings for cell in grid.cells if cell.contender.name == FULL), {})
    yield from ("ablate", _preset(grid), *_written(shared))
    variants = [name for name in CHANGES if name in models]
    if variants and variants != list(VARIANTS):
        yield from ("--variants", ",".join(variants))


def _of_sweep(grid: FoundGrid, models: Sequence[str], _: bool) -> Iterator[str]:
    values = ",".join(model.partition("=")[2] for model in models)
    own = grid.cells[0].contender.settings if grid.cells else {}
    shared = {key: value for key, value in own.items() if key != grid.setting}
    yield from ("sweep", _preset(grid), f"{grid.setting}={values}", *_written(shared))


def _preset(grid: FoundGrid) -> str:
    return grid.cells[0].task.preset if grid.cells else grid.tasks[0]


def _written(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()]


def _unique(results: pd.DataFrame, column: str) -> list[str]:
    return [str(name) for name in dict.fromkeys(results[column].tolist())]
