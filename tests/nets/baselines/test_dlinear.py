"""DLinear: sizes as published, the mean of the history at first, and two routes to the moving average."""

import numpy as np
import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters

from candor.nets.baselines.dlinear import Dlinear, DlinearSizes
from candor.nets.layers import moving_average


def test_it_has_the_parameters_counted_by_hand() -> None:
    assert parameters(Dlinear(DlinearSizes(), metr_la_frame())) == 2 * (12 * 12 + 12)


def test_before_training_it_forecasts_the_mean_of_the_history() -> None:
    network = Dlinear(DlinearSizes(), metr_la_frame())
    values = torch.randn(2, 12, 207, generator=torch.Generator().manual_seed(0))
    biases = network.trend.bias + network.remainder.bias
    expected = values.mean(dim=1, keepdim=True) + biases[None, :, None]
    torch.testing.assert_close(network(values, *calendar(2, 24)), expected)


@pytest.mark.parametrize(("history", "window"), [(1, 3), (2, 3), (5, 3), (12, 5), (48, 23), (96, 25)])
def test_the_trend_is_the_average_over_a_window_that_fits(history: int, window: int) -> None:
    network = Dlinear(DlinearSizes(), frame(history=history))
    series = torch.randn(history, generator=torch.Generator().manual_seed(0))
    longer = np.pad(series.double().numpy(), window // 2, mode="edge")
    expected = np.convolve(longer, np.full(window, 1 / window), mode="valid")
    np.testing.assert_allclose(moving_average(series[None, None], network.window)[0, 0].numpy(), expected, atol=1e-6)
