"""The engine: done cells are skipped, killed ones go on, failed ones stop nothing, on processes and on a cluster."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import psutil
import pytest
import torch
from safetensors.numpy import load_file

import candor.research.engine
import candor.research.grid
from candor.core.errors import InputError
from candor.core.files import locked_folder, read_json, write_json
from candor.research.engine import (
    CELL,
    FAILURE,
    SCORES,
    STATUS,
    CellState,
    failure_of,
    run_cell,
    run_locally,
    status_of,
    usable_cores,
    write_loss,
)
from candor.research.grid import GridCell, cells_of, cells_of_results, collect, parse_cell, write_scores
from candor.research.suites import Contender, Suite
from candor.runs.fit import BusyError
from candor.runs.run import TRAINING, load_record
from candor.runs.summary import RunState
from candor.training.checkpoint import Checkpoint

FEW = {"epochs": 3, "width": 4, "layers": 1, "batch": 256}


def suite(*contenders: object, **changes: object) -> Suite:
    models = contenders or ("last-value", {"name": "stid", "model": "stid", "settings": FEW})
    content = {"name": "made-up", "title": "", "tasks": [{"preset": "klamath-daily"}], "models": models, "seeds": [0]}
    return Suite(**content | changes)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[GridCell], Path]:
    """Three cells and their folder: the first cannot be done while another process works on the last.

    The processes are forked here, for what they need is loaded already.
    """
    grid = tmp_path_factory.mktemp("grid")
    odd = {"name": "odd", "model": "stid", "settings": {"wings": 2}}
    cells = cells_of(suite(odd, "last-value", {"name": "stid", "model": "stid", "settings": FEW}))
    run_cell(cells[1], grid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candor.research.engine, "_prepare", prepare_fork)
        run_locally([cells[0], cells[2]], grid, workers=2)
    return cells, grid


def prepare_fork(cell: Any, grid: Path) -> BaseProcess:
    def work() -> None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # as when PyTorch is loaded
        candor.research.engine._work(cell, grid)

    return get_context("fork").Process(target=work)


def test_a_cell_is_handed_to_a_process_that_begins_with_nothing(tmp_path: Path) -> None:
    (cell,) = cells_of(suite("last-value"))
    process = candor.research.engine._prepare(cell, tmp_path)
    assert isinstance(process, SpawnProcess) and not process.daemon
    assert pickle.loads(pickle.dumps((process._target, process._args))) == (process._target, (cell, tmp_path))  # noqa: S301


def test_a_failed_cell_says_why_and_stops_no_other(worked: tuple[list[GridCell], Path]) -> None:
    cells, grid = worked
    assert [cell.state(grid) for cell in cells] == [CellState.FAILED, CellState.DONE, CellState.DONE]
    assert "wings" in str(failure_of(cells[0], grid))


def test_cells_are_done_once_and_then_left_alone(worked: tuple[list[GridCell], Path]) -> None:
    (_, *cells), grid = worked
    written = {path: path.stat().st_mtime_ns for path in grid.rglob("*") if path.is_file()}
    assert [run_cell(cell, grid) for cell in cells] == [CellState.DONE] * 2
    assert {path: path.stat().st_mtime_ns for path in grid.rglob("*") if path.is_file()} == written
    found = collect(cells, grid)
    assert not found.duplicated(["task", "model", "seed", "step", "metric"]).any()
    assert set(found["model"]) == {"last-value", "stid"} and set(found["step"]) == {0, 1, 3, 7, 14}
    assert found["data_sha256"].nunique() == 1 and found["protocol"].nunique() == 1
    assert cells_of_results(found) == cells  # the table alone stands for all folders
    threads = dict(zip(found["model"], found["threads"], strict=True))
    assert threads["stid"] == max(1, usable_cores() // 2) and pd.isna(threads["last-value"])


def test_a_grid_goes_on_where_only_the_scores_of_its_cells_are(tmp_path: Path) -> None:
    first, second = cells_of(suite("last-value", "linear"))
    assert run_cell(first, tmp_path / "here") == CellState.DONE
    for name in (CELL, SCORES):
        write_json(tmp_path / "there" / first.name / name, read_json(tmp_path / "here" / first.name / name))
    assert [cell.state(tmp_path / "there") for cell in (first, second)] == [CellState.DONE, CellState.WAITING]
    assert collect([first, second], tmp_path / "there").equals(collect([first], tmp_path / "here"))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot bind a process to cores")
def test_cores_are_counted_that_may_be_used() -> None:
    mine = os.sched_getaffinity(0)
    assert usable_cores() == len(mine)
    try:
        os.sched_setaffinity(0, {min(mine)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, mine)


def test_a_cell_whose_process_dies_is_given_one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaths = {"last-value": [-9, -9], "linear": [-9, 0], "historical-average": [0]}
    started: list[str] = []

    def prepare(cell: GridCell, grid: Path) -> SimpleNamespace:
        model = cell.contender.name
        start = partial(started.append, model)
        return SimpleNamespace(start=start, is_alive=lambda: False, exitcode=deaths[model].pop(0), pid=None)

    monkeypatch.setattr(candor.research.engine, "_prepare", prepare)
    monkeypatch.setattr(candor.research.engine, "SECONDS_BETWEEN_LOOKS", 0.0)
    cells = cells_of(suite(*deaths))
    run_locally(cells, tmp_path, workers=2)
    assert not any(deaths.values()) and len(started) == 5
    assert "ended with code -9, 2 times" in str(failure_of(cells[0], tmp_path))
    assert [cell.state(tmp_path) for cell in cells] == [CellState.FAILED, CellState.WAITING, CellState.WAITING]


def test_a_second_interruption_ends_a_process_that_will_not_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def join() -> None:
        done.append("join")
        if "kill" not in done:
            raise KeyboardInterrupt  # somebody has no more patience

    process = SimpleNamespace(
        start=lambda: done.append("start"), is_alive=lambda: True, pid=1, join=join,
        terminate=lambda: done.append("terminate"), kill=lambda: done.append("kill"),
    )  # fmt: skip

    def watch(running: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(candor.research.engine, "_prepare", lambda *_: process)
    with pytest.raises(KeyboardInterrupt):
        run_locally(cells_of(suite("last-value")), tmp_path, 1, watch, lambda: done.append("stopping"))
    assert done == ["start", "stopping", "terminate", "join", "kill", "join"]


def test_a_cell_that_another_process_works_on_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = cells_of(suite("last-value"))
    folder = tmp_path / cell.name
    write_json(folder / CELL, cell.model_dump(mode="json"))
    write_json(folder / STATUS, {"what": "epoch 3", "share": 0.5})
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    with locked_folder(folder):
        assert run_cell(cell, tmp_path) == CellState.BUSY
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before

    def resumed_by_hand(*_: object) -> None:
        raise BusyError("another session is training in this folder")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(candor.research.grid, "train_cell", resumed_by_hand)
        assert run_cell(cell, tmp_path) == CellState.BUSY and cell.state(tmp_path) == CellState.BEGUN
    assert run_cell(cell, tmp_path) == CellState.DONE


def test_a_cell_that_comes_to_its_end_is_done_whatever_was_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = cells_of(suite("last-value"))

    def score(*arguments: Any, **more: Any) -> None:
        write_loss(cell, tmp_path, "its process ended with code 1, 2 times")  # that of another grid
        write_scores(*arguments, **more)

    monkeypatch.setattr(candor.research.grid, "write_scores", score)
    assert run_cell(cell, tmp_path) == cell.state(tmp_path) == CellState.DONE
    assert not (tmp_path / cell.name / FAILURE).exists()
    write_loss(cell, tmp_path, "its process ended with code 1, 2 times")
    assert cell.state(tmp_path) == CellState.DONE


def test_a_cell_killed_while_it_is_evaluated_states_the_threads_that_trained_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = cells_of(suite({"name": "stid", "model": "stid"}))
    engine, stated = candor.research.grid, list[int | None]()

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "train_cell", lambda folder, *_: ((folder / "model").mkdir(exist_ok=True), None))
    monkeypatch.setattr(engine, "summarise_run", lambda folder: SimpleNamespace(state=RunState.TRAINED))
    monkeypatch.setattr(engine, "write_scores", lambda folder, *, is_candor, threads: stated.append(threads))
    monkeypatch.setattr(engine, "evaluate_run", kill)
    monkeypatch.setattr("torch.get_num_threads", lambda: 7)
    with pytest.raises(KeyboardInterrupt):
        run_cell(cell, tmp_path)
    monkeypatch.setattr(engine, "evaluate_run", lambda *_: None)
    monkeypatch.setattr("torch.get_num_threads", lambda: 3)
    assert run_cell(cell, tmp_path) == CellState.DONE
    assert stated == [7]


def test_a_killed_cell_goes_on_with_as_many_threads_as_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = cells_of(suite({"name": "stid", "model": "stid"}))
    taken: list[int] = []

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(candor.research.grid, "train_cell", kill)
    monkeypatch.setattr("torch.set_num_threads", taken.append)
    for usual in (7, 3):
        monkeypatch.setattr("torch.get_num_threads", lambda usual=usual: usual)
        with pytest.raises(KeyboardInterrupt):
            run_cell(cell, tmp_path)
    assert taken == [7]


def test_a_cell_that_replaces_its_folder_stops_no_onlooker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = cells_of(suite("last-value"))
    place = tmp_path / cell.name / CELL
    write_json(place, cell.model_dump(mode="json"))

    def read_too_late(path: Path) -> Any:
        path.unlink()
        return read_json(path)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(candor.research.engine, "read_json", read_too_late)
        assert cell.state(tmp_path) == CellState.BEGUN
    place.write_text("{")
    with pytest.raises(InputError, match="not readable"):
        cell.state(tmp_path)


def test_another_cell_in_its_place_is_refused(tmp_path: Path) -> None:
    (cell,) = cells_of(suite("last-value"))
    run_cell(cell, tmp_path)
    other = cell.model_copy(update={"budget_minutes": 3.0})
    with pytest.raises(InputError, match="another budget_minutes"):
        other.state(tmp_path)


def test_a_budget_shortens_the_schedule_and_is_kept(tmp_path: Path) -> None:
    contender = {"name": "stid", "model": "stid", "settings": {"epochs": 100_000, "milestones": [50_000]}}
    (cell,) = cells_of(suite(contender, budget_minutes=0.02))
    assert run_cell(cell, tmp_path) == CellState.DONE
    (row,) = collect([cell], tmp_path)[lambda all_rows: (all_rows.step == 0) & (all_rows.metric == "mae")].itertuples()
    assert row.epochs < 100_000 and row.budget_minutes == 0.02
    schedule = read_json(tmp_path / cell.name / TRAINING / "schedule.json")
    assert row.epochs <= schedule["epochs"] < 100_000 and json.loads(row.schedule) == schedule
    ended = [line["windows"] for line in Checkpoint(tmp_path / cell.name / TRAINING).read_log()]
    there = json.loads(row.split)["windows"]["train"]
    assert len(ended) == row.epochs and max(ended, default=0) <= there
    assert sum(ended) <= row.windows_learned <= sum(ended) + there  # time may end within an epoch


@pytest.mark.parametrize(("horizon", "steps"), [(14, {0, 1, 3, 7, 14}), (8, {0, 1, 2, 4, 8})])
def test_another_horizon_than_the_preset_has_steps_of_its_own(horizon: int, steps: set[int], tmp_path: Path) -> None:
    (cell,) = cells_of(suite("last-value", tasks=[{"preset": "klamath-daily", "horizon": horizon}]))
    assert run_cell(cell, tmp_path) == CellState.DONE
    assert set(collect([cell], tmp_path)["step"]) == steps


@pytest.mark.slow
def test_a_killed_cell_goes_on_from_its_checkpoint_to_the_same_weights(tmp_path: Path) -> None:
    settings = FEW | {"epochs": 20}
    (cell,) = cells_of(suite({"name": "stid", "model": "stid", "settings": settings}))
    for grid in ("whole", "killed"):  # the same micro-batches in both, as if a first try had not come any further
        place = tmp_path / grid / cell.name / TRAINING
        write_json(place / "settings.json", {})
        write_json(place / "machine.json", {"micro_batch": 256, "workers": 1})
    assert run_cell(cell, tmp_path / "whole") == CellState.DONE
    losses: list[dict[str, Any]] = []
    killer = threading.Thread(target=_kill_its_process, args=(cell, tmp_path / "killed", losses))
    killer.start()
    run_locally([cell], tmp_path / "killed", workers=1)
    killer.join()
    assert cell.state(tmp_path / "killed") == CellState.DONE
    check_that_it_went_on(losses, tmp_path / "killed")
    one, other = (
        load_file(tmp_path / grid / cell.name / "model" / "state.safetensors") for grid in ("whole", "killed")
    )
    assert all((one[name] == other[name]).all() for name in one)


def _kill_its_process(cell: GridCell, grid: Path, losses: list[dict[str, Any]]) -> None:
    """Kills the process that works on a cell as soon as its training has a checkpoint."""
    checkpoint = Checkpoint(grid / cell.name / TRAINING)
    while not (checkpoint.last.is_file() and "process" in (status := status_of(cell, grid))):
        time.sleep(0.01)
    os.kill(status["process"], signal.SIGKILL)
    progress = checkpoint.progress()
    losses.append(
        {"cell": cell.name, "process": status["process"], "is_finished": progress.is_finished, "when": time.time()}
    )


def check_that_it_went_on(losses: list[dict[str, Any]], grid: Path) -> None:
    """Checks that a process was lost in mid-training, and that what it had begun was not begun anew."""
    (loss,) = losses
    assert not loss["is_finished"] and not psutil.pid_exists(loss["process"])
    made = load_record(grid / loss["cell"]).made
    assert made is not None and made.timestamp() <= loss["when"]
    lines = (grid / loss["cell"] / TRAINING / "metrics.jsonl").read_text().splitlines()
    epochs = [json.loads(line)["epoch"] for line in lines]
    assert epochs == list(range(len(epochs)))


@pytest.mark.slow
def test_a_grid_on_a_cluster_survives_the_loss_of_a_node(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    script = Path(__file__).parents[1] / "support" / "grid_on_two_nodes.py"
    environment = os.environ | {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    check_that_it_went_on(json.loads((tmp_path / "losses.json").read_text()), tmp_path)
    cells = cells_of(slow_suite())
    assert [cell.state(tmp_path) for cell in cells] == [CellState.DONE] * len(cells)
    found = collect(cells, tmp_path)
    assert not found.duplicated(["task", "model", "seed", "step", "metric"]).any()
    assert set(found["seed"]) == {0, 1, 2}


def slow_suite() -> Suite:
    """Returns a suite whose cells take a few seconds each."""
    contender = Contender(name="stid", model="stid", settings=FEW | {"epochs": 30})
    return suite(contender, seeds=[0, 1, 2])


def test_a_cell_is_the_same_after_a_journey_as_json() -> None:
    for cell in cells_of(slow_suite()):
        assert parse_cell(json.loads(json.dumps(cell.content()))) == cell
