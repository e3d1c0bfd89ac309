"""XLinear: sizes as counted, gates that only damp, nodes that meet in one gate, and covariates that inform."""

import torch
from frames import calendar, frame, metr_la_frame, nodes_moved_by, parameters
from torch import Tensor

from candor.nets.baselines.xlinear import GatedMlp, XLinear, XLinearSizes

SIZES = XLinearSizes(width=8, time_hidden=6, series_hidden=7)


def forecast(network: XLinear, values: Tensor, covariates: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        return network.eval()(values, *calendar(len(values), 18), covariates)


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, time_hidden, series_hidden, nodes, steps = 512, 128, 256, 207, 12
    embedding = (steps + 1) * width + nodes * width
    over_time = (2 * width + 1) * time_hidden + (time_hidden + 1) * 2 * width
    across_series = (2 * nodes + 1) * series_hidden + (series_hidden + 1) * 2 * nodes
    head = (2 * width + 1) * steps
    expected = embedding + over_time + across_series + head
    assert parameters(XLinear(XLinearSizes(), metr_la_frame())) == expected == 600_874


def test_covariates_widen_the_gate_across_series_and_nothing_else() -> None:
    plain, informed = (parameters(XLinear(SIZES, frame(covariates=number))) for number in (0, 2))
    further = 5 * 2
    assert informed - plain == further * 7 + 7 * further + further


def test_every_covariate_of_every_node_informs() -> None:
    assert XLinear.reads_covariates
    torch.manual_seed(0)
    network = XLinear(SIZES, frame(covariates=2))
    values, rain = torch.randn(3, 12, 5), torch.randn(3, 12, 5, 2)
    known = forecast(network, values, rain)
    for node in range(5):
        for quantity in range(2):
            other = rain.clone()
            other[:, :, node, quantity] = torch.randn(3, 12)
            assert not torch.allclose(forecast(network, values, other), known, atol=1e-4)


def test_a_gate_damps_and_never_turns() -> None:
    torch.manual_seed(0)
    gate, inputs = GatedMlp(6, 4, 0.0), 10 * torch.randn(50, 6)
    with torch.no_grad():
        share = gate(inputs) / inputs
    assert ((share > 0) & (share < 1)).all()


def test_nodes_meet_in_the_gate_across_series_only() -> None:
    torch.manual_seed(0)
    network = XLinear(SIZES, frame())
    assert nodes_moved_by(network, 3) == [0, 1, 2, 3, 4]
    with torch.no_grad():
        network.across_series.second.weight.zero_()
    assert nodes_moved_by(network, 3) == [3]
