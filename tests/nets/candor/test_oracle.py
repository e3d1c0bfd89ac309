"""The oracle obeys the laws of the equations it writes out, and agrees with hand calculation and with PyTorch."""

from dataclasses import replace
from math import e, prod

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from oracle import BRANCHES, COMPONENTS, OracleOutput, oracle_forward
from oracle_branches import DIRECTIONS, directional_support
from oracle_parameters import (
    SMALL,
    OracleProblem,
    OracleSettings,
    history_starts,
    parameter_shapes,
    random_parameters,
    random_problem,
    target_starts,
)
from oracle_primitives import (
    Parameters,
    causal_attention,
    causal_convolution,
    gelu,
    gru,
    layer_norm,
    overlap_average,
    row_norm,
    top_k_softmax,
)
from torch import Tensor


def forward(
    parameters: Parameters, settings: OracleSettings, problem: OracleProblem, prefix: int | None = None
) -> OracleOutput:
    return oracle_forward(
        parameters,
        settings,
        problem.adjacency,
        problem.values,
        problem.time_of_day,
        problem.day_of_week,
        prefix,
    )


def agree(left: Tensor, right: Tensor) -> bool:
    return torch.allclose(left, right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("nodes", "history", "horizon", "length", "stride", "relations", "total"),
    [
        (207, 12, 12, 4, 2, 4, 898_566),
        (325, 12, 12, 3, 3, 2, 904_373),
        (12, 48, 192, 16, 8, 4, 876_750),
        (20, 48, 192, 16, 8, 4, 878_030),
        (11, 48, 192, 16, 8, 4, 876_590),
    ],
)
def test_parameter_totals_are_those_the_paper_states(
    nodes: int, history: int, horizon: int, length: int, stride: int, relations: int, total: int
) -> None:
    settings = OracleSettings(nodes, history, horizon, length, stride, relations=relations)
    assert sum(prod(shape) for shape in parameter_shapes(settings).values()) == total


def test_target_patches_continue_the_grid_of_history_patches() -> None:
    settings = OracleSettings(nodes=207, history=12, horizon=12, patch_length=4, patch_stride=2)
    assert history_starts(settings) == [0, 2, 4, 6, 8]
    assert target_starts(settings) == [10, 12, 14, 16, 18, 20, 22]


def test_every_intermediate_has_the_shape_its_symbol_has_in_the_paper() -> None:
    output = forward(random_parameters(SMALL, 1), SMALL, random_problem(SMALL, 2, batch=3))
    nodes, patches, targets, hidden, width = 4, 4, 4, 8, 10
    history = (3, nodes, patches, hidden)
    assert output.embedding.shape == output.refined_history.shape == output.relational_context.shape == history
    for name in COMPONENTS:
        assert output.components[name].shape == output.raw_components[name].shape == history
    assert output.gates["accumulation"].shape == output.gates["release"].shape == history
    assert output.gates["shock_u"].shape == output.gates["shock_v"].shape == (3, nodes, patches, 1)
    for direction in DIRECTIONS:
        assert output.operators[direction].shape == (3, 2, nodes, nodes)
        assert output.delay_affinity[direction].shape == (2, nodes, nodes)
        assert output.sample_affinity[direction].shape == (3, nodes, nodes)
        for states in (output.temporal_state, output.propagation_residual, output.graph_output):
            assert states[direction].shape == history
        assert output.predictions[direction].shape == (3, nodes, targets, hidden)
    assert output.descriptor.shape == output.trend.shape == (3, nodes, 5)
    assert output.scores.shape == output.relation_weights.shape == (3, nodes, nodes, 2)
    assert output.fusion_weights.shape == (3, nodes, targets, 3)
    for branch in BRANCHES:
        assert output.representations[branch].shape == output.forecast_start.shape == (3, nodes, targets, width)
        assert output.branch_forecasts[branch].shape == output.forecast.shape == (3, 6, nodes)


@hypothesis_settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.booleans(), st.sampled_from([0.2, 0.5]))
def test_operators_are_stochastic_on_the_support_and_zero_elsewhere(
    seed: int, self_loops: bool, density: float
) -> None:
    problem = random_problem(SMALL, seed, density=density, self_loops=self_loops)
    output = forward(random_parameters(SMALL, seed), SMALL, problem, prefix=1)
    for direction, edges in (("forward", problem.adjacency.T > 0), ("reverse", problem.adjacency > 0)):
        sums = output.operators[direction].sum(dim=-1)
        assert agree(sums, edges.any(dim=-1).to(sums).expand_as(sums))
        assert torch.equal(output.operators[direction] > 0, edges.expand_as(output.operators[direction]))


def test_relation_weights_choose_the_allowed_number_of_other_nodes_and_sum_to_one() -> None:
    weights = forward(random_parameters(SMALL, 3), SMALL, random_problem(SMALL, 4), prefix=1).relation_weights
    assert agree(weights.sum(dim=(2, 3)), torch.ones(2, 4, dtype=torch.float64))
    assert ((weights > 0).sum(dim=(2, 3)) == SMALL.pairs).all()
    assert not torch.diagonal(weights, dim1=1, dim2=2).any()


def test_row_norm_by_hand() -> None:
    matrix = torch.tensor([[1.0, 3.0], [0.0, 0.0]], dtype=torch.float64)
    assert row_norm(matrix).tolist() == [[0.25, 0.75], [0.0, 0.0]]
    assert row_norm(matrix * 1e-290).tolist()[0] == pytest.approx([0.25, 0.75])


def test_directional_supports_by_hand() -> None:
    adjacency = torch.tensor([[0.0, 1.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    assert directional_support(adjacency, "forward").tolist() == [[0, 0, 0], [0.25, 0, 0], [0.75, 1, 0]]
    assert directional_support(adjacency, "reverse").tolist() == [[0, 1, 0.75], [0, 0, 0.25], [0, 0, 0]]


def test_top_k_softmax_by_hand() -> None:
    scores = torch.tensor([[[9.0, 9.0], [1.0, 0.0]], [[2.0, 2.5], [9.0, 9.0]]], dtype=torch.float64)
    one = top_k_softmax(scores, 1)
    assert one.tolist() == [[[0, 0], [1, 0]], [[0, 1], [0, 0]]]
    many = top_k_softmax(scores, 16)
    assert many[0, 1].tolist() == pytest.approx([e / (e + 1), 1 / (e + 1)])
    assert not many[0, 0].any() and not many[1, 1].any()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 7), st.integers(1, 9), st.floats(-5, 5))
def test_the_overlap_average_of_constant_patches_is_the_constant(
    length: int, stride: int, extra: int, horizon: int, constant: float
) -> None:
    settings = replace(
        SMALL, history=length + extra, horizon=horizon, patch_length=length, patch_stride=min(stride, length)
    )
    patches = torch.full((2, 4, len(target_starts(settings)), length), constant, dtype=torch.float64)
    for prefix in range(1, horizon + 1):
        forecast = overlap_average(patches, settings, prefix)
        assert forecast.shape == (2, prefix, 4)
        assert agree(forecast, torch.full_like(forecast, constant))


def test_the_overlap_average_by_hand() -> None:
    settings = replace(SMALL, nodes=1, history=4, horizon=3, patch_length=3, patch_stride=2)
    assert target_starts(settings) == [2, 4, 6]
    patches = torch.tensor([[[[0.0, 1.0, 2.0], [10.0, 11.0, 12.0], [20.0, 21.0, 22.0]]]])
    assert overlap_average(patches, settings, 3).flatten().tolist() == [6.0, 11.0, 16.0]
    assert overlap_average(patches[:, :, :2], settings, 2).flatten().tolist() == [6.0, 11.0]


@pytest.mark.parametrize("self_loops", [False, True])
def test_a_prefix_gives_the_first_steps_of_the_full_forecast(self_loops: bool) -> None:
    parameters, problem = random_parameters(SMALL, 5), random_problem(SMALL, 6, self_loops=self_loops)
    full = forward(parameters, SMALL, problem)
    for prefix in range(1, SMALL.horizon + 1):
        part = forward(parameters, SMALL, problem, prefix)
        assert agree(part.forecast, full.forecast[:, :prefix])
        for branch in BRANCHES:
            assert agree(part.branch_forecasts[branch], full.branch_forecasts[branch][:, :prefix])


def test_states_do_not_change_when_later_observations_do() -> None:
    parameters, problem = random_parameters(SMALL, 7), random_problem(SMALL, 8)
    values = problem.values.clone()
    values[:, -1] += 1  # only the last of four patches covers the last step
    before, after = forward(parameters, SMALL, problem), forward(parameters, SMALL, replace(problem, values=values))
    pairs = [(before.components["background"], after.components["background"], 3)]
    pairs += [(before.components["accumulation"], after.components["accumulation"], 3)]
    pairs += [(before.components["release"], after.components["release"], 2)]  # its reference is the next background
    pairs += [(before.temporal_state[d], after.temporal_state[d], 2) for d in DIRECTIONS]
    pairs += [(before.propagation_residual[d], after.propagation_residual[d], 2) for d in DIRECTIONS]
    for old, new, unchanged in pairs:
        assert torch.equal(old[:, :, :unchanged], new[:, :, :unchanged])
        assert not torch.isclose(old[:, :, unchanged], new[:, :, unchanged]).all(dim=-1).any()


def test_a_predicted_patch_knows_the_calendar_of_earlier_target_patches_only() -> None:
    parameters, problem = random_parameters(SMALL, 9), random_problem(SMALL, 10)
    before = forward(parameters, SMALL, problem)
    for q, start in enumerate(target_starts(SMALL)):
        time_of_day = problem.time_of_day.clone()
        time_of_day[:, start] = (time_of_day[:, start] + 100) % 288
        if start < SMALL.history:
            continue  # a row of the history, read by the operators as well
        after = forward(parameters, SMALL, replace(problem, time_of_day=time_of_day))
        for direction in DIRECTIONS:
            old, new = before.predictions[direction], after.predictions[direction]
            assert torch.equal(old[:, :, : q + 1], new[:, :, : q + 1])
            assert not torch.isclose(old[:, :, q + 1 :], new[:, :, q + 1 :]).all(dim=-1).any()
        assert not torch.isclose(before.descriptor, after.descriptor).all(dim=-1).any()


@pytest.mark.parametrize("rollout_gate", [True, False])
def test_the_roll_out_gate_is_the_only_reader_of_the_target_calendar_in_the_physical_branch(rollout_gate: bool) -> None:
    settings = replace(SMALL, rollout_gate=rollout_gate)
    parameters, problem = random_parameters(settings, 9), random_problem(settings, 10)
    day_of_week = problem.day_of_week.clone()
    day_of_week[:, settings.history :] = (day_of_week[:, settings.history :] + 1) % 7
    before = forward(parameters, settings, problem).predictions
    after = forward(parameters, settings, replace(problem, day_of_week=day_of_week)).predictions
    for direction in DIRECTIONS:
        assert torch.equal(before[direction], after[direction]) is not rollout_gate


def test_only_patch_starts_and_the_last_observed_step_have_a_calendar() -> None:
    parameters, problem = random_parameters(SMALL, 11), random_problem(SMALL, 12)
    read = {*history_starts(SMALL), *target_starts(SMALL), SMALL.history - 1}
    before = forward(parameters, SMALL, problem).forecast
    for step in range(SMALL.history + SMALL.horizon):
        for clock, bins in (("time_of_day", 288), ("day_of_week", 7)):
            rows = getattr(problem, clock).clone()
            rows[:, step] = (rows[:, step] + 1) % bins
            after = forward(parameters, SMALL, replace(problem, **{clock: rows})).forecast
            assert torch.equal(before, after) is (step not in read)


@pytest.mark.parametrize("orders", [1, 2, 3])
def test_numbering_the_nodes_differently_changes_nothing_else(orders: int) -> None:
    settings = replace(SMALL, spatial_orders=orders)
    parameters, problem = random_parameters(settings, 13), random_problem(settings, 14, self_loops=True)
    order = torch.tensor([2, 0, 3, 1])
    renumbered = {name: value[order] if "nodes.weight" in name else value for name, value in parameters.items()}
    moved = replace(problem, adjacency=problem.adjacency[order][:, order], values=problem.values[:, :, order])
    straight, permuted = forward(parameters, settings, problem), forward(renumbered, settings, moved)
    assert agree(straight.forecast[:, :, order], permuted.forecast)


def test_turning_every_edge_around_exchanges_the_two_directions() -> None:
    parameters, problem = random_parameters(SMALL, 15), random_problem(SMALL, 16, self_loops=True)
    other = {"forward_path": "reverse_path", "reverse_path": "forward_path"}
    other |= {"first_nodes": "second_nodes", "second_nodes": "first_nodes"}
    exchanged = {}
    for name, value in parameters.items():
        exchanged[".".join(other.get(part, part) for part in name.split("."))] = value
    for name in ("fusion.mlp.second.weight", "fusion.mlp.second.bias"):
        exchanged[name] = parameters[name][[0, 2, 1]]
    turned = replace(problem, adjacency=problem.adjacency.T)
    straight, mirrored = forward(parameters, SMALL, problem), forward(exchanged, SMALL, turned)
    assert agree(straight.forecast, mirrored.forecast)
    assert agree(straight.branch_forecasts["forward"], mirrored.branch_forecasts["reverse"])


def test_samples_of_a_batch_do_not_meet() -> None:
    parameters, problem = random_parameters(SMALL, 17), random_problem(SMALL, 18, batch=3)
    together = forward(parameters, SMALL, problem).forecast
    for sample in range(3):
        rows = {name: getattr(problem, name)[sample : sample + 1] for name in ("values", "time_of_day", "day_of_week")}
        assert agree(forward(parameters, SMALL, replace(problem, **rows)).forecast, together[sample : sample + 1])


def test_single_precision_gives_the_same_forecast_to_single_precision() -> None:
    problem = random_problem(SMALL, 20)
    double = forward(random_parameters(SMALL, 19), SMALL, problem).forecast
    coarse = replace(problem, values=problem.values.float())
    single = forward(random_parameters(SMALL, 19, torch.float32), SMALL, coarse).forecast
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), double, rtol=1e-3, atol=1e-4)


def test_recurrence_attention_convolution_and_norm_are_those_of_pytorch() -> None:
    parameters = random_parameters(SMALL, 21)
    sequence = torch.randn((3, 5, 8), generator=torch.Generator().manual_seed(22), dtype=torch.float64)
    path = "physical.forward_path"

    recurrent = torch.nn.GRU(8, 8, batch_first=True, dtype=torch.float64)
    recurrent.load_state_dict(
        {f"{kind}_l0": parameters[f"{path}.gru.{kind}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    )
    assert agree(gru(parameters, f"{path}.gru", sequence), recurrent(sequence)[0])

    attention = torch.nn.MultiheadAttention(8, SMALL.heads, batch_first=True, dtype=torch.float64)
    names = {"in_proj_weight": "in_weight", "in_proj_bias": "in_bias"}
    names |= {"out_proj.weight": "out.weight", "out_proj.bias": "out.bias"}
    attention.load_state_dict({theirs: parameters[f"{path}.attention.{ours}"] for theirs, ours in names.items()})
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = attention(sequence, sequence, sequence, attn_mask=later, need_weights=False)[0]
    assert agree(causal_attention(parameters, f"{path}.attention", sequence, SMALL.heads), expected)

    name = "decomposition.release_convolution"
    padded = torch.nn.functional.pad(sequence.transpose(1, 2), (2, 0))
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    expected = torch.nn.functional.conv1d(padded, weight, bias, groups=8).transpose(1, 2)
    assert agree(causal_convolution(parameters, name, sequence), expected)

    weight, bias = parameters["history.norm.weight"], parameters["history.norm.bias"]
    expected = torch.nn.functional.layer_norm(sequence, (8,), weight, bias)
    assert agree(layer_norm(parameters, "history.norm", sequence), expected)
    assert agree(gelu(sequence), torch.nn.functional.gelu(sequence))
