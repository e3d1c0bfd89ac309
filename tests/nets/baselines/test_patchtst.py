"""PatchTST: sizes as counted, one network for every sensor, and patches that leave nothing out."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters, unread_steps
from torch import Tensor

from candor.nets.baselines.patchtst import PatchTst, PatchTstLayer, PatchTstSizes

SIZES = PatchTstSizes(width=8, feed_forward=16, heads=2)


def forecast(network: PatchTst, values: Tensor) -> Tensor:
    with torch.no_grad():
        return network.eval()(values, *calendar(len(values), values.shape[1] + 6))


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, hidden, layers, patch, steps = 128, 256, 3, 3, 12
    patches = len(range(0, steps, 2))
    attention = 4 * (width + 1) * width
    layer = attention + (width + 1) * hidden + (hidden + 1) * width + 2 * 2 * width
    expected = (patch + 1) * width + patches * width + layers * layer + (width * patches + 1) * steps
    assert parameters(PatchTst(PatchTstSizes(), metr_la_frame())) == expected == 407_948


@pytest.mark.parametrize("history", [2, 5, 12, 50])
def test_the_order_of_any_two_steps_matters(history: int) -> None:
    torch.manual_seed(0)
    assert unread_steps(PatchTst(SIZES, frame(2, history)), 2, history) == []


def test_a_layer_that_asks_nothing_attends_as_the_layer_before() -> None:
    torch.manual_seed(0)
    layer, tokens, before = PatchTstLayer(SIZES), torch.randn(3, 6, 8), torch.full((3, 2, 6, 6), -1e9)
    before[..., 4] = 0.0  # every patch has attended to patch 4
    with torch.no_grad():
        layer.attention.query.weight.zero_()
        layer.attention.query.bias.zero_()
        seen, scores = layer.attend(tokens, before)
        only, _ = layer.attend(tokens[:, 4:5], None)
    torch.testing.assert_close(seen, only.expand(-1, 6, -1))
    torch.testing.assert_close(scores, before)
