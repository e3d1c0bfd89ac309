"""Where numbers come from: data, protocol, command, dates and versions in words."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from candor.core.errors import InputError
from candor.core.text import NOTHING, counted
from candor.data.catalog import datasets
from candor.presets import load_preset, preset_names
from candor.research.measuring import HOW
from candor.research.paper.found import UNKNOWN, FoundGrid
from candor.research.profiling import PACKAGES, Circumstances, Profile
from candor.research.table_notes import budgets_of, differences_of, seeds_of
from candor.research.truth.cells import Scored
from candor.runs.run import RunRecord, load_record

_FILLED = {
    "zero": "gaps in what models read are filled with zero",
    "last": "gaps in what models read are filled with the last reading before them",
    "forward-backward": "gaps are filled with the last reading before them, at the beginning with the first one",
}
_SHORT = 12  # digits of a checksum


@dataclass(frozen=True)
class Origin:
    """Where numbers come from."""

    source: str  # the file or folder they were read from
    command: str  # that made them
    data: str = NOTHING  # what they are about, with unit and checksum where those are known
    protocol: str = NOTHING  # how they were made, in words
    made: str = UNKNOWN  # the dates of the results
    versions: str = UNKNOWN  # what they were made with


def data_in_words(name: str, checksum: str = "", unit: str = "", *, is_dataset: bool = False) -> str:
    """Return what data are: the title that the catalogue gives, unit and the beginning of the checksum.

    The checksum of a whole dataset (`is_dataset`) is compared with what the catalogue knows.
    """
    title = f": {datasets.get(name).title}" if name in datasets else ""
    parts = [f"{name}{title}", *([f"unit {unit}"] if unit else [])]
    parts += [f"SHA-256 {checksum[:_SHORT]}…"] if checksum else []
    is_another = is_dataset and name in datasets and datasets.get(name).is_another(checksum)
    return "; ".join([*parts, *(["another copy than the catalogue knows"] if is_another else [])])


def protocol_in_words(protocol: Mapping[str, Any], windows: Mapping[str, int] | None = None) -> str:
    """Return what is read and forecast, how the record is cut (with known numbers of windows), which targets count."""
    history, horizon = counted(int(protocol["history"]), "step"), int(protocol["horizon"])
    first, last = protocol.get("first"), protocol.get("last")
    span = f" from {first or 'its beginning'} to {last or 'its end'}" if first or last else ""
    how = "by time" if protocol["split"] == "time" else "by windows"
    names = {"train": "training", "validation": "validation", "test": "test"}
    shares = []
    for (part, name), share in zip(names.items(), protocol["shares"], strict=True):
        count = "" if windows is None else f" ({counted(int(windows[part]), 'window')})"
        shares.append(f"{100 * float(share):g} % {name}{count}")
    targets = "observed targets" if protocol["targets"] == "observed" else "the filled series"
    return (
        f"{history} are read and the next {horizon} forecast. The record{span} is cut {how}: {', '.join(shares)}. "
        f"{_FILLED[protocol['fill']].capitalize()}; scores are those of {targets}."
    )


def origin_of_task(grid: FoundGrid, task: str) -> Origin:
    """Return where the numbers of a grid on a task come from."""
    results = grid.of_task(task)
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
    """Return where the figures of a run come from."""
    return Origin(
        source=source,
        command=command,
        data=data_in_words(record.data, record.fingerprint, record.unit, is_dataset=record.is_catalogued),
        protocol=f"{protocol_in_words(record.protocol.model_dump(mode='json'))} Seed {record.seed}.",
        made=in_dates([record.made.isoformat()] if record.made else []),
        versions=in_versions([record.versions]),
    )


def _aggregation(results: pd.DataFrame) -> str:
    """Return over what errors are means, how long each model was trained, and what keeps models from comparison."""
    spread = " ± standard deviation (one degree of freedom taken off)" if results["seed"].nunique() > 1 else ""
    budgets = " or ".join(budgets_of(results))
    trained = f" Networks were trained {budgets} minutes each." if budgets else ""
    how = str(results["aggregation"].iloc[0]).partition(";")[0]
    differences = "".join(f" {text[:1].upper()}{text[1:]}." for text in differences_of(results))
    return f"Errors are {how}; mean over {seeds_of(results)}{spread}.{trained}{differences}"


def _dates(grid: FoundGrid, task: str) -> list[str]:
    """Return when the runs of a grid on a task were made, as far as their records are there."""
    records = (record_in(grid.folder / cell.name) for cell in grid.cells if cell.task.label == task)
    return [record.made.isoformat() for record in records if record is not None and record.made is not None]


def record_in(run: Path) -> RunRecord | None:
    """Return the record of a run; None where it is no longer."""
    try:
        return load_record(run)
    except InputError:
        return None


def circumstances_in_words(at: Circumstances) -> str:
    """Return shape, graph, batch and machine of measurements."""
    machine = at.machine
    return (
        f"{at.nodes} sensors, {at.edges:,} edges (graph: {at.graph}), {at.horizon} steps from {at.history}; "
        f"{at.batch} windows at once, mean of {at.passes} passes after {at.warm_ups}; {machine.get('processor', '')}, "
        f"{machine.get('cores', '?')} cores, {machine.get('threads', '?')} threads, single precision"
    )


def origin_of_profile(path: Path, profile: Profile) -> Origin:
    """Return where costs come from."""
    at = profile.circumstances
    names = ",".join([*(model.name for model in profile.models), *profile.failed])
    words = ["candor", "profile", "--preset", at.preset, "--models", names, "--batch", str(at.batch)]
    words += ["--warm-ups", str(at.warm_ups), "--passes", str(at.passes), "--out", str(path.parent)]
    meanings = "; ".join(f"{name.replace('_', ' ')}: {meaning}" for name, meaning in HOW.items())
    data = load_preset(at.preset).data if at.preset in preset_names() else at.preset
    moments = [model.measured for model in profile.models if model.measured is not None]
    return Origin(
        source=str(path),
        command=shlex.join(words),
        data=f"random readings in the shape of {data_in_words(data)}",
        protocol=f"{circumstances_in_words(at)}. {meanings}.",
        made=in_dates(moment.isoformat() for moment in moments),
        versions=in_versions([{name: at.machine[name] for name in PACKAGES if name in at.machine}]),
    )


def origin_of_truth(path: Path, cells: Sequence[Scored], command: str) -> Origin:
    """Return where scores of explanations come from."""
    first = cells[0].circumstances
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(scored.cell.seed for scored in cells))
    names = dict.fromkeys(scored.cell.dataset for scored in cells)
    protocol = protocol_in_words(first["protocol"], first["split"]["windows"]) if "protocol" in first else NOTHING
    return Origin(
        source=str(path),
        command=command,
        data=" and ".join(data_in_words(name) for name in names) + f"; made anew with seeds {seeds}",
        protocol=f"{protocol} The seed is that of the network and of the training.",
        made=in_dates(str(scored.circumstances.get("made", "")) for scored in cells),
        versions=in_versions(scored.circumstances["versions"] for scored in cells),
    )


def in_versions(found: Iterable[Mapping[str, object]]) -> str:
    """Return versions as a sentence; where results differ, all versions of a package."""
    by_package: dict[str, dict[str, None]] = {}
    for one in found:
        for package, version in one.items():
            by_package.setdefault(str(package), {})[str(version)] = None
    return ", ".join(f"{package} {' and '.join(versions)}" for package, versions in by_package.items()) or UNKNOWN


def in_dates(found: Iterable[str]) -> str:
    """Return the first and the last of some dates in ISO form, of which the day counts."""
    days = sorted({date[:10] for date in found if date})
    if not days:
        return UNKNOWN
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def joined(origins: Sequence[Origin]) -> Origin:
    """Return one origin for numbers of several; what is the same in all is said once."""
    between = {"command": "\n", "protocol": " "}
    names = [part.name for part in fields(Origin)]
    return Origin(
        **{name: between.get(name, "; ").join(dict.fromkeys(getattr(one, name) for one in origins)) for name in names}
    )
