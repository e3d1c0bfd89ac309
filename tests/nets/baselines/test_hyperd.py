"""HyperD: size, profiles that begin with means of training, rows of the right time, and one second term for two."""

import numpy as np
import pandas as pd
import pytest
import torch
from frames import calendar, frame, hourly_windows, metr_la_frame, parameters, targets
from torch.nn import functional as F

from candor.nets.baselines.hyperd import Hyperd, HyperdSizes, laplacian

SIZES = Hyperd.tiny


def test_it_has_the_parameters_counted_by_hand() -> None:
    nodes, width, hidden, head = 207, 64, 128, 128
    profiles = sum(
        rows * nodes  # table
        + (nodes**2 + nodes)
        + (3 * nodes**2 + 2 * nodes)  # attention over rows, keys without bias
        + (3 * rows**2 + 2 * rows)  # and over sensors
        + (2 * nodes**2 + nodes)
        for rows in (288, 7 * 288)
    )
    perceptrons = 2 * 2 * (width * hidden + hidden + hidden * width + width)  # two axes, two parts of a number
    remainder = width + perceptrons + (12 * width * head + head) + (head * 12 + 12)
    published = profiles + remainder + 2 * nodes + 288 + 7 * 288  # with the biases of the keys
    assert published == 13_608_046
    assert parameters(Hyperd(HyperdSizes(), metr_la_frame())) == profiles + remainder


def test_profiles_begin_with_the_means_of_observed_readings_of_the_hour_and_of_the_hour_of_the_week() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=(400, 2)).astype(np.float32)
    values[generator.random(values.shape) < 0.3] = np.nan
    values[:, 1] = np.nan  # dead
    made = Hyperd(SIZES, frame(2, history=12, horizon=6))
    made.prepare(hourly_windows(values, 12, 301))

    seen = pd.Series(values[:300, 0], index=pd.date_range("2024-01-03", periods=300, freq="h"))  # rows windows read
    day = seen.groupby(seen.index.hour).mean()
    week = seen.groupby(seen.index.day_of_week * 24 + seen.index.hour).mean().reindex(range(168))
    assert week.isna().any()
    expected = week.fillna(pd.Series(np.tile(day, 7)))
    np.testing.assert_allclose(made.day.table[:, 0].detach(), day, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made.week.table[:, 0].detach(), expected, rtol=1e-5, atol=1e-6)
    assert (made.day.table[:, 1] == 0).all() and (made.week.table[:, 1] == 0).all()


def test_the_forecast_is_the_profile_of_its_own_time_where_the_remainder_is_silent() -> None:
    torch.manual_seed(0)
    values, (time_of_day, day_of_week) = torch.randn(3, 12, 5), calendar(3, 18, 12)
    described = Hyperd(SIZES, frame()).eval()
    released = Hyperd(SIZES.model_copy(update={"as_released": True}), frame()).eval()
    with torch.no_grad():
        described.remainder.second.weight.zero_()
        described.remainder.second.bias.zero_()
        released.load_state_dict(described.state_dict())
        week = described.week(described.mixing)
        day = described.day(described.mixing)
        hours = (day_of_week * 24 + time_of_day // 12)[:, 12:]
        torch.testing.assert_close(described(values, time_of_day, day_of_week), day[hours % 24] + week[hours])
        late = (hours + 11) % 168
        torch.testing.assert_close(released(values, time_of_day, day_of_week), day[late % 24] + week[late])


@pytest.mark.parametrize("horizon", [8, 12, 24, 96])
def test_the_second_term_is_both_views_of_the_forecast(horizon: int) -> None:
    torch.manual_seed(0)
    made = Hyperd(SIZES, frame(horizon=horizon)).eval()
    inputs = (torch.randn(3, 12, 5), *calendar(3, 12 + horizon, 12))
    wanted = torch.zeros(3, horizon, 5)
    with torch.no_grad():
        profile, remainder = made.parts(*inputs)
        forecast, terms = made.objective(inputs, targets(wanted, share=0.5))
    slowest = [k for k in range(horizon) if k * 6 <= horizon]  # waves of six steps and longer, at any horizon
    turns = 2 * np.pi * np.arange(horizon) / horizon
    waves = [np.cos(k * turns) for k in slowest] + [np.sin(k * turns) for k in slowest[1:]]
    basis = np.stack([wave / np.linalg.norm(wave) for wave in waves])
    slow = torch.from_numpy(basis.T @ basis).float() @ forecast
    views = F.mse_loss(profile, slow) + F.mse_loss(remainder, forecast - slow)
    torch.testing.assert_close(terms["dual_view"], 2.0 * 0.5 * views)


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_the_shortest_horizons_leave_something_to_the_remainder(horizon: int) -> None:
    made = Hyperd(SIZES, frame(horizon=horizon))
    inputs = (torch.randn(3, 12, 5), *calendar(3, 12 + horizon, 12))
    wanted = torch.zeros(3, horizon, 5)
    _, terms = made.objective(inputs, targets(wanted, share=0.5))
    assert ("dual_view" in terms) == (horizon > 1)


def test_self_loops_change_nothing_and_a_lonely_sensor_keeps_its_profile() -> None:
    adjacency = torch.tensor([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    torch.testing.assert_close(laplacian(adjacency), expected)
    torch.testing.assert_close(laplacian(adjacency + 3 * torch.eye(3)), expected)
    torch.testing.assert_close(laplacian(1e-36 * adjacency), expected)  # as light as edges of nearly the same length
