"""AutoSTF: sizes, cells, operators, and a search that hands over what it found."""

import json
import math
from dataclasses import replace

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import Frame
from candor.nets.baselines.autostf import (
    AutoStf,
    AutoStfSizes,
    LearnedGraph,
    OperatorCell,
    SearchNetwork,
    SparseAttention,
    SpatialAttention,
    operators_in_turn,
)

SIZES = AutoStf.tiny


def everywhere(temporal: str, spatial: str) -> dict[str, list[object]]:
    return {"temporal": [temporal] * 3, "spatial": [[spatial] * 3] * 2}


def influence(network: AutoStf, place: Frame) -> Tensor:
    """Returns which sensors' readings move the forecast of which; who is forecast x who is read."""
    values = torch.randn(1, place.history, place.nodes, requires_grad=True)
    forecast = network.eval()(values, *calendar(1, place.history + place.horizon)).sum(dim=(0, 1))
    gradients = [torch.autograd.grad(one, values, retain_graph=True)[0][0] for one in forecast]
    return torch.stack(gradients).abs().sum(dim=1) > 0


def test_it_has_the_parameters_counted_by_hand() -> None:
    nodes, width, steps, patches, edges = 207, 32, 12, 3, 6
    identity = (3 * steps + 1) * width + (nodes + 288 + 7) * width
    identity += 2 * 2 * (4 * width + 1) * 4 * width + (4 * width + 1) * width
    light = (width + 1) * 4 * width + (2 * width + 1) * width // 2
    between = 2 * width + (steps // patches + 1) + (2 * width + 1) * width + 4 * (light + 4 * width)
    head = (patches * width + 1) * width + (2 * width + 1) * 512 + (512 + 1) * 12
    convolution = 2 * (2 * width + 1) * width
    attention_in_time = 6 * (width + 1) * width - width + 4 * width  # keys without bias
    graph = (3 * width + 1) * width + 2 * width
    layer = 4 * (width // 2 + 1) * width // 2 - width // 2 + light + 4 * width
    attention = nodes * width + 2 * layer + 2 * width
    learned, scores = 2 * nodes * 10, edges * 2 + patches * edges * 3
    operators = edges * (convolution + attention_in_time + 2 * graph + attention)
    searched = identity + between + head + operators + learned + scores
    assert parameters(SearchNetwork(AutoStfSizes(), metr_la_frame())) == searched == 377_151
    in_turns = searched - scores - 3 * (convolution + attention_in_time)  # three patches need all of the other cell's
    assert parameters(AutoStf(AutoStfSizes(), metr_la_frame())) == in_turns


def test_layers_of_attention_over_the_network_begin_alike_and_without_biases() -> None:
    first, second = SpatialAttention(SIZES, 5).layers
    weights, others = dict(first.named_parameters()), dict(second.named_parameters())
    assert all(torch.equal(others[name], one) and others[name] is not one for name, one in weights.items())
    assert not any(weights[f"{part}.bias"].any() for part in ("query", "value", "out"))


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_each_node_of_a_cell_doubles_what_comes_out_where_operators_change_nothing(nodes: int) -> None:
    edges = nodes * (nodes - 1) // 2
    cell, states = OperatorCell([["same"]] * edges, {"same": nn.Identity}), torch.randn(2, 3)
    torch.testing.assert_close(cell(states, [[("same", 1.0)]] * edges), 2 ** (nodes - 1) * states)


@pytest.mark.parametrize("steps", [2, 9, 13, 40])
def test_attention_over_time_is_that_of_all_steps_or_of_the_few_that_ask(steps: int) -> None:
    torch.manual_seed(0)
    made = SparseAttention(8, 2)
    queries, keys, values = (torch.randn(3, 4, 2, steps, 4) for _ in range(3))
    found, full = made.weights(queries, keys) @ values, F.scaled_dot_product_attention(queries, keys, values)
    mean = values.mean(dim=-2, keepdim=True).expand_as(values)
    attends = torch.isclose(found, full, atol=1e-5).all(dim=-1)
    assert (attends | torch.isclose(found, mean, atol=1e-5).all(dim=-1)).all()
    assert (attends.sum(dim=-1) == min(steps, 3 * math.ceil(math.log(steps)))).all()


def test_what_arrives_over_the_learned_graph_is_a_mean_of_those_who_are_heard() -> None:
    torch.manual_seed(0)
    made = LearnedGraph(6, 10)
    with torch.no_grad():
        made.senders.abs_()
        made.receivers[2] = -1.0  # hears nobody in particular
        graph = made()
    torch.testing.assert_close(graph.sum(dim=1), torch.ones(6))
    torch.testing.assert_close(graph[2], torch.full((6,), 1 / 6))


@pytest.mark.parametrize(("is_released", "reach"), [(False, 2), (True, 0)])
def test_graph_operators_reach_two_edges_downstream_unless_they_are_as_released(is_released: bool, reach: int) -> None:
    """On a row of nodes with one edge in the cell: 0 -> 1 -> 2 -> 3."""
    torch.manual_seed(0)
    found = {"temporal": ["convolution"], "spatial": [["given-graph"]] * 2}
    place = replace(frame(4), adjacency=torch.diag(torch.ones(3), 1) + torch.eye(4), found=found)
    sizes = SIZES.model_copy(update={"temporal_nodes": 2, "spatial_nodes": 2, "as_released": is_released})
    upstream = torch.arange(4)[:, None] - torch.arange(4)
    assert torch.equal(influence(AutoStf(sizes, place), place), (upstream >= 0) & (upstream <= reach))


def test_only_what_was_chosen_is_there_and_what_it_needs() -> None:
    made = AutoStf(SIZES, replace(frame(), found=everywhere("attention", "given-graph")))
    weights = " ".join(made.state_dict())
    assert "attention" in weights and "given-graph" in weights
    assert "convolution" not in weights and "learned" not in weights


def search() -> SearchNetwork:
    """Returns a search that has come to differ between edges and patches."""
    torch.manual_seed(0)
    made = SearchNetwork(SIZES, frame())
    with torch.no_grad():
        made.temporal_scores.normal_()
        made.spatial_scores.normal_()
    return made


def test_what_a_search_found_forecasts_as_the_search_does_in_use() -> None:
    searched = search().eval()
    found = searched.found()
    assert found != operators_in_turn(SIZES, 2)
    made = AutoStf(SIZES, replace(frame(), found=json.loads(json.dumps(found)))).eval()
    made.inherit(searched)
    inputs = (torch.randn(3, 12, 5), *calendar(3, 18, 12))
    with torch.no_grad():
        assert torch.equal(made(*inputs), searched(*inputs))


def test_a_search_learns_the_chances_of_both_operators_that_it_tries() -> None:
    searched, inputs = search().train(), (torch.randn(3, 12, 5), *calendar(3, 18, 12))
    torch.manual_seed(3)
    searched(*inputs).square().mean().backward()
    for scores in (searched.temporal_scores.grad, searched.spatial_scores.grad):
        assert scores is not None
        tried = (scores != 0).sum(dim=-1).unique().tolist()
        assert 2 in tried and set(tried) <= {0, 2}  # what the one gains the other loses; alone it cannot gain
        torch.testing.assert_close(scores.sum(dim=-1), torch.zeros_like(scores[..., 0]), atol=1e-6, rtol=0)
