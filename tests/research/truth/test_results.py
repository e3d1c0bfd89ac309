"""Scores of several seeds become one table, written as JSON, Markdown, CSV and a figure that agree."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pictures import without_paint

from candor.render.figures.truth import draw_truth
from candor.render.paper.truth import as_markdown, write_truth
from candor.research.truth.cells import Scored, TruthCell, read_curves
from candor.research.truth.pulses import Curve
from candor.research.truth.results import Row, rows_of, verdicts
from candor.research.truth.scores import Score

COMMAND = "candor truth --seeds 0,1"
CIRCUMSTANCES: dict[str, Any] = {
    "epochs": 3, "train_seconds": 90.0, "mae": 0.5, "unit": "mg/L", "data_sha256": "d" * 64, "model_sha256": "m" * 64,
    "made": "2026-01-02T03:04:05+00:00", "versions": {"python": "3.11", "torch": "2.13.0"},
}  # fmt: skip


def scored(dataset: str, seed: int, **values: float | None) -> Scored:
    answers = {"gates": True, "rule": False, "chance": False}
    scores = [Score("shocks", "AUROC", name, answers[name], value) for name, value in values.items()]
    curves = (Curve("candor", True, 1, 3, (0.4, 0.2)), Curve("regression", False, 1, 3, (0.1 * seed, 0.0)))
    return Scored(TruthCell(dataset=dataset, seed=seed), tuple(scores), curves, CIRCUMSTANCES)


CELLS = [
    scored("synthetic-river", 0, gates=0.96, rule=0.7, chance=0.5),
    scored("synthetic-road", 0, gates=0.6, rule=0.8, chance=None),
    scored("synthetic-river", 1, gates=0.98, rule=0.9, chance=0.52),
    scored("synthetic-road", 1, gates=0.7, rule=0.9, chance=None),
]


def row_of(dataset: str, answer: str) -> Row:
    return next(row for row in rows_of(CELLS) if (row.dataset, row.answer) == (dataset, answer))


def test_rows_hold_mean_and_spread_over_seeds() -> None:
    row = row_of("synthetic-river", "rule")
    assert row.mean == pytest.approx(0.8) and row.spread == pytest.approx(np.std([0.7, 0.9], ddof=1))
    assert row.text == "0.800 ± 0.141"
    assert row_of("synthetic-road", "chance").text == "–"
    alone = rows_of(CELLS[:1])[0]
    assert alone.spread is None and alone.text == "0.960"


def test_the_order_of_cells_changes_no_number() -> None:
    turned = {(row.dataset, row.answer): row.mean for row in rows_of(CELLS[::-1])}
    assert turned == {(row.dataset, row.answer): row.mean for row in rows_of(CELLS)}


def test_verdicts_name_what_was_reached_and_the_best_rule() -> None:
    river, road = verdicts(rows_of(CELLS))
    assert "gates 0.970 ± 0.014; goal 0.95 reached by gates; best rule: rule 0.800" in river
    assert "gates 0.650 ± 0.071; goal 0.95 not reached; best rule: rule 0.850" in road


def test_a_goal_is_reached_by_any_answer_of_ours_and_by_no_rule() -> None:
    answers = {"gates": (True, 0.9), "size": (True, 0.96), "rule": (False, 0.99)}
    scores = [Score("shocks", "AUROC", name, is_ours, value) for name, (is_ours, value) in answers.items()]
    (said,) = verdicts(
        rows_of([Scored(TruthCell(dataset="synthetic-river", seed=0), tuple(scores), (), CIRCUMSTANCES)])
    )
    assert "gates 0.900, size 0.960; goal 0.95 reached by size; best rule: rule 0.990" in said


def test_all_files_tell_the_same(tmp_path: Path) -> None:
    with without_paint(but=("truth.png",)):
        files = write_truth(CELLS, tmp_path, COMMAND)
    assert [file.name for file in files] == [
        "truth.json", "truth.md", "truth.png", "truth.svg", "truth.csv",
        "truth-pulses.png", "truth-pulses.svg", "truth-pulses.csv",
    ]  # fmt: skip
    content = json.loads((tmp_path / "truth.json").read_text())
    table = pd.read_csv(tmp_path / "truth.csv")
    assert content["command"] == COMMAND and len(content["cells"]) == 4
    assert content["cells"][0]["circumstances"] == CIRCUMSTANCES
    assert [read_curves(cell["curves"]) for cell in content["cells"]] == [one.curves for one in CELLS]
    pulses = pd.read_csv(tmp_path / "truth-pulses.csv").set_index(["dataset", "seed", "answer", "lag"])["response"]
    assert pulses["synthetic-road", 1, "regression", 1] == 0.1 and len(pulses) == 4 * 2 * 2
    means = [np.nan if row["mean"] is None else row["mean"] for row in content["rows"]]
    assert table["mean"].tolist() == pytest.approx(means, nan_ok=True)
    assert table["seed_1"].tolist()[:2] == [0.98, 0.9]
    text = (tmp_path / "truth.md").read_text()
    assert "| shocks | AUROC | 0.95 | **gates** | 0.970 ± 0.014 | 0.650 ± 0.071 |" in text
    assert "| shocks | AUROC |  | rule | 0.800 ± 0.141 | 0.850 ± 0.071 |" in text
    assert COMMAND in text and "torch 2.13.0" in text and "1.5 minutes" in text
    assert (tmp_path / "truth.png").stat().st_size > 5_000


def test_every_row_of_the_table_has_as_many_cells_as_its_head() -> None:
    lines = [line for line in as_markdown(CELLS, COMMAND).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 3 and len({line.count("|") for line in lines}) == 1


def test_the_figure_has_a_panel_per_dataset_and_a_point_per_score() -> None:
    rows = [
        Row("river", "shocks", "AUROC", "gates", True, {0: 0.9, 1: 0.8}),
        Row("river", "shocks", "AUROC", "rule", False, {0: 0.7}),
        Row("river", "twins", "precision of the first", "relations", True, {0: None}),
        Row("river", "delays", "found exactly", "peak", True, {0: 1.0}),
        Row("road", "shocks", "AUROC", "gates", True, {0: 0.4}),
    ]
    drawing = draw_truth(rows)
    river, road = drawing.figure.axes
    assert (len(river.containers), len(road.containers)) == (2, 1)  # what has no score has no point
    names = [label.get_text() for label in river.get_yticklabels()]
    assert names.index("gates") < names.index("rule") < names.index("relations") and "peak" not in names
    assert len(drawing.table) == len(rows)
