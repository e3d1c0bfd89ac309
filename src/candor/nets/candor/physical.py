"""Section "Decomposition-Conditioned Dual-Graph Learning": the physical propagation graph.

| symbol | code | shape |
|---|---|---|
| z | descriptor (never formed whole) | batch node (3 hidden + node_width) |
| omega (scores) | shared_scores | position edge |
| a (scores) | sample_scores | batch edge |
| W | weights | batch position edge |
| H~ | gated | batch node patch hidden |
| L | temporal | batch node patch hidden |
| E | residual | batch node patch hidden |
| Psi | feature per position of the window | batch node patch position hidden |
| o | contribution | batch node patch hidden |
| F->, F<- | readout of predictions | batch node target forecast |

Positions tau are the ages of the patches in a window of K_t, from the oldest to the newest; each has scores of its own.

Equations: app_propagation_residual, app_localized_propagation, app_delay_affinity, app_sample_affinity, physical_graph.
"""

from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.decomposition import CalendarRows, States, TargetRows
from candor.nets.candor.physical_operator import DirectionalSupport, EdgeArrays, EdgeWeights, Operator
from candor.nets.candor.settings import ModelSettings
from candor.nets.candor.temporal import CausalAttention, Recurrence
from candor.nets.dropout import Dropout
from candor.nets.layers import NORM_FLOOR, Mlp, sinusoidal_positions, split_linear
from candor.nets.shapes import Readings

Nodes = Float[Tensor, "node node_width"]
CalendarRow = Float[Tensor, "batch twice_hidden"]
WindowCodes = Float[Tensor, "batch node hidden"]
Gates = Float[Tensor, "batch node patch"]


@dataclass(frozen=True)
class PathStates:
    """States of one direction: gates and states over the history, predictions, and the weights of the operator."""

    gates: Gates
    target_gates: Float[Tensor, "batch node target"]
    temporal: States
    residual: States
    contribution: States
    predictions: Float[Tensor, "batch node target hidden"]
    weights: EdgeWeights
    shared_scores: Float[Tensor, "position edge"] | None
    sample_scores: Float[Tensor, "batch edge"] | None


class Path(nn.Module):
    """One direction of propagation: a temporal state, its residual, and what residuals send along edges."""

    positions: Tensor

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, span = settings.hidden, settings.temporal_span
        self.span = span
        self.gate = Mlp(settings.node_width + 2 * width, 2 * width, 1, 0.0, nn.ReLU())
        self.gru = Recurrence(width)
        self.attention = CausalAttention(settings)
        self.backcast = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=NORM_FLOOR)
        self.window_map = nn.Linear(span * width, span * width, bias=False)
        self.merge = nn.Linear((settings.spatial_orders + 1) * width, width)
        self.dropout = Dropout(settings.dropout)
        self.readout = nn.Linear(width, settings.forecast_width)
        positions = sinusoidal_positions(settings.patches + settings.target_patches, width)
        self.register_buffer("positions", positions, persistent=False)

    def gates(self, sources: Nodes, rows: CalendarRows) -> Float[Tensor, "batch node patch 1"]:
        """Return the scalar node-calendar gate at the patches whose calendar rows are given."""
        of_node, of_calendar = split_linear(self.gate.first, sources.shape[-1], rows.shape[-1])
        by_node = sources @ of_node.T + self.gate.first.bias
        by_calendar = rows @ of_calendar.T
        return torch.sigmoid(self.gate.finish(by_node[:, None] + by_calendar[:, None]))

    def residual(self, gated: Tensor, temporal: Tensor) -> Tensor:
        """Return E (eq. app_propagation_residual)."""
        return self.norm(gated - F.relu(self.backcast(temporal)))

    def propagate(self, windows: Float[Tensor, "batch node patch window"], operator: Operator) -> States:
        """Return o: the window's own summary beside what arrives along edges (eq. app_localized_propagation)."""
        patches = windows.shape[-2]
        mapped = F.relu(self.window_map(windows)).unflatten(-1, (self.span, -1))  # Psi
        by_position = rearrange(mapped, "b n patch position hidden -> b n position (patch hidden)")
        arrived = [part.unflatten(-1, (patches, -1)) for part in operator.walk(by_position)]
        return self.dropout(self.merge(torch.cat([mapped.mean(dim=-2), *arrived], dim=-1)))


class PhysicalBranch(nn.Module):
    """Forward and reverse propagation over the directed physical graph."""

    def __init__(self, settings: ModelSettings, edges: EdgeArrays) -> None:
        super().__init__()
        width, node_width = settings.hidden, settings.node_width
        self.settings = settings
        self.first_nodes = nn.Embedding(settings.nodes, node_width)
        self.second_nodes = nn.Embedding(settings.nodes, node_width)
        if settings.learned_operator:
            self.query = nn.Linear(node_width, node_width, bias=False)
            keys = (nn.Linear(node_width, node_width, bias=False) for _ in range(settings.temporal_span))
            self.keys = nn.ModuleList(keys)
            self.window = Mlp(settings.history, 2 * width, width, settings.dropout, nn.ReLU())
            self.sample_query = nn.Linear(3 * width + node_width, width, bias=False)
            self.sample_key = nn.Linear(3 * width + node_width, width, bias=False)
        if settings.gates_shocks:
            self.shock_strength = nn.Parameter(torch.tensor(0.0))
        sizes = settings.nodes, settings.spatial_orders, settings.temporal_span
        for direction in settings.directions:
            self.add_module(f"{direction}_path", Path(settings))
        for direction in settings.directions:
            support = DirectionalSupport(edges, *sizes, is_reverse=direction == "reverse")
            self.add_module(f"{direction}_support", support)

    def path(self, direction: str) -> Path:
        """Return the path of a direction."""
        path: Path = getattr(self, f"{direction}_path")
        return path

    def support(self, direction: str) -> DirectionalSupport:
        """Return the support of a direction."""
        support: DirectionalSupport = getattr(self, f"{direction}_support")
        return support

    def forward(
        self, values: Readings, refined: States, shock_activity: Gates | None,
        history_rows: CalendarRows, target_rows: TargetRows, last_row: CalendarRow,
    ) -> dict[str, PathStates]:  # fmt: skip
        """Return the states of the paths by direction."""
        encoded = None
        if self.settings.learned_operator:
            encoded = self.window(rearrange(values, "batch time node -> batch node time"))
        modulated = refined if shock_activity is None else self._modulated(refined, shock_activity)
        runs = {direction: _Run(self, direction, encoded, last_row) for direction in self.settings.directions}
        for run in runs.values():
            run.observe(modulated, history_rows, target_rows.shape[1])
        gates = {direction: run.path.gates(run.sources, target_rows) for direction, run in runs.items()}
        for target in range(target_rows.shape[1] - 1):
            fed_back = _mean([run.predictions[-1] for run in runs.values()])
            for direction, run in runs.items():
                gate = gates[direction][..., target, :]
                run.advance(fed_back * gate if self.settings.rollout_gate else fed_back)
        return {direction: run.states(gates[direction][..., 0]) for direction, run in runs.items()}

    def _modulated(self, refined: States, shock_activity: Gates) -> States:
        """Return H0, larger where shocks are active (settled: shock-conditioned modulation)."""
        excess = F.relu(shock_activity - self.settings.shock_threshold)
        return refined * (1 + self.shock_strength * excess)[..., None]

    def shared_scores(
        self, support: DirectionalSupport, receivers: Nodes, sources: Nodes
    ) -> Float[Tensor, "position edge"]:
        """Return the scores of omega on edges (eq. app_delay_affinity)."""
        query = self.query(receivers)[support.receiver]
        keys = torch.stack([key(sources)[support.sender] for key in self.keys])  # position edge node_width
        return (keys * query).sum(dim=-1) / query.shape[-1] ** 0.5

    def sample_scores(
        self, support: DirectionalSupport, sources: Nodes, encoded: WindowCodes, last_row: CalendarRow
    ) -> Float[Tensor, "batch edge"]:
        """Return the scores of a on edges (eq. app_sample_affinity); z = [window || calendar || source embedding]."""
        widths = encoded.shape[-1], last_row.shape[-1], sources.shape[-1]

        def project(layer: nn.Linear) -> Float[Tensor, "batch node hidden"]:
            of_window, of_calendar, of_node = split_linear(layer, *widths)
            return encoded @ of_window.T + (last_row @ of_calendar.T)[:, None] + sources @ of_node.T

        query, key = project(self.sample_query), project(self.sample_key)
        return support.scores(query, key) / query.shape[-1] ** 0.5


def _mean(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else (tensors[0] + tensors[1]) / 2


class _Run:
    """One forward pass of one direction: the operator, computed once, and the states from patch to patch."""

    def __init__(
        self, branch: PhysicalBranch, direction: str, encoded: WindowCodes | None, last_row: CalendarRow
    ) -> None:
        self.path, support = branch.path(direction), branch.support(direction)
        tables = branch.first_nodes.weight, branch.second_nodes.weight
        receivers, self.sources = tables if direction == "forward" else (tables[1], tables[0])
        self.shared_scores: Tensor | None = None
        self.sample_scores: Tensor | None = None
        scores = support.log_support.expand(last_row.shape[0], support.positions, -1)
        if encoded is not None:
            self.shared_scores = branch.shared_scores(support, receivers, self.sources)
            self.sample_scores = branch.sample_scores(support, self.sources, encoded, last_row)
            scores = support.log_support + self.shared_scores + self.sample_scores[:, None]
        self.weights = support.normalise(scores)  # eq. physical_graph
        self.operator = support.operator(self.weights)

    def observe(self, modulated: States, history_rows: CalendarRows, targets: int) -> None:
        """Compute gates, L, E and o over the history, and the first prediction of a rollout of `targets` patches."""
        path, gates = self.path, self.path.gates(self.sources, history_rows)
        self.gates, gated = gates[..., 0], modulated * gates
        batch, nodes, patches, _ = gated.shape
        self.state, self.cache = path.gru.begin(batch * nodes), path.attention.begin(patches + targets - 1)
        self.temporal = torch.stack([self._temporal_state(of_patch) for of_patch in gated.unbind(dim=-2)], dim=-2)
        self.residual = path.residual(gated, self.temporal)
        padded = torch.cat([self.residual[..., :1, :]] * (path.span - 1) + [self.residual], dim=-2)
        windows = [padded[..., position : position + patches, :] for position in range(path.span)]
        self.latest = list(padded[..., patches:, :].unbind(dim=-2))  # residuals of the next window
        self.contribution = path.propagate(torch.cat(windows, dim=-1), self.operator)
        self.predictions = [self.temporal[..., -1, :] + self.contribution[..., -1, :]]

    def advance(self, gated: Float[Tensor, "batch node hidden"]) -> None:
        """Add the prediction L + o after one more patch."""
        temporal = self._temporal_state(gated)
        window = [*self.latest, self.path.residual(gated, temporal)]
        self.latest = window[1:]
        contribution = self.path.propagate(torch.cat(window, dim=-1)[..., None, :], self.operator)
        self.predictions.append(temporal + contribution[..., 0, :])

    def _temporal_state(self, gated: Float[Tensor, "batch node hidden"]) -> Tensor:
        """Return L of the next patch."""
        place = self.path.positions[self.cache.length]
        self.state = self.path.gru.step(gated.flatten(0, 1), self.state)
        return self.path.attention.step(self.state + place[:, None], self.cache).view(gated.shape)

    def states(self, target_gates: Float[Tensor, "batch node target"]) -> PathStates:
        return PathStates(
            *(self.gates, target_gates, self.temporal, self.residual, self.contribution),
            *(torch.stack(self.predictions, dim=-2), self.weights, self.shared_scores, self.sample_scores),
        )
