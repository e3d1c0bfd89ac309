"""One call loads a fitted model from wherever it was put, and tells one kind of model from another."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run

from candor import Candor, Forecaster, HistoricalAverage, Linear
from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.data.protocol import Protocol
from candor.forecasting import forecasters
from candor.runs.bundle import write_bundle
from candor.runs.run import Run, load_run, save_run

PLACES = ("run", "run/model", "bundle", "bundle.zip")


@pytest.fixture(scope="module")
def made(make_candor, panel: Panel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of CANDOR in every form in which one is kept."""
    folder = tmp_path_factory.mktemp("made")
    run = save_run(folder / "run", make_candor(), panel, Protocol(history=12, horizon=4), is_catalogued=False)
    write_bundle(run, folder / "bundle")
    write_bundle(run, folder / "bundle.zip")
    return folder


@pytest.fixture
def places(made: Path, tmp_path: Path) -> Path:
    """The same for a test to do with what it likes."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_every_form_of_a_model_gives_the_same_forecasts(places: Path, make_candor, panel: Panel) -> None:
    expected = make_candor().predict(panel)
    for place in PLACES:
        loaded = Candor.load(places / place)
        assert type(loaded) is Candor
        np.testing.assert_array_equal(loaded.predict(panel), expected)
        assert type(Forecaster.load(str(places / place))) is Candor


def test_what_was_loaded_from_a_file_outlives_the_file(places: Path, make_candor, panel: Panel) -> None:
    loaded = Candor.load(places / "bundle.zip")
    (places / "bundle.zip").unlink()
    loaded.save(places / "again")
    np.testing.assert_array_equal(Candor.load(places / "again").predict(panel), make_candor().predict(panel))


@pytest.mark.parametrize("place", PLACES)
def test_a_model_of_another_kind_is_refused_in_plain_words(places: Path, place: str) -> None:
    with pytest.raises(InputError, match=r"a model of Candor \(candor\), not of Linear") as refused:
        Linear.load(places / place)
    assert refused.value.where == str(places / place)
    assert "Candor.load" in refused.value.hint and "Forecaster.load" in refused.value.hint


def test_a_baseline_is_not_taken_for_candor(tmp_path: Path, run: Run) -> None:
    average = load_run(make_run(tmp_path / "average", "historical-average"))
    stid = load_run(make_run(tmp_path / "stid", "stid", recipe={"training": {"epochs": 1, "batch": 128}}))
    for name, bundled in (("stid", stid), ("average", average), ("linear", run)):
        path = write_bundle(bundled, tmp_path / f"{name}.zip")
        with pytest.raises(InputError, match=r"not of Candor"):
            Candor.load(path)
    stid = forecasters.get("stid")
    assert type(stid.load(tmp_path / "stid.zip")) is stid
    assert type(HistoricalAverage.load(tmp_path / "average.zip")) is HistoricalAverage


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_a_damaged_bundle_is_refused(places: Path, name: str) -> None:
    path = places / name
    damaged = path if path.is_file() else path / "model" / "state.safetensors"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(InputError, match="bundle"):
        Candor.load(path)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff" + bytes(100))
    for name, words in (("nowhere", "no such"), ("letters", "not a run"), ("photo.jpg", "not a bundle")):
        with pytest.raises(InputError, match=words):
            Forecaster.load(tmp_path / name)


def test_an_unfinished_run_has_nothing_to_load(places: Path) -> None:
    shutil.rmtree(places / "run" / "model")
    with pytest.raises(InputError, match="unfinished"):
        Candor.load(places / "run")
