"""The simple rules against their definitions, worked out a second way."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from candor.core.errors import InputError
from candor.data.panel import Panel, Sensor
from candor.data.preprocessing import fill, fit_scaler
from candor.data.protocol import split_origins
from candor.data.times import TimeAxis
from candor.forecasting import HistoricalAverage, LastValue, Linear, SeasonalNaive
from candor.forecasting.contract import sample_panel


def hourly(values: np.ndarray, zone: str = "UTC") -> Panel:
    times = TimeAxis(datetime(2024, 3, 1, tzinfo=UTC), timedelta(hours=1), len(values), zone)
    return Panel(values.astype(np.float32), times, tuple(Sensor(f"s{i}") for i in range(values.shape[1])))


def test_last_value_is_the_last_reading_however_old() -> None:
    values = np.arange(60.0).reshape(20, 3)
    values[15:, 1] = np.nan
    values[:, 2] = np.nan
    forecast = LastValue(history=2, horizon=4).fit(hourly(values)).predict(hourly(values))
    np.testing.assert_array_equal(forecast[0, :, 0], 57.0)
    np.testing.assert_array_equal(forecast[0, :, 1], values[14, 1])
    # A sensor that never spoke gets the mean of all readings.
    np.testing.assert_allclose(forecast[0, :, 2], np.nanmean(values), rtol=1e-6)


def test_seasonal_naive_finds_the_season_and_repeats_it() -> None:
    day = np.tile(np.sin(np.arange(24) / 24 * 2 * np.pi), 30)[:, None] * [1.0, 5.0] + 3
    model = SeasonalNaive(history=4, horizon=30).fit(hourly(day))
    assert model.state_["season"][0] == 24
    np.testing.assert_allclose(model.predict(hourly(day))[0], day[:30], rtol=1e-6)


def test_seasonal_naive_prefers_the_week_where_days_differ() -> None:
    week = np.tile(np.random.default_rng(0).normal(size=168), 6)[:, None]
    model = SeasonalNaive(history=4, horizon=6).fit(hourly(week))
    assert model.state_["season"][0] == 168
    np.testing.assert_allclose(model.predict(hourly(week))[0], week[:6], rtol=1e-6)


def test_seasonal_naive_prefers_what_errs_less_over_all_steps_and_not_in_the_last() -> None:
    hours = np.arange(24 * 7 * 12)
    values = (hours / 24 + 16.0 * (hours // 24 % 7 >= 5))[:, None]  # weekends differ, and every day is a little higher
    panel, horizon = hourly(values), 8 * 24
    origins = np.arange(24 * 7 * 3, len(values) - horizon)
    truth = values[origins[:, None] + np.arange(horizon)]
    errors = {}
    for season in (24, 168):
        model = SeasonalNaive(history=4, horizon=horizon, season=season).fit(panel)
        errors[season] = np.abs(model.predict(panel, origins) - truth).mean(axis=(0, 2))
    assert errors[168].mean() < errors[24].mean() and errors[168][-1] > errors[24][-1]
    assert SeasonalNaive(history=4, horizon=horizon).fit(panel).state_["season"][0] == 168


def test_seasonal_naive_goes_back_a_season_more_where_readings_are_missing() -> None:
    values = np.arange(30.0)[:, None]
    values[24:] = np.nan
    forecast = SeasonalNaive(history=2, horizon=3, season=6).fit(hourly(values)).predict(hourly(values))
    np.testing.assert_array_equal(forecast[0, :, 0], [18.0, 19.0, 20.0])


def test_seasonal_naive_says_how_many_rows_it_needs_and_how_many_it_can_use() -> None:
    values = np.random.default_rng(0).normal(size=(300, 2))
    values[280:, 0] = np.nan
    values[200:, 1] = np.nan  # for longer than four seasons
    for horizon, season in ((3, 6), (7, 6), (12, 6), (20, 24)):
        model = SeasonalNaive(history=4, horizon=horizon, season=season).fit(hourly(values))
        whole = model.predict(hourly(values))
        enough = model.predict(hourly(values).slice(300 - model.rows_read, 300))
        np.testing.assert_array_equal(enough, whole)
        known = hourly(np.random.default_rng(1).normal(size=(300, 2)))
        np.testing.assert_array_equal(model.predict(known.slice(300 - model.rows_needed, 300)), model.predict(known))
        assert not np.array_equal(model.predict(known.slice(301 - model.rows_needed, 300)), model.predict(known))


def test_historical_average_is_the_mean_by_local_hour_of_the_week() -> None:
    panel = sample_panel()
    split = split_origins(panel.times.length, 24, 6, "time", (0.6, 0.2, 0.2))
    forecast = HistoricalAverage(history=24, horizon=6).fit(panel, split).predict(panel, split.test)
    frame = panel.to_frame()
    training = frame.iloc[: split.train_end]
    profile = training.groupby([training.index.day_of_week, training.index.hour]).mean()
    for window in (0, 17, len(split.test) - 1):
        for step in range(6):
            moment = panel.times.local[split.test[window] + step]
            expected = profile.loc[(moment.day_of_week, moment.hour)]
            np.testing.assert_allclose(forecast[window, step, [0, 1, 2, 4]], expected.iloc[[0, 1, 2, 4]], rtol=1e-5)


def test_historical_average_follows_the_local_clock_through_a_change_of_clocks() -> None:
    times = pd.date_range("2024-03-01", "2024-04-15", freq="h", tz="Europe/Berlin")
    values = np.asarray(times.hour, dtype=float)[:, None]
    panel = hourly(values, "Europe/Berlin")
    panel = replace(panel, times=replace(panel.times, start=times[0].tz_convert("UTC").to_pydatetime()))
    model = HistoricalAverage(history=24, horizon=24).fit(panel)
    np.testing.assert_allclose(
        model.predict(panel)[0, :, 0], panel.times.slice(len(values), len(values) + 24).local.hour
    )


@pytest.mark.parametrize("gaps", [False, True])
def test_linear_equals_ridge_regression_of_scikit_learn(gaps: bool) -> None:
    chance = np.random.default_rng(1)
    values = chance.normal(size=(300, 3)).cumsum(axis=0)
    if gaps:
        values[chance.random(values.shape) < 0.2] = np.nan
    panel, history, horizon, penalty = hourly(values), 5, 3, 2.5
    split = split_origins(300, history, horizon, "time", (0.6, 0.2, 0.2))
    forecast = Linear(history, horizon, penalty=penalty).fit(panel, split).predict(panel, split.test)

    scaler = fit_scaler(panel.values[: split.train_end])
    means = np.nanmean(panel.values[: split.train_end], axis=0)
    inputs = scaler.scale(fill(panel.values, "last", means)).astype(float)
    targets = scaler.scale(panel.values).astype(float)
    for sensor in range(3):
        for step in range(horizon):
            x = np.array([np.append(inputs[o - history : o, sensor], 1.0) for o in split.train])
            y = targets[split.train + step, sensor]
            known = ~np.isnan(y)
            model = Ridge(alpha=penalty, fit_intercept=False).fit(x[known], (y - x[:, -2])[known])
            test = np.array([np.append(inputs[o - history : o, sensor], 1.0) for o in split.test])
            expected = (model.predict(test) + test[:, -2]) * scaler.deviation + scaler.mean
            np.testing.assert_allclose(forecast[:, step, sensor], expected, rtol=1e-4, atol=1e-4)


def test_linear_is_last_value_for_a_sensor_that_was_silent_in_training() -> None:
    values = np.random.default_rng(2).normal(size=(300, 2))
    values[:200, 1] = np.nan
    panel = hourly(values)
    split = split_origins(300, 5, 3, "time", (0.6, 0.2, 0.2))
    forecasts = [kind(5, 3).fit(panel, split).predict(panel, split.test) for kind in (Linear, LastValue)]
    np.testing.assert_allclose(forecasts[0][..., 1], forecasts[1][..., 1], rtol=1e-4, atol=1e-5)
    assert np.abs(forecasts[0][..., 0] - forecasts[1][..., 0]).max() > 0.1


def test_linear_learns_a_recursion_exactly() -> None:
    values = np.zeros((200, 1))
    values[:2, 0] = 1.0, 0.5
    for t in range(2, 200):
        values[t] = 1.6 * values[t - 1] - values[t - 2]
    forecast = Linear(history=2, horizon=5, penalty=1e-9).fit(hourly(values[:150])).predict(hourly(values[:150]))
    np.testing.assert_allclose(forecast[0, :, 0], values[150:155, 0], atol=1e-3)


def test_the_clock_is_that_of_training_whatever_zone_readings_are_printed_in() -> None:
    values = np.tile(np.arange(168.0), 4)[:, None]  # another level in every hour of the week
    local = hourly(values, "America/Los_Angeles")
    model = HistoricalAverage(history=2, horizon=24).fit(local)
    elsewhere = replace(local, times=replace(local.times, zone="Asia/Tokyo"))
    np.testing.assert_array_equal(model.predict(elsewhere), model.predict(local))


def test_units_are_compared_sensor_by_sensor() -> None:
    panel = hourly(np.ones((50, 3)))
    mixed, other = (
        replace(panel, sensors=tuple(Sensor(f"s{i}", unit=unit) for i, unit in enumerate(units)))
        for units in (("m", "ft", "m"), ("m", "ft", "ft"))
    )
    assert mixed.unit == other.unit
    with pytest.raises(InputError, match="units of the panel differ"):
        LastValue(history=2, horizon=2).fit(mixed).predict(other)
