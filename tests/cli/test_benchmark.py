"""`candor benchmark` as somebody types it: what is chosen, skipped, refused, shown, and what a kill leaves behind."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from candor.core.files import locked_folder
from candor.data.catalog.registry import Dataset
from candor.research.engine import CellState
from candor.research.grid import cells_of
from candor.research.paper.found import read_grid
from candor.research.suites import load_suite


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--budget-minutes", "0"), "0 minutes"),
        (("--budget-minutes", "-1"), "-1 minutes"),
        (("--models", ","), "no model is named"),
        (("--tasks", "metr-la"), "its tasks: klamath-daily, synthetic-river"),
        (("--seeds", "-1"), "are not seeds"),
        (("--seeds", f"0,{5000 * '9'}"), "are not seeds"),
        (("epochs",), "'epochs' is not a setting"),
    ],
)
def test_wrong_choices_are_refused_in_plain_words(candor, arguments: tuple[str, ...], words: str) -> None:
    outcome = candor("benchmark", "quick", *arguments)
    assert outcome.code == 2 and words in outcome.err and "Traceback" not in outcome.err
    assert not Path("runs").exists()


def test_a_suite_without_its_data_is_refused(candor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path))
    outcome = candor("benchmark", "traffic", "--models", "candor-small,stid")
    assert outcome.code == 2 and "not on this machine: metr-la, pems-bay" in outcome.err


def test_a_suite_is_run_once_and_its_cells_are_ordinary_runs(candor, in_this_process: None) -> None:
    words = ("benchmark", "quick", "--models", "linear", "--seeds", "0", "--out", "grid")
    first = candor(*words)
    assert first.code == 0, first.err
    assert "2 cells, 0 of them done" in " ".join(first.err.split()) and "klamath-daily, all steps" in first.out
    grid = Path("grid")
    assert {file.name for file in grid.glob("tables*")} == {
        f"{name}.{ending}" for name in ("tables", "tables-all") for ending in ("md", "tex", "html")
    }
    written = {file: file.stat().st_mtime_ns for file in grid.rglob("seed-0/**/*") if file.is_file()}
    again = candor(*words, "--json")
    assert again.code == 0 and "2 cells, 2 of them done" in " ".join(again.err.split())
    assert {file: file.stat().st_mtime_ns for file in grid.rglob("seed-0/**/*") if file.is_file()} == written
    told = json.loads(again.out)
    assert (told["cells"], told["failed"], told["left_out"]) == (2, {}, [])
    results = pd.read_parquet(grid / "results.parquet").query("metric == 'mae' and step == 0")
    (expected,) = results[results["task"] == "klamath-daily"]["value"]
    judged = candor("evaluate", "grid/klamath-daily/linear/seed-0", "--json")
    assert judged.code == 0 and json.loads(judged.out)["overall"]["mae"] == pytest.approx(expected)


def test_a_part_of_a_grid_is_added_to_what_is_done_in_its_folder(candor, in_this_process: None) -> None:
    def work(*arguments: str) -> tuple[set[tuple[str, int]], str, str]:
        outcome = candor("benchmark", "quick", "--tasks", "klamath-daily", "--out", "grid", *arguments)
        assert outcome.code == 0, outcome.err
        results = pd.read_parquet("grid/results.parquet")
        return set(zip(results["model"], results["seed"], strict=True)), outcome.out, " ".join(outcome.err.split())

    work("--models", "last-value,linear", "--seeds", "0")
    found, shown, _ = work("--models", "linear", "--seeds", "0,1")
    both = {("last-value", 0), ("linear", 0), ("linear", 1)}
    assert found == both and "linear" in shown and "last-value" not in shown
    assert "| last-value |" in Path("grid/tables-all.md").read_text()
    # Under other terms it is another grid: neither is mixed with the other, and nothing of either is lost.
    apart = ("--models", "seasonal-naive", "--seeds", "0", "--budget-minutes", "3")
    found, _, said = work(*apart)
    assert found == {("seasonal-naive", 0)} and "in grid are not in the tables: last-value, linear" in said
    found, _, said = work("--models", "linear", "--seeds", "1")
    assert found == both and "in grid are not in the tables: seasonal-naive" in said


def test_another_copy_of_a_dataset_is_told_once_when_a_cell_has_read_it(
    candor, in_this_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("benchmark", "quick", "--tasks", "klamath-daily", "--out", "grid", "--models")
    assert "warning" not in candor(*words, "last-value", "--seeds", "0").err
    monkeypatch.setattr(Dataset, "is_another", lambda *_: True)
    told = " ".join(candor(*words, "last-value,linear", "--seeds", "0,1").err.split())
    assert told.count("warning: these data are not those that the catalogue knows") == 1 and ": klamath-daily;" in told


def test_a_cell_that_another_process_works_on_is_told_and_has_not_failed(candor, in_this_process: None) -> None:
    busy = Path("grid/klamath-daily/linear/seed-0")
    busy.mkdir(parents=True)
    with locked_folder(busy):
        outcome = candor(
            "benchmark", "quick", "--models", "last-value,linear", "--tasks", "klamath-daily", "--out", "grid"
        )
    assert outcome.code == 0 and "unfinished klamath-daily/linear/seed-0: another process" in " ".join(
        outcome.err.split()
    )
    assert not list(busy.iterdir()) and set(pd.read_parquet("grid/results.parquet")["model"]) == {"last-value"}


def test_the_command_that_the_paper_proposes_for_a_grid_is_accepted(candor) -> None:
    """Here cells have processes of their own, as outside of tests."""
    chosen = ("--models", "last-value", "--tasks", "klamath-daily", "--seeds", "0")
    assert candor("benchmark", "quick", *chosen, "--out", "grid").code == 0
    (cell,) = cells_of(load_suite("quick").chosen(["last-value"], [0], tasks=["klamath-daily"]))
    grid = read_grid(Path("grid"), [cell])
    assert grid is not None
    program, *arguments = shlex.split(grid.command())
    outcome = candor(*arguments)
    assert program == "candor" and outcome.code == 0, outcome.err


@pytest.mark.slow
def test_a_failure_is_told_letter_by_letter_and_stops_nothing(candor) -> None:
    outcome = candor("benchmark", "quick", "[/wings]=2", "--models", "stid,last-value", "--tasks", "klamath-daily")
    assert outcome.code == 1 and "Traceback" not in outcome.err
    told = "".join(outcome.err.split())
    assert "failedklamath-daily/stid/seed-0:" in told and "[/wings]" in told
    assert "last-value" in outcome.out and "stid" not in outcome.out


@pytest.mark.slow
def test_a_grid_that_is_terminated_stops_its_workers_and_their_cells_can_go_on(tmp_path: Path) -> None:
    grid, cell = tmp_path / "grid", "klamath-daily/stid/seed-0"
    words = ["benchmark", "quick", "epochs=100000", "milestones=[]", "--models", "stid", "--tasks", "klamath-daily"]
    process = subprocess.Popen(
        [sys.executable, "-m", "candor", *words, "--budget-minutes", "60", "--out", str(grid)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        while not (grid / cell / "training" / "metrics.jsonl").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert any("spawn_main" in " ".join(worker.cmdline()) for worker in workers)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 130
        assert "saving and stopping" in process.stderr.read()
        gone, alive = psutil.wait_procs(workers, timeout=10)
        assert len(gone) == len(workers) and not alive
    finally:
        process.kill()
        process.communicate()
    settings = {"epochs": 100_000, "milestones": []}
    (left,) = cells_of(load_suite("quick").chosen(["stid"], [0], 60.0, tasks=["klamath-daily"], settings=settings))
    assert left.name == cell and left.state(grid) == CellState.BEGUN
    assert (grid / cell / "training" / "last.safetensors").is_file()
