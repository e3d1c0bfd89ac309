"""Graph WaveNet: sizes as published, and how far its layers see in time and over the network."""

from dataclasses import replace

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters

from candor.nets.baseline import Frame
from candor.nets.baselines.graph_wavenet import GraphWavenet, GraphWavenetSizes
from candor.nets.layers import transitions

SMALL = GraphWavenetSizes(width=4, skip_width=8, head_width=8, embedding=3)


def test_it_has_the_published_parameters_without_those_that_are_never_used() -> None:
    start, graph = 2 * 32 + 32, 2 * 207 * 10
    gated = 8 * 2 * (2 * 32 * 32 + 32)
    residual = 8 * (32 * 32 + 32)
    skip = 8 * (32 * 256 + 256)
    diffusion = 7 * 32 * 32 + 32
    normalisation = 2 * 32
    head = 256 * 512 + 512 + 512 * 12 + 12
    published = start + graph + gated + residual + skip + 8 * (diffusion + normalisation) + head
    assert published == 309_400
    unused = residual + diffusion + normalisation
    assert parameters(GraphWavenet(GraphWavenetSizes(), metr_la_frame())) == published - unused == 293_688


def influence(network: GraphWavenet, place: Frame) -> torch.Tensor:
    """Returns how much each reading moves the forecast of each node; node x time x node."""
    values = torch.randn(1, place.history, place.nodes, requires_grad=True)
    forecast = network.eval()(values, *calendar(1, place.history + place.horizon)).sum(dim=(0, 1))
    gradients = [torch.autograd.grad(one, values, retain_graph=True)[0][0] for one in forecast]
    return torch.stack(gradients).abs()


@pytest.mark.parametrize("history", [1, 2, 12, 13, 14, 48])
def test_every_step_of_any_history_is_seen(history: int) -> None:
    torch.manual_seed(0)
    place = frame(2, history, 3)
    assert (influence(GraphWavenet(SMALL, place), place).sum(dim=(0, 2)) > 0).all()


def test_layers_are_added_only_where_the_published_ones_see_too_little() -> None:
    sizes = GraphWavenetSizes()
    assert sizes.dilations(12) == sizes.dilations(13) == [1, 2] * 4
    assert sizes.dilations(14) == sizes.dilations(29) == [1, 2, 4] * 4


@pytest.mark.parametrize(("along", "against"), [(True, False), (False, True)])
def test_states_diffuse_two_edges_per_layer_in_the_direction_of_the_support(along: bool, against: bool) -> None:
    """On a row of nodes with one diffusion, without the learned graph: 0 -> 1 -> 2 -> 3."""
    torch.manual_seed(0)
    row = torch.diag(torch.ones(3), 1)
    place = replace(frame(4, 2, 3), adjacency=row)
    network = GraphWavenet(SMALL.model_copy(update={"blocks": 2, "layers": 1}), place)
    weights = network.diffusions[0].linear.weight.detach().view(4, 7, 4)  # out x power x in
    keeps = torch.tensor([True, along, along, against, against, False, False])
    weights[:, ~keeps] = 0.0
    felt = influence(network, place).sum(dim=1) > 0  # who is forecast x who is read
    steps = torch.arange(4)[:, None] - torch.arange(4)
    expected = (steps >= 0) & (steps <= 2) if along else (steps <= 0) & (steps >= -2)
    assert torch.equal(felt, expected)


def test_nothing_is_lost_on_the_way_and_lonely_nodes_send_nothing() -> None:
    graph = torch.tensor([[0.0, 2.0, 6.0], [0.0, 0.0, 0.0], [1e-30, 0.0, 0.0]])
    expected = torch.tensor([[0.0, 0.25, 0.75], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(transitions(graph), expected)
