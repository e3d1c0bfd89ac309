"""The results in the repository can be read, and the tables beside them and in the docs are made of them."""

import re
from pathlib import Path
from statistics import mean

import pytest

from candor.render.paper.tables import as_markdown
from candor.render.paper.truth import as_markdown as truth_as_markdown
from candor.research.grid import ALL_STEPS, cells_of_results
from candor.research.paper.found import UNKNOWN, read_grid
from candor.research.tables import paper_tables_of
from candor.research.truth.results import read_truth

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in RESULTS.glob("*/results.parquet")))
def test_one_file_holds_a_grid_with_its_cells_and_the_table_beside_it_is_made_of_it(name: str) -> None:
    folder = RESULTS / name
    grid = read_grid(folder)
    assert grid is not None and grid.command() != UNKNOWN
    named = {(cell.task.label, cell.contender.name, cell.seed) for cell in cells_of_results(grid.results)}
    assert named == grid.known()
    made = as_markdown(paper_tables_of(grid.results, grid.suite))
    assert (folder / "tables.md").read_text(encoding="utf-8") == made


def test_the_table_of_truth_is_made_of_its_scores() -> None:
    made = truth_as_markdown(*read_truth(RESULTS / "truth" / "truth.json"))
    assert (RESULTS / "truth" / "truth.md").read_text(encoding="utf-8") == made


@pytest.mark.parametrize(("section", "grid"), [("KOREA4_DO, eight days ahead", "river"), ("Two small tasks", "quick")])
def test_the_docs_quote_the_mean_errors(section: str, grid: str) -> None:
    found = read_grid(RESULTS / grid)
    assert found is not None
    (text,) = [part for part in (ROOT / "docs/comparison.md").read_text().split("\n## ") if part.startswith(section)]
    overall = found.results[(found.results["step"] == ALL_STEPS) & found.results["metric"].isin(["mae", "mse"])]
    means = {f"{mean(values):.3f}" for _, values in overall.groupby(["model", "task", "metric"])["value"]}
    rows = re.findall(r"^\| [`*]*([a-z0-9-]+)[`*]*(?: \(.*?\))? \| (?:\*\*|<u>)?(\d\.\d{3})", text, flags=re.MULTILINE)
    assert {name for name, _ in rows} == set(found.models) and {error for _, error in rows} <= means
