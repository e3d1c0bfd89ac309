"""The two relational branches, equation by equation (appendix "Decomposition-Conditioned Dual-Graph Learning")."""

import math
from dataclasses import dataclass

import torch
from oracle_parameters import history_starts, target_starts
from oracle_primitives import (
    OracleInputs,
    causal_attention,
    gelu,
    gru,
    layer_norm,
    linear,
    mlp,
    over_patches,
    row_norm,
    sinusoidal_positions,
    top_k_softmax,
)
from torch import Tensor

DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True, kw_only=True)
class Physical:
    """Every quantity of the physical propagation graph; each is kept by direction, "forward" and "reverse".

    support T (node, node); delay_affinity omega (position, node, node); sample_affinity a (batch, node, node);
    operators W (batch, position, node, node); path_gate (batch, node, patch, 1); gated_history H~,
    temporal_state L, propagation_residual E and graph_output o over history (batch, node, patch, hidden);
    predictions L + o of the decoded target patches (batch, node, target, hidden).
    """

    support: dict[str, Tensor]
    delay_affinity: dict[str, Tensor]
    sample_affinity: dict[str, Tensor]
    operators: dict[str, Tensor]
    path_gate: dict[str, Tensor]
    gated_history: dict[str, Tensor]
    temporal_state: dict[str, Tensor]
    propagation_residual: dict[str, Tensor]
    graph_output: dict[str, Tensor]
    predictions: dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Functional:
    """Every quantity of the functional relation graph.

    descriptor h^B and trend v^B (batch, node, relation width); scores s and relation_weights pi
    (batch, node, node, channel); relational_context C^func (batch, node, patch, hidden);
    target_context, correction and correction_gate (batch, node, target, forecast width).
    """

    descriptor: Tensor
    trend: Tensor
    scores: Tensor
    relation_weights: Tensor
    relational_context: Tensor
    target_context: Tensor
    correction: Tensor
    correction_gate: Tensor


def node_roles(inputs: OracleInputs, direction: str) -> tuple[Tensor, Tensor]:
    """Returns the receiving and the source embeddings of a direction, (node, node width) each."""
    first, second = (inputs.parameters[f"physical.{order}_nodes.weight"] for order in ("first", "second"))
    return (first, second) if direction == "forward" else (second, first)


def directional_support(adjacency: Tensor, direction: str) -> Tensor:
    """Returns T, entry (i, j) for what node i receives from node j."""
    return row_norm(adjacency if direction == "forward" else adjacency.T).T


def delay_affinity(inputs: OracleInputs, direction: str) -> Tensor:
    """Returns omega, a softmax over all nodes j for each receiver and position, (position, node, node)."""
    receiving, source = node_roles(inputs, direction)
    query = linear(inputs.parameters, "physical.query", receiving)
    positions = []
    for position in range(inputs.settings.temporal_span):
        key = linear(inputs.parameters, f"physical.keys.{position}", source)
        positions.append(torch.softmax(query @ key.T / math.sqrt(inputs.settings.node_width), dim=-1))
    return torch.stack(positions)


def sample_affinity(inputs: OracleInputs, direction: str) -> Tensor:
    """Returns a, a softmax over all nodes j for each sample and receiver, (batch, node, node)."""
    settings = inputs.settings
    _, source = node_roles(inputs, direction)
    window = mlp(inputs.parameters, "physical.window", inputs.values.transpose(1, 2), torch.relu)
    now = inputs.for_each_node(inputs.calendar_rows([settings.history - 1]))[:, :, 0]
    described = torch.cat([window, now, inputs.for_each_patch(source, 1)[:, :, 0]], dim=-1)
    query = linear(inputs.parameters, "physical.sample_query", described)
    key = linear(inputs.parameters, "physical.sample_key", described)
    return torch.softmax(query @ key.transpose(1, 2) / math.sqrt(settings.hidden), dim=-1)


def path_gate(inputs: OracleInputs, direction: str, steps: list[int]) -> Tensor:
    """Returns the scalar node-calendar gate at the given steps of the window, (batch, node, step, 1)."""
    _, source = node_roles(inputs, direction)
    calendar = inputs.for_each_node(inputs.calendar_rows(steps))
    context = torch.cat([inputs.for_each_patch(source, len(steps)), calendar], dim=-1)
    return torch.sigmoid(mlp(inputs.parameters, f"physical.{direction}_path.gate", context, torch.relu))


def graph_output(inputs: OracleInputs, direction: str, operators: Tensor, residual: Tensor) -> Tensor:
    """Returns o at every patch of the propagation residuals E, (batch, node, patch, hidden)."""
    span, name = inputs.settings.temporal_span, f"physical.{direction}_path"
    off_diagonal = 1 - torch.eye(inputs.settings.nodes, dtype=residual.dtype)
    outputs = []
    for patch in range(residual.shape[2]):
        window = [residual[:, :, max(patch - span + position, 0)] for position in range(1, span + 1)]
        features = torch.relu(linear(inputs.parameters, f"{name}.window_map", torch.cat(window, dim=-1)))
        transformed = features.chunk(span, dim=-1)  # Psi by position, each (batch, node, hidden)
        pieces = [torch.stack(transformed).mean(dim=0)]
        for order in range(1, inputs.settings.spatial_orders + 1):
            gathered = torch.zeros_like(transformed[0])
            for position in range(span):
                power = operators[:, position]
                for _ in range(order - 1):
                    power = power @ operators[:, position]
                gathered = gathered + (power * off_diagonal) @ transformed[position]
            pieces.append(gathered)
        outputs.append(linear(inputs.parameters, f"{name}.merge", torch.cat(pieces, dim=-1)))
    return torch.stack(outputs, dim=2)


def path_states(
    inputs: OracleInputs, direction: str, operators: Tensor, gated: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns L, E and o at every patch of a gated sequence H~, the first patch being the first of the history."""
    name, width = f"physical.{direction}_path", inputs.settings.hidden
    recurrent = gru(inputs.parameters, f"{name}.gru", gated)
    positioned = recurrent + sinusoidal_positions(gated.shape[2], width, gated)
    temporal = causal_attention(inputs.parameters, f"{name}.attention", positioned, inputs.settings.heads)
    backcast = torch.relu(linear(inputs.parameters, f"{name}.backcast", temporal))
    residual = layer_norm(inputs.parameters, f"{name}.norm", gated - backcast)
    return temporal, residual, graph_output(inputs, direction, operators, residual)


def roll_out(
    inputs: OracleInputs, operators: dict[str, Tensor], gated: dict[str, Tensor], decoded: list[int]
) -> dict[str, Tensor]:
    """Returns each direction's predictions of the decoded target patches, (batch, node, target, hidden).

    Both paths are causal, so running them again over the lengthened sequence gives the states that were carried.
    """
    sequences = dict(gated)
    predictions: dict[str, list[Tensor]] = {direction: [] for direction in DIRECTIONS}
    for start in decoded:
        for direction in DIRECTIONS:
            temporal, _, output = path_states(inputs, direction, operators[direction], sequences[direction])
            predictions[direction].append(temporal[:, :, -1] + output[:, :, -1])
        mean = (predictions["forward"][-1] + predictions["reverse"][-1]) / 2
        for direction in DIRECTIONS:
            gate = path_gate(inputs, direction, [start])[:, :, 0] if inputs.settings.rollout_gate else 1.0
            following = (gate * mean).unsqueeze(2)
            sequences[direction] = torch.cat([sequences[direction], following], dim=2)
    return {direction: torch.stack(predictions[direction], dim=2) for direction in DIRECTIONS}


def physical_branch(inputs: OracleInputs, history: Tensor, activity: Tensor, decoded: list[int]) -> Physical:
    """Returns the physical branch on the refined history H0, with the shock activity (g_U + g_V) / 2 of its patches."""
    excess = torch.relu(activity - inputs.settings.shock_threshold)
    modulation = 1 + inputs.parameters["physical.shock_strength"] * excess
    support, delay, sample, operators = {}, {}, {}, {}
    gates, gated, temporal, residual, output = {}, {}, {}, {}, {}
    for direction in DIRECTIONS:
        support[direction] = directional_support(inputs.adjacency, direction)
        delay[direction] = delay_affinity(inputs, direction)
        sample[direction] = sample_affinity(inputs, direction)
        positions = [row_norm(support[direction] * omega * sample[direction]) for omega in delay[direction]]
        operators[direction] = torch.stack(positions, dim=1)
        gates[direction] = path_gate(inputs, direction, history_starts(inputs.settings))
        gated[direction] = gates[direction] * history * modulation
        states = path_states(inputs, direction, operators[direction], gated[direction])
        temporal[direction], residual[direction], output[direction] = states
    return Physical(
        support=support,
        delay_affinity=delay,
        sample_affinity=sample,
        operators=operators,
        path_gate=gates,
        gated_history=gated,
        temporal_state=temporal,
        propagation_residual=residual,
        graph_output=output,
        predictions=roll_out(inputs, operators, gated, decoded),
    )


def background_descriptors(inputs: OracleInputs, background: Tensor) -> tuple[Tensor, Tensor]:
    """Returns h^B and v^B, (batch, node, relation width) each."""
    parameters, settings = inputs.parameters, inputs.settings
    patches = background.shape[2]
    increments = [background[:, :, patch] - background[:, :, patch - 1] for patch in range(1, patches)]
    changes = [torch.zeros_like(background[:, :, 0]) for _ in range(3)]
    if increments:
        change = background[:, :, -1] - background[:, :, 0]
        changes = [change, increments[-1], torch.stack(increments).mean(dim=0)]
    final_state = gru(parameters, "functional.gru", background)[:, :, -1]
    summaries = torch.cat([background.mean(dim=2), *changes, final_state], dim=-1)
    base = layer_norm(parameters, "functional.descriptor_norm", mlp(parameters, "functional.descriptor", summaries))
    trend = mlp(parameters, "functional.trend", torch.cat(changes, dim=-1))

    calendar = inputs.calendar_context(history_starts(settings) + target_starts(settings)).mean(dim=1)
    nodes = linear(parameters, "functional.node_context", parameters["decomposition.nodes.weight"])
    context = torch.cat(
        [nodes[None].expand(len(calendar), -1, -1), calendar[:, None].expand(-1, settings.nodes, -1)], dim=-1
    )
    scale, shift = mlp(parameters, "functional.context", context).chunk(2, dim=-1)
    descriptor = layer_norm(parameters, "functional.relation_norm", (1 + scale) * base + shift)
    return descriptor, layer_norm(parameters, "functional.trend_norm", trend)


def relation_scores(inputs: OracleInputs, descriptor: Tensor, trend: Tensor) -> Tensor:
    """Returns s, (batch, node, node, channel): receiver first, source second."""
    parameters = inputs.parameters
    channels = []
    for channel in range(inputs.settings.relations):
        level = descriptor @ parameters["functional.level_relations"][channel] @ descriptor.transpose(1, 2)
        slope = trend @ parameters["functional.trend_relations"][channel] @ trend.transpose(1, 2)
        bias = parameters["functional.relation_bias"][channel]
        channels.append(level + inputs.settings.trend_weight * slope + bias)
    return torch.stack(channels, dim=-1)


def relational_context(inputs: OracleInputs, weights: Tensor, history: Tensor) -> Tensor:
    """Returns C^func, the weighted values of all nodes and channels at every history patch."""
    context = torch.zeros_like(history)
    reduced = linear(inputs.parameters, "functional.reduce", history)
    for channel in range(inputs.settings.relations):
        projected = linear(inputs.parameters, f"functional.channels.{channel}", reduced)
        values = linear(inputs.parameters, "functional.restore", projected)  # (batch, node, patch, hidden)
        for source in range(inputs.settings.nodes):
            context = context + weights[:, :, source, channel, None, None] * values[:, source, None]
    return context


def functional_branch(
    inputs: OracleInputs, background: Tensor, history: Tensor, forecast_start: Tensor, decoded: list[int]
) -> tuple[Functional, Tensor]:
    """Returns the functional branch and F^func of the decoded target patches, (batch, node, target, width)."""
    parameters, targets = inputs.parameters, len(decoded)
    descriptor, trend = background_descriptors(inputs, background)
    scores = relation_scores(inputs, descriptor, trend)
    weights = torch.stack([top_k_softmax(sample, inputs.settings.pairs) for sample in scores])
    context = relational_context(inputs, weights, history)
    mapped = linear(parameters, "functional.feature", over_patches(parameters, "functional.temporal", context))
    target_context = layer_norm(parameters, "functional.context_norm", mapped)[:, :, :targets]
    together = torch.cat(
        [
            forecast_start,
            target_context,
            descriptor[:, :, None].expand(-1, -1, targets, -1),
            inputs.for_each_patch(parameters["decomposition.nodes.weight"], targets),
            inputs.for_each_node(inputs.calendar_rows(decoded)),
        ],
        dim=-1,
    )
    joint = gelu(linear(parameters, "functional.joint", together))
    correction = linear(parameters, "functional.correction", joint)
    gate = torch.sigmoid(linear(parameters, "functional.gate", joint))
    corrected = forecast_start + parameters["functional.scale"] * gate * correction
    branch = Functional(
        descriptor=descriptor,
        trend=trend,
        scores=scores,
        relation_weights=weights,
        relational_context=context,
        target_context=target_context,
        correction=correction,
        correction_gate=gate,
    )
    return branch, layer_norm(parameters, "functional.norm", corrected)
