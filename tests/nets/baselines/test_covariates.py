"""Rain reaches the models that can read it through the panel: before a forecast, not after it, and after saving too."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.alignment import align
from candor.data.panel import Covariate, Panel
from candor.forecasting import forecasters
from candor.forecasting.contract import sample_panel
from candor.forecasting.forecaster import Forecaster, load_forecaster
from candor.research.suites import load_suite

ROWS = 200
READERS = [name for name in forecasters.names() if getattr(forecasters.get(name), "reads_covariates", False)]


def make(name: str, **more: object) -> Forecaster:
    training = {"training": {"epochs": 1, "batch": 128}}
    kind = forecasters.get(name)
    return kind(history=12, horizon=6, sizes=kind.tiny, recipe=training, **more)


def with_rain(panel: Panel, rain: np.ndarray) -> Panel:
    return replace(panel, covariates={"rain": Covariate(rain, "mm/h")})


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
