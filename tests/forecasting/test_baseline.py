"""Published models as forecasters: settings, covariates, and what the stages before the network hand over."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from candor.core.errors import InputError
from candor.data.alignment import align
from candor.data.panel import Covariate, Panel
from candor.forecasting import forecasters
from candor.forecasting.contract import sample_panel
from candor.forecasting.forecaster import Forecaster, load_forecaster
from candor.forecasting.network import found_in
from candor.nets.baselines import baselines
from candor.research.suites import load_suite
from candor.training.checkpoint import Checkpoint

ROWS = 200
READERS = [name for name in baselines if baselines.get(name).reads_covariates]


def make(name: str, **more: object) -> Forecaster:
    kind = forecasters.get(name)
    settings = {"sizes": kind.tiny, "recipe": {"training": {"epochs": 1, "batch": 128}}} | more
    return kind(history=12, horizon=6, **settings)


def with_rain(panel: Panel, rain: np.ndarray) -> Panel:
    return replace(panel, covariates={"rain": Covariate(rain, "mm/h")})


@pytest.mark.parametrize("name", ["stid", "latenttsf"])
def test_a_published_model_is_a_forecaster_with_its_own_settings(name: str) -> None:
    kind, published = forecasters.get(name), baselines.get(name)
    made = kind(history=12, horizon=6)
    assert forecasters.get(name) is kind and kind.name == name and set(baselines) < set(forecasters)
    assert list(made.settings()) == ["history", "horizon", "seed", "fill", "recipe", "sizes", "covariates"]
    assert made.settings()["sizes"] == published.sizes.model_dump() and made.recipe == published.recipe
    with pytest.raises(ValidationError, match="no_such_size"):
        kind(history=12, horizon=6, sizes={"no_such_size": 1})
    with pytest.raises(ValidationError, match="no_such_setting"):
        kind(history=12, horizon=6, no_such_setting=1)


def test_the_models_of_the_rainfall_table_read_rain() -> None:
    assert {"timexer", "xlinear"} <= set(READERS)
    readers = {one.model for one in load_suite("rainfall").contenders if "covariates" in one.settings}
    assert readers <= set(READERS)


@pytest.mark.parametrize("name", READERS)
def test_rain_before_a_forecast_is_read_and_none_after_it(name: str, tmp_path: Path) -> None:
    panel = sample_panel().slice(0, ROWS)
    rain = np.random.default_rng(0).gamma(0.3, size=panel.values.shape).astype(np.float32)
    wet, origins = with_rain(panel, rain), np.array([100])
    fitted = make(name, covariates=("rain",)).fit(wet)
    plain = fitted.predict(wet, origins)
    for row, is_read in ((87, False), (88, True), (99, True), (100, False)):  # twelve steps are read
        changed = rain.copy()
        changed[row] += 50
        assert np.array_equal(plain, fitted.predict(with_rain(panel, changed), origins)) != is_read
    with pytest.raises(InputError, match="no covariate called 'rain'"):
        fitted.predict(panel)
    fitted.save(tmp_path / "model")
    assert np.array_equal(plain, load_forecaster(tmp_path / "model").predict(wet, origins))
    assert fitted.quantities_read() == ("rain",)
    aligned = align(wet, fitted.trained_on_, 12, horizon=6).panel
    assert np.array_equal(fitted.predict(aligned), fitted.predict(wet))
    with pytest.raises(InputError, match="also reads rain"):
        align(panel, fitted.trained_on_, 12, horizon=6)


@pytest.mark.parametrize("name", READERS)
def test_rain_changes_nothing_where_it_is_not_asked_for(name: str) -> None:
    panel = sample_panel().slice(0, ROWS)
    rain = np.ones(panel.values.shape, np.float32)
    dry, wet = (make(name).fit(given) for given in (panel, with_rain(panel, rain)))
    assert np.array_equal(dry.predict(panel), wet.predict(panel)) and dry.quantities_read() == ()


def test_a_model_that_cannot_read_rain_says_who_can() -> None:
    panel = sample_panel().slice(0, ROWS)
    with pytest.raises(InputError, match="reads no covariates") as refused:
        make("stid", covariates=("rain",)).fit(with_rain(panel, np.ones(panel.values.shape, np.float32)))
    assert all(name in refused.value.hint for name in READERS)


def test_the_choice_is_kept_with_the_run_and_in_the_model(tmp_path: Path) -> None:
    fitted = make("autostf").fit(sample_panel(), folder=tmp_path)
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept == found_in(fitted.state_) == fitted.trained().network.choice
    assert [len(kept["temporal"]), [len(patch) for patch in kept["spatial"]]] == [3, [3, 3]]


def test_the_autoencoder_is_the_one_of_its_stage_when_the_forecaster_has_learned(tmp_path: Path) -> None:
    recipe = {"training": {"epochs": 3, "batch": 128}, "autoencoder_epochs": 1.0}
    fitted = make("latenttsf", recipe=recipe).fit(sample_panel(), folder=tmp_path)
    for name, weights in Checkpoint(tmp_path / "autoencoder").load_best().items():
        assert (fitted.state_[f"weights/autoencoder.{name}"] == weights.numpy()).all()
    first, *_, last = (line["validation_error"] for line in Checkpoint(tmp_path / "autoencoder").read_log())
    assert last < first
