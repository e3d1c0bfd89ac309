"""`candor paper` on a grid of simple models: what it shows, where it goes, and what is refused."""

import json
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
import typer
from pictures import without_paint

from candor.cli.app import app
from candor.render.paper import paper as paper_module
from candor.research.engine import run_cell
from candor.research.grid import cells_of, collect, save_results
from candor.research.paper.found import find_results
from candor.research.paper.missing import find_missing
from candor.research.suites import load_suite


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `candor benchmark quick --models last-value,linear --seeds 0,1` leaves when half of its tasks are done."""
    folder = tmp_path_factory.mktemp("made") / "benchmark-quick"
    suite = load_suite("quick").chosen(["last-value", "linear"], [0, 1], None)
    cells = [cell for cell in cells_of(suite) if cell.task.preset == "klamath-daily"]
    for cell in cells:
        run_cell(cell, folder)
    save_results(collect(cells, folder), folder / "results.parquet")
    return folder


@pytest.fixture
def grid(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "runs" / "benchmark-quick")


def test_a_grid_becomes_tables_and_a_page(candor, grid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_module, "make_schematics", lambda *_: [])
    with without_paint(but=("explore.svg",)):
        shown = candor("paper")
    assert shown.code == 0, shown.err
    assert "paper/index.html" in shown.out and "Models beside each other" in shown.out
    found = pd.read_parquet(grid / "results.parquet")
    chosen = found[(found["step"] == 0) & (found["metric"] == "rmse")].groupby("model")["value"]
    page, table = Path("paper/index.html").read_text(), Path("paper/benchmark-quick/tables.md").read_text()
    for model, values in chosen:
        told = f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"
        assert told in page and told in table, model
    command = "candor benchmark quick --models last-value,linear --tasks klamath-daily --seeds 0,1 --budget-minutes 0.5"
    assert f"{command} --out runs/benchmark-quick" in page
    for words in ("924 windows", "Klamath River, dissolved oxygen", found["data_sha256"].iloc[0][:12], "torch 2.13"):
        assert words in page
    assert Path("paper/data-klamath-daily/explore.svg").stat().st_size > 1000  # the data come with candor
    assert "no results of" in page and "candor benchmark quick --budget-minutes 0.5" in page


def test_every_command_that_is_proposed_is_understood(grid: Path) -> None:
    found = find_results([grid.parent])
    proposed = [one.command for one in find_missing(found)] + [one.command() for one in found.grids]
    assert len(proposed) > 20
    for command in proposed:
        here, (_, *words) = typer.main.get_command(app), shlex.split(command)
        while words and words[0] in getattr(here, "commands", {}):
            here = here.commands[words.pop(0)]
        with here.make_context("candor", words) as context:
            assert not hasattr(here, "commands") and not context.args, command


@pytest.mark.usefixtures("no_pictures")
def test_what_cannot_be_read_is_told_and_the_rest_is_made(candor) -> None:
    Path("runs/broken").mkdir(parents=True)
    Path("runs/broken/results.parquet").write_bytes(b"nothing")
    Path("runs/truth.json").write_text('{"format_version": 0}')
    shown = candor("paper", "--out", "all", "--json")
    assert shown.code == 1
    told = " ".join(shown.err.split())
    assert "runs/broken/results.parquet: this is not a table of results" in told and "runs/truth.json" in told
    content = json.loads(shown.out)
    assert content == json.loads(Path("all/paper.json").read_text())
    assert [entry["figures"] for entry in content["entries"]] == [["method/overview", "method/decomposition"]]
    assert {"what", "command"} == set(content["missing"][0])


def test_wrong_places_are_refused_in_plain_words(candor) -> None:
    assert candor("paper", "nowhere").code == 2
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    refused = candor("paper", "--out", "full")
    assert refused.code == 2 and "holds other things" in " ".join(refused.err.split())
    assert [path.name for path in Path("full").iterdir()] == ["mine.txt"]
