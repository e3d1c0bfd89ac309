"""`candor runs`: whatever state runs are in, they are listed, shown and compared without choking."""

import json
import shutil
from pathlib import Path

import pytest
from made_runs import PROTOCOL, make_run

from candor.cli import run as typed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs in four states: judged, trained, unfinished and damaged; and what is no run."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    assert typed(["evaluate", str(make_run(folder / "judged"))]) == 0
    make_run(folder / "group" / "trained", "last-value")
    shutil.rmtree(make_run(folder / "unfinished") / "model")
    (make_run(folder / "damaged") / "run.json").write_text('{"model": "li')
    make_run(folder / ".half-written")
    (folder / "notes").mkdir()
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """The same for a test to do with what it likes."""
    return shutil.copytree(made, tmp_path / "runs")


def test_all_runs_are_listed_with_their_state(candor, runs: Path) -> None:
    listed = json.loads(candor("runs", "list", "--json").out)
    states = {row["run"]: row["state"] for row in listed}
    assert states == {
        "runs/damaged": "damaged",
        "runs/group/trained": "trained",
        "runs/judged": "evaluated",
        "runs/unfinished": "unfinished",
    }
    judged = next(row for row in listed if row["state"] == "evaluated")
    content = json.loads((runs / "judged" / "evaluation.json").read_text())
    assert judged["test_mae"] == content["overall"]["mae"]
    assert judged["test_coverage"] == content["intervals"]["overall"]["coverage"]
    shown = candor("runs", "list", runs)
    assert shown.code == 0
    for words in ("judged", "unfinished", "damaged", "6 from 24, time", f"{judged['test_mae']:.3f}"):
        assert words in shown.out
    assert "half-written" not in shown.out
    assert "not readable JSON" in " ".join(shown.err.split())


def test_an_empty_folder_and_no_folder(candor, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert candor("runs", "list", "empty").code == 0
    assert json.loads(candor("runs", "list", "empty", "--json").out) == []
    refused = candor("runs", "list")
    assert refused.code == 2
    assert "candor train" in refused.err


def test_one_run_is_shown_with_everything_it_depends_on(candor, runs: Path) -> None:
    shown = candor("runs", "show", "runs/judged")
    assert shown.code == 0
    for words in ("linear", "river", "history 24", "penalty 1.0", "evaluated", "numpy", "calibrated: True"):
        assert words in shown.out
    content = json.loads(candor("runs", "show", "runs/judged", "--json").out)
    assert content["protocol"] == PROTOCOL.model_dump(mode="json")
    assert content["settings"] == {"history": 24, "horizon": 6, "seed": 0, "penalty": 1.0}
    for state in ("unfinished", "damaged"):
        assert state in candor("runs", "show", f"runs/{state}").out
    assert candor("runs", "show", "runs/notes").code == 2


def test_a_reconstruction_is_listed_as_one_and_an_unknown_model_by_its_name(candor, runs: Path) -> None:
    for run, model in (("judged", "msthg"), ("unfinished", "from-elsewhere")):
        record = json.loads((runs / run / "run.json").read_text())
        (runs / run / "run.json").write_text(json.dumps(record | {"model": model}))
    listed = " ".join(candor("runs", "list", runs).out.split())
    assert "msthg" in listed and "(reconstructi" in listed and "from-elsewhere" in listed
    assert "model: msthg (reconstruction)" in candor("runs", "show", "runs/judged").out
    assert json.loads(candor("runs", "show", "runs/judged", "--json").out)["model"] == "msthg"


def test_comparable_runs_are_ranked(candor, runs: Path) -> None:
    candor("evaluate", "runs/group/trained")
    compared = json.loads(candor("runs", "compare", "runs/group/trained", "runs/judged", "--json").out)
    assert compared["is_ranked"]
    assert [row["model"] for row in compared["runs"]] == ["linear", "last-value"]
    shown = candor("runs", "compare", "runs/group/trained", "runs/judged", "runs/unfinished").out
    assert "best first" in shown
    assert shown.index("runs/judged") < shown.index("runs/group/trained") < shown.index("runs/unfinished")
    assert "unfinished, not evaluated yet: candor train --resume runs/unfinished" in shown  # there is nothing to judge


def test_runs_under_other_rules_are_shown_and_not_ranked(candor, runs: Path) -> None:
    make_run(runs / "other", protocol=PROTOCOL.model_copy(update={"horizon": 3}))
    shown = candor("runs", "compare", "runs/judged", "runs/other", "runs/damaged")
    assert shown.code == 0
    assert "not ranked" in shown.out
    assert "the protocols differ in horizon: 6, 3" in shown.out
    assert candor("runs", "compare", "runs/judged", "runs/nowhere").code == 2
    assert candor("runs", "compare").code == 2
