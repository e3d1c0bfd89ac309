"""The oracle's physical states and roll-out by a second route: states carried step by step, no matrix powers."""

from dataclasses import replace
from math import log

import pytest
import torch
from oracle import OracleOutput, oracle_forward
from oracle_branches import DIRECTIONS
from oracle_parameters import (
    SMALL as ORDINARY,
)
from oracle_parameters import (
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

SMALL = replace(ORDINARY, horizon=7)


class CarriedPath:
    """One direction that takes one patch at a time and remembers state, keys, values and the latest residuals."""

    def __init__(self, parameters: Parameters, settings: OracleSettings, direction: str, operators: Tensor) -> None:
        start = f"physical.{direction}_path."
        self.weights = {name.removeprefix(start): value for name, value in parameters.items() if start in name}
        self.settings, self.operators = settings, operators
        self.state = torch.zeros((len(operators) * settings.nodes, settings.hidden), dtype=torch.float64)
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.residuals: list[Tensor] = []

    def affine(self, name: str, inputs: Tensor) -> Tensor:
        return functional.linear(inputs, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def attend(self, state: Tensor) -> Tensor:
        """Attention of the newest patch over all so far; state (batch * node, hidden)."""
        width, heads = self.settings.hidden, self.settings.heads
        frequencies = torch.exp(-log(10000) * torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = len(self.keys) * frequencies
        position = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()
        weight, bias = self.weights["attention.in_weight"], self.weights["attention.in_bias"]
        projected = functional.linear(state + position, weight, bias)
        query, key, value = projected.view(-1, 3, heads, width // heads).unbind(dim=1)
        self.keys.append(key)
        self.values.append(value)
        keys, values = torch.stack(self.keys, dim=2), torch.stack(self.values, dim=2)
        attended = functional.scaled_dot_product_attention(query.unsqueeze(2), keys, values)
        return self.affine("attention.out", attended.reshape(-1, width))

    def neighbours(self, operator: Tensor, features: Tensor, order: int) -> Tensor:
        """W^m x - diag(W^m) x by walking m times."""
        walked, returned = features, torch.eye(self.settings.nodes, dtype=torch.float64)
        for _ in range(order):
            walked, returned = operator @ walked, operator @ returned
        return walked - torch.diagonal(returned, dim1=1, dim2=2).unsqueeze(-1) * features

    def advance(self, gated: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """L, E and o of one more patch of H~, (batch, node, hidden) each."""
        cell = [self.weights[f"gru.{kind}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        self.state = torch.gru_cell(gated.reshape_as(self.state), self.state, *cell)
        temporal = self.attend(self.state).reshape_as(gated)
        unexplained = gated - functional.relu(self.affine("backcast", temporal))
        norm = (self.weights["norm.weight"], self.weights["norm.bias"])
        residual = functional.layer_norm(unexplained, gated.shape[-1:], *norm)
        span = self.settings.temporal_span
        if not self.residuals:
            self.residuals = [residual] * (span - 1)
        window = [*self.residuals, residual]
        self.residuals = window[1:]
        features = functional.relu(self.affine("window_map", torch.cat(window, dim=-1)))
        parts = features.chunk(span, dim=-1)
        pieces = [torch.stack(parts).sum(dim=0) / span]
        for order in range(1, self.settings.spatial_orders + 1):
            gathered = [self.neighbours(self.operators[:, tau], part, order) for tau, part in enumerate(parts)]
            pieces.append(torch.stack(gathered).sum(dim=0))
        return temporal, residual, self.affine("merge", torch.cat(pieces, dim=-1))


def gate_of(parameters: Parameters, problem: OracleProblem, direction: str, step: int) -> Tensor:
    """The node-calendar gate at one step, (batch, node, 1)."""
    name, batch = f"physical.{direction}_path.gate", len(problem.values)
    source = parameters[f"physical.{'second' if direction == 'forward' else 'first'}_nodes.weight"]
    clock = [
        parameters["calendar.time_of_day.weight"][problem.time_of_day[:, step]],
        parameters["calendar.day_of_week.weight"][problem.day_of_week[:, step]],
    ]
    calendar = torch.cat(clock, dim=-1)[:, None].expand(-1, len(source), -1)
    hidden = torch.cat([source.expand(batch, -1, -1), calendar], dim=-1)
    hidden = functional.linear(hidden, parameters[f"{name}.first.weight"], parameters[f"{name}.first.bias"])
    scores = functional.linear(hidden.relu(), parameters[f"{name}.second.weight"], parameters[f"{name}.second.bias"])
    return scores.sigmoid()


def solve(settings: OracleSettings) -> tuple[Parameters, OracleProblem, OracleOutput]:
    parameters, problem = random_parameters(settings, 61), random_problem(settings, 62, self_loops=True)
    clock = (problem.time_of_day, problem.day_of_week)
    return parameters, problem, oracle_forward(parameters, settings, problem.adjacency, problem.values, *clock)


@pytest.mark.parametrize("rollout_gate", [True, False])
@pytest.mark.parametrize(("history", "span", "orders"), [(9, 2, 2), (9, 1, 1), (9, 3, 3), (3, 4, 2), (5, 4, 1)])
def test_carried_states_predict_the_same_patches(history: int, span: int, orders: int, rollout_gate: bool) -> None:
    settings = replace(SMALL, history=history, temporal_span=span, spatial_orders=orders, rollout_gate=rollout_gate)
    parameters, problem, output = solve(settings)
    paths = {d: CarriedPath(parameters, settings, d, output.operators[d]) for d in DIRECTIONS}
    activity = (output.gates["shock_u"] + output.gates["shock_v"]) / 2
    shocked = output.refined_history * (1 + parameters["physical.shock_strength"] * functional.relu(activity - 0.1))
    predicted = {}
    for patch, start in enumerate(history_starts(settings)):
        for direction in DIRECTIONS:
            gated = gate_of(parameters, problem, direction, start) * shocked[:, :, patch]
            states = paths[direction].advance(gated)
            kept = (output.temporal_state, output.propagation_residual, output.graph_output)
            for carried, recomputed in zip(states, kept, strict=True):
                torch.testing.assert_close(carried, recomputed[direction][:, :, patch], rtol=1e-11, atol=1e-12)
            predicted[direction] = states[0] + states[2]
    for target, start in enumerate(target_starts(settings)):
        for direction in DIRECTIONS:
            expected = output.predictions[direction][:, :, target]
            torch.testing.assert_close(predicted[direction], expected, rtol=1e-10, atol=1e-11)
        mean = (predicted["forward"] + predicted["reverse"]) / 2
        for direction in DIRECTIONS:
            gate = gate_of(parameters, problem, direction, start) if rollout_gate else 1
            temporal, _, arriving = paths[direction].advance(gate * mean)
            predicted[direction] = temporal + arriving


def test_operators_are_one_softmax_over_incoming_edges() -> None:
    parameters, problem, output = solve(SMALL)
    first, second = (parameters[f"physical.{order}_nodes.weight"] for order in ("first", "second"))
    query = parameters["physical.query.weight"]
    for direction, edges in (("forward", problem.adjacency), ("reverse", problem.adjacency.T)):
        receiving, source = (first, second) if direction == "forward" else (second, first)
        shares = edges / edges.sum(dim=1, keepdim=True).clamp(min=1e-9)  # of what each source sends
        for tau in range(SMALL.temporal_span):
            key = parameters[f"physical.keys.{tau}.weight"]
            scores = receiving @ query.T @ key @ source.T / SMALL.node_width**0.5
            logits = shares.T.log() + scores + output.sample_affinity[direction].log()
            weights = torch.softmax(logits, dim=-1).nan_to_num(0.0)  # a node without edges has no softmax
            torch.testing.assert_close(output.operators[direction][:, tau], weights, rtol=1e-11, atol=1e-14)
