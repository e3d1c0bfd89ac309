"""The scores of all cells as one table, plain data: mean and spread over seeds, beside goals.

Spreads are standard deviations over seeds with one degree of freedom taken off, and absent for one seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pandas as pd

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.core.settings import parse_settings
from candor.research.tables import mean_and_spread
from candor.research.truth.cells import FORMAT_VERSION, Scored, TruthCell, read_curves
from candor.research.truth.scores import Score

GOALS: Mapping[tuple[str, str], float] = {
    ("shocks", "AUROC"): 0.95,
    ("delays", "rank correlation"): 0.9,
    ("twins", "precision of the first"): 0.9,
}
_OF_ACCOUNT = {
    **GOALS,
    ("delays", "found exactly"): 0.8,
    ("attenuation", "in order where edges join"): 0.8,
    ("storage", "correlation"): 0.85,
    ("arrivals", "correlation"): 0.85,
}
# Three times what the best rule knew when the goals were set.
_OF_ACCOUNT_ON: Mapping[str, Mapping[tuple[str, str], float]] = {
    "synthetic-river": {("accumulation", "rank correlation"): 0.288, ("release", "rank correlation"): 0.477},
    "synthetic-road": {
        ("shocks", "AUROC"): 0.99,
        ("accumulation", "rank correlation"): 0.219,
        ("release", "rank correlation"): 0.342,
    },
}
OURS: Mapping[str, str] = {"candor": "CANDOR", "account": "the account"}
"""What the models are called whose answers are scored."""


def goals_of(model: str, dataset: str) -> Mapping[tuple[str, str], float]:
    """Return the goals of a model on a dataset, by question and measure."""
    return GOALS if model == "candor" else {**_OF_ACCOUNT, **_OF_ACCOUNT_ON.get(dataset, {})}


@dataclass(frozen=True)
class Row:
    """What one answer scores by one measure on one dataset, by seed; None where the truth of a seed allows no score."""

    dataset: str
    question: str
    measure: str
    answer: str
    is_ours: bool
    by_seed: Mapping[int, float | None]
    model: str = "candor"  # whose answers are ours

    @property
    def known(self) -> list[float]:
        """The scores that exist."""
        return [value for value in self.by_seed.values() if value is not None]

    @property
    def mean(self) -> float | None:
        """Mean over seeds."""
        return mean(self.known) if self.known else None

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds."""
        return stdev(self.known) if len(self.known) > 1 else None

    @property
    def goal(self) -> float | None:
        """What our model is to reach, where that is settled."""
        return goals_of(self.model, self.dataset).get((self.question, self.measure))

    def content(self) -> dict[str, Any]:
        """Return everything as content of a JSON file."""
        return {
            "dataset": self.dataset, "question": self.question, "measure": self.measure, "answer": self.answer,
            "is_ours": self.is_ours, "goal": self.goal, "mean": self.mean, "spread": self.spread,
            "by_seed": {str(seed): value for seed, value in self.by_seed.items()},
        }  # fmt: skip

    @property
    def text(self) -> str:
        """The score as it is printed."""
        return mean_and_spread(self.known, 3)


def rows_of(cells: Sequence[Scored]) -> list[Row]:
    """Return the rows of some cells, in the order of their datasets, questions and answers."""
    datasets = list(dict.fromkeys(scored.cell.dataset for scored in cells))
    found: dict[tuple[str, str, str, str, bool, str], dict[int, float | None]] = {}
    for scored in sorted(cells, key=lambda scored: datasets.index(scored.cell.dataset)):
        for score in scored.scores:
            key = scored.cell.dataset, score.question, score.measure, score.answer, score.is_ours, scored.cell.model
            found.setdefault(key, {})[scored.cell.seed] = score.value
    return [Row(*key[:5], by_seed, key[5]) for key, by_seed in found.items()]


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Return for each goal and dataset what our model reached, and the best rule beside it, in a sentence each."""
    said = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        of_dataset = [row for row in rows if row.dataset == dataset]
        for (question, measure), goal in goals_of(of_dataset[0].model, dataset).items():
            asked = [row for row in of_dataset if (row.question, row.measure) == (question, measure)]
            ours = [row for row in asked if row.is_ours and row.mean is not None]
            if not ours:
                continue
            reached = [row.answer for row in ours if row.mean is not None and row.mean >= goal]
            outcome = f"reached by {' and '.join(reached)}" if reached else "not reached"
            rivals = [row for row in asked if not row.is_ours and row.mean is not None]
            best = max(rivals, key=lambda row: row.mean or 0.0)
            said.append(
                f"{dataset}, {question}, {measure}: {', '.join(f'{row.answer} {row.text}' for row in ours)}; "
                f"goal {goal:g} {outcome}; best rule: {best.answer} {best.text}"
            )
    return said


def content_of(cells: Sequence[Scored], command: str) -> dict[str, Any]:
    """Return all results as content of a JSON file, with the command that made them."""
    rows = rows_of(cells)
    return {
        "format_version": FORMAT_VERSION,
        "command": command,
        "rows": [row.content() for row in rows],
        "verdicts": verdicts(rows),
        "cells": [
            {
                "cell": scored.cell.content(),
                "curves": [asdict(curve) for curve in scored.curves],
                "circumstances": dict(scored.circumstances),
            }
            for scored in cells
        ],
    }


def read_truth(path: Path) -> tuple[list[Scored], str]:
    """Return the cells that `candor truth` scored, from the file with the content of all, and the command."""
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"these are not results of `candor truth` in format {FORMAT_VERSION}",
            where=str(path),
            hint="run the command again; cells that are done are not trained again",
        )
    cells = []
    for described in content["cells"]:
        cell = parse_settings(TruthCell, described["cell"], str(path))
        seed = str(cell.seed)
        scores = tuple(
            Score(row["question"], row["measure"], row["answer"], row["is_ours"], row["by_seed"][seed])
            for row in content["rows"]
            if row["dataset"] == cell.dataset and seed in row["by_seed"]
        )
        cells.append(Scored(cell, scores, read_curves(described["curves"]), described["circumstances"]))
    if not cells:
        raise InputError("there are no cells in these results", where=str(path))
    return cells, str(content["command"])


def score_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the table for a CSV file, a column per seed."""
    contents = [row.content() | {f"seed_{seed}": value for seed, value in row.by_seed.items()} for row in rows]
    return pd.DataFrame(contents).drop(columns="by_seed", errors="ignore")


def curve_frame(cells: Sequence[Scored]) -> pd.DataFrame:
    """Return the responses to pulses, a row per dataset, seed, answer, delay and lag."""
    columns = ("dataset", "seed", "answer", "delay", "edges", "lag", "response")
    rows = [
        (scored.cell.dataset, scored.cell.seed, curve.answer, curve.delay, curve.edges, lag, response)
        for scored in cells
        for curve in scored.curves
        for lag, response in enumerate(curve.response, 1)
    ]
    return pd.DataFrame(rows, columns=columns)
