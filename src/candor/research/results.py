"""The scores of all cells of a grid as one tidy table, in one file: each row with its cell and its protocol."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from candor.core.errors import InputError
from candor.core.files import atomic_file, read_json
from candor.research.engine import SCORES, CellState
from candor.research.grid import GridCell, cells_in, cells_of, parse_cell
from candor.research.suites import Suite

RESULTS = "results.parquet"
_PLACE = ("task", "data", "horizon", "model", "seed", "step", "metric", "value")
_COLUMNS = (
    *_PLACE, "unit", "windows", "aggregation", "mask", "split", "protocol", "data_sha256", "versions", "budget_minutes",
)  # fmt: skip


def collect(cells: Sequence[GridCell], grid: Path) -> pd.DataFrame:
    """Returns one row per cell that is done, step and metric; step 0 stands for all steps together."""
    rows = [row for cell in cells if cell.state(grid) == CellState.DONE for row in _rows(cell, grid / cell.name)]
    if not rows:
        return pd.DataFrame(columns=_PLACE)
    found = pd.DataFrame(rows)
    kinds = {"parameters": "Int64", "threads": "Int64", "value": "float64"}
    return found.astype({name: kind for name, kind in kinds.items() if name in found})


def _rows(cell: GridCell, folder: Path) -> list[dict[str, Any]]:
    scored = read_json(folder / SCORES)
    data, horizon, values = (scored.pop(key) for key in ("data", "horizon", "values"))
    place = {"task": cell.task.label, "data": data, "horizon": horizon}
    place |= {"model": cell.contender.name, "seed": cell.seed}
    circumstances = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in scored.items()}
    content = cell.content()
    circumstances |= {
        "changes": json.dumps(content["contender"]["settings"]),
        "budget_minutes": cell.budget_minutes,
        "cell": json.dumps(content),
    }
    return [place | value | circumstances for value in values]


def collect_whole(whole: Suite, grid: Path) -> tuple[pd.DataFrame, list[GridCell]]:
    """Returns the scores of all that was ever done in the folder of a grid, and the cells there that are no part of it.

    Grids are often worked on in several goes. Cells of another suite, with another budget or with other settings are no
    part of this one, and left out.

    Args:
        whole: all that may be done in the folder, but for further seeds.
        grid: the folder.
    """
    there = [cell for cell in cells_in(grid) if cell.state(grid) == CellState.DONE]
    seeds = tuple(sorted({cell.seed for cell in there}))
    ours = [cell.content() for cell in cells_of(whole.model_copy(update={"seeds": seeds}))]
    members = [cell for cell in there if cell.content() in ours]
    tasks, names = [task.label for task in whole.tasks], [contender.name for contender in whole.contenders]
    members.sort(key=lambda cell: (tasks.index(cell.task.label), names.index(cell.contender.name), cell.seed))
    return collect(members, grid), [cell for cell in there if cell not in members]


def save_results(results: pd.DataFrame, path: Path) -> None:
    """Writes the table as Parquet, all or nothing."""
    with atomic_file(path) as temporary:
        results.to_parquet(temporary, index=False)


def read_results(path: Path) -> pd.DataFrame:
    """Returns the table that `save_results` wrote."""
    try:
        results = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        what = f"this is not a table of results that can be read ({(str(error).splitlines() or [''])[0]})"
        raise InputError(what, where=str(path)) from None
    if lacking := [name for name in _COLUMNS if name not in results.columns]:
        raise InputError(f"the table of results has no column {', '.join(lacking)}", where=str(path))
    if not (is_numeric_dtype(results["value"]) and is_integer_dtype(results["seed"])):
        raise InputError("scores and seeds in the table of results are not numbers", where=str(path))
    return results


def cells_of_results(results: pd.DataFrame) -> list[GridCell]:
    """Returns the cells of a table of results; none where it was written before they were kept in it."""
    return [parse_cell(json.loads(text)) for text in results["cell"].unique()] if "cell" in results else []
