"""Every loss term of the oracle takes the value that its equation gives by hand in a case where that is plain."""

from dataclasses import replace

import pytest
import torch
from oracle import BRANCHES, OracleOutput, oracle_forward
from oracle_branches import DIRECTIONS
from oracle_losses import WEIGHTED_TERMS, masked_error, oracle_losses
from oracle_parameters import SMALL as ORDINARY
from oracle_parameters import OracleProblem, random_parameters, random_problem
from torch import Tensor

SMALL = replace(ORDINARY, nodes=3, horizon=4)
WEIGHTS = {name: 0.1 * (order + 1) for order, name in enumerate(WEIGHTED_TERMS)}
PARAMETERS = random_parameters(SMALL, 51)
IDENTITIES = {
    name: torch.eye(SMALL.hidden, dtype=torch.float64) if name.startswith("roles.") else value
    for name, value in PARAMETERS.items()
}
PROBLEM = random_problem(SMALL, 52, density=0.6)


@pytest.fixture(scope="module")
def output() -> OracleOutput:
    clock = (PROBLEM.time_of_day, PROBLEM.day_of_week)
    return oracle_forward(PARAMETERS, SMALL, PROBLEM.adjacency, PROBLEM.values, *clock)


def losses_of(
    output: OracleOutput, problem: OracleProblem = PROBLEM, unscale: tuple[float, float] | None = None
) -> dict[str, Tensor]:
    everything = (problem.targets, problem.mask, WEIGHTS, True, None, unscale)
    return oracle_losses(output, IDENTITIES, SMALL, *everything)


def split(whole: Tensor) -> dict[str, Tensor]:
    """Two directional states that add up to the given one."""
    return {"forward": 0.3 * whole, "reverse": 0.7 * whole}


def shifted(sequence: Tensor) -> Tensor:
    """The sequence one patch ahead, its last patch repeated."""
    return torch.cat([sequence[:, :, 1:], sequence[:, :, -1:]], dim=2)


def test_the_total_is_the_weighted_sum_of_the_terms(output: OracleOutput) -> None:
    losses = losses_of(output)
    assert set(losses) == {"pred", "total", *WEIGHTED_TERMS}
    expected = losses["pred"] + sum(WEIGHTS[name] * losses[name] for name in WEIGHTED_TERMS)
    assert losses["total"].item() == pytest.approx(expected.item(), rel=1e-14)


def test_errors_are_averaged_over_valid_targets_alone() -> None:
    forecast = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    targets = torch.tensor([2.0, float("nan"), 6.0])
    error = masked_error(forecast, targets, torch.tensor([True, False, True]))
    assert error.item() == 2.0
    assert torch.autograd.grad(error, forecast)[0].tolist() == [-0.5, 0.0, -0.5]
    assert masked_error(forecast, targets, torch.zeros(3, dtype=torch.bool)).item() == 0.0


def test_a_perfect_forecast_costs_nothing_and_a_shifted_branch_a_third_of_its_shift(output: OracleOutput) -> None:
    perfect = replace(PROBLEM, targets=output.forecast)
    branches = dict.fromkeys(BRANCHES, output.forecast) | {"reverse": output.forecast + 1.5}
    losses = losses_of(replace(output, branch_forecasts=branches), perfect)
    assert losses["pred"].item() == 0
    assert losses["branch"].item() == pytest.approx(0.5)


def test_the_loss_in_original_units_is_the_scaled_loss_times_the_deviation(output: OracleOutput) -> None:
    scaled = losses_of(output)
    original = losses_of(output, replace(PROBLEM, targets=PROBLEM.targets * 19.5 + 54.4), (54.4, 19.5))
    for name in ("pred", "branch"):
        assert original[name].item() == pytest.approx(19.5 * scaled[name].item(), rel=1e-12)
    for name in set(WEIGHTED_TERMS) - {"branch"}:
        assert original[name] == scaled[name]


def test_a_prefix_supervises_its_own_steps_only(output: OracleOutput) -> None:
    clock = (PROBLEM.time_of_day, PROBLEM.day_of_week)
    short = oracle_forward(PARAMETERS, SMALL, PROBLEM.adjacency, PROBLEM.values, *clock, prefix=2)
    losses = oracle_losses(short, IDENTITIES, SMALL, PROBLEM.targets, PROBLEM.mask, WEIGHTS, True, 2)
    early = PROBLEM.mask.clone()
    early[:, 2:] = False
    full = losses_of(output, replace(PROBLEM, mask=early))
    for name in ("pred", "branch"):
        assert losses[name].item() == pytest.approx(full[name].item(), rel=1e-12)
    with pytest.raises(ValueError, match="2 steps"):
        oracle_losses(short, IDENTITIES, SMALL, PROBLEM.targets, PROBLEM.mask, WEIGHTS, True)


def test_history_is_consistent_when_the_two_paths_predict_the_next_patch(output: OracleOutput) -> None:
    following = 2 * shifted(output.refined_history)
    temporal, graph = split(0.4 * following), split(0.6 * following)
    consistent = replace(output, temporal_state=temporal, graph_output=graph)
    assert losses_of(consistent)["hist"].item() == pytest.approx(0, abs=1e-24)
    astray = replace(consistent, graph_output={direction: state + 3 for direction, state in graph.items()})
    assert losses_of(astray)["hist"].item() == pytest.approx(9)


def test_separation_is_one_for_parallel_and_zero_for_orthogonal_states(output: OracleOutput) -> None:
    states = output.temporal_state
    opposite = {direction: 5 - 2 * states[direction] for direction in DIRECTIONS}
    assert losses_of(replace(output, propagation_residual=opposite))["sep"].item() == pytest.approx(1)
    left, right = (torch.zeros_like(states["forward"]) for _ in range(2))
    left[..., 0], left[..., 1], right[..., 2], right[..., 3] = 1, -1, 1, -1
    orthogonal = replace(
        output, temporal_state=dict.fromkeys(DIRECTIONS, left), propagation_residual=dict.fromkeys(DIRECTIONS, right)
    )
    assert losses_of(orthogonal)["sep"].item() == 0


def test_a_straight_background_is_smooth_and_a_parabola_bends_by_two(output: OracleOutput) -> None:
    patches = torch.arange(4, dtype=torch.float64)[:, None].expand_as(output.embedding)
    straight = replace(output, components=output.components | {"background": 3 * patches + 1})
    assert losses_of(straight)["bg"].item() == 0
    bent = replace(output, components=output.components | {"background": -(patches**2)})
    assert losses_of(bent)["bg"].item() == pytest.approx(2)


def test_shock_is_the_mean_activity_of_both_gates(output: OracleOutput) -> None:
    gate = torch.ones_like(output.gates["shock_u"])
    gated = replace(output, gates=output.gates | {"shock_u": 0.2 * gate, "shock_v": 0.6 * gate})
    assert losses_of(gated)["shock"].item() == pytest.approx(0.4)


def test_reconstruction_vanishes_when_both_views_explain_the_embedding(output: OracleOutput) -> None:
    raw = dict(output.raw_components)
    raw["accumulation"] = output.embedding - raw["background"] - raw["shock"]
    raw["release"] = output.embedding - shifted(raw["background"]) - raw["shock"]
    assert losses_of(replace(output, raw_components=raw))["rec"].item() == pytest.approx(0, abs=1e-24)
    near = raw | {"accumulation": raw["accumulation"] + 0.5}
    assert losses_of(replace(output, raw_components=near))["rec"].item() == pytest.approx(0.5 * 0.5**2 / 2)
    far = raw | {"release": raw["release"] - 3}
    assert losses_of(replace(output, raw_components=far))["rec"].item() == pytest.approx(0.5 * (3 - 0.5))


def test_reconstruction_does_not_pull_the_embedding(output: OracleOutput) -> None:
    embedding = output.embedding.clone().requires_grad_()
    raw = {name: part.clone().requires_grad_() for name, part in output.raw_components.items()}
    loss = losses_of(replace(output, embedding=embedding, raw_components=raw))["rec"]
    reached = torch.autograd.grad(loss, [embedding, *raw.values()], allow_unused=True)
    assert [gradient is not None for gradient in reached] == [False, True, True, True, True]


def test_roles_reach_minus_one_when_states_follow_their_components(output: OracleOutput) -> None:
    parts = output.components
    aligned = replace(
        output,
        temporal_state=split(2 * shifted(parts["background"])),
        graph_output=split(3 * shifted(parts["accumulation"])),
        propagation_residual=split(-0.5 * parts["release"]),
    )
    losses = losses_of(aligned)
    values = [losses[f"role_{name}"].item() for name in ("background", "accumulation", "release")]
    assert values == pytest.approx([-1, -1, 1])


@pytest.mark.parametrize(("span", "compared"), [(1, 3), (2, 3), (3, 2), (4, 1), (5, 0)])
def test_next_patch_roles_begin_where_the_window_is_nearly_full(output: OracleOutput, span: int, compared: int) -> None:
    settings = replace(SMALL, temporal_span=span)
    background = output.components["background"]
    aligned = shifted(background)
    aligned[:, :, : 3 - compared] *= -1  # a wrong sign where nothing may be compared
    states = replace(output, temporal_state=split(aligned))
    losses = oracle_losses(states, IDENTITIES, settings, PROBLEM.targets, PROBLEM.mask, WEIGHTS, True)
    assert losses["role_background"].item() == pytest.approx(-1 if compared else 0)
