"""`candor train`: what it refuses, what it says and writes of what it chose, and how it is stopped."""

import json
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import pytest
from forked import Forked
from tiny import SIZES

from candor.cli import run
from candor.runs.run import load_record
from candor.runs.summary import summarise_run
from candor.training.checkpoint import Checkpoint

QUICK = [f"{name}={value}" for name, value in SIZES.items()] + ["history=12", "horizon=4", "epochs=1", "batch=128"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a tiny CANDOR, made once and copied by those who need one."""
    from made_runs import river
    from tiny import PROTOCOL, tiny_recipe

    from candor.runs.fit import train_model

    folder = tmp_path_factory.mktemp("runs") / "candor"
    train_model(river(), PROTOCOL, "candor", {"recipe": tiny_recipe(epochs=1)}, folder, is_catalogued=False)
    return folder


@pytest.mark.parametrize("model", ["last-value", "candor"])
def test_a_folder_with_other_things_is_left_alone(candor, tmp_path: Path, model: str) -> None:
    (tmp_path / "keep" / "deep").mkdir(parents=True)
    (tmp_path / "keep" / "deep" / "notes.txt").write_text("mine")
    refused = candor("train", "klamath-daily", "--model", model, "--run", "keep")
    assert refused.code == 2
    assert "holds other things, such as deep" in refused.err
    assert [path.name for path in tmp_path.rglob("*")] == ["keep", "deep", "notes.txt"]


def test_a_run_is_not_replaced_by_another(candor, tmp_path: Path) -> None:
    assert candor("train", "klamath-daily", "--model", "linear", "--run", "r").code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for model in ("linear", "last-value", "candor"):
        refused = candor("train", "klamath-daily", "--model", model, "--run", "r")
        assert refused.code == 2
        assert "a run in this folder already" in refused.err
        assert ("--resume" in refused.err) == (model == "candor")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    outer = candor("train", "klamath-daily", "--model", "last-value", "--run", tmp_path)
    assert outer.code == 2 and "such as r" in outer.err


@pytest.mark.parametrize(
    "more",
    [
        ("--seed", "0"),
        ("--model", "candor"),
        ("--preset", "metr-la"),
        ("--run", "other"),
        ("--edges", "edges.csv"),
        ("--zone", "UTC"),
        ("--init", "other"),
        ("klamath-daily",),
        ("klamath-daily", "epochs=3"),
    ],
)
def test_a_run_that_goes_on_takes_nothing_that_would_change_it(candor, more: tuple[str, ...]) -> None:
    refused = candor("train", "--resume", "runs/some", *more)
    assert refused.code == 2
    assert "goes on with the data and settings it began with" in refused.err
    assert (more[0] if more[0].startswith("--") else "data") in refused.err


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("what", [("klamath-daily",), ("--resume", "nowhere")])
def test_a_budget_that_is_no_time_is_refused(candor, tmp_path: Path, what: tuple[str, ...], minutes: str) -> None:
    refused = candor("train", *what, "--budget-minutes", minutes)
    assert refused.code == 2 and f"{minutes} minutes are no time to train in" in refused.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("start", "words"),
    [("nowhere", "not a run directory"), ("last", "run of last-value"), ("other", "another shape, such as")],
)
def test_weights_that_do_not_fit_are_refused_and_nothing_is_left_behind(
    candor, two_files, start: str, words: str
) -> None:
    readings, edges = two_files
    data = ("train", readings, "--edges", edges)
    candor(*data, "--model", "last-value", "--run", "last")
    if start == "other":
        assert candor(*data, *QUICK, "hidden=16", "--run", "other").code == 0
    refused = candor(*data, *QUICK, "--init", start, "--run", "new")
    assert refused.code == 2
    assert words in refused.err and "Traceback" not in refused.err
    assert not Path("new").exists()


def test_what_was_chosen_is_said_and_written_into_the_run(candor, two_files) -> None:
    readings, edges = two_files
    trained = candor("train", readings, "--edges", edges, *QUICK, "--run", "r")
    assert trained.code == 0, trained.err
    said = " ".join(trained.err.split())
    record = json.loads(Path("r/run.json").read_text())
    assert len(record["reasons"]) == 5
    for reason in record["reasons"]:
        assert reason in said
    assert record["reasons"][0] == "history 12 h: your choice; horizon 4 h: your choice"
    assert "1 epochs: 3 steps on 285 windows" in said
    settings = json.loads(Path("r/training/settings.json").read_text())["recipe"]["model"]
    assert (settings["patch_length"], settings["patch_stride"], settings["season"]) == (4, 2, False)
    assert json.loads(Path("r/model/model.json").read_text())["settings"]["recipe"]["model"] == settings
    assert record["reasons"][1] in candor("runs", "show", "r").out


def test_a_training_that_is_cut_short_says_where_it_stands_and_how_to_go_on(candor, two_files) -> None:
    readings, edges = two_files
    data = ("train", readings, "--edges", edges, *QUICK, "epochs=2", "--budget-minutes", "1e-6", "--run", "a run")
    cut = " ".join(candor(*data).err.split())
    assert "candor is fitted. Evaluate it with: candor evaluate 'a run'" in cut
    assert "cut short in epoch 1 of 2" in cut and "candor train --resume 'a run'" in cut
    told = json.loads(candor("train", "--resume", "a run", "--budget-minutes", "1e-6", "--json").out)
    assert "in epoch 1 of 2" in told["notes"][0]
    whole = candor("train", "--resume", "a run")
    assert whole.code == 0 and "candor is fitted" in whole.err and "cut short" not in whole.err


def test_it_is_said_when_nothing_could_choose_the_best_weights(candor, two_files) -> None:
    readings, edges = two_files
    shares = ("epochs=2", "shares=[0.8,0,0.2]", "--run", "r")
    shown = candor("train", readings, "--edges", edges, *QUICK, *shares)
    assert shown.code == 0, shown.err
    assert "the latest ones are kept" in " ".join(shown.err.split())
    progress = Checkpoint(Path("r/training")).progress()
    assert (progress.best_epoch, progress.best_error) == (1, None)


def test_data_that_are_gone_are_named_with_what_to_bring_back(candor, trained: Path, monkeypatch) -> None:
    shutil.copytree(trained, "run")
    shutil.rmtree("run/data")
    gone = candor("train", "--resume", "run")
    assert gone.code == 2
    assert "no longer in its folder" in gone.err and "hint: bring the folder data/" in gone.err
    record = load_record(Path("run")).model_dump(mode="json") | {"data": "korea4-do", "is_catalogued": True}
    Path("run/run.json").write_text(json.dumps(record))
    monkeypatch.setenv("CANDOR_DATA", str(Path("nothing").resolve()))
    gone = candor("train", "--resume", "run")
    assert gone.code == 2
    assert "the dataset 'korea4-do', which this run was trained on" in gone.err and "hint" in gone.err


@pytest.mark.parametrize("what", [("klamath-daily", "--model", "graph-wavenet"), ("--resume", "run")])
def test_what_one_process_has_to_train_is_neither_begun_nor_resumed_by_several(
    candor, trained: Path, monkeypatch, what: tuple[str, ...]
) -> None:
    shutil.copytree(trained, "run")
    record = load_record(Path("run")).model_dump(mode="json") | {"model": "graph-wavenet"}
    Path("run/run.json").write_text(json.dumps(record))
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    refused = candor("train", *what)
    assert refused.code == 2 and "graph-wavenet is fitted by one process" in refused.err
    assert not Path("runs").exists()


def test_control_c_saves_stops_and_leaves_with_the_code_of_an_interruption(two_files) -> None:
    readings, edges = two_files
    settings = [*QUICK, "epochs=100000", "--run", "r"]
    folder, command = readings.parent, ["train", str(readings), "--edges", str(edges), *settings]
    with Forked(partial(run, command), folder) as child:
        while not (folder / "r" / "training" / "last.safetensors").exists() and child.poll() is None:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate()
    assert child.returncode == 130, said
    assert "saving and stopping" in said and "candor train --resume r" in said and "Traceback" not in said
    assert summarise_run(folder / "r").state.value == "unfinished"
    progress = Checkpoint(folder / "r" / "training").progress()
    assert progress.batch > 0 and not progress.is_finished  # after a step, not at the end of an epoch
