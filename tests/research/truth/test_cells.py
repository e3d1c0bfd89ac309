"""Cells: trained once, skipped when done, gone on with when killed, refused when they are others."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
import torch
from tiny import SIZES

from candor.core.errors import InputError
from candor.research import grid
from candor.research.engine import CellState, failure_of, run_cell, run_locally
from candor.research.truth import cells
from candor.research.truth.cells import TRUTH, Scored, TruthCell, cells_of, read_scored
from candor.research.truth.results import GOALS
from candor.runs.run import load_run

TINY = {
    "data.sensors": 6, "data.steps": 200, "history": 12, "horizon": 4, "epochs": 1, "epoch_windows": 16,
    "validation_windows": 4, "batch": 16,
} | SIZES  # fmt: skip


def one_cell() -> TruthCell:
    (cell,) = cells_of(["synthetic-road"], [3], TINY, None)
    return cell


def score(cell: TruthCell, out: Path) -> Scored:
    assert run_cell(cell, out) == CellState.DONE, failure_of(cell, out)
    return read_scored(cell, out)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("truth")


@pytest.fixture(scope="module")
def first(out: Path) -> Scored:
    return score(one_cell(), out)


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        home = cells if hasattr(cells, name) else grid
        monkeypatch.setattr(home, name, lambda *_, **__: pytest.fail("it was done again"))


def test_a_cell_is_a_run_with_all_that_its_scores_depend_on(out: Path, first: Scored) -> None:
    folder = out / "synthetic-road" / "seed-3"
    run = load_run(folder)
    panel, truth = one_cell().make()
    assert run.record.fingerprint == panel.fingerprint == first.circumstances["data_sha256"]
    assert run.record.seed == 3 and len(truth.delays) == len(panel.edges)
    assert {score.question for score in first.scores} == {
        "shocks", "delays", "attenuation", "twins", "accumulation", "release",
    }  # fmt: skip
    for key in ("versions", "protocol", "settings", "model_sha256", "mae", "split", "pulses", "chance_seed"):
        assert first.circumstances[key] is not None
    assert first.circumstances["settings"]["recipe"]["training"]["epochs"] == 1
    assert set(GOALS) <= {(score.question, score.measure) for score in first.scores}
    for score in first.scores:
        assert score.value is None or -1 <= score.value <= 1
    for answer in ("candor", "regression"):
        curves = [curve for curve in first.curves if curve.answer == answer]
        assert {curve.delay: curve.edges for curve in curves} == Counter(truth.delays.tolist())


def test_a_done_cell_is_left_alone(out: Path, first: Scored, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, "train_model", "resume_run", "question_candor", "load_run")
    assert score(one_cell(), out) == first


def test_outdated_scores_are_made_again_from_the_same_model(
    out: Path, first: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "train_model", "resume_run")
    path = out / one_cell().name / TRUTH
    outdated = json.loads(path.read_text()) | {"format_version": 0, "scores": []}
    path.write_text(json.dumps(outdated))
    assert score(one_cell(), out).scores == first.scores


def test_a_cell_that_was_killed_goes_on(out: Path, first: Scored, tmp_path: Path, monkeypatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("candor.training.loop.Trainer._end_epoch", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_cell(one_cell(), tmp_path)
    forbid(monkeypatch, "train_model")
    assert score(one_cell(), tmp_path).scores == first.scores


def test_another_cell_in_the_same_place_is_refused(out: Path, first: Scored) -> None:
    other = one_cell().model_copy(update={"budget_minutes": 1.0})
    with pytest.raises(InputError, match="another budget_minutes"):
        run_cell(other, out)


def test_a_network_that_is_made_differently_today_is_refused(out: Path, first: Scored, monkeypatch) -> None:
    (out / one_cell().name / TRUTH).unlink()
    maker = cells.MAKERS["synthetic-road"]
    monkeypatch.setattr(cells, "MAKERS", {"synthetic-road": lambda seed, **rest: maker(seed=seed + 1, **rest)})
    assert run_cell(one_cell(), out) == CellState.FAILED
    assert "not the one" in str(failure_of(one_cell(), out))


@pytest.mark.parametrize(
    ("datasets", "seeds", "overrides", "words"),
    [
        (["metr-la"], [0], {}, "not known"),
        (["synthetic-road", "synthetic-road"], [0], {}, "named once"),
        (["synthetic-road"], [1, 1], {}, "named once"),
        (["synthetic-road"], [-1], {}, "seed"),
        (["synthetic-road"], [0], {"data.colour": 1}, "colour"),
        (["synthetic-road"], [0], {"data.sensors": "many"}, "sensors"),
        (["synthetic-road"], [0], {"first": "2020-01-05"}, "cut the record"),
    ],
)
def test_what_cannot_be_asked_is_refused(datasets: list[str], seeds: list[int], overrides: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        cells_of(datasets, seeds, overrides, None)


def test_cells_come_seed_by_seed_and_know_whose_setting_is_whose() -> None:
    made = cells_of(["synthetic-river", "synthetic-road"], [0, 4], {"data.steps": 99, "epochs": 2}, 5.0)
    assert [cell.name for cell in made] == [
        "synthetic-river/seed-0", "synthetic-road/seed-0", "synthetic-river/seed-4", "synthetic-road/seed-4",
    ]  # fmt: skip
    assert all(cell.data.steps == 99 and cell.settings == {"epochs": 2} for cell in made)
    panel, _ = made[2].make()
    assert panel.times.length == 99 and panel.provenance["recipe"]["seed"] == 4


FEW = TINY | {"data.sensors": 4, "batch": 4}  # batches that are not cut, so that nothing is rounded otherwise


@pytest.mark.slow
def test_two_workers_score_what_this_process_does(tmp_path: Path) -> None:
    first, second = cells_of(["synthetic-road"], [1, 2], FEW, None)
    run_locally([first, second], tmp_path / "two", workers=2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = score(first, tmp_path / "one")
    finally:
        torch.set_num_threads(threads)
    both = [read_scored(cell, tmp_path / "two") for cell in (first, second)]
    assert both[0].scores == alone.scores and both[1].scores != alone.scores


@pytest.mark.slow
def test_no_worker_outlives_a_command_that_is_told_to_stop(tmp_path: Path) -> None:
    settings = [f"{key}={value}" for key, value in (FEW | {"epochs": 10_000, "data.steps": 400}).items()]
    command = [
        sys.executable,
        "-m",
        "candor",
        "truth",
        "--model",
        "candor",
        "--workers",
        "2",
        "--datasets",
        "synthetic-road",
    ]
    started = subprocess.Popen(
        [*command, "--seeds", "1,2", "--out", str(tmp_path), *settings],
        stderr=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        while len(list(tmp_path.glob("synthetic-road/seed-*/training/metrics.jsonl"))) < 2:
            assert started.poll() is None, "the command ended on its own"
            time.sleep(0.05)
        children = psutil.Process(started.pid).children(recursive=True)
        assert len(children) >= 2
        started.terminate()
        assert started.wait(timeout=60) != 0
        gone, alive = psutil.wait_procs(children, timeout=60)
        assert gone and not alive
    finally:
        started.kill()
