"""What numbers are about and how they were made, in words."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from candor.core.errors import InputError
from candor.core.text import counted
from candor.data.catalog import datasets
from candor.render.paper.entry import Origin, in_dates, in_versions
from candor.render.paper.grid import Grid
from candor.research.table_notes import differences_of, seeds_of
from candor.runs.run import RunRecord, load_record

_FILLED = {
    "zero": "gaps in what models read are filled with zero",
    "last": "gaps in what models read are filled with the last reading before them",
    "forward-backward": "gaps are filled with the last reading before them, at the beginning with the first one",
}
_SHORT = 12  # digits of a checksum


def data_in_words(name: str, checksum: str = "", unit: str = "", *, is_dataset: bool = False) -> str:
    """Returns what data are: the title that the catalogue gives, unit and the beginning of the checksum.

    Args:
        name: of the data.
        checksum: of their content.
        unit: of the readings.
        is_dataset: whether the checksum is that of a whole dataset, and can be compared with what the catalogue knows.
    """
    title = f": {datasets.get(name).title}" if name in datasets else ""
    parts = [f"{name}{title}", *([f"unit {unit}"] if unit else [])]
    parts += [f"SHA-256 {checksum[:_SHORT]}…"] if checksum else []
    is_another = is_dataset and name in datasets and datasets.get(name).is_another(checksum)
    return "; ".join([*parts, *(["another copy than the catalogue knows"] if is_another else [])])


def protocol_in_words(protocol: Mapping[str, Any], windows: Mapping[str, int] | None = None) -> str:
    """Returns what is read, what is forecast, how the record is cut and which targets count.

    Args:
        protocol: content of a `Protocol`.
        windows: how many there are in each part, where that is known.
    """
    history, horizon = counted(int(protocol["history"]), "step"), int(protocol["horizon"])
    first, last = protocol.get("first"), protocol.get("last")
    span = f" from {first or 'its beginning'} to {last or 'its end'}" if first or last else ""
    how = "by time" if protocol["split"] == "time" else "by windows"
    names = {"train": "training", "validation": "validation", "test": "test"}
    shares = []
    for (part, name), share in zip(names.items(), protocol["shares"], strict=True):
        count = "" if windows is None else f" ({counted(int(windows[part]), 'window')})"
        shares.append(f"{100 * float(share):g} % {name}{count}")
    judged = "observed targets are judged" if protocol["targets"] == "observed" else "the filled series is judged"
    return (
        f"{history} are read and the next {horizon} forecast. The record{span} is cut {how}: {', '.join(shares)}. "
        f"{_FILLED[protocol['fill']].capitalize()}; {judged}."
    )


def origin_of_task(grid: Grid, task: str) -> Origin:
    """Returns where the numbers of a grid on a task come from."""
    results = grid.results[grid.results["task"] == task]
    first: dict[Any, Any] = results.iloc[0].to_dict()
    sums = dict.fromkeys(str(value) for value in results["data_sha256"])
    protocol = protocol_in_words(json.loads(first["protocol"]), json.loads(first["split"])["windows"])
    return Origin(
        source=str(grid.folder),
        command=grid.command(),
        data=" and ".join(data_in_words(str(first["data"]), checksum, str(first["unit"] or "")) for checksum in sums),
        protocol=f"{protocol} {_aggregation(results)}",
        made=in_dates(_dates(grid, task)),
        versions=in_versions(json.loads(found) for found in dict.fromkeys(results["versions"])),
    )


def origin_of_run(record: RunRecord, source: str, command: str) -> Origin:
    """Returns where the figures of a run come from."""
    return Origin(
        source=source,
        command=command,
        data=data_in_words(record.data, record.fingerprint, record.unit, is_dataset=record.is_catalogued),
        protocol=f"{protocol_in_words(record.protocol.model_dump(mode='json'))} Seed {record.seed}.",
        made=in_dates([record.made.isoformat()] if record.made else []),
        versions=in_versions([record.versions]),
    )


def _aggregation(results: pd.DataFrame) -> str:
    """Returns over what errors are means, how long each model was trained, and what keeps models from comparison."""
    spread = " ± standard deviation (one degree of freedom taken off)" if results["seed"].nunique() > 1 else ""
    budgets = sorted({float(budget) for budget in results["budget_minutes"].dropna()})
    trained = (
        f" Networks were trained {' or '.join(f'{budget:g}' for budget in budgets)} minutes each." if budgets else ""
    )
    how = str(results["aggregation"].iloc[0]).partition(";")[0]
    differences = "".join(f" {told[:1].upper()}{told[1:]}." for told in differences_of(results))
    return f"Errors are {how}; mean over {seeds_of(results)}{spread}.{trained}{differences}"


def _dates(grid: Grid, task: str) -> list[str]:
    """Returns when the runs of a grid on a task were made, as far as their records are there."""
    found = []
    for cell in grid.cells:
        if cell.task.label != task:
            continue
        try:
            record = load_record(grid.folder_of(cell))
        except InputError:  # cells may have been thrown away since
            continue
        if record.made is not None:
            found.append(record.made.isoformat())
    return found
