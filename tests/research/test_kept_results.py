"""Tables that are kept beside scores are what the code makes of these scores."""

from pathlib import Path

import pandas as pd
import pytest

from candor.forecasting import forecasters
from candor.render.figures.benchmark import draw_ablations, draw_setting, split_changes
from candor.render.paper.truth import read_truth
from candor.research.tables import paper_tables_of
from candor.research.ablations import paired_changes
from candor.research.results import cells_in, collect
from candor.research.suites import load_suite, suite_names
from candor.research.truth.results import as_markdown as as_truth
from candor.research.truth.results import rows_of
from candor.research.ablations import FULL
from candor.render.paper.tables import as_markdown

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
GRIDS = [path.parent for path in sorted(RESULTS.glob("*/results.parquet")) if path.parent.name in suite_names()]
CELLED = sorted({path.parents[3] for path in RESULTS.glob("*/*/*/seed-*/scores.json")})
VARIED = [grid for kind in ("ablations", "interventions", "sweep") for grid in sorted(RESULTS.glob(f"{kind}-*"))]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
def test_kept_tables_are_those_of_the_kept_scores(grid: Path) -> None:
    results, suite = pd.read_parquet(grid / "results.parquet"), load_suite(grid.name)
    for name, is_whole in (("tables.md", False), ("tables-all.md", True)):
        made = as_markdown(paper_tables_of(results, suite, is_whole=is_whole))
        assert (grid / name).read_text(encoding="utf-8") == made, name


def test_no_cell_of_the_quick_suite_failed() -> None:
    results = pd.read_parquet(RESULTS / "quick" / "results.parquet")
    cells = results.drop_duplicates(["task", "model", "seed"])
    tasks = {task.label for task in load_suite("quick").tasks}
    assert set(cells["task"]) == tasks and results["value"].notna().all()
    assert set(cells["model"]) <= set(forecasters.names())  # one that came later is not in it
    assert len(cells) == len(tasks) * cells["model"].nunique() * cells["seed"].nunique()


@pytest.mark.parametrize("grid", CELLED, ids=lambda grid: grid.name)
def test_kept_scores_are_those_of_the_kept_cells(grid: Path) -> None:
    results = pd.read_parquet(grid / "results.parquet")
    again = collect(cells_in(grid), grid)
    keys = ["task", "model", "seed", "step", "metric"]
    assert len(again) == len(results) and not results.duplicated(keys).any()
    pd.testing.assert_frame_equal(
        again.sort_values(keys, ignore_index=True), results.sort_values(keys, ignore_index=True)
    )


@pytest.mark.parametrize("grid", VARIED, ids=lambda grid: grid.name)
def test_kept_figures_of_variants_show_the_kept_scores(grid: Path) -> None:
    results = pd.read_parquet(grid / "results.parquet")
    (task,) = results["task"].unique()
    if grid.name.startswith("sweep-"):
        setting = grid.name.removeprefix(f"sweep-{task}-")
        drawn = {f"sweep-{setting}": draw_setting(results, setting, task)}
    else:
        changes = split_changes(paired_changes(results, FULL))
        drawn = {name: draw_ablations(some, task) for name, some in changes.items()}
    assert drawn
    for name, drawing in drawn.items():
        words = drawing.table.columns[0]  # variants, or values of a setting as they were written
        kept = pd.read_csv(grid / f"{name}.csv", dtype={words: str})
        pd.testing.assert_frame_equal(drawing.table, kept, check_dtype=False)


def test_the_kept_table_of_truth_is_that_of_its_scores_and_the_page_quotes_it() -> None:
    cells, command = read_truth(RESULTS / "truth" / "truth.json")
    text = (RESULTS / "truth" / "truth.md").read_text(encoding="utf-8")
    assert text == as_truth(rows_of(cells), cells, command)
    page = (RESULTS.parents[1] / "docs" / "truth.md").read_text(encoding="utf-8")
    quoted = [line for line in page.split("## What was found")[1].splitlines() if line.startswith("|")]
    assert len(quoted) > 20 and set(quoted) <= set(text.splitlines())
