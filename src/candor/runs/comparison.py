"""Which of several runs is best, if they can be compared at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from candor.runs.run import RunSummary, summarise_run

_PRESENTATION = {"steps"}  # changes which rows a table shows, and no score


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs beside each other.

    Args:
        runs: the best test MAE first and those without scores last, if ranked; else as they were given.
        differences: in plain words, what keeps them from being ranked; empty if nothing does.
    """

    runs: list[RunSummary]
    differences: list[str]

    @property
    def is_ranked(self) -> bool:
        """Whether the runs are in order of their test MAE."""
        return not self.differences


def compare(folders: Sequence[Path]) -> Comparison:
    """Returns the runs in these folders, ranked if all of them have the same data and the same protocol."""
    runs = [summarise_run(folder) for folder in folders]
    differences = _differences(runs)
    if not differences:
        runs = sorted(runs, key=lambda run: (run.score("mae") is None, run.score("mae") or 0.0))
    return Comparison(runs, differences)


def _differences(runs: Sequence[RunSummary]) -> list[str]:
    """Returns what differs between the tasks of the runs; damaged ones are not asked."""
    records = [run.record for run in runs if run.record is not None]
    found = []
    if len({record.fingerprint for record in records}) > 1:
        names = dict.fromkeys(f"{record.data} ({record.fingerprint[:8]})" for record in records)
        found.append(f"the runs are on different data: {', '.join(names)}")
    protocols: list[dict[str, Any]] = [
        record.protocol.model_dump(mode="json", exclude=_PRESENTATION) for record in records
    ]
    for name in protocols[0] if protocols else ():
        values = list(dict.fromkeys(str(protocol[name]) for protocol in protocols))
        if len(values) > 1:
            found.append(f"the protocols differ in {name}: {', '.join(values)}")
    return found
