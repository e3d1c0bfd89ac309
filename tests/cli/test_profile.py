"""`candor profile` on the bundled data: models in processes of their own, then a figure without measuring again."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from made_results import made_results

from candor.forecasting import forecasters
from candor.research import profiling
from candor.research.measuring import Job, ModelProfile

QUICK = ("--preset", "klamath-daily", "--batch", 2, "--warm-ups", 0, "--passes", 1, "--out", "costs")


def results(path: Path) -> None:
    """Writes made-up results of a grid."""
    errors = {"stid": (0.6, 0.8), "dlinear": (0.9,), "candor": (0.5,), "last-value": (1.0,)}
    made = made_results({"klamath-daily": errors}).assign(unit="mg/L", protocol="{}", data_sha256="", versions="{}")
    path.mkdir()
    made.to_parquet(path / "results.parquet")


@pytest.mark.slow
def test_models_are_measured_once_and_drawn_later(candor, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = candor("profile", *QUICK, "--models", "stid,last-value,dlinear")
    assert measured.code == 0, measured.err
    places = [measured.out.index(name) for name in ("dlinear", "stid", "last-value")]
    assert places == sorted(places)  # the smaller network first, then what is none
    assert measured.out[places[-1] :].count("–") == 4  # it has a time of forecasting only
    told = " ".join(measured.err.split())  # lines are broken where the screen ends
    assert "graph: that of klamath-daily" in told
    content = json.loads(Path("costs/profile.json").read_text())
    assert content["circumstances"]["machine"]["torch"] and content["how"]
    table = pd.read_csv("costs/profile.csv")
    assert table.name.tolist() == ["dlinear", "stid", "last-value"] == [model["name"] for model in content["models"]]
    costs = table.set_index("name")[["parameters", "operations", "training_seconds", "inference_seconds"]]
    assert (costs.loc[["dlinear", "stid"]] > 0).all(axis=None)
    assert costs.loc["last-value"].notna().tolist() == [False, False, False, True]
    assert not Path("costs/cells").exists()  # the profile stands for them
    assert all(datetime.fromisoformat(model["measured"]) <= datetime.now(UTC) for model in content["models"])

    monkeypatch.setattr(profiling, "measure", lambda *_: pytest.fail("what is known is measured again"))
    results(Path("grid"))
    drawn = candor("profile", *QUICK, "--models", "stid,dlinear", "--results", "grid", "--json")
    assert drawn.code == 0, drawn.err
    assert json.loads(drawn.out)["models"] == content["models"]
    told = " ".join(drawn.err.split())
    assert (
        "not measured: candor" in told and "without a network, or without errors that are numbers: last-value" in told
    )
    for against in ("parameters", "time"):
        for ending in ("png", "svg"):
            assert Path(f"costs/accuracy-{against}.{ending}").stat().st_size > 1000
        points = pd.read_csv(f"costs/accuracy-{against}.csv").set_index("model")
        assert points.mean_absolute_error.to_dict() == pytest.approx({"dlinear": 0.9, "stid": 0.7})


def made_up(name: str) -> ModelProfile:
    return ModelProfile(
        name=name, parameters=1, operations=2, inference_seconds=3.0, training_seconds=4.0, peak_megabytes=None,
        is_reconstruction=name == "msthg",
    )  # fmt: skip


@pytest.mark.usefixtures("in_this_process")
def test_a_reconstruction_is_shown_as_one(candor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "measure", lambda job, report: made_up(job.name))
    shown = candor("profile", *QUICK, "--models", "msthg,stid")
    assert shown.code == 0 and "msthg (reconstruction)" in shown.out and "stid (" not in shown.out
    assert "msthg (reconstruction)," in Path("costs/profile.csv").read_text()
    again = candor("profile", *QUICK, "--models", "msthg", "--json")  # is known by its name, and not measured again
    assert "1 measured before" in again.err and json.loads(again.out)["models"][0]["is_reconstruction"]


@pytest.mark.usefixtures("in_this_process")
def test_anew_measures_again_what_is_asked_for_and_begins_anew_under_other_circumstances(
    candor, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    monkeypatch.setattr(profiling, "measure", lambda job, report: measured.append(job.name) or made_up(job.name))

    def known() -> list[str]:
        return [model["name"] for model in json.loads(Path("costs/profile.json").read_text())["models"]]

    assert candor("profile", *QUICK, "--models", "stid,dlinear").code == 0
    assert candor("profile", *QUICK, "--models", "stid", "--anew").code == 0
    assert measured == ["stid", "dlinear", "stid"] and sorted(known()) == ["dlinear", "stid"]
    other = (*QUICK, "--passes", 2, "--models", "stid")
    refused = candor("profile", *other)
    assert refused.code == 2 and "another passes" in refused.err and len(measured) == 3
    assert candor("profile", *other, "--anew").code == 0
    assert known() == ["stid"]


@pytest.mark.usefixtures("in_this_process")
def test_a_model_that_fails_is_told_and_stops_no_other(candor, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(job: Job, report: object) -> ModelProfile:
        if job.name == "stid":
            raise RuntimeError("[enforce fail] no memory")
        return made_up(job.name)

    monkeypatch.setattr(profiling, "measure", measure)
    ended = candor("profile", *QUICK, "--models", "stid,dlinear")
    assert ended.code == 1
    assert "stid: RuntimeError: [enforce fail] no memory" in " ".join(ended.err.split())
    assert "dlinear" in ended.out and "3,000.0" in ended.out
    again = candor("profile", *QUICK, "--models", "stid,dlinear")  # tries only what failed
    assert again.code == 1 and "1 measured before" in again.err


@pytest.mark.usefixtures("in_this_process")
def test_all_models_are_measured_as_the_paper_does_without_a_further_word(
    candor, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(profiling, "measure", lambda job, report: jobs.append(job) or made_up(job.name))
    assert candor("profile", "--preset", "klamath-daily").code == 0
    assert {job.model for job in jobs} == set(forecasters.names())
    assert {(job.batch, job.warm_ups, job.passes) for job in jobs} == {(64, 20, 100)}


@pytest.mark.usefixtures("in_this_process")
def test_wrong_input_is_refused_before_anything_is_measured(candor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "measure", lambda *_: pytest.fail("it was measured nevertheless"))
    results(Path("grid"))
    for wrong, words in (
        (("--models", "stidd"), "did you mean stid"),
        (("--models", ","), "no model is named"),
        (("--results", "nowhere"), "there are no results"),
        (("--results", "grid", "--models", "fast"), "no results of the models"),
    ):
        refused = candor("profile", *QUICK, *wrong)
        assert refused.code == 2 and words in " ".join(refused.err.split()), refused.err
    assert not Path("costs").exists()
