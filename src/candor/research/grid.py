"""Grids: a model trained on a task with a seed is a cell, a run directory; their scores are one tidy table in one file.

threads.json     how many threads a network is trained with, noted before: another process may evaluate it
scores.json      with cell.json it stands for the whole run directory
results.parquet  a row per cell, step and metric, with the cell and its protocol
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype
from pydantic import PositiveFloat
from safetensors import safe_open

from candor.core.errors import InputError
from candor.core.files import atomic_file, read_json, write_json
from candor.core.progress import Report
from candor.core.settings import Settings, parse_settings
from candor.core.text import first_line
from candor.data.catalog import load_dataset
from candor.data.protocol import Protocol, Task, make_task
from candor.forecasting.own_data import choose_protocol, choose_settings
from candor.presets import load_preset
from candor.research.engine import CELL, SCORES, Cell, CellState, Interruption
from candor.research.suites import Contender, Suite, SuiteTask
from candor.runs.evaluation import evaluate_run
from candor.runs.fit import Limits, resume_run, train_model
from candor.runs.run import EVALUATION, RECORD, TRAINING, Run, load_record, load_run
from candor.runs.summary import RunState, summarise_run

RESULTS, THREADS = "results.parquet", "threads.json"
METRICS = ("mae", "rmse", "mape", "mse")
ALL_STEPS = 0
"""The step under which scores over all steps stand."""
_PLACE = ("task", "data", "horizon", "model", "seed", "step", "metric", "value")
_COLUMNS = (
    *_PLACE, "unit", "windows", "aggregation", "mask", "split", "protocol", "data_sha256", "versions", "budget_minutes",
)  # fmt: skip


class GridCell(Settings, Cell):
    """A model on a task with a seed."""

    suite: str
    task: SuiteTask
    contender: Contender
    seed: int
    budget_minutes: PositiveFloat | None = None

    @property
    def name(self) -> str:
        """Task, model and seed."""
        return f"{self.task.label}/{self.contender.name}/seed-{self.seed}"

    @property
    def place(self) -> tuple[str, str, int]:
        """Task, model and seed, as tables of results name them."""
        return self.task.label, self.contender.name, self.seed

    def content(self) -> dict[str, Any]:
        """Return all fields."""
        return self.model_dump(mode="json")

    def work(self, folder: Path, report: Report, interruption: Interruption) -> None:
        """Train, evaluate and write the scores."""
        threads = self._threads(folder)

        def begin(limits: Limits) -> tuple[Run, Task]:
            preset = load_preset(self.task.preset)
            panel, overrides = load_dataset(preset.data), dict(self.contender.settings)
            if self.task.horizon is not None:
                overrides["horizon"] = self.task.horizon
                if self.task.horizon != preset.protocol.horizon:  # the preset's steps are chosen for its own horizon
                    overrides.setdefault("steps", ())
            protocol, rest = choose_protocol(panel, self.task.preset, overrides)
            task, model = make_task(panel, protocol), self.contender.model
            settings, _ = choose_settings(model, task, self.task.preset, rest)
            run = train_model(
                panel, protocol, model, settings, folder, seed=self.seed, is_catalogued=True, report=report,
                limits=limits,
            )  # fmt: skip
            return run, task

        run, task = train_cell(folder, self.budget_minutes, begin, report, interruption)
        write_json(folder / CELL, self.content())  # the run of a simple rule replaces its folder
        if summarise_run(folder).state != RunState.EVALUATED:
            evaluate_run(run, report, task)
        write_scores(folder, is_candor=self.contender.model == "candor", threads=threads)

    def _threads(self, folder: Path) -> int | None:
        """Return how many threads a network is, or in an earlier session was, trained with; None if unknown.

        A training that goes on takes as many as it began with.
        """
        if not self.contender.is_network:
            return None
        noted = int(read_json(folder / THREADS)["threads"]) if (folder / THREADS).is_file() else None
        if (folder / "model").is_dir():
            return noted
        import torch

        if noted is not None:
            torch.set_num_threads(noted)
            return noted
        write_json(folder / THREADS, {"threads": torch.get_num_threads()})
        return torch.get_num_threads()


def cells_of(suite: Suite) -> list[GridCell]:
    """Return all cells of a suite, seed by seed, so that a grid that is stopped has whole rounds."""
    return [
        GridCell(suite=suite.name, task=task, contender=contender, seed=seed, budget_minutes=suite.budget_minutes)
        for seed in suite.seeds
        for task in suite.tasks
        for contender in suite.contenders
    ]


def cells_in(grid: Path) -> list[GridCell]:
    """Return the cells that were ever begun in the folder of a grid, in the order of their names."""
    found = []
    for path in sorted(grid.glob(f"*/*/seed-*/{CELL}")):
        with suppress(InputError):  # gone for a moment where the run of a simple rule replaces its folder, or no cell
            cell = parse_cell(read_json(path))
            if grid / cell.name == path.parent:  # and no copy of it
                found.append(cell)
    return found


def parse_cell(content: Any) -> GridCell:
    """Return a cell from the content of its cell.json."""
    return parse_settings(GridCell, content, "cell")


def train_cell(
    folder: Path,
    budget_minutes: float | None,
    begin: Callable[[Limits], tuple[Run, Task]],
    report: Report,
    interruption: Interruption = lambda: None,
) -> tuple[Run, Task | None]:
    """Return the trained run of a cell, which may be there already, or go on, or begins within its limits.

    Args:
        folder: of the cell.
        budget_minutes: of training; None trains to the end.
        begin: trains the run from its beginning, and returns it with its task; elsewhere the task is still to be read.
        report: progress callback.
        interruption: says why training should stop, if it should.
    """
    if (folder / "model").is_dir():
        return load_run(folder), None
    if budget_minutes is not None and (folder / TRAINING).is_dir():
        from candor.training.checkpoint import Checkpoint

        budget_minutes = max(0.0, budget_minutes - Checkpoint(folder / TRAINING).progress().seconds / 60)
    limits = Limits(budget_minutes, interruption, fits_schedule=True)
    if (folder / RECORD).is_file():
        return resume_run(folder, report=report, limits=limits), None
    return begin(limits)


def write_scores(folder: Path, *, is_candor: bool, threads: int | None) -> None:
    """Write what an evaluated run scored with all it depends on, so that it can be read where the run is not.

    Args:
        folder: of the cell.
        is_candor: whether parameters are counted; other networks keep more than parameters among their weights.
        threads: that a network was trained with: the same minutes on more of them are more training. None if unknown.
    """
    found = read_json(folder / EVALUATION)
    values = []
    for metric in METRICS:
        by_step = {ALL_STEPS: found["overall"][metric]} | {
            step: found["by_step"][metric][step - 1] for step in Protocol(**found["protocol"]).reported_steps()
        }
        values += [{"step": step, "metric": metric, "value": value} for step, value in by_step.items()]
    copied = ("unit", "windows", "aggregation", "mask", "split", "protocol", "settings", "model_sha256", "versions")
    circumstances = {key: found[key] for key in copied} | {
        "data_sha256": found["data"]["sha256"],
        "parameters": _count_parameters(folder) if is_candor else None,
        "threads": threads,
        **_training(folder),
    }
    place = {"data": found["data"]["name"], "horizon": found["protocol"]["horizon"]}
    write_json(folder / SCORES, place | {"values": values} | circumstances)


def _count_parameters(folder: Path) -> int:
    with safe_open(folder / "model" / "state.safetensors", "numpy") as state:
        weights = [name for name in state.keys() if name.startswith("weights/")]  # noqa: SIM118 - it is no mapping
        return sum(prod(state.get_slice(name).get_shape()) for name in weights)


def _training(folder: Path) -> dict[str, Any]:
    """Return how long a model learned and how far it came; models fitted in one go have no epochs.

    From how many windows it learned, and by which schedule, is stated where a budget shortened it; elsewhere its
    settings state it.
    """
    unknown = {"epochs": None, "best_epoch": None, "windows_learned": None, "schedule": None}
    if not (folder / TRAINING).is_dir():
        return {"train_seconds": load_record(folder).learning_seconds} | unknown
    from candor.training.checkpoint import Checkpoint

    progress = Checkpoint(folder / TRAINING).progress()
    known = {"train_seconds": progress.seconds, "epochs": progress.epoch, "best_epoch": progress.best_epoch}
    if (path := folder / TRAINING / "schedule.json").is_file():
        known |= {"windows_learned": progress.learned + progress.windows, "schedule": read_json(path)}
    return unknown | known


def collect(cells: Sequence[GridCell], grid: Path) -> pd.DataFrame:
    """Return one row per cell that is done, step and metric; step 0 stands for all steps together."""
    rows = [row for cell in cells if cell.state(grid) == CellState.DONE for row in _rows(cell, grid / cell.name)]
    if not rows:
        return pd.DataFrame(columns=_PLACE)
    found = pd.DataFrame(rows)
    kinds = {"parameters": "Int64", "threads": "Int64", "value": "float64"}
    return found.astype({name: kind for name, kind in kinds.items() if name in found})


def _rows(cell: GridCell, folder: Path) -> list[dict[str, Any]]:
    scored, content = read_json(folder / SCORES), cell.content()
    data, horizon, values = (scored.pop(key) for key in ("data", "horizon", "values"))
    task, model, seed = cell.place
    place = {"task": task, "data": data, "horizon": horizon, "model": model, "seed": seed}
    circumstances = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in scored.items()}
    circumstances |= {"changes": json.dumps(content["contender"]["settings"]), "budget_minutes": cell.budget_minutes}
    circumstances["cell"] = json.dumps(content)
    return [place | value | circumstances for value in values]


def collect_whole(whole: Suite, grid: Path) -> tuple[pd.DataFrame, list[GridCell]]:
    """Return the scores of all that was ever done in the folder of a grid, and the cells there that are no part of it.

    Grids are often worked on in several goes. Cells of another suite, with another budget or with other settings are no
    part of this one, and left out. `whole` is all that may be done in the folder, but for further seeds.
    """
    there = [cell for cell in cells_in(grid) if cell.state(grid) == CellState.DONE]
    seeds = tuple(sorted({cell.seed for cell in there}))
    ours = [cell.content() for cell in cells_of(whole.model_copy(update={"seeds": seeds}))]
    members = [cell for cell in there if cell.content() in ours]
    tasks, names = [task.label for task in whole.tasks], [contender.name for contender in whole.contenders]
    members.sort(key=lambda cell: (tasks.index(cell.task.label), names.index(cell.contender.name), cell.seed))
    return collect(members, grid), [cell for cell in there if cell not in members]


def save_results(results: pd.DataFrame, path: Path) -> None:
    """Write the table as Parquet, all or nothing."""
    with atomic_file(path) as temporary:
        results.to_parquet(temporary, index=False)


def read_results(path: Path) -> pd.DataFrame:
    """Return the table that `save_results` wrote."""
    try:
        results = pd.read_parquet(path)
    except FileNotFoundError:
        raise InputError(
            "there are no results", where=str(path), hint="make them with `candor benchmark SUITE`"
        ) from None
    except (OSError, ValueError) as error:
        what = f"this is not a table of results that can be read ({first_line(error)})"
        raise InputError(what, where=str(path)) from None
    if lacking := [name for name in _COLUMNS if name not in results.columns]:
        raise InputError(f"the table of results has no column {', '.join(lacking)}", where=str(path))
    if not (is_numeric_dtype(results["value"]) and is_integer_dtype(results["seed"])):
        raise InputError("scores and seeds in the table of results are not numbers", where=str(path))
    return results


def cells_of_results(results: pd.DataFrame) -> list[GridCell]:
    """Return the cells of a table of results; none where it was written before they were kept in it."""
    return [parse_cell(json.loads(text)) for text in results["cell"].unique()] if "cell" in results else []


def unique(results: pd.DataFrame, column: str) -> list[str]:
    """Return what stands in a column, each once, in order."""
    return [str(name) for name in results[column].unique()]


def overall_errors(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of scores over all steps."""
    return results[results["step"] == ALL_STEPS]
