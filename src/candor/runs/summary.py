"""What runs there are, how far each has come, and which of several is best, if they can be compared at all."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.runs.run import EVALUATION, RECORD, RunRecord, is_finished, load_record, model_checksum

_PRESENTATION = {"steps"}  # changes which rows a table shows, and no score


class RunState(StrEnum):
    """How far a run has come."""

    DAMAGED = "damaged"
    UNFINISHED = "unfinished"
    TRAINED = "trained"
    EVALUATED = "evaluated"


@dataclass(frozen=True, eq=False)
class RunSummary:
    """What is known of a run without opening its model, however far it has come."""

    folder: Path
    state: RunState
    record: RunRecord | None
    """The content of run.json; None if that is damaged."""
    evaluation: Mapping[str, Any] | None = None
    """The content of evaluation.json; None if it is not there or not of this run."""
    trouble: str = ""
    """What is wrong; empty if nothing is."""

    def score(self, name: str) -> float | None:
        """Return an overall score on the test part, in the sensors' unit; None where there is none."""
        value = (self.evaluation or {}).get("overall", {}).get(name)
        return float(value) if isinstance(value, int | float) else None


def summarise_run(folder: Path) -> RunSummary:
    """Return the summary of a run directory; of a damaged one it says what is wrong."""
    folder = Path(folder)
    try:
        record = load_record(folder)
    except InputError as error:
        if not (folder / RECORD).is_file():
            raise
        return RunSummary(folder, RunState.DAMAGED, None, trouble=error.what)
    if not is_finished(folder):
        return RunSummary(folder, RunState.UNFINISHED, record)
    if not (folder / EVALUATION).is_file():
        return RunSummary(folder, RunState.TRAINED, record)
    try:
        evaluation = read_json(folder / EVALUATION)
        evaluation["overall"] = dict(evaluation["overall"])
        of_this_run = record.model, record.protocol.model_dump(mode="json")
        is_of_this_run = (evaluation["model"], evaluation["protocol"]) == of_this_run
        # Training may have gone on since.
        is_of_this_run &= evaluation.get("model_sha256") in (None, model_checksum(folder))
    except (InputError, OSError, AttributeError, KeyError, TypeError, ValueError):
        return RunSummary(folder, RunState.TRAINED, record, trouble=f"{EVALUATION} is damaged")
    if not is_of_this_run:
        trouble = f"{EVALUATION} is that of another model: evaluate this one again"
        return RunSummary(folder, RunState.TRAINED, record, trouble=trouble)
    return RunSummary(folder, RunState.EVALUATED, record, evaluation)


def find_runs(folder: Path) -> list[Path]:
    """Return the run directories in a folder and the folders in it, by name; hidden folders are left out."""
    if not Path(folder).is_dir():
        raise InputError("there is no such folder", where=str(folder), hint="make a run first: candor train DATA")
    found = []
    for place, folders, files in os.walk(folder):
        if RECORD in files:
            found.append(Path(place))
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]  # half-written ones begin with a dot
    return sorted(found)


def compare(folders: Sequence[Path]) -> tuple[list[RunSummary], list[str]]:
    """Return the runs in these folders, and what keeps them from being ranked.

    If nothing does, the best test MAE comes first and those without scores last; else they are as they were given.
    """
    runs = [summarise_run(folder) for folder in folders]
    records = [run.record for run in runs if run.record is not None]
    found = []
    if len({record.fingerprint for record in records}) > 1:
        names = dict.fromkeys(f"{record.data} ({record.fingerprint[:8]})" for record in records)
        found.append(f"the runs are on different data: {', '.join(names)}")
    protocols = [record.protocol.model_dump(mode="json", exclude=_PRESENTATION) for record in records]
    for name in protocols[0] if protocols else ():
        values = list(dict.fromkeys(str(protocol[name]) for protocol in protocols))
        if len(values) > 1:
            found.append(f"the protocols differ in {name}: {', '.join(values)}")
    if not found:
        runs = sorted(runs, key=lambda run: (run.score("mae") is None, run.score("mae") or 0.0))
    return runs, found
