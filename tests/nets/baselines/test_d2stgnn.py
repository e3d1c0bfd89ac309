"""D2STGNN: sizes as counted by hand, graphs that follow the roads, and the repeated graph of the original."""

from dataclasses import replace

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters

from candor.nets.baselines.d2stgnn import D2stgnn, D2stgnnSizes, DiffusionBlock

TINY = D2stgnn.tiny


def test_it_has_the_parameters_counted_by_hand() -> None:
    tables = 2 * 207 * 10 + (288 + 7) * 10
    graphs = (12 * 64 + 64) + 2 * 64 + (64 * 32 + 32) + 2 * (32 + 20 + 10) * 32
    gate = (40 * 64 + 64) + (64 + 1)
    diffusion = 96 * 96 + (7 * 32 * 32 + 32)
    recurrence = 2 * (32 * 96 + 96)
    attention = (32 * 96 + 96) + (32 * 32 + 32)
    forecasts = 2 * (32 * 256 + 256)
    remainder = (32 * 32 + 32) + 2 * 32
    layers = 5 * (gate + diffusion + recurrence + attention + forecasts + 2 * remainder) - remainder
    output = (256 * 512 + 512) + (512 * 3 + 3)
    found = parameters(D2stgnn(D2stgnnSizes(), metr_la_frame()))
    assert found == tables + (32 + 32) + graphs + layers + output
    unused = 5 * 2 * 32 + (10 * 32 + 32) + remainder  # which the released model declares: 391,962 with them
    assert found + unused == 391_962


def test_the_convolution_is_that_of_graphs_repeated_for_every_step() -> None:
    torch.manual_seed(0)
    diffusion = DiffusionBlock(TINY, kernel=3, future=2).eval()
    signal, supports = torch.randn(2, 5, 4, 8), torch.rand(2, 6, 4, 4)
    stretches = torch.stack([signal[:, start : start + 3] for start in range(3)], dim=1)  # batch time step node width
    mixed = torch.relu(diffusion.mix(stretches.transpose(2, 3).flatten(3))).unflatten(-1, (3, 8)).transpose(2, 3)
    repeated = torch.cat([supports] * 3, dim=-1)  # node x (step node)
    received = [repeated[:, number, None] @ mixed.flatten(2, 3) for number in range(6)]
    expected = diffusion.spread(torch.cat([mixed.mean(dim=2), *received], dim=-1))
    torch.testing.assert_close(diffusion.convolve(signal, supports), expected)


def test_dynamic_graphs_lead_along_the_roads_and_against_them() -> None:
    torch.manual_seed(0)
    adjacency = torch.eye(5)
    adjacency[0, 1] = adjacency[1, 2] = 1.0  # 0 -> 1 -> 2
    network = D2stgnn(TINY, replace(frame(), adjacency=adjacency)).eval()
    supports = network.supports(torch.randn(3, 12, 5), torch.randn(3, 8))
    roads = [[tuple(pair) for pair in (graph > 1e-4).nonzero().tolist()] for graph in supports[0, :4]]
    assert roads == [[(1, 0), (2, 1)], [(1, 0), (2, 0), (2, 1)], [(0, 1), (1, 2)], [(0, 1), (0, 2), (1, 2)]]
    assert (supports.sum(dim=-1) <= 1 + 1e-5).all()


@pytest.mark.parametrize(("horizon", "states"), [(1, 1), (5, 2), (12, 4), (13, 4), (48, 4), (192, 4), (240, 4)])
def test_far_horizons_are_not_forecast_by_more_states(horizon: int, states: int) -> None:
    network = D2stgnn(TINY, frame(2, 12, horizon))
    assert {layer.inherent.future for layer in network.layers} == {layer.diffusion.future for layer in network.layers}
    assert network.layers[0].inherent.future == states
    assert network(torch.randn(2, 12, 2), *calendar(2, 12 + horizon, 12)).shape == (2, horizon, 2)


@pytest.mark.parametrize(("history", "horizon"), [(1, 1), (2, 5), (3, 2), (4, 12), (11, 7)])
def test_short_histories_and_odd_horizons_train(history: int, horizon: int) -> None:
    torch.manual_seed(0)
    network = D2stgnn(TINY, frame(1, history, horizon))
    values = torch.randn(1, history, 1)  # one window of one node
    found = network(values, *calendar(1, history + horizon, 12))
    found.sum().backward()
    assert found.shape == (1, horizon, 1) and torch.isfinite(found).all()
    assert (network.output.bias.grad != 0).all()


def test_every_step_of_a_longer_horizon_is_learned_as_early_as_of_the_published_one() -> None:
    for horizon in (12, 24, 192):
        training = D2stgnn.recipe_for(D2stgnn.recipe, horizon).training
        assert training.prefix(65, horizon) < horizon == training.prefix(66, horizon)
    assert D2stgnn.recipe_for(D2stgnn.recipe, 14).training.prefix(66, 14) == 14
    assert D2stgnn.recipe_for(D2stgnn.recipe, 12) == D2stgnn.recipe
