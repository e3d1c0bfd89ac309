"""The parts of an account sum to its forecast; alone they are what they are called; torch makes the same of them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from made_readings import river_panel

from candor.account.account import Account
from candor.account.settings import AccountSettings, PartName
from candor.data.panel import Panel
from candor.data.protocol import Protocol, Split, make_task
from candor.data.synthetic import generate_river
from candor.data.times import calendar_of
from candor.data.windows import future_windows
from candor.forecasting.account import AccountForecaster
from candor.forecasting.contract import sample_panel
from candor.nets.additive.account import AccountLayer
from candor.nets.trainable import tensors_of

SPANS = {"history": 12, "horizon": 6}


@cache
def river() -> tuple[Panel, Split]:
    panel, _ = generate_river(sensors=6, steps=1500, seed=4, missing_share=0.05)
    return panel, make_task(panel, Protocol(**SPANS)).split


@cache
def fitted(*parts: PartName) -> AccountForecaster:
    settings = AccountSettings(parts=parts) if parts else AccountSettings()
    return AccountForecaster(**SPANS, account=settings).fit(*river())


def test_parts_sum_to_the_forecast_of_every_sensor_and_step() -> None:
    panel, split = river()
    parts, forecast = fitted().parts(panel, split.test), fitted().predict(panel, split.test)
    arrived = np.zeros(forecast.shape, np.float64)
    for link, receiver in enumerate(parts.receiver):
        arrived[:, :, receiver] += parts.arrivals[link]
    np.testing.assert_allclose(parts.usual + parts.own + arrived + parts.rest, forecast, rtol=1e-5, atol=1e-5)
    assert np.abs(arrived).max() > 0.05, "nothing arrives along the edges of a river"


def test_the_usual_alone_is_the_profile() -> None:
    panel, split = river()
    alone = fitted("usual")
    usual = Account.from_state(alone.state_).deviations.usual.at(calendar_of(panel.times))
    rows = split.test[:, None] + np.arange(SPANS["horizon"])
    np.testing.assert_allclose(alone.predict(panel, split.test), usual[rows], rtol=1e-6)


def test_own_alone_is_an_autoregression_that_no_other_sensor_changes() -> None:
    panel, split = river()
    alone, origin = fitted("own"), split.test[:1]
    values = panel.values.copy()
    values[:, 1:] += 3
    changed = alone.predict(replace(panel, values=values), origin)
    np.testing.assert_array_equal(changed[..., 0], alone.predict(panel, origin)[..., 0])
    shifted = alone.predict(replace(panel, values=panel.values * np.float32(1)), origin)
    assert np.isfinite(shifted).all() and len(Account.from_state(alone.state_).links) == 0


def test_neighbours_matter_only_along_links() -> None:
    panel, split = river()
    account = Account.from_state(fitted().state_)
    origin = split.test[:1]
    before = fitted().predict(panel, origin)[0]
    for sensor in range(len(panel.sensors)):
        values = panel.values.copy()
        values[origin[0] - 1, sensor] += 1.0
        moved = np.abs(fitted().predict(replace(panel, values=values), origin)[0] - before).max(axis=0) > 1e-6
        reached = {sensor, *account.links.receiver[account.links.sender == sensor].tolist()}
        assert set(np.flatnonzero(moved).tolist()) <= reached


def test_turning_the_sensors_round_turns_the_forecast_round() -> None:
    panel, split = river()
    order = list(reversed(panel.sensor_ids))
    settings = fitted().chosen()
    straight = AccountForecaster(**SPANS, account=settings).fit(panel, split).predict(panel, split.test[:5])
    turned_panel = panel.select(order)
    turned = AccountForecaster(**SPANS, account=settings).fit(turned_panel, split).predict(turned_panel, split.test[:5])
    np.testing.assert_allclose(turned[..., ::-1], straight, rtol=1e-3, atol=1e-3)


def test_the_layer_in_torch_makes_the_same_forecast() -> None:
    panel, split = river()
    account = Account.from_state(fitted().state_)
    filled = account.deviations.filled(panel.values, calendar_of(panel.times))
    batch = tensors_of(future_windows(panel, filled, split.test, *SPANS.values()).batch(slice(None)))
    layer = AccountLayer(account)
    found = layer(batch["inputs"], batch["time_of_day"], batch["day_of_week"], batch["week_of_year"])
    forecast = layer.in_unit(found.forecast, found).numpy()
    np.testing.assert_allclose(forecast, fitted().predict(panel, split.test), rtol=1e-5, atol=1e-5)
    assert not list(layer.parameters()) and not layer.state_dict()


@pytest.mark.parametrize("change", ["no edges", "one sensor", "a day", "dead", "constant", "long horizon", "other unit"])
def test_poor_data_give_finite_forecasts(change: str) -> None:
    panel, spans = sample_panel(), dict(SPANS)
    if change == "no edges":
        panel = replace(panel, edges=panel.edges.among([], len(panel.sensors)))
    elif change == "one sensor":
        panel = panel.select([panel.sensor_ids[0]])
    elif change == "a day":
        panel = panel.slice(0, 40)
    elif change == "long horizon":
        spans = {"history": 3, "horizon": 30}
    else:
        values = panel.values.copy()
        values[:, 0] = {"dead": np.nan, "constant": 7.0}.get(change, 0.0)
        values = values * np.float32(1e6) if change == "other unit" else values
        panel = replace(panel, values=values)
    forecast = AccountForecaster(**spans).fit(panel).predict(panel)
    assert np.isfinite(forecast).all()
    if change == "constant":
        np.testing.assert_allclose(forecast[..., 0], 7.0, atol=0.05)
    if change == "other unit":
        plain = AccountForecaster(**spans).fit(sample_panel())
        assert np.isfinite(plain.predict(sample_panel())).all()


def test_a_river_is_forecast_better_than_by_its_parts() -> None:
    panel, split = river()
    truth = panel.values[split.test[:, None] + np.arange(SPANS["horizon"])]

    def error(*parts: PartName) -> float:
        return float(np.nanmean(np.abs(fitted(*parts).predict(panel, split.test) - truth)))

    assert error() < min(error("usual"), error("own"))


def test_the_panel_of_other_tests_can_be_accounted_for() -> None:
    panel = river_panel()
    assert np.isfinite(AccountForecaster(history=8, horizon=3).fit(panel).predict(panel)).all()
    torch.manual_seed(0)
