"""STPGNN: parameters counted by hand, who is found to be pivotal, and graphs that change with the hour."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters

from candor.nets.baselines.stpgnn import DailyGraph, PivotalGraph, Stpgnn, StpgnnSizes

SMALL = StpgnnSizes(width=4, skip_width=2, head_width=8, embedding=3)


def test_it_has_the_released_parameters_without_those_never_used_and_with_learned_weights_of_pairs() -> None:
    starts = (32 + 32) + (1 + 1)
    daily = 288 * 32 + 2 * 207 * 32 + 32**3
    one = 32 * 32 + 32
    layer = 2 * (2 * 32 * 32 + 32) + 2 * (3 * 32 * 32 + 32) + (32 * 8 + 8)
    steps = 12 + 10 + 9 + 7 + 6 + 4 + 3 + 1
    head = 8 * steps * 512 + 512 + 512 * 12 + 12
    balance, normalisation = 1, 2 * 32
    used = starts + daily + 8 * layer + 7 * normalisation + head + balance
    assert used + 2 * 8 * one + 9 * normalisation == 377_935
    assert parameters(Stpgnn(StpgnnSizes(), metr_la_frame())) == used + 207**2 == 403_312


@pytest.mark.parametrize("history", [1, 12, 14, 30])
def test_every_step_of_any_history_is_seen(history: int) -> None:
    torch.manual_seed(0)
    network = Stpgnn(SMALL, frame(3, history, 2)).eval()
    values = torch.randn(1, history, 3, requires_grad=True)
    network(values, *calendar(1, history + 2)).sum().backward()
    assert values.grad is not None and (values.grad[0].abs().sum(dim=1) > 0).all()


def test_the_node_that_all_others_follow_is_pivotal() -> None:
    """All others repeat the readings of one node a step later, in half of the windows node 0 and in half node 3."""
    torch.manual_seed(0)
    noise = torch.randn(20, 1, 41)
    series = noise[..., :-1].repeat(1, 6, 1)
    series[:10, 0], series[10:, 3] = noise[:10, 0, 1:], noise[10:, 0, 1:]
    graph = PivotalGraph(share=2 / 6, nodes=6)
    with torch.no_grad():
        graph.weights.fill_(1.0)
        graph.start.weight.fill_(1.0)
        graph.start.bias.zero_()
        found = graph(series)
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(20, 6))
    is_level = ((found - 1 / 6).abs() < 1e-6).all(dim=-1)
    assert (is_level.sum(dim=1) >= 4).all()  # two are pivotal, the others receive alike from all
    assert not is_level[:10, 0].any() and not is_level[10:, 3].any()


def test_windows_are_scored_one_by_one_also_in_training() -> None:
    torch.manual_seed(0)
    graph, series = PivotalGraph(share=0.4, nodes=5).train(), torch.randn(4, 5, 13)
    singly = torch.cat([graph(series[place : place + 1]) for place in range(4)])
    torch.testing.assert_close(graph(series), singly)


def test_hourly_readings_have_a_graph_for_every_hour() -> None:
    torch.manual_seed(0)
    graphs = DailyGraph(3, frame(steps_per_day=24))(torch.arange(288)).detach().unflatten(0, (24, 12))
    assert torch.equal(graphs, graphs[:, :1].expand_as(graphs))
    assert len(graphs[:, 0].flatten(1).unique(dim=0)) == 24


def test_daily_readings_have_one_graph() -> None:
    daily = DailyGraph(3, frame(steps_per_day=1))
    assert torch.equal(daily(torch.tensor([0])), daily(torch.tensor([287])))
