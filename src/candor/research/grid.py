"""A cell of a grid: a model trained on a task with a seed, evaluated, and kept as a run directory.

threads.json  how many threads a network is trained with, noted before: another process may evaluate it
scores.json   with cell.json it stands for the whole run directory
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from pydantic import PositiveFloat
from safetensors import safe_open

from candor.core.errors import InputError
from candor.core.files import read_json, write_json
from candor.core.progress import Report
from candor.core.settings import Settings, parse_settings
from candor.data.catalog import load_dataset
from candor.data.protocol import Protocol, make_task
from candor.forecasting.own_data import choose_protocol, choose_settings
from candor.presets import load_preset
from candor.research.engine import CELL, SCORES, Cell, Interruption
from candor.research.suites import Contender, Suite, SuiteTask
from candor.runs.evaluation import evaluate_run
from candor.runs.fit import Limits, resume_run, train_model
from candor.runs.run import EVALUATION, RECORD, TRAINING, Run, load_record, load_run
from candor.runs.summary import RunState, summarise_run

THREADS = "threads.json"
METRICS = ("mae", "rmse", "mape", "mse")
ALL_STEPS = 0
"""The step under which scores over all steps stand."""


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

    def content(self) -> dict[str, Any]:
        """Returns all fields."""
        return self.model_dump(mode="json")

    def work(self, folder: Path, report: Report, interruption: Interruption) -> None:
        """Trains, evaluates and writes the scores."""
        threads = self._threads(folder)
        run = train_cell(folder, self.budget_minutes, partial(self._begin, folder, report), report, interruption)
        write_json(folder / CELL, self.content())  # the run of a simple rule replaces its folder
        if summarise_run(folder).state != RunState.EVALUATED:
            evaluate_run(run, report)
        write_scores(folder, is_candor=self.contender.model == "candor", threads=threads)

    def _threads(self, folder: Path) -> int | None:
        """Returns how many threads a network is, or in an earlier session was, trained with; None if unknown.

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

    def _begin(self, folder: Path, report: Report, limits: Limits) -> Run:
        preset = load_preset(self.task.preset)
        panel, overrides = load_dataset(preset.data), dict(self.contender.settings)
        if self.task.horizon is not None:
            overrides["horizon"] = self.task.horizon
            if self.task.horizon != preset.protocol.horizon:  # the preset's steps are chosen for its own horizon
                overrides.setdefault("steps", ())
        protocol, rest = choose_protocol(panel, self.task.preset, overrides)
        model = self.contender.model
        settings, _ = choose_settings(model, make_task(panel, protocol), self.task.preset, rest)
        return train_model(
            panel, protocol, model, settings, folder, seed=self.seed, is_catalogued=True, report=report, limits=limits
        )


def cells_of(suite: Suite) -> list[GridCell]:
    """Returns all cells of a suite, seed by seed, so that a grid that is stopped has whole rounds."""
    return [
        GridCell(suite=suite.name, task=task, contender=contender, seed=seed, budget_minutes=suite.budget_minutes)
        for seed in suite.seeds
        for task in suite.tasks
        for contender in suite.contenders
    ]


def cells_in(grid: Path) -> list[GridCell]:
    """Returns the cells that were ever begun in the folder of a grid, in the order of their names."""
    found = []
    for path in sorted(grid.glob(f"*/*/seed-*/{CELL}")):
        with suppress(InputError):  # gone for a moment where the run of a simple rule replaces its folder, or no cell
            cell = parse_cell(read_json(path))
            if grid / cell.name == path.parent:  # and no copy of it
                found.append(cell)
    return found


def parse_cell(content: Any) -> GridCell:
    """Returns a cell from the content of its cell.json."""
    return parse_settings(GridCell, content, "cell")


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


def write_scores(folder: Path, *, is_candor: bool, threads: int | None) -> None:
    """Writes what an evaluated run scored with all it depends on, so that it can be read where the run is not.

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
    """Returns how long a model learned and how far it came; models fitted in one go have no epochs.

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
