"""The manners that every forecaster has, as checks that anybody can run against a forecaster of their own.

from candor.forecasting.contract import check_forecaster
check_forecaster(lambda: MyForecaster(history=24, horizon=6))
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError, NotFittedError
from candor.data.panel import Edges, Panel, Sensor
from candor.data.protocol import Origins, Split, split_origins
from candor.data.times import TimeAxis
from candor.forecasting.forecaster import Forecaster, IntervalForecast, read_model

Make = Callable[[], Forecaster]
_ROWS = 600


def check_forecaster(make: Make) -> None:
    """Raises AssertionError with a sentence unless the forecasters that `make` returns keep the contract."""
    for check in (
        check_constructor_learns_nothing,
        check_answer_is_whole,
        check_intervals_are_whole,
        check_input_is_left_alone,
        check_same_seed_same_answer,
        check_saved_answers_the_same,
        check_batches_answer_like_single_windows,
        check_future_is_not_seen,
        check_history_is_enough,
        check_test_part_is_not_learned,
        check_foreign_panels_are_refused,
    ):
        check(make)


def sample_panel() -> Panel:
    """Returns hourly readings of five sensors in a row: one with gaps, one that is silent at the end, one dead."""
    chance = np.random.default_rng(7)
    hours = np.arange(_ROWS)[:, None]
    values = 10 + np.sin(2 * np.pi * (hours / 24 + np.arange(5) / 10)) + 0.1 * chance.standard_normal((_ROWS, 5))
    values[chance.random(_ROWS) < 0.2, 1] = np.nan
    values[-100:, 2] = np.nan
    values[:, 3] = np.nan
    return Panel(
        values=values.astype(np.float32),
        times=TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), _ROWS, "Europe/Berlin"),
        sensors=tuple(Sensor(f"s{i}", unit="m") for i in range(5)),
        edges=Edges(np.arange(4, dtype=np.int32), np.arange(1, 5, dtype=np.int32), np.arange(1, 5, dtype=np.float32)),
        name="sample",
    )


def check_constructor_learns_nothing(make: Make) -> None:
    """Before `fit`, predicting and saving are refused in plain words."""
    forecaster = make()
    for attempt in (
        lambda: forecaster.predict(sample_panel()),
        lambda: forecaster.predict_interval(sample_panel()),
        lambda: forecaster.save("never-written"),
    ):
        try:
            attempt()
        except NotFittedError:
            continue
        raise AssertionError("an unfitted forecaster must raise NotFittedError")


def check_answer_is_whole(make: Make) -> None:
    """Forecasts are float32, finite and origin x horizon x sensor, also for gaps and dead sensors."""
    forecaster, panel, split = _fitted(make)
    forecast = _forecast(make)
    assert forecast.shape == (len(split.test), forecaster.horizon, 5), f"wrong shape {forecast.shape}"
    assert forecast.dtype == np.float32, f"forecasts are {forecast.dtype}, not float32"
    assert np.isfinite(forecast).all(), "a forecast is not a number"
    assert forecaster.predict(panel, split.test[:0]).shape == (0, forecaster.horizon, 5), "no origins, no forecasts"


def check_intervals_are_whole(make: Make) -> None:
    """Intervals are float32, finite, in order, around the forecasts of `predict`, and wider for more coverage."""
    forecaster, panel, split = _fitted(make)
    assert forecaster.calibration_ is not None, "a validation part is there, but was not used to calibrate"
    narrow, wide = forecaster.predict_interval(panel, split.test, 0.5), _interval_forecast(make)
    _assert_equal(wide.forecast, _forecast(make), "predict and predict_interval differ")
    for made in (narrow, wide):
        for end in (made.lower, made.upper):
            assert end.shape == made.forecast.shape and end.dtype == np.float32, "an end has a wrong shape or kind"
            assert np.isfinite(end).all(), "an interval has no end"
        assert (made.lower <= made.upper).all(), "an interval ends below where it begins"
    assert (wide.lower <= narrow.lower).all() and (narrow.upper <= wide.upper).all(), "more coverage is narrower"
    probability = forecaster.probability_below(panel, 10.0, split.test)
    assert ((probability > 0) & (probability < 1)).all(), "a probability is not between 0 and 1"


def check_input_is_left_alone(make: Make) -> None:
    """Neither `fit` nor `predict` changes the panel or the settings, and `predict` does not change what was learned."""
    forecaster, panel, _ = _fitted(make)
    learned = {name: array.copy() for name, array in forecaster.state_.items()}
    forecaster.predict(panel)
    # A copy, because a panel remembers its fingerprint.
    assert replace(panel).fingerprint == sample_panel().fingerprint, "the panel was changed"
    assert forecaster.settings() == make().settings(), "the settings were changed"
    for name, array in learned.items():
        np.testing.assert_array_equal(forecaster.state_[name], array, "predict changed what was learned")


def check_same_seed_same_answer(make: Make) -> None:
    """Fitting again with the same settings gives the same forecasts to the bit."""
    _, panel, split = _fitted(make)
    expected = _forecast(make)
    if np.array_equal(expected, _fitted_on_another_test_part(make).predict(panel, split.test)):
        return  # who learned the same from other readings learns the same from these
    second, _, _ = _fit(make)
    _assert_equal(expected, second.predict(panel, split.test), "the same seed differs")


def check_saved_answers_the_same(make: Make) -> None:
    """A forecaster that was saved and loaded gives the same forecasts to the bit."""
    forecaster, panel, split = _fitted(make)
    with TemporaryDirectory() as folder:
        forecaster.save(Path(folder) / "model")
        loaded = read_model(Path(folder) / "model")
    assert type(loaded) is type(forecaster) and loaded.settings() == forecaster.settings(), "settings were lost"
    expected = _parts(_interval_forecast(make))
    for one, other in zip(_answers(loaded, panel, split.test), expected, strict=True):
        _assert_equal(one, other, "saving changed answers")


def check_batches_answer_like_single_windows(make: Make) -> None:
    """A forecast does not depend on which others are made with it, nor on their order."""
    forecaster, panel, split = _fitted(make)
    origins = split.test[::7]
    together = forecaster.predict(panel, origins)
    singly = np.concatenate([forecaster.predict(panel, origins[i : i + 1]) for i in range(len(origins))])
    np.testing.assert_allclose(together, singly, rtol=1e-5, atol=1e-5, err_msg="batch and single windows differ")
    backwards = forecaster.predict(panel, origins[::-1])[::-1]
    np.testing.assert_allclose(together, backwards, rtol=1e-5, atol=1e-5, err_msg="the order of windows matters")


def check_future_is_not_seen(make: Make) -> None:
    """Changing readings from the origin on never changes the forecast."""
    forecaster, panel, split = _fitted(make)
    origin = split.test[len(split.test) // 2 :][:1]
    other = _with_values_from(panel, int(origin[0]), 1000.0)
    _assert_equal(forecaster.predict(panel, origin), forecaster.predict(other, origin), "the future was seen")


def check_history_is_enough(make: Make) -> None:
    """A panel that ends before the origin gives the same forecast as one that goes on."""
    forecaster, panel, split = _fitted(make)
    origin = split.test[:1]
    ended = panel.slice(0, int(origin[0]))
    _assert_equal(forecaster.predict(ended), forecaster.predict(panel, origin), "rows after the origin are needed")


def check_test_part_is_not_learned(make: Make) -> None:
    """Changing the readings of the test part does not change what is learned."""
    first, panel, split = _fitted(make)
    second = _fitted_on_another_test_part(make)
    before = split.test[:1]
    for one, other in zip(_answers(first, panel, before), _answers(second, panel, before), strict=True):
        _assert_equal(one, other, "the test part was learned")


def check_foreign_panels_are_refused(make: Make) -> None:
    """Other sensors, another order, another interval and too short a history are refused in plain words."""
    forecaster, panel, _ = _fitted(make)
    ids = list(panel.sensor_ids)
    foreign = [
        panel.select(ids[:3]),
        panel.select(ids[::-1]),
        replace(panel, times=replace(panel.times, interval=timedelta(hours=2))),
        panel.slice(0, forecaster.history - 1),
    ]
    for other in foreign:
        try:
            forecaster.predict(other)
        except InputError:
            continue
        raise AssertionError("a panel that does not fit the model must raise InputError")


def _split(forecaster: Forecaster) -> Split:
    return split_origins(_ROWS, forecaster.history, forecaster.horizon, "time", (0.6, 0.2, 0.2))


@lru_cache(maxsize=1)
def _fitted(make: Make) -> tuple[Forecaster, Panel, Split]:
    """Returns one fitted forecaster for all checks that only ask it: fitting is what takes time."""
    return _fit(make)


@lru_cache(maxsize=1)
def _fitted_on_another_test_part(make: Make) -> Forecaster:
    """Returns another forecaster, fitted where the test part holds other readings, for all checks that ask it."""
    _, panel, split = _fitted(make)
    return make().fit(_with_values_from(panel, int(split.test[0]), -500.0), split)


@lru_cache(maxsize=1)
def _forecast(make: Make) -> NDArray[np.float32]:
    """Returns the forecasts of the test part by `_fitted`, for all checks that compare others with them."""
    forecaster, panel, split = _fitted(make)
    return forecaster.predict(panel, split.test)


@lru_cache(maxsize=1)
def _interval_forecast(make: Make) -> IntervalForecast:
    """Returns the intervals of the test part by `_fitted`, for all checks that compare others with them."""
    forecaster, panel, split = _fitted(make)
    return forecaster.predict_interval(panel, split.test)


def _fit(make: Make) -> tuple[Forecaster, Panel, Split]:
    forecaster, panel = make(), sample_panel()
    split = _split(forecaster)
    return forecaster.fit(panel, split), panel, split


def _answers(forecaster: Forecaster, panel: Panel, origins: Origins) -> tuple[NDArray[np.float32], ...]:
    return _parts(forecaster.predict_interval(panel, origins))


def _parts(made: IntervalForecast) -> tuple[NDArray[np.float32], ...]:
    return made.forecast, made.lower, made.upper


def _with_values_from(panel: Panel, row: int, value: float) -> Panel:
    values = panel.values.copy()
    values[row:] = value
    return replace(panel, values=values)


def _assert_equal(one: NDArray[np.float32], other: NDArray[np.float32], what: str) -> None:
    np.testing.assert_array_equal(one, other, err_msg=what)
