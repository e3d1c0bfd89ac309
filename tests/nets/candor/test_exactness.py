"""The fast model against the literal one: forecasts, every loss term, and the gradient of every parameter."""

from dataclasses import asdict, replace
from functools import cache, lru_cache

import pytest
import torch
from oracle import OracleOutput, oracle_forward
from oracle_losses import oracle_losses
from oracle_parameters import OracleProblem, OracleSettings, random_parameters, random_problem
from torch import Tensor

import candor.nets.candor.ops.pairs
import candor.nets.candor.physical_operator
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import Losses, LossSpace, losses
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import LossWeights, ModelSettings

SMALL = OracleSettings(
    nodes=5,
    history=9,
    horizon=6,
    patch_length=3,
    patch_stride=2,
    hidden=8,
    forecast_width=12,
    head_width=16,
    node_width=6,
    relation_width=5,
    value_width=7,
    pairs=4,
    relations=2,
    heads=2,
    fusion_width=9,
)
ORACLE_NAMES = {
    "prediction": "pred",
    "branch": "branch",
    "history": "hist",
    "separation": "sep",
    "background": "bg",
    "shock": "shock",
    "reconstruction": "rec",
    "role_background": "role_background",
    "role_accumulation": "role_accumulation",
    "role_release": "role_release",
}
# All terms weigh enough here for a wrong gradient to show.
WEIGHTS = LossWeights(background=0.3, shock=0.4, reconstruction=0.5)
CASES = {
    "small": SMALL,
    "K_t 1": replace(SMALL, temporal_span=1),
    "K_t 3": replace(SMALL, temporal_span=3),
    "K_t 4": replace(SMALL, temporal_span=4),
    "K_s 1": replace(SMALL, spatial_orders=1),
    "K_s 3": replace(SMALL, spatial_orders=3),
    "one node": replace(SMALL, nodes=1),
    "one patch": replace(SMALL, patch_length=9, patch_stride=4),
    "two patches": replace(SMALL, patch_length=6, patch_stride=3),
    "more pairs than there are": replace(SMALL, pairs=40),
    "patches without overlap": replace(SMALL, patch_length=3, patch_stride=3),
    "a history the patches do not fill": replace(SMALL, history=10),
    "feedback without the gate": replace(SMALL, rollout_gate=False),
    "kernel longer than the history": replace(SMALL, kernel=5, patch_length=5, patch_stride=4),
}
# Those that are also compared where less than the horizon is supervised.
SHORTENED = ("small", "K_t 3", "two patches", "feedback without the gate")


def build(settings: OracleSettings, problem: OracleProblem, parameters: dict[str, Tensor]) -> CandorNetwork:
    """Returns the product with the given weights, without dropout, in the weights' precision."""
    source, target = problem.adjacency.nonzero(as_tuple=True)
    edges = EdgeArrays(source.numpy(), target.numpy(), problem.adjacency[source, target].numpy())
    precision = next(iter(parameters.values())).dtype
    before = torch.get_default_dtype()
    torch.set_default_dtype(precision)
    try:
        network = CandorNetwork(ModelSettings(**asdict(settings)), edges)
    finally:
        torch.set_default_dtype(before)
    network.load_state_dict(parameters)
    return network.eval()


def product(
    network: CandorNetwork, problem: OracleProblem, prefix: int, space: LossSpace, is_active: bool, is_masked: bool
) -> tuple[Tensor, Losses]:
    """Returns the forecast and the losses."""
    states = network.encode(problem.values, problem.time_of_day, problem.day_of_week, prefix)
    mask = problem.mask if is_masked else torch.ones_like(problem.mask)
    found = losses(network, states, problem.targets, mask, WEIGHTS, prefix=prefix, space=space, is_active=is_active)
    return network.head(states.fused, prefix), found


@cache
def problem_of(settings: OracleSettings, seed: int, density: float = 0.5, self_loops: bool = False) -> OracleProblem:
    return random_problem(settings, seed, density=density, self_loops=self_loops)


@lru_cache(maxsize=1)
def as_written(settings: OracleSettings, problem: OracleProblem, prefix: int) -> tuple[dict[str, Tensor], OracleOutput]:
    """Returns parameters and the forward pass of the equations, once for all losses of it that follow."""
    leaves = {name: value.requires_grad_() for name, value in random_parameters(settings, seed=1).items()}
    clock = problem.time_of_day, problem.day_of_week
    return leaves, oracle_forward(leaves, settings, problem.adjacency, problem.values, *clock, prefix)


@cache
def by_the_equations(
    settings: OracleSettings, problem: OracleProblem, prefix: int, is_active: bool, is_masked: bool, in_units: bool
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor | None]]:
    """Returns forecast, losses and gradients as they are written, once for all that is compared with them."""
    leaves, output = as_written(settings, problem, prefix)
    weights = {ORACLE_NAMES[name]: value for name, value in WEIGHTS.model_dump().items()}
    mask = problem.mask if is_masked else torch.ones_like(problem.mask)
    unscale = (3.0, 2.0) if in_units else None
    expected = oracle_losses(output, leaves, settings, problem.targets, mask, weights, is_active, prefix, unscale)
    found = torch.autograd.grad(expected["total"], list(leaves.values()), retain_graph=True, allow_unused=True)
    gradients = dict(zip(leaves, found, strict=True))
    return output.forecast.detach(), {name: term.detach() for name, term in expected.items()}, gradients


def assert_exact(
    settings: OracleSettings, problem: OracleProblem, *, prefix: int, is_active: bool = True, is_masked: bool = True,
    in_units: bool = True, tolerance: float = 1e-9, precision: torch.dtype = torch.float64,
) -> None:  # fmt: skip
    """Compares the product in the given precision with the equations in double precision."""
    parameters = random_parameters(settings, seed=1)
    network = build(settings, problem, {name: value.to(precision) for name, value in parameters.items()})
    space = LossSpace(3.0, 2.0) if in_units else LossSpace()
    given = replace(problem, values=problem.values.to(precision), targets=problem.targets.to(precision))
    forecast, found = product(network, given, prefix, space, is_active, is_masked)
    found.total.backward()
    assert {forecast.dtype, found.total.dtype} == {precision}

    wanted, expected, gradients = by_the_equations(settings, problem, prefix, is_active, is_masked, in_units)
    torch.testing.assert_close(forecast.double(), wanted, rtol=tolerance, atol=tolerance)
    assert {ORACLE_NAMES[name] for name in found.terms} | {"total"} == set(expected)
    for name, term in found.terms.items():
        torch.testing.assert_close(
            term.double(), expected[ORACLE_NAMES[name]], rtol=tolerance, atol=tolerance, msg=name
        )
    torch.testing.assert_close(found.total.double(), expected["total"], rtol=tolerance, atol=tolerance)
    largest = max(gradient.abs().max() for gradient in gradients.values() if gradient is not None)
    for name, parameter in network.named_parameters():
        theirs = gradients[name]
        if parameter.grad is None or theirs is None:
            assert all(g is None or not g.any() for g in (parameter.grad, theirs)), name
            continue
        # Each parameter by its own scale; below that is the rounding of sums as large as the largest gradient.
        floor = max(tolerance * float(theirs.abs().max()), 100 * torch.finfo(precision).eps * float(largest))
        torch.testing.assert_close(parameter.grad.double(), theirs, rtol=tolerance, atol=floor, msg=name)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [*((name, 6) for name in CASES), *((name, 1) for name in SHORTENED), ("small", 4)],
)
def test_forecast_losses_and_gradients_are_those_of_the_equations(name: str, prefix: int) -> None:
    assert_exact(CASES[name], problem_of(CASES[name], seed=2), prefix=prefix)


@pytest.mark.parametrize(
    ("is_masked", "is_active", "in_units"),  # each pair of choices once
    [(True, True, True), (True, False, False), (False, True, False), (False, False, True)],
)
def test_masks_spaces_and_activation(is_masked: bool, is_active: bool, in_units: bool) -> None:
    problem = problem_of(SMALL, seed=3)
    assert_exact(SMALL, problem, prefix=5, is_masked=is_masked, is_active=is_active, in_units=in_units)


@pytest.mark.parametrize(
    ("orders", "density", "self_loops"),
    [(1, 0.3, True), *((3, *graph) for graph in ((0.0, False), (0.15, False), (0.3, True), (1.0, True), (1.0, False)))],
)
@pytest.mark.parametrize("is_dense", [True, False])
def test_graphs_of_all_kinds_by_both_ways_of_propagating(
    monkeypatch: pytest.MonkeyPatch, orders: int, density: float, self_loops: bool, is_dense: bool
) -> None:
    monkeypatch.setattr(candor.nets.candor.physical_operator, "DENSE_FROM", 0.0 if is_dense else 2.0)
    settings = replace(SMALL, spatial_orders=orders, nodes=6)
    assert_exact(settings, problem_of(settings, seed=4, density=density, self_loops=self_loops), prefix=6)


def test_choosing_pairs_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candor.nets.candor.ops.pairs, "SCORES_AT_A_TIME", 1)
    assert_exact(SMALL, problem_of(SMALL, seed=5), prefix=6)


def test_the_paper_sizes_are_exact_too() -> None:
    settings = OracleSettings(nodes=12, history=12, horizon=12, patch_length=4, patch_stride=2)
    assert_exact(settings, problem_of(settings, seed=6, density=0.2, self_loops=True), prefix=12)


@pytest.mark.parametrize("name", ["small", "K_t 4", "K_s 3", "one node", "one patch"])
def test_single_precision_agrees_to_single_precision(name: str) -> None:
    problem = problem_of(CASES[name], seed=2)
    assert_exact(CASES[name], problem, prefix=6, tolerance=1e-4, precision=torch.float32)


def test_single_precision_agrees_to_single_precision_at_the_paper_sizes() -> None:
    settings = OracleSettings(nodes=12, history=12, horizon=12, patch_length=4, patch_stride=2)
    problem = problem_of(settings, seed=6, density=0.2, self_loops=True)
    assert_exact(settings, problem, prefix=12, tolerance=1e-4, precision=torch.float32)
