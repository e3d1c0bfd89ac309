"""CANDOR as its equations stand, slowly: the second route against which the fast model is checked.

Nothing here is rewritten for speed: full node by node matrices, a softmax over all nodes, matrix powers, one patch
after the other. There is no dropout, every step can be differentiated, and the dtype is that of the inputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from oracle_branches import DIRECTIONS, Functional, Physical, functional_branch, physical_branch
from oracle_parameters import OracleSettings, history_starts, target_starts
from oracle_primitives import (
    OracleInputs,
    causal_convolution,
    difference,
    gelu,
    layer_norm,
    linear,
    mlp,
    over_patches,
    overlap_average,
    sinusoidal_positions,
)
from torch import Tensor

COMPONENTS = ("background", "accumulation", "release", "shock")
BRANCHES = ("functional", *DIRECTIONS)


@dataclass(frozen=True, kw_only=True)
class Decomposition:
    """The decomposed history; every tensor is (batch, node, patch, hidden) unless said otherwise.

    embedding Z; residual_u U and residual_v V; raw_components B~, A~, R~, S~ and components B, A, R, S by name;
    gates by name: accumulation G_A and release G_R, shock_u and shock_v (batch, node, patch, 1).
    """

    embedding: Tensor
    residual_u: Tensor
    residual_v: Tensor
    raw_components: dict[str, Tensor]
    components: dict[str, Tensor]
    gates: dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class OracleOutput(Decomposition, Physical, Functional):
    """Every intermediate of one forward pass.

    refined_history H0 (batch, node, patch, hidden); forecast_start F0 and representations F by branch, of the decoded
    target patches (batch, node, target, forecast width); fusion_weights lambda (batch, node, target, branch) in the
    order of BRANCHES; fused F^fuse; forecast and branch_forecasts in the units of the input (batch, prefix, node).
    """

    refined_history: Tensor
    forecast_start: Tensor
    representations: dict[str, Tensor]
    fusion_weights: Tensor
    fused: Tensor
    forecast: Tensor
    branch_forecasts: dict[str, Tensor]


def embed_patches(inputs: OracleInputs) -> Tensor:
    """Returns Z, (batch, node, patch, hidden)."""
    length = inputs.settings.patch_length
    patches = [inputs.values[:, start : start + length].transpose(1, 2) for start in history_starts(inputs.settings)]
    mapped = linear(inputs.parameters, "embedding.linear", torch.stack(patches, dim=2))
    return layer_norm(inputs.parameters, "embedding.norm", mapped)


def component_gate(inputs: OracleInputs, component: str, residual: Tensor, calendar: Tensor) -> Tensor:
    """Returns G_A or G_R from the residual view it belongs to, (batch, node, patch, hidden)."""
    patches = residual.shape[2]
    first, second = difference(residual), difference(difference(residual))
    nodes = linear(inputs.parameters, "decomposition.node_projection", inputs.parameters["decomposition.nodes.weight"])
    evidence = torch.cat(
        [residual, first, -first, second, inputs.for_each_patch(nodes, patches), inputs.for_each_node(calendar)],
        dim=-1,
    )
    return torch.sigmoid(mlp(inputs.parameters, f"decomposition.{component}_gate", evidence))


def shock_gate(inputs: OracleInputs, view: str, residual: Tensor, calendar: Tensor) -> Tensor:
    """Returns g^S of one residual view, (batch, node, patch, 1)."""
    parameters, name = inputs.parameters, f"decomposition.shock_{view}"
    first, second = difference(residual), difference(difference(residual))
    magnitudes = torch.cat([residual.abs(), first.abs(), second.abs()], dim=-1)
    score = mlp(parameters, f"{name}.magnitude", magnitudes)
    nodes = linear(parameters, f"{name}.node", parameters["decomposition.nodes.weight"])
    days = linear(parameters, f"{name}.calendar", calendar)
    context = torch.cat([inputs.for_each_patch(nodes, residual.shape[2]), inputs.for_each_node(days)], dim=-1)
    correction = linear(parameters, f"{name}.second", gelu(linear(parameters, f"{name}.first", context)))
    return torch.sigmoid(score + correction)


def decompose(inputs: OracleInputs) -> Decomposition:
    """Returns the four components of every node's history, and what they were made of."""
    parameters = inputs.parameters
    embedding = embed_patches(inputs)
    last = embedding.shape[2] - 1
    calendar = inputs.calendar_context(history_starts(inputs.settings))
    raw = {"background": causal_convolution(parameters, "decomposition.background_convolution", embedding)}
    background = layer_norm(parameters, "decomposition.background_norm", raw["background"])
    following = torch.stack([background[:, :, min(patch + 1, last)] for patch in range(last + 1)], dim=2)
    residual_u, residual_v = embedding - background, embedding - following
    gates = {
        "accumulation": component_gate(inputs, "accumulation", residual_u, calendar),
        "release": component_gate(inputs, "release", residual_v, calendar),
        "shock_u": shock_gate(inputs, "u", residual_u, calendar),
        "shock_v": shock_gate(inputs, "v", residual_v, calendar),
    }
    for component, residual in (("accumulation", residual_u), ("release", residual_v)):
        weighted = gates[component] * residual
        raw[component] = causal_convolution(parameters, f"decomposition.{component}_convolution", weighted)
    raw["shock"] = gates["shock_u"] * linear(parameters, "decomposition.shock_projection_u", residual_u)
    raw["shock"] = raw["shock"] + gates["shock_v"] * linear(parameters, "decomposition.shock_projection_v", residual_v)
    components = {name: layer_norm(parameters, f"decomposition.{name}_norm", raw[name]) for name in COMPONENTS}
    return Decomposition(
        embedding=embedding,
        residual_u=residual_u,
        residual_v=residual_v,
        raw_components=raw,
        components=components,
        gates=gates,
    )


def integrate_history(inputs: OracleInputs, decomposition: Decomposition) -> Tensor:
    """Returns H0, (batch, node, patch, hidden)."""
    together = torch.cat([decomposition.components[name] for name in COMPONENTS], dim=-1)
    mixed = inputs.parameters["history.scale"] * linear(inputs.parameters, "history.mix", together)
    return layer_norm(inputs.parameters, "history.norm", decomposition.embedding + mixed)


def project_components(inputs: OracleInputs, components: Mapping[str, Tensor], decoded: list[int]) -> Tensor:
    """Returns F0 of the decoded target patches, (batch, node, target, forecast width)."""
    parameters = inputs.parameters
    projected = []
    for name in COMPONENTS:
        later = over_patches(parameters, f"history.temporal.{name}", components[name])
        projected.append(linear(parameters, f"history.feature.{name}", later))
    merged = linear(parameters, "history.merge", torch.cat(projected, dim=-1))[:, :, : len(decoded)]
    calendar = mlp(parameters, "history.calendar", inputs.calendar_rows(decoded))
    return layer_norm(parameters, "history.forecast_norm", merged + inputs.for_each_node(calendar))


def fusion_weights(inputs: OracleInputs, decoded: list[int]) -> Tensor:
    """Returns lambda, (batch, node, target, branch) in the order functional, forward, reverse."""
    settings, targets = inputs.settings, len(decoded)
    positions = sinusoidal_positions(targets, settings.hidden, inputs.values)
    context = torch.cat(
        [
            inputs.for_each_patch(inputs.parameters["decomposition.nodes.weight"], targets),
            inputs.for_each_node(inputs.calendar_rows(decoded, tables="fusion")),
            positions[None, None].expand(len(inputs.values), settings.nodes, -1, -1),
        ],
        dim=-1,
    )
    return torch.softmax(mlp(inputs.parameters, "fusion.mlp", context), dim=-1)


def decode(inputs: OracleInputs, representation: Tensor, prefix: int) -> Tensor:
    """Returns the forecast read from target-patch representations, (batch, prefix, node)."""
    patches = mlp(inputs.parameters, "head", torch.relu(representation), torch.relu)
    return overlap_average(patches, inputs.settings, prefix)


def oracle_forward(
    parameters: Mapping[str, Tensor],
    settings: OracleSettings,
    adjacency: Tensor,
    values: Tensor,
    time_of_day: Tensor,
    day_of_week: Tensor,
    prefix: int | None = None,
) -> OracleOutput:
    """Returns the forecast of one batch with every quantity on the way to it.

    Args:
        parameters: tensors by the names of `parameter_shapes`.
        settings: sizes of the model.
        adjacency: J (node, node), positive where an edge leads from the row's node to the column's.
        values: scaled history (batch, time, node).
        time_of_day: bins 0 to 287 of history and horizon (batch, time + horizon).
        day_of_week: 0 for Monday to 6, same shape.
        prefix: steps to forecast, at most the horizon; target patches that start later are not decoded.
    """
    prefix = settings.horizon if prefix is None else prefix
    inputs = OracleInputs(parameters, settings, adjacency.to(values.dtype), values, time_of_day, day_of_week)
    decoded = [start for start in target_starts(settings) if start < settings.history + prefix]
    decomposition = decompose(inputs)
    history = integrate_history(inputs, decomposition)
    forecast_start = project_components(inputs, decomposition.components, decoded)
    activity = (decomposition.gates["shock_u"] + decomposition.gates["shock_v"]) / 2
    physical = physical_branch(inputs, history, activity, decoded)
    background = decomposition.components["background"]
    functional, functional_forecast = functional_branch(inputs, background, history, forecast_start, decoded)
    representations = {"functional": functional_forecast}
    for direction in DIRECTIONS:
        readout = f"physical.{direction}_path.readout"
        representations[direction] = linear(parameters, readout, physical.predictions[direction])
    weights = fusion_weights(inputs, decoded)
    fused = torch.zeros_like(forecast_start)
    for order, branch in enumerate(BRANCHES):
        fused = fused + weights[..., order, None] * representations[branch]
    return OracleOutput(
        **vars(decomposition),
        **vars(physical),
        **vars(functional),
        refined_history=history,
        forecast_start=forecast_start,
        representations=representations,
        fusion_weights=weights,
        fused=fused,
        forecast=decode(inputs, fused, prefix),
        branch_forecasts={branch: decode(inputs, representations[branch], prefix) for branch in BRANCHES},
    )
