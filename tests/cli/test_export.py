"""`candor export`: what is written, what is said, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from made_runs import make_run, river

from candor.forecasting import forecasters
from candor.runs.bundle import open_bundle
from candor.runs.run import save_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")


def test_a_bundle_is_used_like_a_run(candor: Callable, run: Path, tmp_path: Path) -> None:
    made = candor("export", run, "--bundle", "bundle")
    assert made.code == 0, made.err
    assert "bundle: bundle" in made.out
    one, other = (json.loads(candor("forecast", path, "--json").out) for path in (run, "bundle"))
    assert [row["time"] for row in one["forecasts"]] == [row["time"] for row in other["forecasts"]]
    awake = [[row for row in said["forecasts"] if row["sensor"] in ("g0", "g1", "g4")] for said in (one, other)]
    assert awake[0] == awake[1]  # the other two have been silent for longer than the bundle reaches back
    shown = candor("runs", "show", "bundle")
    assert shown.code == 0 and "linear" in shown.out


def test_json_tells_scripts_what_was_written(candor: Callable, run: Path, tmp_path: Path) -> None:
    said = json.loads(candor("export", run, "--bundle", "model.zip", "--rows", 60, "--json").out)
    assert said["bundle"]["path"] == "model.zip"
    assert said["bundle"]["bytes"] == (tmp_path / "model.zip").stat().st_size
    assert open_bundle(tmp_path / "model.zip").task().panel.times.length == 60
    assert json.loads(candor("forecast", "model.zip", "--json").out)["model"] == "linear"


def test_readings_can_stay_at_home(candor: Callable, run: Path, tmp_path: Path) -> None:
    assert candor("export", run, "--bundle", "bundle", "--without-readings").code == 0
    assert not (tmp_path / "bundle" / "data").exists()
    assert candor("forecast", "bundle").code == 2
    candor("export", run, "--bundle", "whole", "--rows", "all")
    assert open_bundle(tmp_path / "whole").task().panel.times.length == 600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--out"),
        (("--rows", "5", "--out", "a.onnx"), "about a bundle"),
        (("--out", "model.pt"), ".onnx"),
        (("--bundle", "b", "--rows", "many"), "number of rows"),
        (("--bundle", "b", "--rows", "0"), "number of rows"),
        (("--bundle", "b", "--rows", 5000 * "9"), "number of rows"),
        (("--bundle", "b", "--rows", "9"), "too few"),
        (("--bundle", "b", "--rows", "99", "--without-readings"), "contradict"),
        (("--out", "model.onnx"), "not a network"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_written(
    candor: Callable, run: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    refused = candor("export", run, *arguments)
    assert refused.code == 2
    assert words in refused.err
    assert "Traceback" not in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_is_no_run_is_refused(candor: Callable, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in ("empty", "nowhere"):
        assert "not a run directory" in candor("export", path, "--bundle", "b").err


@pytest.mark.slow
def test_an_onnx_file_is_written_and_described(candor: Callable, tmp_path: Path) -> None:
    kind = forecasters.get("dlinear")
    training = kind.recipe.training.model_copy(update={"epochs": 1})
    panel = river().slice(0, 120)
    model = kind(24, 6, sizes=kind.tiny, recipe=kind.recipe.model_copy(update={"training": training})).fit(panel)
    from made_runs import PROTOCOL

    save_run(tmp_path / "run", model, panel, PROTOCOL, is_catalogued=False)
    shown = candor("export", "run", "--out", "model.onnx", "--bundle", "bundle.zip")
    assert shown.code == 0, shown.err
    for words in ("opset 20", "input readings: batch x 24 x 5", "output forecast: batch x 6 x 5, in m", "differ"):
        assert words in shown.out
    assert (tmp_path / "model.onnx").is_file()
    again = json.loads(candor("export", "bundle.zip", "--out", "again.onnx", "--json").out)
    assert again["onnx"]["metadata"]["sensors"] == json.dumps(["g0", "g1", "g2", "g3", "g4"])
    assert again["onnx"]["difference"] < 1e-4
