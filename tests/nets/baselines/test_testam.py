"""TESTAM: parameters counted by hand, what each expert can see, and how the gate chooses and is taught."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters
from torch import nn

from candor.core.errors import InputError
from candor.core.settings import parse_settings
from candor.data.preprocessing import Scaler
from candor.nets.baseline import BaselineRecipe, BaselineTrainable
from candor.nets.baselines import testam  # its classes begin like those of tests and would be taken for such
from candor.nets.layers import GroupAttention
from candor.nets.trainable import StepContext

IDENTITY, ADAPTIVE, ATTENTION = range(3)


def small_network(horizon: int = 6) -> testam.Testam:
    torch.manual_seed(0)
    return testam.Testam(testam.TestamSizes(), frame(5, 12, horizon)).eval()


def test_it_has_the_parameters_counted_by_hand() -> None:
    norm = 2 * 32
    attention = 3 * 32 * 32 + (32 * 32 + 32) + norm
    feed_forward = (32 * 128 + 128) + (128 * 32 + 32) + norm
    convolution = (5 * 32 * 32 + 32) + norm
    head, start = 32 + 1, 2 * 32 + 32
    clock = 288 * 32 + (32 * 32 + 32) + 207 * 32
    identity = clock + (32 + 32) + (64 * 32 + 32) + 3 * (attention + feed_forward) + head
    adaptive = start + 3 * (2 * attention + convolution + feed_forward) + head
    attending = start + 3 * (3 * attention + feed_forward) + head
    gate = 20 * 32 + 2 * 207 * 20 + 2 * 32 + 3 * 3 * 32 * 32
    released, unread = 205_435, 32 * 32 + 32
    counted = identity + adaptive + attending + gate
    assert parameters(testam.Testam(testam.TestamSizes(), metr_la_frame())) == counted == released - unread


@pytest.mark.parametrize("horizon", [12, 6])
def test_the_forecast_is_that_of_the_expert_with_the_highest_score(horizon: int) -> None:
    network = small_network(horizon)
    values, (time_of_day, day_of_week) = torch.randn(40, 12, 5), calendar(40, 12 + horizon)
    with torch.no_grad():
        forecasts, scores = network.expert_forecasts(values, time_of_day)
        routed = network(values, time_of_day, day_of_week)
    highest = scores == scores.amax(dim=-1, keepdim=True)
    assert highest.any(dim=0).any(dim=0).any(dim=0).sum() >= 2  # more than one expert is asked
    torch.testing.assert_close(routed, forecasts[highest].view_as(routed), rtol=0, atol=0)


def test_attention_to_a_source_is_that_of_pytorch() -> None:
    torch.manual_seed(0)
    attention, known = GroupAttention(32, 4, has_bias=False), nn.MultiheadAttention(32, 4, batch_first=True)
    with torch.no_grad():
        inward = (attention.query, attention.key, attention.value)
        known.in_proj_weight.copy_(torch.cat([part.weight for part in inward]))
        known.in_proj_bias.zero_()
        known.out_proj.load_state_dict(attention.out.state_dict())
        states, source = torch.randn(2, 3, 12, 32), torch.randn(2, 3, 6, 32)
        wanted, _ = known(states.flatten(0, 1), source.flatten(0, 1), source.flatten(0, 1))
        torch.testing.assert_close(attention(states, source), wanted.view_as(states), rtol=1e-4, atol=1e-5)


def test_experts_differ_in_what_they_see() -> None:
    network = small_network()
    values, (time_of_day, _) = torch.randn(2, 12, 5), calendar(2, 18)
    other_values, other_times = values.clone(), time_of_day.clone()
    other_values[:, :, 3] += 1
    other_times[:, 12:] += 7
    with torch.no_grad():
        before, _ = network.expert_forecasts(values, time_of_day)
        by_values = (network.expert_forecasts(other_values, time_of_day)[0] != before).any(dim=1).any(dim=0)
        by_times = (network.expert_forecasts(values, other_times)[0] != before).any(dim=1).any(dim=0)
    assert by_values[:, IDENTITY].tolist() == [False, False, False, True, False]
    assert by_values[:, [ADAPTIVE, ATTENTION]].all()
    assert not by_times[:, IDENTITY].any() and by_times[:, [ADAPTIVE, ATTENTION]].all()


def test_labels_lead_away_from_the_worst_expert_and_towards_the_best() -> None:
    errors = torch.tensor([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [0.0, 0.0, 0.0]])
    scores = torch.tensor([[0.1, 0.2, 0.9], [0.1, 0.9, 0.2], [0.1, 0.2, 0.9], [0.9, 0.1, 0.2]])
    labels = testam.routing_labels(errors, scores, torch.tensor([True, True, False, True]))
    wanted = [
        [(1 / 3 + 1) / 2, (2 / 3) / 2, 0],  # the worst was chosen: the others by their errors, and the best
        [1 / 2, 1 / 2, 0],  # neither worst nor best was chosen
        [0, 0, 0],  # nobody knows
        [1 / 2, 0, 0],  # no error at all
    ]
    torch.testing.assert_close(labels, torch.tensor(wanted))


def test_the_gate_learns_from_the_activation_epoch_on() -> None:
    network = small_network()
    learner = BaselineTrainable(network, Scaler(50.0, 10.0), 6, BaselineRecipe())
    time_of_day, day_of_week = calendar(4, 18)
    batch = {
        "inputs": torch.randn(4, 12, 5),
        "time_of_day": time_of_day,
        "day_of_week": day_of_week,
        "targets": 50 + 10 * torch.randn(4, 6, 5),
        "target_mask": torch.ones(4, 6, 5, dtype=torch.bool),
    }
    asked, head = network.gate.ask.weight, network.heads[ATTENTION].weight
    learner.objective(batch, StepContext(6, False, 120, 1.0)).total.backward()
    assert asked.grad is None and head.grad is not None
    learner.objective(batch, StepContext(6, True, 120, 1.0)).total.backward()
    assert asked.grad is not None and bool((asked.grad != 0).any())


def test_heads_that_cannot_share_the_width_are_refused() -> None:
    with pytest.raises(InputError, match="multiple of heads"):
        parse_settings(testam.TestamSizes, {"heads": 5}, "sizes")
