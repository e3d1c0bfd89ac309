"""The scores of all cells as one table: mean and spread over seeds, beside goals.

Spreads are standard deviations over seeds with one degree of freedom taken off, and absent for one seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pandas as pd

from candor.core.files import atomic_file, write_json
from candor.render.figures.truth import ShownScore, draw_pulses, draw_truth
from candor.research.truth.cells import FORMAT_VERSION, Scored

NAME, PULSES = "truth", "truth-pulses"
GOALS: Mapping[tuple[str, str], float] = {
    ("shocks", "AUROC"): 0.95,
    ("delays", "rank correlation"): 0.9,
    ("twins", "precision of the first"): 0.9,
}
_IN_FIGURE = frozenset({"AUROC", "average precision", "rank correlation", "precision of the first"})


@dataclass(frozen=True)
class Row:
    """What one answer scores by one measure on one dataset.

    Args:
        dataset: its name.
        question: what was asked.
        measure: how the answer was judged.
        answer: where it comes from.
        is_ours: whether it comes from CANDOR.
        by_seed: the score of every seed; None where the truth of that seed does not allow one.
    """

    dataset: str
    question: str
    measure: str
    answer: str
    is_ours: bool
    by_seed: Mapping[int, float | None]

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
        """What CANDOR is to reach, where that is settled."""
        return GOALS.get((self.question, self.measure))

    @property
    def text(self) -> str:
        """The score as it is printed."""
        if self.mean is None:
            return "–"
        return f"{self.mean:.3f}" if self.spread is None else f"{self.mean:.3f} ± {self.spread:.3f}"


def rows_of(cells: Sequence[Scored]) -> list[Row]:
    """Returns the rows of some cells, in the order of their datasets, questions and answers."""
    datasets = list(dict.fromkeys(scored.cell.dataset for scored in cells))
    found: dict[tuple[str, str, str, str, bool], dict[int, float | None]] = {}
    for dataset in datasets:
        for scored in (scored for scored in cells if scored.cell.dataset == dataset):
            for score in scored.scores:
                key = dataset, score.question, score.measure, score.answer, score.is_ours
                found.setdefault(key, {})[scored.cell.seed] = score.value
    return [Row(*key, by_seed) for key, by_seed in found.items()]


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Returns for each goal and dataset what CANDOR reached, and the best rule beside it, in a sentence each."""
    said = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for (question, measure), goal in GOALS.items():
            asked = [row for row in rows if (row.dataset, row.question, row.measure) == (dataset, question, measure)]
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


def write_results(cells: Sequence[Scored], folder: Path, command: str) -> list[Path]:
    """Writes the table as JSON, Markdown and CSV and the figures, each all or nothing, and returns the files.

    Args:
        cells: that are done.
        folder: where to.
        command: that made them.
    """
    rows = rows_of(cells)
    content = {
        "format_version": FORMAT_VERSION,
        "command": command,
        "rows": [_plain(row) for row in rows],
        "verdicts": verdicts(rows),
        "cells": [
            {
                "cell": scored.cell.model_dump(mode="json"),
                "curves": [asdict(curve) for curve in scored.findings.curves],
                "circumstances": dict(scored.circumstances),
            }
            for scored in cells
        ],
    }
    write_json(folder / f"{NAME}.json", content)
    with atomic_file(folder / f"{NAME}.md") as temporary:
        temporary.write_text(as_markdown(rows, cells, command), encoding="utf-8")
    shown = [
        ShownScore(
            row.dataset, f"{row.question}: {row.measure}", row.answer, row.is_ours, row.mean, row.spread, row.goal
        )
        for row in rows
        if row.measure in _IN_FIGURE
    ]
    seeds = len({scored.cell.seed for scored in cells})
    note = f"Held-out test part, mean over {seeds} seed{'s' if seeds > 1 else ''}; bars: standard deviation over seeds."
    drawing = draw_truth(shown, _frame(rows), note)
    files = [folder / f"{NAME}.json", folder / f"{NAME}.md", *drawing.write(folder, NAME)]
    return files + draw_pulses(_curves(cells)).write(folder, PULSES)


def as_markdown(rows: Sequence[Row], cells: Sequence[Scored], command: str) -> str:
    """Returns the table with a column per dataset, what became of the goals, and what it was made with."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    by_place: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        by_place.setdefault((row.question, row.measure, row.answer), {})[row.dataset] = row
    lines = [
        "# Are the explanations true?", "", f"    {command}", "",
        f"| question | measure | goal | answer | {' | '.join(datasets)} |", "|---" * (4 + len(datasets)) + "|",
    ]  # fmt: skip
    for (question, measure, answer), by_dataset in by_place.items():
        first = next(iter(by_dataset.values()))
        goal = f"{first.goal:g}" if first.is_ours and first.goal is not None else ""
        name = f"**{answer}**" if first.is_ours else answer
        texts = (by_dataset[dataset].text if dataset in by_dataset else "–" for dataset in datasets)
        lines.append(f"| {question} | {measure} | {goal} | {name} | {' | '.join(texts)} |")
    lines += ["", "Bold: CANDOR. Mean ± standard deviation over seeds; held-out test part.", ""]
    lines += [f"- {verdict}" for verdict in verdicts(rows)]
    return "\n".join([*lines, "", "## Made with", "", *_made_with(cells), ""])


def _made_with(cells: Sequence[Scored]) -> list[str]:
    lines = []
    for scored in cells:
        told = scored.circumstances
        lines.append(
            f"- {scored.cell.name}: {told['epochs']} epochs in {told['train_seconds'] / 60:.1f} minutes, "
            f"mean absolute error {told['mae']:.4g} {told['unit']}, data {told['data_sha256'][:12]}, "
            f"model {told['model_sha256'][:12]}, {told['made'][:10]}"
        )
    together = dict(cells[0].circumstances["versions"])
    return [*lines, f"- {', '.join(f'{name} {version}' for name, version in together.items())}"]


def _plain(row: Row) -> dict[str, Any]:
    return {
        "dataset": row.dataset,
        "question": row.question,
        "measure": row.measure,
        "answer": row.answer,
        "is_ours": row.is_ours,
        "goal": row.goal,
        "mean": row.mean,
        "spread": row.spread,
        "by_seed": {str(seed): value for seed, value in row.by_seed.items()},
    }


def _curves(cells: Sequence[Scored]) -> pd.DataFrame:
    """Returns the responses to pulses, a row per dataset, seed, answer, delay and lag."""
    return pd.DataFrame(
        [
            {
                "dataset": scored.cell.dataset, "seed": scored.cell.seed, "answer": curve.answer,
                "delay": curve.delay, "edges": curve.edges, "lag": lag, "response": response,
            }
            for scored in cells
            for curve in scored.findings.curves
            for lag, response in enumerate(curve.response, 1)
        ],
        columns=["dataset", "seed", "answer", "delay", "edges", "lag", "response"],
    )  # fmt: skip


def _frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Returns the table for a CSV file, a column per seed."""
    plain = [_plain(row) for row in rows]
    return pd.DataFrame(
        [
            {key: value for key, value in row.items() if key != "by_seed"}
            | {f"seed_{seed}": value for seed, value in row["by_seed"].items()}
            for row in plain
        ]
    )
