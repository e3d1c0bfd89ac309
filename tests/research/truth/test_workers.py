"""Cells in processes of their own score what they score in this one, and none lives on when the command is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch
from tiny import SIZES

from candor.core.errors import InputError
from candor.research.truth import workers
from candor.research.truth.cells import Cell, cells_of
from candor.research.truth.workers import run_cells

TINY = {
    "data.sensors": 4, "data.steps": 200, "history": 12, "horizon": 4, "epochs": 1, "epoch_windows": 16,
    "validation_windows": 4, "batch": 4,
} | SIZES  # fmt: skip


def cells(seeds: list[int], **changes: object) -> list[Cell]:
    return cells_of(["synthetic-road"], seeds, TINY | changes, None)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many as each of two workers has: batches of four are not cut then, so that nothing is rounded otherwise."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_two_workers_score_what_one_does(tmp_path: Path) -> None:
    alone = run_cells(cells([1]), tmp_path / "one")
    heard: list[str] = []
    both = cells([1, 2])
    found = run_cells(both, tmp_path / "two", workers=2, report=lambda what, _: heard.append(what))
    assert [scored.cell for scored in found] == both
    assert found[0].scores == alone[0].scores and found[1].scores != alone[0].scores
    assert any("of 2 cells done" in what for what in heard)


@pytest.mark.slow
def test_a_refused_cell_says_why_and_a_lost_one_that_it_is_lost(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no setting called 'wings'") as refused:
        run_cells(cells([1], wings=2), tmp_path, workers=2)
    assert refused.value.hint
    folder = tmp_path / "lost"
    assert "ended with code -9" in workers._failure(folder, -signal.SIGKILL).what


@pytest.mark.slow
def test_no_worker_outlives_a_command_that_is_told_to_stop(tmp_path: Path) -> None:
    settings = [f"{key}={value}" for key, value in (TINY | {"epochs": 10_000, "data.steps": 400}).items()]
    command = [sys.executable, "-m", "candor", "truth", "--workers", "2", "--datasets", "synthetic-road"]
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
