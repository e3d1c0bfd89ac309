"""`candor evaluate` and `candor backtest`: tables on the screen, everything in a file, wrong wishes in plain words."""

import json
import shutil
from pathlib import Path

import pytest
from made_runs import PROTOCOL, make_run, river

from candor.data.protocol import Protocol, make_task
from candor.forecasting import Linear
from candor.runs import evaluate, evaluate_run
from candor.runs.run import load_run, model_checksum
from candor.runs.summary import summarise_run

SIMPLE = ("last-value", "seasonal-naive", "historical-average", "linear")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def test_a_run_is_judged_beside_the_simple_forecasters(candor, run: Path) -> None:
    shown = candor("evaluate", run)
    assert shown.code == 0, shown.err
    assert "linear on river: " in shown.out
    for words in (
        *SIMPLE,
        "MAE [m]",
        "skill of linear",
        "Intervals for 90 %",
        "interval score [m]",
        "that of last-value",
    ):
        assert words in shown.out
    assert "Upper weir" not in shown.out
    content = json.loads((run / "evaluation.json").read_text())
    task = make_task(river(), PROTOCOL)
    judged = evaluate(load_run(run).forecaster, task)
    assert content["overall"]["mae"] == pytest.approx(judged.overall()["mae"])
    assert judged.intervals is not None
    assert content["intervals"]["overall"] == pytest.approx(judged.intervals.scores())
    assert content["protocol"] == PROTOCOL.model_dump(mode="json")
    assert set(content["simple_forecasters"]) == set(SIMPLE)
    for name, simple in content["simple_forecasters"].items():
        assert simple["skill"] == pytest.approx(1 - content["overall"]["mae"] / simple["overall"]["mae"])
        assert (simple["skill"] == 0) == (name == "linear")
    assert content["skill"]["value"] == content["simple_forecasters"]["last-value"]["skill"]
    assert summarise_run(run).score("mae") == content["overall"]["mae"]


def test_all_sensors_are_shown_on_request_and_a_dead_one_has_no_error(candor, run: Path) -> None:
    shown = candor("evaluate", run, "--sensors").out
    lines = {line.split()[1]: line for line in shown.splitlines() if line.startswith("│ g")}
    assert list(lines) == [f"g{i}" for i in range(5)]
    assert "Old mill [broken]" in lines["g2"]
    assert "–" in lines["g3"]
    assert "–" not in lines["g0"]


def test_a_run_without_calibration_is_judged_without_intervals(candor, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", protocol=Protocol(history=24, horizon=6, shares=(0.8, 0.0, 0.2)))
    shown = candor("evaluate", run, "--sensors")
    assert shown.code == 0, shown.err
    assert "no intervals" in shown.err
    assert json.loads((run / "evaluation.json").read_text())["intervals"] is None


def test_a_backtest_on_what_calibrated_the_model_says_so(candor, run: Path) -> None:
    shown = candor("backtest", run, "--every", "6", "--part", "validation", "--adaptive")
    assert shown.code == 0, shown.err
    assert "too good" in shown.err and "nothing the model could be calibrated on" not in shown.err
    assert "intervals" not in shown.out


def test_a_backtest_is_written_beside_the_run(candor, run: Path) -> None:
    shown = candor("backtest", run, "--every", "6", "--refit", "5", "--adaptive", "--coverage", "0.8")
    assert shown.code == 0, shown.err
    for words in ("linear on river: 20 test windows", "Intervals for 80 %", "every 6 h, refitted 3 times, adaptive"):
        assert words in shown.out
    content = json.loads((run / "backtest.json").read_text())
    assert content["backtest"]["refit_after"] == 5
    assert len(content["backtest"]["refits"]) == 3 and "to the end" in content["backtest"]["refitted_by"]
    assert content["model_sha256"] == model_checksum(run) and content["notes"] == []
    assert content["intervals"]["asked_coverage"] == 0.8
    printed = candor("backtest", run, "--every", "6", "--json")
    assert json.loads(printed.out) == json.loads((run / "backtest.json").read_text())
    assert json.loads(printed.out)["backtest"]["refits"] == []


def test_a_backtest_that_was_interrupted_goes_on(candor, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, learn = ("backtest", run, "--every", "6", "--refit", "5", "--adaptive"), Linear._learn
    fits: list[int] = []

    def learn_or_leave(self, panel, split, report):
        fits.append(panel.times.length)
        if len(fits) == 2:
            raise KeyboardInterrupt
        return learn(self, panel, split, report)

    assert candor(*command).code == 0
    whole = (run / "backtest.json").read_text()
    (run / "backtest.json").unlink()
    monkeypatch.setattr(Linear, "_learn", learn_or_leave)
    shown = candor(*command)
    assert shown.code == 130 and "the same command goes on" in shown.err
    assert not (run / "backtest.json").exists() and (run / "refits").is_dir()
    shown = candor(*command)
    assert shown.code == 0 and "1 of 3 refits are kept from before" in shown.err
    assert (run / "backtest.json").read_text() == whole
    assert len(fits) == 4 and not (run / "refits").exists()


def test_refits_that_learn_longer_than_the_run_did_are_told_of(candor, run: Path, monkeypatch) -> None:
    monkeypatch.setattr("candor.runs.resumable.notes_on_refits", lambda folder: [f"{folder.name} was cut short"])
    shown = candor("backtest", run, "--every", "12", "--refit", "5")
    assert "run was cut short" in shown.err
    assert json.loads((run / "backtest.json").read_text())["notes"] == ["run was cut short"]
    assert "cut short" not in candor("backtest", run, "--every", "12").err


def test_a_backtest_at_every_step_repeats_the_evaluation(candor, run: Path) -> None:
    judged = json.loads(candor("evaluate", run, "--json").out)
    rolled = json.loads(candor("backtest", run, "--json").out)
    assert rolled["overall"] == pytest.approx(judged["overall"])
    assert rolled["by_step"]["mae"] == pytest.approx(judged["by_step"]["mae"])
    assert rolled["intervals"]["overall"] == pytest.approx(judged["intervals"]["overall"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--part", "train"), "no part called 'train'"),
        (("--part", "tset"), "say --part test or validation"),
        (("--every", "0"), "--every"),
        (("--every", "9" * 400), "--every"),
        (("--refit", "0"), "--refit"),
        (("--coverage", "90"), "between 0 and 1"),
    ],
)
def test_impossible_backtests_are_refused_and_nothing_is_written(candor, run: Path, options, words: str) -> None:
    shown = candor("backtest", run, *options)
    assert shown.code == 2
    assert words in shown.err
    assert not (run / "backtest.json").exists()


@pytest.mark.parametrize("command", ["evaluate", "backtest"])
@pytest.mark.parametrize("trouble", ["no run", "unfinished", "changed data", "no test part"])
def test_runs_that_cannot_be_judged_are_refused(candor, run: Path, tmp_path: Path, command: str, trouble: str) -> None:
    if trouble == "no run":
        run = tmp_path
    if trouble == "unfinished":
        (run / "model" / "model.json").unlink()
    if trouble == "changed data":
        record = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(record | {"fingerprint": "0" * 64}))
    if trouble == "no test part":
        run = make_run(tmp_path / "other", protocol=Protocol(history=24, horizon=6, shares=(0.8, 0.2, 0.0)))
    shown = candor(command, run)
    assert shown.code == 2
    words = {"no run": "run.json", "unfinished": "unfinished", "changed data": "changed", "no test part": "no windows"}
    assert words[trouble] in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("command", "file"), [("evaluate", "evaluation"), ("backtest", "backtest"), ("benchmark", "evaluation")]
)
def test_scores_are_not_taken_for_those_of_a_model_that_came_meanwhile(
    candor, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, file: str
) -> None:
    newer, before, forecast = make_run(tmp_path / "newer", penalty=50.0), model_checksum(run), Linear._forecast

    def train_on_meanwhile(self, panel, origins):
        shutil.copy(newer / "model/state.safetensors", run / "model/state.safetensors")
        return forecast(self, panel, origins)

    monkeypatch.setattr(Linear, "_forecast", train_on_meanwhile)
    if command == "benchmark":
        evaluate_run(load_run(run))
    else:
        assert candor(command, run).code == 0
    content = json.loads((run / f"{file}.json").read_text())
    assert content["model_sha256"] == before != model_checksum(run)
    assert summarise_run(run).evaluation is None
