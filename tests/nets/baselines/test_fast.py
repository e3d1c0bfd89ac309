"""FaST: sizes as counted, a mixture that can be one expert, and windows whose scale does not matter."""

import torch
from frames import calendar, frame, metr_la_frame, parameters

from candor.nets.baselines.fast import Fast, FastSizes

SIZES = FastSizes(width=8, experts=3, layers=2, agents=4)


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, experts, layers, nodes, steps = 64, 8, 3, 207, 12
    calendar_and_nodes = 288 + 7 + nodes
    router = steps * experts + experts + calendar_and_nodes * experts
    first_experts = (steps + 1) * 2 * experts * width
    attention = (width + 1) * (3 + 2 + 1 + 1) * width + width  # queries, keys, values; agents; two more; norm
    later_experts = (width + 1) * 2 * experts * width
    norms_between = (layers - 1) * width  # the released 420,268 parameters count one more, after the last block
    tables = (calendar_and_nodes + 32) * width
    head = (4 * width + 1) * 4 * width + (4 * width + 1) * steps
    total = (1 + layers) * router + first_experts + layers * (attention + later_experts) + norms_between + tables + head
    assert parameters(Fast(FastSizes(), metr_la_frame())) == total == 420_268 - width


def test_a_router_that_trusts_one_expert_makes_a_network_without_mixture() -> None:
    torch.manual_seed(0)
    place, chosen = frame(), 1
    mixed = Fast(SIZES, place).eval()
    single = Fast(SIZES.model_copy(update={"experts": 1}), place).eval()
    weights = mixed.state_dict()
    for name in single.state_dict():
        if "router" in name:
            weights[name] = weights[name][..., :1] if weights[name].shape[-1] == SIZES.experts else weights[name][:1]
        elif "maps" in name:  # values of all experts, then gates of all experts
            experts = weights[name].unflatten(0, (2, SIZES.experts, SIZES.width))
            weights[name] = experts[:, chosen].flatten(0, 1)
    single.load_state_dict(weights)
    with torch.no_grad():
        for name, parameter in mixed.named_parameters():
            if name.endswith("router.nodes"):
                parameter[:, chosen] += 1e4
        values = torch.randn(3, 12, 5)
        torch.testing.assert_close(mixed(values, *calendar(3, 18)), single(values, *calendar(3, 18)))


def test_forecasts_follow_the_level_and_the_scale_of_each_node() -> None:
    torch.manual_seed(0)
    network = Fast(SIZES, frame()).double().eval()
    values = torch.randn(3, 12, 5, dtype=torch.float64)
    scale, level = torch.tensor([1.0, 2, 3, 4, 5]), torch.tensor([0.0, -3, 5, 1, 9])
    with torch.no_grad():
        forecast = network(values, *calendar(3, 18))
        moved = network(scale * values + level, *calendar(3, 18))
    torch.testing.assert_close(moved, scale * forecast + level, rtol=1e-3, atol=1e-3)


def test_every_node_is_heard_by_all_others() -> None:
    torch.manual_seed(0)
    network = Fast(SIZES, frame()).eval()
    values = torch.randn(2, 12, 5)
    other = values.clone()
    other[:, :, 3] = torch.randn(2, 12)
    with torch.no_grad():
        changed = (network(values, *calendar(2, 18)) != network(other, *calendar(2, 18))).any(dim=1).any(dim=0)
    assert changed.all()
