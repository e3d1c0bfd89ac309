"""The scores of all cells of a grid as one tidy table, each row with the protocol it was made under."""

import json
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors import safe_open

from candor.core.errors import InputError
from candor.core.files import atomic_file, read_json, write_json
from candor.research.cells import CELL, SCORES, Cell, CellState, cells_of, parse_cell
from candor.research.suites import Suite
from candor.runs.fit import TRAINING
from candor.runs.run import EVALUATION, load_record

METRICS = ("mae", "rmse", "mape", "mse")
ALL_STEPS = 0


def collect(cells: Sequence[Cell], grid: Path) -> pd.DataFrame:
    """Returns one row per cell, step and metric; step 0 stands for all steps together."""
    rows = [row for cell in cells if cell.state(grid) == CellState.DONE for row in _rows(cell, grid / cell.name)]
    if not rows:
        return pd.DataFrame(columns=["task", "data", "horizon", "model", "seed", "step", "metric", "value"])
    found = pd.DataFrame(rows)
    kinds = {"parameters": "Int64", "threads": "Int64", "value": "float64"}
    return found.astype({name: kind for name, kind in kinds.items() if name in found})


def collect_whole(whole: Suite, grid: Path) -> tuple[pd.DataFrame, list[Cell]]:
    """Returns the scores of all that was ever done in the folder of a grid, and the cells there that are no part of it.

    Grids are often worked on in several goes. Cells of another suite, with another budget or with other settings are no
    part of this one, and left out.

    Args:
        whole: all that may be done in the folder, but for further seeds.
        grid: the folder.
    """
    there = [cell for cell in cells_in(grid) if cell.state(grid) == CellState.DONE]
    seeds = sorted({cell.seed for cell in there})
    ours = {cell.name: cell for cell in cells_of(whole.model_copy(update={"seeds": tuple(seeds)}))}

    def is_kin(cell: Cell) -> bool:
        return cell.name in ours and ours[cell.name].model_dump(mode="json") == cell.model_dump(mode="json")

    kin = [cell for cell in there if is_kin(cell)]
    tasks, names = [task.label for task in whole.tasks], [contender.name for contender in whole.contenders]
    kin.sort(key=lambda cell: (tasks.index(cell.task.label), names.index(cell.contender.name), cell.seed))
    return collect(kin, grid), [cell for cell in there if not is_kin(cell)]


def cells_in(grid: Path) -> list[Cell]:
    """Returns the cells that were ever begun in the folder of a grid, in the order of their names."""
    found = []
    for path in sorted(grid.glob(f"*/*/seed-*/{CELL}")):
        with suppress(InputError):  # gone for a moment where a run made in one go replaces its folder, or no cell
            cell = parse_cell(read_json(path))
            if grid / cell.name == path.parent:  # and no copy of it
                found.append(cell)
    return found


def save_results(results: pd.DataFrame, path: Path) -> None:
    """Writes the table as Parquet, all or nothing."""
    with atomic_file(path) as temporary:
        results.to_parquet(temporary, index=False)


def write_scores(cell: Cell, folder: Path, threads: int | None) -> None:
    """Writes what a judged run scored with all it depends on, so that it can be read where the run is not.

    Args:
        cell: what was judged.
        folder: of the cell.
        threads: that a network was trained with: the same minutes on more of them are more training. None if unknown.
    """
    judged = read_json(folder / EVALUATION)
    values = []
    for metric in METRICS:
        by_step = {ALL_STEPS: judged["overall"][metric]} | {
            step: judged["by_step"][metric][step - 1] for step in _reported(judged["protocol"])
        }
        values += [{"step": step, "metric": metric, "value": value} for step, value in by_step.items()]
    circumstances = {
        "unit": judged["unit"],
        "windows": judged["windows"],
        "aggregation": judged["aggregation"],
        "mask": judged["mask"],
        "split": judged["split"],
        "protocol": judged["protocol"],
        "settings": judged["settings"],
        "data_sha256": judged["data"]["sha256"],
        "model_sha256": judged["model_sha256"],
        "versions": judged["versions"],
        "parameters": _count_parameters(folder) if cell.contender.model == "candor" else None,
        "threads": threads,
        **_training(folder),
    }
    place = {"data": judged["data"]["name"], "horizon": judged["protocol"]["horizon"]}
    write_json(folder / SCORES, place | {"values": values} | circumstances)


def _rows(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    scored = read_json(folder / SCORES)
    place = {
        "task": cell.task.label,
        "data": scored.pop("data"),
        "horizon": scored.pop("horizon"),
        "model": cell.contender.name,
        "seed": cell.seed,
    }
    values = scored.pop("values")
    changes = cell.contender.model_dump(mode="json")["settings"]
    circumstances = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in scored.items()}
    circumstances |= {"changes": json.dumps(changes), "budget_minutes": cell.budget_minutes}
    return [place | value | circumstances for value in values]


def _reported(protocol: dict[str, Any]) -> list[int]:
    from candor.data.protocol import Protocol

    return list(Protocol(**protocol).reported_steps())


def _count_parameters(folder: Path) -> int:
    """Returns how many numbers a CANDOR learned; other networks keep more than that among their weights."""
    with safe_open(folder / "model" / "state.safetensors", "numpy") as state:
        weights = [name for name in state.keys() if name.startswith("weights/")]  # noqa: SIM118 - it is no mapping
        return sum(prod(state.get_slice(name).get_shape()) for name in weights)


def _training(folder: Path) -> dict[str, Any]:
    """Returns how long a model learned and how far it came; models fitted in one go have no epochs.

    From how many windows it learned, and by which schedule, is told where a budget shortened it; elsewhere its settings
    tell it.
    """
    untold = {"epochs": None, "best_epoch": None, "windows_learned": None, "schedule": None}
    if not (folder / TRAINING).is_dir():
        return {"train_seconds": load_record(folder).learning_seconds} | untold
    from candor.training.checkpoint import Checkpoint

    progress = Checkpoint(folder / TRAINING).progress()
    told = {"train_seconds": progress.seconds, "epochs": progress.epoch, "best_epoch": progress.best_epoch}
    if (path := folder / TRAINING / "schedule.json").is_file():
        told |= {"windows_learned": progress.learned + progress.windows, "schedule": read_json(path)}
    return untold | told
