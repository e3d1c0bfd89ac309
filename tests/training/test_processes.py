"""Several processes learn what one learns, stop and fail together, and one of them writes and speaks for all."""

import json
import os
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from accelerate import PartialState
from forked import Forked
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny import SIZES

import candor.training.checkpoint
import candor.training.processes
from candor.cli import run
from candor.core.errors import InputError
from candor.training.checkpoint import Checkpoint
from candor.training.loop import Stopped
from candor.training.processes import join_processes

# Batches of 70 from 141 windows: the last one is a single window, and one of two processes has nothing to do.
SETTINGS = {"history": 12, "horizon": 4, "epochs": 2, "batch": 70, "learning_rate": 0.01, "dropout": 0} | SIZES
UNEVEN = {"epochs": 1, "batch": 15}  # 76 windows: here too the last batch is a single one

# Every process imports this before anything else. It notes which files a process puts in place, and one that is named
# in STOPPED_RANK is asked to end as soon as it listens.
SPY = """
import os, signal, sys, threading, time

def note(event, arguments):
    if event == "os.rename":
        with open(os.environ["NOTES"] + os.environ["RANK"], "a") as notes:
            notes.write(str(arguments[1]) + "\\n")

def stop():
    while not callable(signal.getsignal(signal.SIGTERM)):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

if "RANK" in os.environ:
    sys.addaudithook(note)
    if os.environ["RANK"] == os.environ.get("STOPPED_RANK"):
        threading.Thread(target=stop, daemon=True).start()
"""


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def launch(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a module in two processes that torchrun launches in a folder."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port()]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | environment
    command = [*launcher, "-m", "--", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with readings of three sensors, and edges."""
    folder, chance = tmp_path_factory.mktemp("processes"), np.random.default_rng(0)
    cycle = np.sin(np.arange(260) / 24 * 2 * np.pi)[:, None]
    readings = pd.DataFrame(8 + cycle + 0.1 * chance.standard_normal((260, 3)), columns=["a", "b", "c"]).round(3)
    readings.iloc[::7, 1] = np.nan
    readings.insert(0, "time", pd.date_range("2024-01-01", periods=260, freq="h"))
    readings.to_csv(folder / "readings.csv", index=False)
    (folder / "edges.csv").write_text("from,to,distance_km\na,b,2.5\nb,c,4\n")
    for rank in (0, 1):
        (folder / f"written-by-{rank}").touch()
    (folder / "spy").mkdir()
    (folder / "spy" / "sitecustomize.py").write_text(SPY)
    return folder


def progress_in(file: Path) -> dict[str, object]:
    with safe_open(file, framework="pt") as state:
        return json.loads(state.metadata()["progress"])


def test_a_process_that_did_not_meet_the_others_trains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Somebody set accelerate up before, for one process.
    monkeypatch.setattr(candor.training.processes, "PartialState", lambda cpu: SimpleNamespace(num_processes=1))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="2 processes were launched, but this one found 1"):
        join_processes()


@pytest.mark.slow
def test_two_processes_stop_together_go_on_and_learn_what_one_learns(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", "readings.csv", "--edges", "edges.csv", "--model", "candor"]
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    monkeypatch.chdir(files)
    assert run([*command, "--run", "one", *settings]) == 0

    spied = {"PYTHONPATH": str(files / "spy"), "NOTES": str(files / "written-by-")}
    stopped = launch(files, "candor", *command, "--run", "two", *settings, STOPPED_RANK="1", **spied)
    assert stopped.returncode != 0
    assert stopped.stderr.count("training stopped: the system asked for it") == 1, stopped.stderr
    stands = progress_in(files / "two" / "training" / "last.safetensors")
    assert (stands["epoch"], stands["batch"], stands["windows"]) == (0, 1, 70)
    assert not (files / "two" / "model").exists()

    finished = launch(files, "candor", "train", "--resume", "two", **spied)
    assert finished.returncode == 0, finished.stderr
    said = (stopped.stderr + finished.stderr).splitlines()
    assert sum(line.startswith("readings: 3 sensors") for line in said) == 1
    assert sum(line.startswith("candor is fitted") for line in said) == 1

    one, two = (Checkpoint(files / name / "training").read_log() for name in ("one", "two"))
    assert [line["epoch"] for line in two] == [0, 1]
    assert [line["processes"] for line in one + two] == [1, 1, 2, 2]
    for expected, found in zip(one, two, strict=True):
        for name in ("train_error", "validation_error", "prefix", "learning_rate"):
            assert found[name] == pytest.approx(expected[name], rel=1e-4), name
        assert found["terms"] == pytest.approx(expected["terms"], rel=1e-4, abs=1e-6)
    assert_same_files_and_forecasts(files / "one", files / "two")
    main, other = ((files / f"written-by-{rank}").read_text().splitlines() for rank in (0, 1))
    assert {"two/run.json", "two/training/last.safetensors", "two/training/metrics.jsonl", "two/model"} <= set(main)
    # What suits its machine, every process may find out for itself.
    assert {line for line in other if line.startswith("two")} <= {"two/training/machine.json"}


def assert_same_files_and_forecasts(one: Path, two: Path) -> None:
    from candor.runs.run import load_run

    names = [sorted(str(file.relative_to(folder)) for file in folder.rglob("*")) for folder in (one, two)]
    assert names[0] == names[1]
    runs = [load_run(folder) for folder in (one, two)]
    panel = runs[0].task().panel
    origins = np.arange(200, 250, 7)
    forecasts = [opened.forecaster.predict_interval(panel, origins) for opened in runs]
    for name in ("forecast", "lower", "upper"):
        np.testing.assert_allclose(getattr(forecasts[1], name), getattr(forecasts[0], name), rtol=1e-4)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what became of each case below in each of two processes."""
    folder = tmp_path_factory.mktemp("cases")
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    with ExitStack() as both:
        processes = [
            both.enter_context(Forked(become_one_of_two, folder, meeting | {"RANK": rank, "LOCAL_RANK": rank}))
            for rank in ("0", "1")
        ]
        said = ["".join(process.communicate()) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    return folder


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("full", "WriteError: .*cannot be saved .*No space left"),
        ("broken", r"InputError: .*no longer a number \(epoch 0, batch 4\)"),
        ("stopped", "Stopped: enough"),
        ("blind", r"InputError: .*do not see the same state.*\[\(1, 0\), \(0, 0\)\]"),
    ],
)
def test_what_happens_to_one_process_happens_to_both(cases: Path, case: str, message: str) -> None:
    outcomes = [json.loads((cases / f"{rank}.json").read_text())[case] for rank in (0, 1)]
    assert outcomes[0] == outcomes[1]
    assert re.match(message, outcomes[0])


def test_both_processes_begin_with_the_first_weights_of_the_main_one(
    cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    from test_loop import trainer

    main, other = (load_file(cases / f"{rank}.safetensors") for rank in (0, 1))
    for name, weights in trainer(settings=UNEVEN).run().items():
        assert torch.equal(main[name], other[name])
        torch.testing.assert_close(main[name], weights, rtol=1e-5, atol=1e-6)


def become_one_of_two() -> None:
    """Tries every case in this process and writes down what came of it."""
    PartialState._reset_state()  # what the process of the tests found of itself
    warnings.resetwarnings()
    leaving: list[Callable[[], None]] = []
    candor.training.processes.atexit = SimpleNamespace(register=leaving.append)
    sys.path.insert(0, str(Path(__file__).parent))
    import test_loop

    rank, folder, found = int(os.environ["RANK"]), Path.cwd(), {}

    def attempt(case: str, folder: str | None, **more: object) -> None:
        checkpoint = None if folder is None else Checkpoint(Path(folder))
        try:
            weights = test_loop.trainer(checkpoint=checkpoint, settings=UNEVEN, **more).run()
            save_file(weights, f"{rank}.safetensors")
        except (InputError, Stopped) as error:
            found[case] = f"{type(error).__name__}: {error}"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    attempt("broken", None, trainable=test_loop.line(breaks_after=4 if rank == 1 else 10**9))
    attempt("stopped", None, stop_reason=lambda: "enough" if rank == 1 else None)
    attempt("trained", "state", trainable=test_loop.line() if rank == 0 else test_loop.Line(torch.nn.Linear(1, 2)))
    if rank == 0:
        candor.training.checkpoint.save_file = full
    attempt("full", "full")
    if rank == 1:  # as on a machine that does not see the folder of the other
        Path("elsewhere").mkdir()
        os.chdir("elsewhere")
    attempt("blind", "state")
    (disconnect,) = leaving
    disconnect()
    assert not torch.distributed.is_initialized()
    (folder / f"{rank}.json").write_text(json.dumps(found))
