"""Section "Evolution-Structured Dynamics Decomposition": four components of each node's recent past.

| symbol | code | shape |
|---|---|---|
| B~, A~, R~, S~ | raw_background, ... | batch node patch hidden |
| B, A, R, S | background, ... | batch node patch hidden |
| U, V | residuals from the current and from the next background | batch node patch hidden |
| G_A, G_R | accumulation_gate, release_gate | batch node patch hidden |
| g_U, g_V | shock_gate_u, shock_gate_v | batch node patch |
| e | nodes | node hidden |
| Q_r, P_r (interventions) | rain, rain_projection | batch node patch hidden |

| equation | where |
|---|---|
| app_shock_gates | `ShockGate` |
| app_embedding_background | `Decomposition.forward` |
| evolution_references | `Decomposition.forward` |
| app_temporal_differences | `Decomposition.forward` |
| app_accumulation_release | `Decomposition.forward` |
| app_shock_component | `Decomposition.forward` |
| app_gate_inputs | `Decomposition._gate` |
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.embedding import PatchEmbedding
from candor.nets.candor.settings import ModelSettings
from candor.nets.dropout import Dropout
from candor.nets.layers import NORM_FLOOR, Mlp, split_linear

States = Float[Tensor, "batch node patch hidden"]
Gate = Float[Tensor, "batch node patch"]
Rainfall = Float[Tensor, "batch time node"]


@dataclass(frozen=True)
class Components:
    """The four components before (raw) and after normalisation, and the gates that chose them."""

    raw_background: States
    raw_accumulation: States
    raw_release: States
    raw_shock: States
    background: States
    accumulation: States
    release: States
    shock: States
    accumulation_gate: States
    release_gate: States
    shock_gate_u: Gate
    shock_gate_v: Gate

    @property
    def normalised(self) -> tuple[States, ...]:
        """Background, accumulation, release and shock after normalisation."""
        return self.background, self.accumulation, self.release, self.shock

    @property
    def shock_activity(self) -> Gate:
        """The mean of the two shock gates; zero where rain replaces shocks."""
        return (self.shock_gate_u + self.shock_gate_v) / 2


@dataclass(frozen=True)
class Undecomposed:
    """The embedding in place of all components; there are no shocks (w/o Decomp.)."""

    background: States
    shock_activity: None = None

    @property
    def normalised(self) -> tuple[States, ...]:
        """The embedding alone."""
        return (self.background,)


class CausalConvolution(nn.Module):
    """A causal depthwise convolution over patches, padded with zeros before the first."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, 1, kernel))
        bound = kernel**-0.5
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, states: States) -> States:
        patches, kernel = states.shape[-2], self.weight.shape[-1]
        result = states * self.weight[:, 0, -1] + self.bias
        for back in range(1, min(kernel, patches)):
            earlier = states[..., : patches - back, :] * self.weight[:, 0, -1 - back]
            result = result + F.pad(earlier, (0, 0, back, 0))
        return result


class ShockGate(nn.Module):
    """One scalar gate per residual view: magnitudes decide, corrected by node and calendar (eq. app_shock_gates)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width = settings.hidden
        self.magnitude = Mlp(3 * width, 2 * width, 1, settings.dropout)
        self.node = nn.Linear(width, width)
        self.calendar = nn.Linear(width, width)
        self.first = nn.Linear(2 * width, 2 * width)
        self.second = nn.Linear(2 * width, 1)
        self.dropout = Dropout(settings.dropout)

    def forward(
        self,
        magnitudes: Float[Tensor, "batch node patch three_hidden"],
        nodes: Float[Tensor, "node hidden"],
        context: Float[Tensor, "batch patch hidden"],
    ) -> Gate:
        of_node, of_calendar = split_linear(self.first, self.node.out_features, self.calendar.out_features)
        by_node = self.node(nodes) @ of_node.T + self.first.bias  # node 2hidden
        by_calendar = self.calendar(context) @ of_calendar.T  # batch patch 2hidden
        hidden = F.gelu(by_node[:, None] + by_calendar[:, None])  # batch node patch 2hidden
        correction = self.second(self.dropout(hidden))
        return torch.sigmoid(self.magnitude(magnitudes) + correction).squeeze(-1)


class NoDecomposition(nn.Module):
    """Keeps the node table and returns the embedding as it is."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.nodes = nn.Embedding(settings.nodes, settings.hidden)

    def forward(
        self, embedded: States, context: Float[Tensor, "batch patch hidden"], rain: Rainfall | None = None
    ) -> Undecomposed:
        return Undecomposed(embedded)


class Decomposition(nn.Module):
    """Background, accumulation, release and shock of the embedded history."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, kernel = settings.hidden, settings.kernel
        self.nodes = nn.Embedding(settings.nodes, width)
        self.node_projection = nn.Linear(width, width)
        self.background_convolution = CausalConvolution(width, kernel)
        self.accumulation_convolution = CausalConvolution(width, kernel)
        self.release_convolution = CausalConvolution(width, kernel)
        self.background_norm = nn.LayerNorm(width, eps=NORM_FLOOR)
        self.accumulation_norm = nn.LayerNorm(width, eps=NORM_FLOOR)
        self.release_norm = nn.LayerNorm(width, eps=NORM_FLOOR)
        self.shock_norm = nn.LayerNorm(width, eps=NORM_FLOOR)
        self.accumulation_gate = Mlp(6 * width, 2 * width, width, settings.dropout)
        self.release_gate = Mlp(6 * width, 2 * width, width, settings.dropout)
        self.gates_shocks = settings.gates_shocks
        if settings.gates_shocks:
            self.shock_u = ShockGate(settings)
            self.shock_v = ShockGate(settings)
            self.shock_projection_u = nn.Linear(width, width)
            self.shock_projection_v = nn.Linear(width, width)
        self.rain = PatchEmbedding(settings) if settings.reads_rain else None
        if settings.reads_rain:
            self.rain_projection = nn.Linear(width, width)

    def forward(
        self, embedded: States, context: Float[Tensor, "batch patch hidden"], rain: Rainfall | None = None
    ) -> Components:
        """Returns the components of the embedded history Z.

        Args:
            embedded: Z.
            context: the calendar context m of its patches.
            rain: over the history, as z-scores of log(1 + rain); needed if the settings say so, else not read.
        """
        raw_background = self.background_convolution(embedded)  # eq. app_embedding_background
        background = self.background_norm(raw_background)
        following = torch.cat([background[..., 1:, :], background[..., -1:, :]], dim=-2)
        current_view = embedded - background  # U, eq. evolution_references
        following_view = embedded - following  # V

        change_u, bend_u = _differences(current_view)  # eq. app_temporal_differences
        change_v, bend_v = _differences(following_view)
        accumulation_gate = self._gate(self.accumulation_gate, current_view, change_u, bend_u, context)
        release_gate = self._gate(self.release_gate, following_view, change_v, bend_v, context)
        raw_accumulation = self.accumulation_convolution(accumulation_gate * current_view)
        raw_release = self.release_convolution(release_gate * following_view)  # eq. app_accumulation_release

        raw_shock = torch.zeros_like(embedded)
        shock_gate_u = shock_gate_v = raw_shock[..., 0]  # closed where rain replaces shocks
        if self.gates_shocks:
            shock_gate_u = self.shock_u(_magnitudes(current_view, change_u, bend_u), self.nodes.weight, context)
            shock_gate_v = self.shock_v(_magnitudes(following_view, change_v, bend_v), self.nodes.weight, context)
            raw_shock = (  # eq. app_shock_component
                shock_gate_u[..., None] * self.shock_projection_u(current_view)
                + shock_gate_v[..., None] * self.shock_projection_v(following_view)
            )
        if self.rain is not None:
            if rain is None:
                raise ValueError("this network reads rain: it needs rain beside the values")
            raw_shock = raw_shock + self.rain_projection(self.rain(rain))
        return Components(
            raw_background=raw_background,
            raw_accumulation=raw_accumulation,
            raw_release=raw_release,
            raw_shock=raw_shock,
            background=background,
            accumulation=self.accumulation_norm(raw_accumulation),
            release=self.release_norm(raw_release),
            shock=self.shock_norm(raw_shock),
            accumulation_gate=accumulation_gate,
            release_gate=release_gate,
            shock_gate_u=shock_gate_u,
            shock_gate_v=shock_gate_v,
        )

    def _gate(
        self, mlp: Mlp, view: States, change: States, bend: States, context: Float[Tensor, "batch patch hidden"]
    ) -> States:
        """Returns sigma(f(xi)), xi = [Q || dQ || -dQ || d2Q || P_E(e) || m] (eq. app_gate_inputs)."""
        width = view.shape[-1]
        of_view, of_rise, of_fall, of_bend, of_node, of_calendar = split_linear(mlp.first, *[width] * 6)
        by_node = self.node_projection(self.nodes.weight) @ of_node.T + mlp.first.bias
        by_calendar = context @ of_calendar.T
        of_states = torch.cat([of_view, of_rise - of_fall, of_bend], dim=1)  # dQ and -dQ share one block
        by_states = F.linear(torch.cat([view, change, bend], dim=-1), of_states)
        return torch.sigmoid(mlp.finish(by_states + by_node[:, None] + by_calendar[:, None]))


def _differences(view: States) -> tuple[States, States]:
    """Returns first and second differences over patches; each begins with zero."""
    change = F.pad(view.diff(dim=-2), (0, 0, 1, 0))
    return change, F.pad(change.diff(dim=-2), (0, 0, 1, 0))


def _magnitudes(view: States, change: States, bend: States) -> Float[Tensor, "batch node patch three_hidden"]:
    return torch.cat([view, change, bend], dim=-1).abs()
