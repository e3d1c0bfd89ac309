"""TimeMixer++: size, periods of the training windows, images, axes of season and trend, and a mean over scales."""

import numpy as np
import pytest
import torch
from frames import calendar, frame, hourly_windows, metr_la_frame, nodes_moved_by, parameters
from torch.nn import functional as F

from candor.nets.baselines.timemixerpp import Inception, MixingBlock, TimeMixerPP, TimeMixerPPSizes, fold

SIZES = TimeMixerPPSizes(width=4, hidden=6, kernels=3, periods=2, layers=1, dropout=0.0)


def test_it_has_the_parameters_counted_by_hand() -> None:
    nodes, steps, coarse, width, hidden, horizon, layers = 207, 12, 6, 16, 32, 12, 2
    scaling = 2 * 2 * nodes  # weights and shifts of two scales
    reading = 3 + 4 * (coarse + 1) * coarse + 3 * width  # coarser scale, attention of nodes, embedding
    axis = 3 * width * width + 2 * width + 1  # keys without bias
    places = 1 + 9 + 25
    carrying = (places * width * hidden + 3 * hidden) + (places * hidden * width + 3 * width)
    block = 2 * axis + 2 * carrying + 2 * width
    heads = (steps + 1) * horizon + (coarse + 1) * horizon + (width + 1)
    expected = scaling + reading + layers * block + heads
    assert parameters(TimeMixerPP(TimeMixerPPSizes(), metr_la_frame())) == expected == 148_508


@pytest.mark.parametrize(
    ("history", "steps"), [(96, [96, 48, 24, 12]), (50, [48, 24, 12, 6]), (12, [12, 6]), (11, [11]), (1, [1])]
)
def test_a_history_is_halved_while_six_steps_are_left(history: int, steps: list[int]) -> None:
    torch.manual_seed(0)
    network = TimeMixerPP(TimeMixerPPSizes(width=4, hidden=6), frame(3, history, 6)).eval()
    assert network.steps == steps
    values = torch.randn(2, history, 3)
    other = values.clone()
    other[:, : history - steps[0]] += 5
    with torch.no_grad():
        found = network(values, *calendar(2, history + 6))
        assert found.shape == (2, 6, 3) and torch.isfinite(found).all()
        torch.testing.assert_close(network(other, *calendar(2, history + 6)), found, rtol=0, atol=0)


def test_periods_are_those_of_the_waves_in_the_training_windows() -> None:
    rows = np.arange(400)[:, None]
    waves = np.sin(2 * np.pi * rows * 5 / 96) + 0.6 * np.sin(2 * np.pi * (rows * 3 / 96 + np.array([0.1, 0.3])))
    values = waves.astype(np.float32)
    values[300:] = np.sin(2 * np.pi * rows[300:] * 2 / 96)  # not for training
    network = TimeMixerPP(SIZES, frame(2, 96, 6))
    assert network.frequencies.tolist() == [1, 2]
    network.prepare(hourly_windows(values, 96, 280))
    assert network.frequencies.tolist() == [3, 5]
    assert "frequencies" in network.state_dict()


def test_an_image_has_a_row_per_cycle_and_zeros_at_its_end() -> None:
    states = torch.arange(1.0, 8.0).expand(1, 1, 7)
    assert fold(states, 3)[0, 0].tolist() == [[1, 2, 3], [4, 5, 6], [7, 0, 0]]


@pytest.mark.parametrize(("part", "changes"), [("season", [2, 5, 8, 11]), ("trend", [3, 4, 5])])
def test_season_looks_at_one_phase_and_trend_at_one_cycle(part: str, changes: list[int]) -> None:
    torch.manual_seed(0)
    block = MixingBlock(SIZES, has_scales=False).eval()
    with torch.no_grad():
        getattr(block, part).weight.fill_(1.0)
    states = torch.randn(1, 4, 12)
    other = states.clone()
    other[:, :, 5] += 1  # phase 2 of the second cycle of three steps
    with torch.no_grad():
        changed = (block.mix([states], 3)[0] != block.mix([other], 3)[0]).any(dim=1)[0]
    assert changed.nonzero().flatten().tolist() == changes


def test_kernels_that_are_added_up_convolve_like_their_mean() -> None:
    torch.manual_seed(0)
    image, coarse = torch.randn(2, 4, 5, 3), torch.randn(2, 4, 3, 3)
    down, up = Inception(SIZES), Inception(SIZES, is_up=True)
    for bias in (*down.biases, *up.biases):
        torch.nn.init.normal_(bias)
    separate = [
        F.conv2d(image, weight, bias, (2, 1), reach)
        for reach, (weight, bias) in enumerate(zip(down.weights, down.biases, strict=True))
    ]
    torch.testing.assert_close(down(image), torch.stack(separate).mean(dim=0), rtol=1e-4, atol=1e-5)
    for cycles in (5, 6):
        separate = [
            F.conv_transpose2d(coarse, weight, bias, (2, 1), reach, (cycles - 5, 0))
            for reach, (weight, bias) in enumerate(zip(up.weights, up.biases, strict=True))
        ]
        torch.testing.assert_close(up(coarse, cycles), torch.stack(separate).mean(dim=0), rtol=1e-4, atol=1e-5)


def test_the_forecast_is_the_mean_of_what_the_scales_forecast() -> None:
    torch.manual_seed(0)
    network = TimeMixerPP(SIZES, frame(3, 24, 6)).eval()
    values = torch.randn(2, 24, 3)
    with torch.no_grad():
        for head, said in zip(network.heads, (1.0, 2.0, 6.0), strict=True):
            head.weight.zero_()
            head.bias.fill_(said)
        found = network(values, *calendar(2, 30))
        score = 3 * network.projection.weight.sum() + network.projection.bias  # in deviations of the window
    expected = values.mean(dim=1, keepdim=True) + score * values.std(dim=1, keepdim=True, correction=0)
    torch.testing.assert_close(found, expected.expand(-1, 6, -1), rtol=1e-3, atol=1e-4)


def test_nodes_meet_in_the_attention_at_the_coarsest_scale_only() -> None:
    torch.manual_seed(0)
    network = TimeMixerPP(SIZES, frame()).eval()
    assert nodes_moved_by(network, 3) == [0, 1, 2, 3, 4]
    with torch.no_grad():
        network.across.out.weight.zero_()
    assert nodes_moved_by(network, 3) == [3]
