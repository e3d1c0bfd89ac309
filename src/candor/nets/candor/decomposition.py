"""Section "Evolution-Structured Dynamics Decomposition": patches, calendar, components, refined past, projections.

| symbol | code | shape |
|---|---|---|
| X | values | batch history node |
| Z | embedded | batch node patch hidden |
| [tod, dow] | rows | batch position 2 hidden |
| season (beyond the paper) | added to rows | batch position 2 hidden |
| m_p | context | batch position hidden |
| B~, A~, R~, S~ | raw_background, ... | batch node patch hidden |
| B, A, R, S | background, ... | batch node patch hidden |
| U, V | residuals from the current and from the next background | batch node patch hidden |
| G_A, G_R | accumulation_gate, release_gate | batch node patch hidden |
| g_U, g_V | shock_gate_u, shock_gate_v | batch node patch |
| e | nodes | node hidden |
| Q_r, P_r (interventions) | rain, rain_projection | batch node patch hidden |
| H0 | refined | batch node patch hidden |
| M_out | calendar MLP at target patches | batch target forecast |
| F0 | projected | batch node target forecast |

Equations: app_embedding_background, app_shock_gates, evolution_references, app_temporal_differences,
app_accumulation_release, app_shock_component, app_gate_inputs, app_history_integration, app_temporal_projection.
"""

from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK, WEEKS_PER_YEAR
from candor.nets.candor.settings import ModelSettings
from candor.nets.dropout import Dropout
from candor.nets.layers import NORM_FLOOR, Mlp, split_linear
from candor.nets.shapes import Readings

States = Float[Tensor, "batch node patch hidden"]
Gate = Float[Tensor, "batch node patch"]
Forecasts = Float[Tensor, "batch node target forecast"]
Context = Float[Tensor, "batch patch hidden"]
NodeTable = Float[Tensor, "node hidden"]
CalendarIndex = Int[Tensor, "batch position"]
CalendarRows = Float[Tensor, "batch position twice_hidden"]
TargetRows = Float[Tensor, "batch target twice_hidden"]
COMPONENT_NAMES = ("background", "accumulation", "release", "shock")


class PatchEmbedding(nn.Module):
    """Z = LN_Z(W_Z x + b_Z) over overlapping stretches of each node's history (eq. app_embedding_background)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.length, self.stride = settings.patch_length, settings.patch_stride
        self.linear = nn.Linear(settings.patch_length, settings.hidden)
        self.norm = nn.LayerNorm(settings.hidden, eps=NORM_FLOOR)

    def forward(self, values: Readings) -> States:
        series = rearrange(values, "batch time node -> batch node time")
        patches = series.unfold(-1, self.length, self.stride)  # batch node patch length
        return self.norm(self.linear(patches))


class CalendarTables(nn.Module):
    """Embeddings of the time of day and the day of week, side by side; with `season`, that of the week is added.

    The season begins at zero and draws no random numbers: a network with it begins as the one without.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width = settings.hidden
        self.time_of_day = nn.Embedding(BINS_PER_DAY, width)
        self.day_of_week = nn.Embedding(DAYS_PER_WEEK, width)
        self.season: nn.Embedding | None = None
        if settings.season:
            self.season = nn.Embedding.from_pretrained(torch.zeros(WEEKS_PER_YEAR, 2 * width), freeze=False)

    def rows(
        self, time_of_day: CalendarIndex, day_of_week: CalendarIndex, week_of_year: CalendarIndex | None = None
    ) -> CalendarRows:
        """Return `[tod || dow]` at the given positions of the calendar, plus the season if there is one."""
        rows = torch.cat([self.time_of_day(time_of_day), self.day_of_week(day_of_week)], dim=-1)
        if self.season is None:
            return rows
        if week_of_year is None:
            raise ValueError("this network has a season (season=true): it needs week_of_year beside the values")
        return rows + self.season(week_of_year)


class CalendarEmbedding(CalendarTables):
    """The calendar shared by everything except fusion: its tables, and the MLP that gives m_p."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        width = 2 * settings.hidden
        self.mlp = Mlp(width, width, settings.hidden, settings.dropout)

    def context(self, rows: CalendarRows) -> Float[Tensor, "batch position hidden"]:
        """Return m at the given rows."""
        return self.mlp(rows)


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
        self, magnitudes: Float[Tensor, "batch node patch three_hidden"], nodes: NodeTable, context: Context
    ) -> Gate:
        of_node, of_calendar = split_linear(self.first, self.node.out_features, self.calendar.out_features)
        by_node = self.node(nodes) @ of_node.T + self.first.bias  # node 2hidden
        by_calendar = self.calendar(context) @ of_calendar.T  # batch patch 2hidden
        hidden = F.gelu(by_node[:, None] + by_calendar[:, None])  # batch node patch 2hidden
        correction = self.second(self.dropout(hidden))
        return torch.sigmoid(self.magnitude(magnitudes) + correction).squeeze(-1)


class Decomposition(nn.Module):
    """Background, accumulation, release and shock of the embedded history; else only the node table."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, kernel = settings.hidden, settings.kernel
        self.nodes = nn.Embedding(settings.nodes, width)
        self.is_decomposed = settings.decomposition
        if not self.is_decomposed:
            return
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

    def forward(self, embedded: States, context: Context, rain: Readings | None = None) -> Components | Undecomposed:
        """Return the components of the embedded history Z, given the calendar context m of its patches.

        Rain over the history, as z-scores of log(1 + rain), is needed if the settings say so, else not read.
        """
        if not self.is_decomposed:
            return Undecomposed(embedded)
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
        accumulation, release = self.accumulation_norm(raw_accumulation), self.release_norm(raw_release)
        return Components(
            *(raw_background, raw_accumulation, raw_release, raw_shock),
            *(background, accumulation, release, self.shock_norm(raw_shock)),
            *(accumulation_gate, release_gate, shock_gate_u, shock_gate_v),
        )

    def _gate(self, mlp: Mlp, view: States, change: States, bend: States, context: Context) -> States:
        """Return sigma(f(xi)), xi = [Q || dQ || -dQ || d2Q || P_E(e) || m] (eq. app_gate_inputs)."""
        width = view.shape[-1]
        of_view, of_rise, of_fall, of_bend, of_node, of_calendar = split_linear(mlp.first, *[width] * 6)
        by_node = self.node_projection(self.nodes.weight) @ of_node.T + mlp.first.bias
        by_calendar = context @ of_calendar.T
        of_states = torch.cat([of_view, of_rise - of_fall, of_bend], dim=1)  # dQ and -dQ share one block
        by_states = F.linear(torch.cat([view, change, bend], dim=-1), of_states)
        return torch.sigmoid(mlp.finish(by_states + by_node[:, None] + by_calendar[:, None]))


def _differences(view: States) -> tuple[States, States]:
    """Return first and second differences over patches; each begins with zero."""
    change = F.pad(view.diff(dim=-2), (0, 0, 1, 0))
    return change, F.pad(change.diff(dim=-2), (0, 0, 1, 0))


def _magnitudes(view: States, change: States, bend: States) -> Float[Tensor, "batch node patch three_hidden"]:
    return torch.cat([view, change, bend], dim=-1).abs()


class HistoryIntegration(nn.Module):
    """H0, the history refined by its components, and F0, the components projected onto target patches.

    Without decomposition H0 is Z, and F0 comes from one map over patches and one over features of Z. Only the
    functional branch needs F0.
    """

    temporal: Any  # maps by component; without decomposition one map
    feature: Any

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, forecast, patches = settings.hidden, settings.forecast_width, settings.patches
        self.decomposition = settings.decomposition
        if self.decomposition:
            self.mix = nn.Linear(4 * width, width)
            self.scale = nn.Parameter(torch.tensor(0.1))
            self.norm = nn.LayerNorm(width, eps=NORM_FLOOR)
        if "functional" in settings.branches:
            if self.decomposition:
                self.temporal = _component_maps(patches, settings.target_patches)
                self.feature = _component_maps(width, forecast)
                self.merge = nn.Linear(4 * forecast, forecast)
            else:
                self.temporal = nn.Linear(patches, settings.target_patches)
                self.feature = nn.Linear(width, forecast)
            self.forecast_norm = nn.LayerNorm(forecast, eps=NORM_FLOOR)
            self.calendar = Mlp(2 * width, forecast, forecast, settings.dropout)

    def refine(self, embedded: States, components: Components | Undecomposed) -> States:
        """Return H0 = LN_H(Z + alpha P_H([B || A || R || S])) (eq. app_history_integration)."""
        if not self.decomposition:
            return embedded
        mixed = self.mix(torch.cat(components.normalised, dim=-1))
        return self.norm(embedded + self.scale * mixed)

    def project(self, components: dict[str, Tensor], rows: TargetRows) -> Forecasts:
        """Return F0 at the target patches whose calendar rows are given (eq. app_temporal_projection).

        T_c, F_c and P_F are affine with nothing between, so F_c and P_F are multiplied first: one map from the four
        components to the forecast width.
        """
        targets = rows.shape[1]
        if not self.decomposition:
            merged = self.feature(project_patches(self.temporal, components["background"], targets))
        else:
            blocks = self.merge.weight.split(self.merge.out_features, dim=1)
            ahead, weights, bias = [], [], self.merge.bias
            for name, block in zip(COMPONENT_NAMES, blocks, strict=True):
                ahead.append(project_patches(self.temporal[name], components[name], targets))
                weights.append(block @ self.feature[name].weight)
                bias = bias + block @ self.feature[name].bias
            merged = F.linear(torch.cat(ahead, dim=-1), torch.cat(weights, dim=1), bias)
        return self.forecast_norm(merged + self.calendar(rows)[:, None])


def _component_maps(inputs: int, outputs: int) -> nn.ModuleDict:
    return nn.ModuleDict({name: nn.Linear(inputs, outputs) for name in COMPONENT_NAMES})


def project_patches(layer: nn.Linear, states: States, targets: int) -> Float[Tensor, "batch node target hidden"]:
    """Return the affine map from history patches to the first `targets` target patches, feature by feature."""
    weight, bias = layer.weight[:targets], layer.bias[:targets]
    return torch.matmul(weight, states) + bias[:, None]
