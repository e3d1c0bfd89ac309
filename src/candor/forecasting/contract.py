"""The contract that every forecaster keeps, as checks to run against a forecaster of your own.

from candor.forecasting.contract import check_forecaster
check_forecaster(lambda: MyForecaster(history=24, horizon=6))
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError, NotFittedError
from candor.data.panel import Edges, Panel, Sensor
from candor.data.protocol import split_origins
from candor.data.times import TimeAxis
from candor.forecasting.forecaster import Forecaster, IntervalForecast, read_model

_ROWS = 600


def check_forecaster(make: Callable[[], Forecaster]) -> None:
    """Raise AssertionError with a sentence unless the forecasters that `make` returns keep the contract."""
    contract = _Contract(make)
    for name in vars(_Contract):
        if name.startswith("check_"):
            getattr(contract, name)()


def sample_panel() -> Panel:
    """Return hourly readings of five sensors in a row: one with gaps, one that is silent at the end, one dead."""
    generator = np.random.default_rng(7)
    hours = np.arange(_ROWS)[:, None]
    values = 10 + np.sin(2 * np.pi * (hours / 24 + np.arange(5) / 10)) + 0.1 * generator.standard_normal((_ROWS, 5))
    values[generator.random(_ROWS) < 0.2, 1] = np.nan
    values[-100:, 2] = np.nan
    values[:, 3] = np.nan
    return Panel(
        values=values.astype(np.float32),
        times=TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), _ROWS, "Europe/Berlin"),
        sensors=tuple(Sensor(f"s{i}", unit="m") for i in range(5)),
        edges=Edges(np.arange(4, dtype=np.int32), np.arange(1, 5, dtype=np.int32), np.arange(1, 5, dtype=np.float32)),
        name="sample",
    )


class _Contract:
    """The rules, each a check of its own, in the order of the methods; what is fitted serves all of them."""

    def __init__(self, make: Callable[[], Forecaster]) -> None:
        self.make, self.panel, first = make, sample_panel(), make()
        self.split = split_origins(_ROWS, first.history, first.horizon, "time", (0.7, 0.1, 0.2))
        self.origins = self.split.test[::5]  # enough for two batches, and cheap to ask again and again

    @cached_property
    def fitted(self) -> Forecaster:
        """The forecaster that most checks ask: fitting is what takes time."""
        return self.make().fit(self.panel, self.split)

    @cached_property
    def fitted_on_another_test_part(self) -> Forecaster:
        """Another forecaster, fitted where the test part holds other readings."""
        return self.make().fit(self._with_values_from(self.origins[0], -500.0), self.split)

    @cached_property
    def forecast(self) -> NDArray[np.float32]:
        """The forecasts of the test part by `fitted`."""
        return self.fitted.predict(self.panel, self.origins)

    @cached_property
    def intervals(self) -> IntervalForecast:
        """The intervals of the test part by `fitted`."""
        return self.fitted.predict_interval(self.panel, self.origins)

    def check_constructor_learns_nothing(self) -> None:
        """Before `fit`, predicting and saving raise `NotFittedError`."""
        forecaster = self.make()
        for attempt in (
            lambda: forecaster.predict(self.panel),
            lambda: forecaster.predict_interval(self.panel),
            lambda: forecaster.save("never-written"),
        ):
            try:
                attempt()
            except NotFittedError:
                continue
            raise AssertionError("an unfitted forecaster must raise NotFittedError")

    def check_answer_is_whole(self) -> None:
        """Forecasts are float32, finite and origin x horizon x sensor, also for gaps and dead sensors."""
        horizon, forecast = self.fitted.horizon, self.forecast
        assert forecast.shape == (len(self.origins), horizon, 5), f"wrong shape {forecast.shape}"
        assert forecast.dtype == np.float32, f"forecasts are {forecast.dtype}, not float32"
        assert np.isfinite(forecast).all(), "a forecast is not a number"
        nothing = self.fitted.predict(self.panel, self.origins[:0])
        assert nothing.shape == (0, horizon, 5), "no origins, no forecasts"

    def check_intervals_are_whole(self) -> None:
        """Intervals are float32, finite, in order, around the forecasts of `predict`, and wider for more coverage."""
        assert self.fitted.calibration_ is not None, "a validation part is there, but was not used to calibrate"
        narrow, wide = self.fitted.predict_interval(self.panel, self.origins, 0.5), self.intervals
        _assert_equal(wide.forecast, self.forecast, "predict and predict_interval differ")
        for made in (narrow, wide):
            for end in (made.lower, made.upper):
                assert end.shape == made.forecast.shape and end.dtype == np.float32, "an end has a wrong shape or kind"
                assert np.isfinite(end).all(), "an interval has no end"
            assert (made.lower <= made.upper).all(), "an interval ends below where it begins"
        assert (wide.lower <= narrow.lower).all() and (narrow.upper <= wide.upper).all(), "more coverage is narrower"
        probability = self.fitted.probability_below(self.panel, 10.0, self.origins)
        assert ((probability > 0) & (probability < 1)).all(), "a probability is not between 0 and 1"

    def check_input_is_left_alone(self) -> None:
        """Neither `fit` nor `predict` changes the panel or the settings, nor `predict` what was learned."""
        learned = {name: array.copy() for name, array in self.fitted.state_.items()}
        self.fitted.predict(self.panel)
        # A copy, because a panel remembers its fingerprint.
        assert replace(self.panel).fingerprint == sample_panel().fingerprint, "the panel was changed"
        assert self.fitted.settings() == self.make().settings(), "the settings were changed"
        for name, array in learned.items():
            np.testing.assert_array_equal(self.fitted.state_[name], array, "predict changed what was learned")

    def check_same_seed_same_answer(self) -> None:
        """Fitting again with the same settings gives the same forecasts to the bit."""
        if np.array_equal(self.forecast, self.fitted_on_another_test_part.predict(self.panel, self.origins)):
            return  # what learned the same from other readings learns the same from these
        second = self.make().fit(self.panel, self.split)
        _assert_equal(self.forecast, second.predict(self.panel, self.origins), "the same seed differs")

    def check_saved_answers_the_same(self) -> None:
        """A forecaster that was saved and loaded gives the same forecasts to the bit."""
        with TemporaryDirectory() as folder:
            self.fitted.save(Path(folder) / "model")
            loaded = read_model(Path(folder) / "model")
        assert type(loaded) is type(self.fitted) and loaded.settings() == self.fitted.settings(), "settings were lost"
        _assert_same(loaded.predict_interval(self.panel, self.origins), self.intervals, "saving changed answers")

    def check_batches_answer_like_single_windows(self) -> None:
        """A forecast does not depend on which others are made with it, nor on their order."""
        some = self.origins[::4]
        together = self.fitted.predict(self.panel, some)
        singly = np.concatenate([self.fitted.predict(self.panel, some[i : i + 1]) for i in range(len(some))])
        np.testing.assert_allclose(together, singly, rtol=1e-5, atol=1e-5, err_msg="batch and single windows differ")
        backwards = self.fitted.predict(self.panel, some[::-1])[::-1]
        np.testing.assert_allclose(together, backwards, rtol=1e-5, atol=1e-5, err_msg="the order of windows matters")

    def check_future_is_not_seen(self) -> None:
        """Changing readings from the origin on never changes the forecast."""
        origin = self.origins[len(self.origins) // 2 :][:1]
        other = self._with_values_from(origin[0], 1000.0)
        one, two = (self.fitted.predict(panel, origin) for panel in (self.panel, other))
        _assert_equal(one, two, "the future was seen")

    def check_history_is_enough(self) -> None:
        """A panel that ends before the origin gives the same forecast as one that goes on."""
        origin = self.origins[:1]
        ended = self.fitted.predict(self.panel.slice(0, int(origin[0])))
        _assert_equal(ended, self.fitted.predict(self.panel, origin), "rows after the origin are needed")

    def check_test_part_is_not_learned(self) -> None:
        """Changing the readings of the test part does not change what is learned."""
        models = (self.fitted, self.fitted_on_another_test_part)
        one, two = (model.predict_interval(self.panel, self.origins[:1]) for model in models)
        _assert_same(one, two, "the test part was learned")

    def check_foreign_panels_are_refused(self) -> None:
        """Other sensors, another order, another interval and too short a history raise `InputError`."""
        ids, times = list(self.panel.sensor_ids), self.panel.times
        for other in (
            self.panel.select(ids[:3]),
            self.panel.select(ids[::-1]),
            replace(self.panel, times=replace(times, interval=timedelta(hours=2))),
            self.panel.slice(0, self.fitted.history - 1),
        ):
            try:
                self.fitted.predict(other)
            except InputError:
                continue
            raise AssertionError("a panel that does not fit the model must raise InputError")

    def _with_values_from(self, row: int, value: float) -> Panel:
        values = self.panel.values.copy()
        values[row:] = value
        return replace(self.panel, values=values)


def _assert_same(one: IntervalForecast, other: IntervalForecast, what: str) -> None:
    for name in ("forecast", "lower", "upper"):
        _assert_equal(getattr(one, name), getattr(other, name), what)


def _assert_equal(one: NDArray[np.float32], other: NDArray[np.float32], what: str) -> None:
    np.testing.assert_array_equal(one, other, err_msg=what)
