"""Each quantity of the oracle outside the physical paths, from the one before it, by a second and shorter route."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from oracle import OracleOutput, oracle_forward
from oracle_parameters import (
    SMALL,
    OracleProblem,
    OracleSettings,
    history_starts,
    random_parameters,
    random_problem,
    target_starts,
)
from oracle_primitives import Parameters
from torch import Tensor
from torch.nn import functional


class Case:
    """One solved problem, with short hands for what its parameters do."""

    def __init__(self, settings: OracleSettings) -> None:
        self.settings = settings
        self.parameters: Parameters = random_parameters(settings, 71)
        self.problem: OracleProblem = random_problem(settings, 72, density=0.6)
        clock = (self.problem.time_of_day, self.problem.day_of_week)
        graph = self.problem.adjacency
        self.output: OracleOutput = oracle_forward(self.parameters, settings, graph, self.problem.values, *clock)
        self.nodes = self.parameters["decomposition.nodes.weight"]

    def affine(self, name: str, inputs: Tensor) -> Tensor:
        return functional.linear(inputs, self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"])

    def mlp(self, name: str, inputs: Tensor) -> Tensor:
        return self.affine(f"{name}.second", functional.gelu(self.affine(f"{name}.first", inputs)))

    def norm(self, name: str, inputs: Tensor) -> Tensor:
        weight, bias = self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"]
        return functional.layer_norm(inputs, weight.shape, weight, bias)

    def clock(self, steps: list[int], tables: str = "calendar") -> Tensor:
        time_of_day = self.parameters[f"{tables}.time_of_day.weight"][self.problem.time_of_day]
        day_of_week = self.parameters[f"{tables}.day_of_week.weight"][self.problem.day_of_week]
        return torch.cat([time_of_day, day_of_week], dim=-1)[:, steps]

    def join(self, *parts: Tensor) -> Tensor:
        """Features beside each other after broadcasting all other axes to (batch, node, patch)."""
        shape = np.broadcast_shapes(*(tuple(part.shape[:-1]) for part in parts))
        return torch.cat([part.expand(*shape, -1) for part in parts], dim=-1)


@pytest.fixture(scope="module", params=[9, 3], ids=["four patches", "one patch"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(replace(SMALL, history=request.param))


def assert_same(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=1e-10, atol=1e-12)


def differences(residual: Tensor) -> tuple[Tensor, Tensor]:
    """First and second differences, the first of each zero."""
    first = functional.pad(residual.diff(dim=2), (0, 0, 1, 0))
    return first, functional.pad(first.diff(dim=2), (0, 0, 1, 0))


def test_embedding_and_residual_views(case: Case) -> None:
    output, settings = case.output, case.settings
    patches = case.problem.values.transpose(1, 2).unfold(2, settings.patch_length, settings.patch_stride)
    assert_same(output.embedding, case.norm("embedding.norm", case.affine("embedding.linear", patches)))
    background = output.components["background"]
    assert_same(output.embedding - output.residual_u, background)
    assert_same(output.embedding - output.residual_v, torch.cat([background[:, :, 1:], background[:, :, -1:]], dim=2))


def test_gates_read_the_residual_view_they_belong_to(case: Case) -> None:
    output = case.output
    calendar = case.mlp("calendar.mlp", case.clock(history_starts(case.settings)))[:, None]
    nodes = case.nodes[:, None]
    for view, residual, component in (("u", output.residual_u, "accumulation"), ("v", output.residual_v, "release")):
        first, second = differences(residual)
        projected = case.affine("decomposition.node_projection", nodes)
        evidence = case.join(residual, first, -first, second, projected, calendar)
        expected = case.mlp(f"decomposition.{component}_gate", evidence).sigmoid()
        assert_same(output.gates[component], expected)
        shock = f"decomposition.shock_{view}"
        context = case.join(case.affine(f"{shock}.node", nodes), case.affine(f"{shock}.calendar", calendar))
        score = case.mlp(f"{shock}.magnitude", case.join(residual.abs(), first.abs(), second.abs()))
        assert_same(output.gates[f"shock_{view}"], (score + case.mlp(shock, context)).sigmoid())


def test_components_come_from_gated_residuals(case: Case) -> None:
    output = case.output
    sources = {"background": output.embedding}
    sources["accumulation"] = output.gates["accumulation"] * output.residual_u
    sources["release"] = output.gates["release"] * output.residual_v
    for name, source in sources.items():
        convolution = f"decomposition.{name}_convolution"
        weight, bias = case.parameters[f"{convolution}.weight"], case.parameters[f"{convolution}.bias"]
        padded = functional.pad(source.flatten(0, 1).transpose(1, 2), (weight.shape[-1] - 1, 0))
        raw = functional.conv1d(padded, weight, bias, groups=len(bias)).transpose(1, 2).reshape_as(source)
        assert_same(output.raw_components[name], raw)
    views = (("u", output.residual_u), ("v", output.residual_v))
    projected = {view: case.affine(f"decomposition.shock_projection_{view}", residual) for view, residual in views}
    shock = output.gates["shock_u"] * projected["u"] + output.gates["shock_v"] * projected["v"]
    assert_same(output.raw_components["shock"], shock)
    for name, raw in output.raw_components.items():
        assert_same(output.components[name], case.norm(f"decomposition.{name}_norm", raw))


def test_refined_history_and_first_forecast_join_the_components_in_order(case: Case) -> None:
    output, names = case.output, ("background", "accumulation", "release", "shock")
    together = torch.cat([output.components[name] for name in names], dim=-1)
    mixed = case.parameters["history.scale"] * case.affine("history.mix", together)
    assert_same(output.refined_history, case.norm("history.norm", output.embedding + mixed))
    projected = []
    for name in names:
        weight, bias = (case.parameters[f"history.temporal.{name}.{kind}"] for kind in ("weight", "bias"))
        later = torch.einsum("qp,bnpd->bnqd", weight, output.components[name]) + bias[:, None]
        projected.append(case.affine(f"history.feature.{name}", later))
    calendar = case.mlp("history.calendar", case.clock(target_starts(case.settings)))[:, None]
    merged = case.affine("history.merge", torch.cat(projected, dim=-1))
    assert_same(output.forecast_start, case.norm("history.forecast_norm", merged + calendar))


def test_sample_affinities_compare_described_nodes(case: Case) -> None:
    values = case.problem.values.transpose(1, 2)
    window = case.affine("physical.window.second", case.affine("physical.window.first", values).relu())
    now = case.clock([case.settings.history - 1])
    for direction, table in (("forward", "second"), ("reverse", "first")):
        described = case.join(window, now, case.parameters[f"physical.{table}_nodes.weight"])
        query = described @ case.parameters["physical.sample_query.weight"].T
        key = described @ case.parameters["physical.sample_key.weight"].T
        scores = torch.einsum("bid,bjd->bij", query, key) / case.settings.hidden**0.5
        assert_same(case.output.sample_affinity[direction], scores.softmax(dim=-1))


def test_descriptors_summarise_the_background(case: Case) -> None:
    background = case.output.components["background"]
    steps = background.diff(dim=2)
    patches = background.shape[2]
    recent = steps[:, :, -1] if patches > 1 else torch.zeros_like(background[:, :, 0])
    total = background[:, :, -1] - background[:, :, 0]
    changes = [total, recent, total / max(patches - 1, 1)]
    recurrent = torch.nn.GRU(8, 8, batch_first=True, dtype=torch.float64)
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    recurrent.load_state_dict({f"{kind}_l0": case.parameters[f"functional.gru.{kind}"] for kind in kinds})
    with torch.no_grad():
        final = recurrent(background.flatten(0, 1))[1].reshape_as(recent)
    summaries = torch.cat([background.mean(dim=2), *changes, final], dim=-1)
    base = case.norm("functional.descriptor_norm", case.mlp("functional.descriptor", summaries))
    starts = history_starts(case.settings) + target_starts(case.settings)
    calendar = case.mlp("calendar.mlp", case.clock(starts)).mean(dim=1, keepdim=True)
    context = case.mlp("functional.context", case.join(case.affine("functional.node_context", case.nodes), calendar))
    width = case.settings.relation_width
    modulated = (1 + context[..., :width]) * base + context[..., width:]
    assert_same(case.output.descriptor, case.norm("functional.relation_norm", modulated))
    trend = case.mlp("functional.trend", torch.cat(changes, dim=-1))
    assert_same(case.output.trend, case.norm("functional.trend_norm", trend))


def test_relations_are_scored_selected_and_summed(case: Case) -> None:
    output, parameters = case.output, case.parameters
    level, slope = parameters["functional.level_relations"], parameters["functional.trend_relations"]
    scores = torch.einsum("bid,rde,bje->bijr", output.descriptor, level, output.descriptor)
    scores = scores + 0.5 * torch.einsum("bid,rde,bje->bijr", output.trend, slope, output.trend)
    assert_same(output.scores, scores + parameters["functional.relation_bias"])
    own = torch.eye(case.settings.nodes, dtype=torch.bool)[None, :, :, None]
    candidates = output.scores.masked_fill(own, -torch.inf).flatten(2)
    smallest = candidates.topk(case.settings.pairs).values[..., -1:]
    weights = candidates.masked_fill(candidates < smallest, -torch.inf).softmax(dim=-1)
    assert_same(output.relation_weights.flatten(2), weights)
    reduced = case.affine("functional.reduce", output.refined_history)
    channels = [case.affine(f"functional.channels.{r}", reduced) for r in range(case.settings.relations)]
    values = case.affine("functional.restore", torch.stack(channels, dim=-2))
    assert_same(output.relational_context, torch.einsum("bijr,bjprd->bipd", output.relation_weights, values))


def test_the_functional_forecast_is_a_gated_correction_of_the_first_one(case: Case) -> None:
    output, parameters = case.output, case.parameters
    weight, bias = parameters["functional.temporal.weight"], parameters["functional.temporal.bias"]
    later = torch.einsum("qp,bnpd->bnqd", weight, output.relational_context) + bias[:, None]
    context = case.norm("functional.context_norm", case.affine("functional.feature", later))
    clock = case.clock(target_starts(case.settings))[:, None]
    together = case.join(output.forecast_start, context, output.descriptor[:, :, None], case.nodes[:, None], clock)
    joint = functional.gelu(case.affine("functional.joint", together))
    gated = case.affine("functional.gate", joint).sigmoid() * case.affine("functional.correction", joint)
    corrected = output.forecast_start + parameters["functional.scale"] * gated
    assert_same(output.representations["functional"], case.norm("functional.norm", corrected))


def test_fusion_weighs_functional_forward_and_reverse_in_this_order(case: Case) -> None:
    output, width = case.output, case.settings.hidden
    starts = target_starts(case.settings)
    angles = torch.outer(
        torch.arange(len(starts)), 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    )
    positions = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    context = case.join(case.nodes[:, None], case.clock(starts, "fusion")[:, None], positions)
    weights = case.mlp("fusion.mlp", context).softmax(dim=-1)
    assert_same(output.fusion_weights, weights)
    branches = [output.representations["functional"]]
    for direction in ("forward", "reverse"):
        branches.append(case.affine(f"physical.{direction}_path.readout", output.predictions[direction]))
        assert_same(output.representations[direction], branches[-1])
    assert_same(output.fused, torch.einsum("bnqc,cbnqd->bnqd", weights, torch.stack(branches)))


def test_forecasts_are_decoded_by_the_one_head_and_averaged_over_overlaps(case: Case) -> None:
    output, settings = case.output, case.settings
    steps = settings.history + settings.horizon
    decoded = {"fused": (output.fused, output.forecast)}
    decoded |= {name: (output.representations[name], branch) for name, branch in output.branch_forecasts.items()}
    assert len(decoded) == 4
    for representation, forecast in decoded.values():
        patches = case.affine("head.second", case.affine("head.first", representation.relu()).relu())
        total = torch.zeros((2, settings.nodes, steps + settings.patch_length), dtype=torch.float64)
        count = torch.zeros(steps + settings.patch_length)
        for patch, start in enumerate(target_starts(settings)):
            total[:, :, start : start + settings.patch_length] += patches[:, :, patch]
            count[start : start + settings.patch_length] += 1
        expected = (total / count.clamp(min=1))[:, :, settings.history : steps]
        assert_same(forecast, expected.transpose(1, 2))
