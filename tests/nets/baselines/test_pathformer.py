"""Pathformer: sizes as counted, windows on their own ways, nodes on their own tracks, and waves that are found."""

import math

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters, unread_steps
from torch import Tensor

from candor.nets.baselines.pathformer import Pathformer, PathformerSizes, seasonality, squared_variation
from candor.nets.dropout import drawing_from

ONE_LAYER = {"width": 4, "feed_forward": 8, "patches": ((6, 4, 3, 2),)}


def make(history: int = 12, **more: bool) -> Pathformer:
    torch.manual_seed(0)
    return Pathformer(PathformerSizes(**ONE_LAYER, **more), frame(5, history)).eval()


def forecast(network: Pathformer, values: Tensor) -> Tensor:
    with torch.no_grad():
        return network(values, *calendar(len(values), values.shape[1] + 6))


def changed(one: Tensor, other: Tensor, kept: int) -> list[int]:
    """Returns the places along an axis at which forecasts differ by more than rounding."""
    axes = tuple(axis for axis in range(3) if axis != kept)
    return ((one - other).abs().amax(dim=axes) > 1e-5).nonzero().flatten().tolist()


def test_it_has_the_released_parameters_without_those_that_do_nothing() -> None:
    width, hidden, nodes, steps, memory = 16, 128, 207, 12, 16
    router = 2 * 3 + (nodes + 1) + 2 * (steps + 1) * 4
    generator = nodes * memory + 17 * 64 + 65 * 64 + 65 * 100 + 2 * (2 * width * 10) + 100 * width
    expert = generator + 2 * (width + 1) * width + (width + 1) * hidden + (hidden + 1) * width
    experts = 0
    for patch in (6, 4, 3, 2):
        patches, flat = steps // patch, patch * width
        within = patches * (nodes * memory + (memory + 1) * width) + (patches + 1) * steps
        experts += expert + within + 5 * (flat + 1) * flat + patches * flat
    expected = 2 * width + 3 * (router + experts) + (steps * width + 1) * steps
    do_nothing = 3 * (steps + 1) * steps + 3 * 4 * (2 * 2 * width + 100 * width)
    assert parameters(Pathformer(PathformerSizes(), metr_la_frame())) == expected == 706_214 - do_nothing


def test_an_expert_matters_to_the_windows_that_it_was_chosen_for() -> None:
    network, values = make(), torch.randn(12, 12, 5)
    known = forecast(network, values)
    visits = []
    for expert in network.layers[0].experts:
        with torch.no_grad():
            expert.second.bias += 1
            visits += changed(forecast(network, values), known, kept=0)
            expert.second.bias -= 1
    assert sorted(visits) == sorted(2 * list(range(12)))  # two experts for each window


def test_nodes_share_the_router_only_and_the_released_order_mixes_them() -> None:
    values = torch.randn(2, 12, 5)
    other = values.clone()
    other[:, :, 3] += torch.randn(2, 12)
    for as_released, expected in ((False, [3]), (True, [0, 1, 2, 3, 4])):
        network = make(as_released=as_released)
        with torch.no_grad():
            network.layers[0].router.over_nodes.weight.zero_()  # all windows go the same way
        assert changed(forecast(network, values), forecast(network, other), kept=2) == expected


@pytest.mark.parametrize("history", [2, 3, 7, 12, 50])
def test_the_order_of_any_two_steps_matters(history: int) -> None:
    assert unread_steps(make(history), 5, history) == []


def test_a_single_step_of_history_is_forecast_from() -> None:
    assert torch.isfinite(forecast(make(history=1), torch.randn(2, 1, 5))).all()


@pytest.mark.parametrize("steps", [24, 25])
def test_seasonality_is_the_three_strongest_waves_without_level(steps: int) -> None:
    times = torch.arange(steps, dtype=torch.float64)
    waves = [
        size * torch.cos(2 * math.pi * number * times / steps + number)
        for number, size in ((1, 3.0), (4, 2.0), (7, 1.0), (2, 0.5))
    ]
    series = (5 + sum(waves))[None, :, None]
    torch.testing.assert_close(seasonality(series)[0, :, 0], sum(waves[:3]))


def test_no_seasonality_is_found_in_one_or_two_steps() -> None:
    for steps in (1, 2):
        assert torch.equal(seasonality(torch.randn(2, steps, 3)), torch.zeros(2, steps, 3))


def test_unevenness_is_least_when_all_experts_are_used_alike() -> None:
    assert squared_variation(torch.tensor([3.0, 3.0, 3.0])) == 0
    one_sided, unit = torch.tensor([4.0, 0.0]), torch.tensor([8.0, 0.0])
    torch.testing.assert_close(squared_variation(one_sided), torch.tensor(2.0))
    torch.testing.assert_close(squared_variation(unit), squared_variation(one_sided))


def test_ways_in_training_are_drawn_from_the_generator_of_the_thread() -> None:
    network, values = make().train(), torch.randn(12, 12, 5)

    def ways(seed: int) -> Tensor:
        with torch.no_grad(), drawing_from(torch.Generator().manual_seed(seed)):
            return network.layers[0].router(values)[0]

    first, state = ways(1), torch.random.get_rng_state()
    assert not torch.equal(ways(2), first)
    assert torch.equal(ways(1), first) and torch.equal(torch.random.get_rng_state(), state)
