"""The oracle at the edges of its domain: everything stays finite, and exactly the expected parameters are idle."""

from dataclasses import replace

import pytest
import torch
from oracle import OracleOutput, oracle_forward
from oracle_losses import WEIGHTED_TERMS, oracle_losses
from oracle_parameters import SMALL as ORDINARY
from oracle_parameters import OracleProblem, OracleSettings, parameter_shapes, random_parameters, random_problem
from torch import Tensor

SMALL = replace(ORDINARY, pairs=5)
ONE_PATCH = replace(SMALL, history=3, patch_length=3)
WEIGHTS = dict.fromkeys(WEIGHTED_TERMS, 0.5)

# Scores decide between edges, so they matter only to a node with two of them.
AFFINITIES = ("physical.query", "physical.keys.", "physical.window", "physical.sample_query", "physical.sample_key")
RELATIONS = (
    "functional.level_relations",
    "functional.trend",
    "functional.relation_bias",
    "functional.reduce",
    "functional.channels.",
    "functional.restore",
    "functional.temporal.weight",
)
NEXT_PATCH_ROLES = ("roles.background_", "roles.accumulation_")
DIRECTED_RECURRENCES = ("physical.forward_path.gru.weight_hh", "physical.reverse_path.gru.weight_hh")


def solve(
    settings: OracleSettings, problem: OracleProblem, activation: bool = True, prefix: int | None = None
) -> tuple[OracleOutput, dict[str, Tensor], dict[str, Tensor | None]]:
    """The forward pass, the losses, and the gradient of the total by parameter."""
    parameters = {name: value.requires_grad_() for name, value in random_parameters(settings, 31).items()}
    clock = (problem.time_of_day, problem.day_of_week)
    output = oracle_forward(parameters, settings, problem.adjacency, problem.values, *clock, prefix)
    targets, mask = problem.targets, problem.mask
    losses = oracle_losses(output, parameters, settings, targets, mask, WEIGHTS, activation, prefix, (50.0, 10.0))
    gradients = torch.autograd.grad(losses["total"], list(parameters.values()), allow_unused=True)
    return output, losses, dict(zip(parameters, gradients, strict=True))


def idle(gradients: dict[str, Tensor | None]) -> set[str]:
    """Names of the parameters whose gradient is absent or zero up to rounding."""
    return {name for name, gradient in gradients.items() if gradient is None or gradient.abs().max() < 1e-12}


def named(settings: OracleSettings, prefixes: tuple[str, ...]) -> set[str]:
    """Names of all parameters that begin with one of the prefixes, each of which must occur."""
    names = set(parameter_shapes(settings))
    assert all(any(name.startswith(prefix) for name in names) for prefix in prefixes)
    return {name for name in names if name.startswith(prefixes)}


def assert_finite(losses: dict[str, Tensor], gradients: dict[str, Tensor | None]) -> None:
    assert all(torch.isfinite(loss) for loss in losses.values())
    assert all(torch.isfinite(gradient).all() for gradient in gradients.values() if gradient is not None)


@pytest.mark.parametrize(
    ("span", "orders", "self_loops"), [(1, 1, False), (1, 3, True), (2, 2, False), (3, 1, True), (4, 3, False)]
)
def test_every_parameter_learns_at_every_span_and_order(span: int, orders: int, self_loops: bool) -> None:
    settings = replace(SMALL, horizon=3, temporal_span=span, spatial_orders=orders)
    output, losses, gradients = solve(settings, random_problem(settings, 32, density=0.7, self_loops=self_loops))
    assert_finite(losses, gradients)
    assert torch.isfinite(output.forecast).all()
    assert idle(gradients) == set()


def test_what_shifts_all_scores_of_a_softmax_alike_is_idle() -> None:
    _, _, gradients = solve(SMALL, random_problem(SMALL, 32, density=0.7))
    hidden = SMALL.hidden
    calendar = gradients["physical.sample_key.weight"]  # all nodes have the same calendar
    key_bias = gradients["physical.forward_path.attention.in_bias"]
    assert calendar is not None and key_bias is not None
    assert calendar[:, hidden : 3 * hidden].abs().max() < 1e-12 < calendar[:, 3 * hidden :].abs().max()
    assert key_bias[hidden : 2 * hidden].abs().max() < 1e-12 < key_bias[:hidden].abs().max()


@pytest.mark.parametrize("span", [1, 2, 4])
@pytest.mark.parametrize("rollout_gate", [True, False])
def test_one_patch_of_history(span: int, rollout_gate: bool) -> None:
    settings = replace(ONE_PATCH, temporal_span=span, rollout_gate=rollout_gate)
    _, losses, gradients = solve(settings, random_problem(settings, 33, density=0.8))
    assert_finite(losses, gradients)
    assert [losses[name].item() for name in ("hist", "bg", "role_background", "role_accumulation")] == [0] * 4
    # The recurrence of the background takes one step from zero, and trends are zero.
    expected = named(settings, (*NEXT_PATCH_ROLES, "functional.gru.weight_hh", "functional.trend.first.weight"))
    assert idle(gradients) == expected


def test_one_patch_of_history_and_one_target_patch_leave_no_step_to_the_recurrences() -> None:
    settings = replace(ONE_PATCH, horizon=3, patch_stride=3)
    _, losses, gradients = solve(settings, random_problem(settings, 33, density=0.8))
    assert_finite(losses, gradients)
    single_step = ("functional.gru.weight_hh", "functional.trend.first.weight", *DIRECTED_RECURRENCES)
    assert idle(gradients) == named(settings, (*NEXT_PATCH_ROLES, *single_step))
    for direction in ("forward", "reverse"):
        attention = gradients[f"physical.{direction}_path.attention.in_weight"]
        assert attention is not None
        assert not attention[: 2 * settings.hidden].any()  # one key takes all the weight, whatever the query


@pytest.mark.parametrize("self_loops", [False, True])
def test_one_node(self_loops: bool) -> None:
    settings = replace(SMALL, nodes=1)
    problem = random_problem(settings, 34, density=1.0, self_loops=self_loops)
    output, losses, gradients = solve(settings, problem)
    assert problem.adjacency.any() == self_loops
    assert_finite(losses, gradients)
    assert not output.relational_context.any()
    assert idle(gradients) == named(settings, (*AFFINITIES, *RELATIONS))


@pytest.mark.parametrize("self_loops", [False, True])
def test_no_edges_but_self_loops(self_loops: bool) -> None:
    problem = replace(random_problem(SMALL, 35), adjacency=torch.eye(4, dtype=torch.float64) * self_loops)
    output, losses, gradients = solve(SMALL, problem)
    assert_finite(losses, gradients)
    assert torch.equal(output.operators["forward"], problem.adjacency.expand(2, 2, 4, 4))
    assert idle(gradients) == named(SMALL, AFFINITIES)
    merge = gradients["physical.forward_path.merge.weight"]
    assert merge is not None
    assert not merge[:, SMALL.hidden :].any()  # nothing arrives from neighbours


def test_a_chain_gives_every_node_one_source_at_most_and_no_choice() -> None:
    problem = replace(random_problem(SMALL, 36), adjacency=torch.diag(torch.ones(3, dtype=torch.float64), 1))
    output, losses, gradients = solve(SMALL, problem)
    assert_finite(losses, gradients)
    assert not output.operators["forward"][:, :, 0].any()  # the head of the chain receives nothing
    assert torch.allclose(output.operators["forward"], problem.adjacency.T.expand(2, 2, 4, 4))
    assert idle(gradients) == named(SMALL, AFFINITIES)


def test_a_single_channel_has_an_idle_bias() -> None:
    settings = replace(SMALL, relations=1)
    _, losses, gradients = solve(settings, random_problem(settings, 37, density=0.7))
    assert_finite(losses, gradients)
    assert idle(gradients) == {"functional.relation_bias"}


def test_a_single_pair_has_idle_scores() -> None:
    settings = replace(SMALL, pairs=1)
    _, losses, gradients = solve(settings, random_problem(settings, 38, density=0.7))
    assert_finite(losses, gradients)
    scores = ("functional.level_relations", "functional.trend", "functional.relation_bias")
    assert idle(gradients) >= named(settings, scores)
    assert {name for name in idle(gradients) if ".channels." not in name} == named(settings, scores)


def test_before_activation_role_maps_are_not_touched() -> None:
    _, losses, gradients = solve(SMALL, random_problem(SMALL, 39, density=0.7), activation=False)
    assert_finite(losses, gradients)
    assert {"rec", "role_background", "role_accumulation", "role_release"}.isdisjoint(losses)
    untouched = {name for name, gradient in gradients.items() if gradient is None}
    assert untouched == idle(gradients) == named(SMALL, ("roles.",))


def test_a_span_longer_than_the_history_has_no_next_patch_roles() -> None:
    settings = replace(SMALL, history=5, temporal_span=4)
    _, losses, gradients = solve(settings, random_problem(settings, 40, density=0.7))
    assert_finite(losses, gradients)
    assert losses["role_background"] == losses["role_accumulation"] == losses["bg"] == 0
    assert losses["hist"] > 0
    assert idle(gradients) == named(settings, NEXT_PATCH_ROLES)


@pytest.mark.parametrize("prefix", [1, 2, 3, 6])
def test_rows_of_the_temporal_maps_learn_only_where_the_prefix_reaches(prefix: int) -> None:
    _, losses, gradients = solve(SMALL, random_problem(SMALL, 41, density=0.7), prefix=prefix)
    assert_finite(losses, gradients)
    assert idle(gradients) == set()
    decoded = sum(start < SMALL.history + prefix for start in (8, 10, 12, 14))
    for name in ("functional.temporal", "history.temporal.shock"):
        rows = gradients[f"{name}.weight"]
        assert rows is not None
        assert rows.any(dim=1).tolist() == [True] * decoded + [False] * (4 - decoded)
