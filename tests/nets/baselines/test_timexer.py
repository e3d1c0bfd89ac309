"""TimeXer: sizes as counted, global tokens as the only door to other series, and covariates that inform."""

import torch
from frames import calendar, frame, metr_la_frame, nodes_moved_by, parameters
from torch import Tensor

from candor.nets.baselines.timexer import TimeXer, TimeXerSizes

SIZES = TimeXerSizes(width=8, feed_forward=16, heads=2, layers=2)


def forecast(network: TimeXer, values: Tensor, covariates: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        return network.eval()(values, *calendar(len(values), network.history + 6), covariates)


def without_cross_attention(network: TimeXer) -> TimeXer:
    with torch.no_grad():
        for layer in network.layers:
            layer.across.out.weight.zero_()
    return network


def swapped(values: Tensor, one: int, other: int) -> Tensor:
    """Returns windows with two steps exchanged: their means and deviations stay."""
    order = torch.arange(values.shape[1])
    order[one], order[other] = other, one
    return values[:, order]


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, hidden, layers, patch, steps, nodes = 128, 256, 2, 3, 12, 207
    embeddings = patch * width + nodes * width + (steps + 1) * width
    attention = 4 * (width + 1) * width
    layer = 2 * attention + (width + 1) * hidden + (hidden + 1) * width + 3 * 2 * width
    head = 2 * width + ((steps // patch + 1) * width + 1) * steps
    expected = embeddings + layers * layer + head
    assert parameters(TimeXer(TimeXerSizes(), metr_la_frame())) == expected == 434_060


def test_covariates_inform_and_add_no_parameters() -> None:
    assert TimeXer.reads_covariates
    torch.manual_seed(0)
    plain = TimeXer(SIZES, frame())
    informed = TimeXer(SIZES, frame(covariates=2))
    assert parameters(plain) == parameters(informed)
    values, rain = torch.randn(3, 12, 5), torch.randn(3, 12, 5, 2)
    other = rain.clone()
    other[:, :, 4, 1] = torch.randn(3, 12)
    assert (forecast(informed, values, rain) != forecast(informed, values, other)).any(dim=1).all()
    informed.load_state_dict(plain.state_dict())
    torch.testing.assert_close(forecast(informed, values), forecast(plain, values), rtol=0, atol=0)


def test_covariates_are_a_set_of_series_whose_course_counts_and_whose_unit_does_not() -> None:
    torch.manual_seed(0)
    network = TimeXer(SIZES, frame(covariates=1)).double()
    values, rain = torch.randn(3, 12, 5, dtype=torch.float64), torch.randn(3, 12, 5, 1, dtype=torch.float64)
    known = forecast(network, values, rain)
    torch.testing.assert_close(forecast(network, values, rain[:, :, [2, 0, 1, 4, 3]]), known)
    torch.testing.assert_close(forecast(network, values, 25.4 * rain + 3), known, rtol=1e-3, atol=1e-3)


def test_nodes_meet_in_the_cross_attention_only() -> None:
    torch.manual_seed(0)
    network = TimeXer(SIZES, frame())
    assert nodes_moved_by(network, 3) == [0, 1, 2, 3, 4]
    assert nodes_moved_by(without_cross_attention(network), 3) == [3]


def test_patches_leave_out_the_oldest_steps_and_never_the_newest() -> None:
    torch.manual_seed(0)
    network = without_cross_attention(TimeXer(SIZES, frame(history=14)))
    values = torch.randn(2, 14, 5)
    known = forecast(network, values)
    torch.testing.assert_close(forecast(network, swapped(values, 0, 1)), known)  # four patches of three steps: 2..13
    assert not torch.allclose(forecast(network, swapped(values, 12, 13)), known, atol=1e-3)
