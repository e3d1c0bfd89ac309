"""TimeBridge: size, comparison without means, nodes that meet in one layer, and errors of frequencies."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, nodes_moved_by, parameters, targets
from torch import Tensor

from candor.nets.baselines.timebridge import TimeBridge, TimeBridgeSizes, detrended, frequency_error

SIZES = TimeBridgeSizes(width=8, feed_forward=16, heads=2, kept=2)


def network(**more: int) -> TimeBridge:
    torch.manual_seed(0)
    return TimeBridge(SIZES.model_copy(update=more), frame()).double().eval()


def forecast(made: TimeBridge, values: Tensor) -> Tensor:
    with torch.no_grad():
        return made(values, *calendar(len(values), 18))


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, hidden, patch, patches, kept, horizon = 128, 256, 3, 4, 4, 12
    attention = 4 * width * width + 3 * width  # keys without bias
    settling = (width + 1) * hidden + (hidden + 1) * width + 2 * 2 * width
    integrated = attention + settling
    sampling = attention + settling + patches * kept + (kept + 1) * kept
    cointegrated = 2 * attention + settling
    expected = patch * width + integrated + sampling + cointegrated + kept * width * horizon
    assert parameters(TimeBridge(TimeBridgeSizes(), metr_la_frame())) == expected == 469_540


@pytest.mark.parametrize("layers", [{}, {"integrated_layers": 0}, {"sampling_layers": 0}, {"sampling_layers": 2}])
def test_the_unit_of_a_node_is_the_unit_of_its_forecast_and_of_no_other(layers: dict[str, int]) -> None:
    made, values = network(**layers), 3 * torch.randn(2, 12, 5, dtype=torch.float64)
    other = values.clone()
    other[:, :, 3] = 40 * values[:, :, 3] - 7
    expected = forecast(made, values)
    expected[:, :, 3] = 40 * expected[:, :, 3] - 7
    torch.testing.assert_close(forecast(made, other), expected, rtol=1e-3, atol=1e-3)


def test_nodes_and_the_calendar_meet_in_the_cointegrated_layers_only() -> None:
    torch.manual_seed(1)
    values = torch.randn(2, 12, 5, dtype=torch.float64)
    for layers, expected in ((1, [0, 1, 2, 3, 4]), (0, [3])):
        made = network(cointegrated_layers=layers)
        assert nodes_moved_by(made, 3) == expected
        time_of_day, day_of_week = calendar(2, 18)
        with torch.no_grad():
            later = made(values, time_of_day + 100, day_of_week)
        assert bool((later != forecast(made, values)).all()) == bool(layers)


def test_comparison_takes_off_the_mean_of_the_features_before() -> None:
    tokens = torch.tensor([[[1.0, 2.0, 4.0, 8.0, 8.0]]])
    torch.testing.assert_close(detrended(tokens, 2), tokens - torch.tensor([1.5, 1.5, 3.0, 6.0, 8.0]))
    torch.testing.assert_close(detrended(tokens + 5, 3), detrended(tokens, 3))


def test_the_error_of_frequencies_is_the_mean_distance_of_two_spectra() -> None:
    torch.manual_seed(0)
    ahead, wanted = torch.randn(2, 3, 7, 4, dtype=torch.float64)
    expected = (torch.fft.rfft(ahead, dim=1) - torch.fft.rfft(wanted, dim=1)).abs().mean()
    torch.testing.assert_close(frequency_error(ahead, targets(wanted)), expected)
    steady = frequency_error(wanted + 2, targets(wanted))  # all of it at frequency 0, of four frequencies
    torch.testing.assert_close(steady, torch.tensor(2 * 7 / 4, dtype=torch.float64))


def test_a_node_without_targets_adds_no_error_and_does_not_thin_out_that_of_others() -> None:
    torch.manual_seed(0)
    ahead, wanted = torch.randn(2, 3, 6, 4, dtype=torch.float64)
    mask = torch.ones(3, 6, 4, dtype=torch.bool)
    mask[:, :, 1] = False
    there = [0, 2, 3]
    expected = frequency_error(ahead[:, :, there], targets(wanted[:, :, there]))
    torch.testing.assert_close(frequency_error(ahead, targets(wanted, mask)), expected)
