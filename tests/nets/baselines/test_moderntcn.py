"""ModernTCN: sizes as counted, two kernels that are one, and one place where nodes meet."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, nodes_moved_by, parameters, unread_steps
from torch import Tensor
from torch.nn import functional as F

from candor.nets.baselines.moderntcn import ConvolutionBlock, ModernTcn, ModernTcnSizes

SIZES = ModernTcnSizes(width=4, blocks=2)


def forecast(network: ModernTcn, values: Tensor) -> Tensor:
    with torch.no_grad():
        return network.eval()(values, *calendar(len(values), values.shape[1] + 6))


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, ratio, nodes, steps = 32, 2, 207, 12
    channels = width * nodes
    stem = width + 2 * width
    over_time = 11 * channels + 2 * channels + 3 * channels + 2 * channels
    features = nodes * (2 * ratio * width**2 + ratio * width + width)
    among_nodes = width * (2 * ratio * nodes**2 + ratio * nodes + nodes)
    head = (width * steps + 1) * steps
    expected = stem + over_time + 2 * width + features + among_nodes + head
    assert parameters(ModernTcn(ModernTcnSizes(), metr_la_frame())) == expected == 6_496_300


def test_both_kernels_together_are_one_convolution() -> None:
    torch.manual_seed(0)
    block = ConvolutionBlock(SIZES, nodes=3, tokens=15).double().eval()
    for norm in (block.wide_norm, block.narrow_norm):
        for statistic in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data):
            statistic.uniform_(0.5, 1.5)
    kernel, bias = torch.zeros(12, 1, 15, dtype=torch.float64), torch.zeros(12, dtype=torch.float64)
    for convolution, norm in ((block.wide, block.wide_norm), (block.narrow, block.narrow_norm)):
        factor = norm.weight / (norm.running_var + norm.eps).sqrt()
        margin = (15 - convolution.kernel_size[0]) // 2
        kernel = kernel + F.pad(convolution.weight * factor[:, None, None], (margin, margin))
        bias = bias + norm.bias - norm.running_mean * factor
    channels = torch.randn(2, 12, 15, dtype=torch.float64)
    torch.testing.assert_close(F.conv1d(channels, kernel, bias, padding=7, groups=12), block.over_time(channels))


def test_nodes_meet_only_where_the_nodes_of_a_feature_are_mixed() -> None:
    torch.manual_seed(0)
    network = ModernTcn(SIZES, frame())
    assert nodes_moved_by(network, 3) == [0, 1, 2, 3, 4]
    own = torch.eye(5).repeat(2 * 4, 1)[..., None]  # a hidden unit of a feature reads one node, and that node reads it
    with torch.no_grad():
        for block in network.blocks:
            block.nodes.first.weight *= own
            block.nodes.second.weight *= own.unflatten(0, (4, 10)).transpose(1, 2).flatten(0, 1)
    assert nodes_moved_by(network, 3) == [3]


@pytest.mark.parametrize("history", [2, 5, 12, 50])
def test_the_order_of_any_two_steps_matters(history: int) -> None:
    torch.manual_seed(0)
    assert unread_steps(ModernTcn(SIZES, frame(2, history)), 2, history) == []


def test_one_window_of_one_step_can_be_learned_from() -> None:
    network = ModernTcn(SIZES, frame(1, 1)).train()
    assert torch.isfinite(network(torch.randn(1, 1, 1), *calendar(1, 7))).all()
