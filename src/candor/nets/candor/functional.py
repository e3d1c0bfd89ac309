"""Section "Decomposition-Conditioned Dual-Graph Learning": the functional relation graph.

| symbol | code | shape |
|---|---|---|
| h^B | descriptor | batch node relation_width |
| v^B | trend | batch node relation_width |
| s | scores of all (neighbour, channel) pairs, held in blocks of nodes | batch node (channel node) |
| K_i, pi | pairs, weights | batch node pair |
| C^func | context | batch node patch hidden |
| F^func | forecast | batch node target forecast |

Equations: app_joint_relation_selection, app_background_context, functional_graph, app_functional_aggregation,
app_functional_forecast.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.decomposition import Forecasts, NodeTable, States, TargetRows, project_patches
from candor.nets.candor.ops.gates import add_gated, read_normalised
from candor.nets.candor.ops.pairs import gather_pairs, pair_scores, top_k_pairs
from candor.nets.candor.settings import ModelSettings
from candor.nets.candor.temporal import Recurrence
from candor.nets.dropout import Dropout
from candor.nets.layers import NORM_FLOOR, Mlp, split_linear

Descriptors = Float[Tensor, "batch node relation"]
PooledCalendar = Float[Tensor, "batch hidden"]
PairNumbers = Int[Tensor, "batch node pair"]
PairWeights = Float[Tensor, "batch node pair"]


@dataclass(frozen=True)
class FunctionalStates:
    """States of the functional branch: descriptors, the chosen pairs with their weights, and the context C^func."""

    descriptor: Descriptors
    trend: Descriptors | None
    neighbour: PairNumbers
    channel: PairNumbers
    weights: PairWeights
    context: States


def resemblances(descriptor: Descriptors) -> Float[Tensor, "batch node other"]:
    """Return how alike the backgrounds of all nodes are, -1 to 1: the cosines of their descriptors."""
    directions = F.normalize(descriptor, dim=-1)
    return directions @ directions.mT


class FunctionalBranch(nn.Module):
    """Relations among nodes whose backgrounds behave alike, whatever their distance."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, relation, forecast = settings.hidden, settings.relation_width, settings.forecast_width
        value, channels = settings.value_width, settings.relations
        self.pairs, self.trend_weight = settings.pairs, settings.trend_weight
        self.gru = Recurrence(width)
        self.descriptor = Mlp(5 * width, 2 * width, relation, settings.dropout)
        self.descriptor_norm = nn.LayerNorm(relation, eps=NORM_FLOOR)
        if channels:
            self.trend = Mlp(3 * width, 2 * width, relation, settings.dropout)
            self.trend_norm = nn.LayerNorm(relation, eps=NORM_FLOOR)
        self.node_context = nn.Linear(width, width)
        self.context = Mlp(2 * width, width, 2 * relation, settings.dropout)
        self.relation_norm = nn.LayerNorm(relation, eps=NORM_FLOOR)
        if channels:
            self.level_relations = nn.Parameter(torch.empty(channels, relation, relation))
            self.trend_relations = nn.Parameter(torch.empty(channels, relation, relation))
            self.relation_bias = nn.Parameter(torch.zeros(channels))
            self.reduce = nn.Linear(width, value)
            self.restore = nn.Linear(value, width)
        self.channels = nn.ModuleList(nn.Linear(value, value) for _ in range(channels))
        self.temporal = nn.Linear(settings.patches, settings.target_patches)
        self.feature = nn.Linear(width, forecast)
        self.context_norm = nn.LayerNorm(forecast, eps=NORM_FLOOR)
        self.joint = nn.Linear(2 * forecast + relation + 3 * width, 2 * width)
        self.dropout = Dropout(settings.dropout)
        self.correction = nn.Linear(2 * width, forecast)
        self.gate = nn.Linear(2 * width, forecast)
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.norm = nn.LayerNorm(forecast, eps=NORM_FLOOR)

    def forward(
        self, background: States, refined: States, nodes: NodeTable, pooled_calendar: PooledCalendar
    ) -> FunctionalStates:
        """Return the states of the branch from B, H0, the node table e and the calendar."""
        descriptor, changes = self._describe(background, nodes, pooled_calendar)
        if not self.channels:  # w/o Relation: C^func = 0
            none = torch.empty(*descriptor.shape[:2], 0, dtype=torch.long, device=descriptor.device)
            return FunctionalStates(descriptor, None, none, none, none.to(descriptor), torch.zeros_like(refined))
        trend = self.trend_norm(self.trend(changes))
        neighbour, channel, scores = self._choose(descriptor, trend)
        weights = scores.softmax(dim=-1)  # eq. app_joint_relation_selection
        context = self._gather(refined, neighbour, channel, weights)
        return FunctionalStates(descriptor, trend, neighbour, channel, weights, context)

    def _describe(
        self, background: States, nodes: NodeTable, pooled: PooledCalendar
    ) -> tuple[Descriptors, Float[Tensor, "batch node three_hidden"]]:
        """Return h^B and the changes of the background that trends are made of."""
        patches = background.shape[-2]
        first, last = background[..., 0, :], background[..., -1, :]
        recent = last - background[..., max(patches - 2, 0), :]
        changes = torch.cat([last - first, recent, (last - first) / max(patches - 1, 1)], dim=-1)
        series = background.flatten(0, 1)
        state = self.gru.begin(series.shape[0])
        for of_patch in series.unbind(dim=1):
            state = self.gru.step(of_patch, state)
        state = state.T.unflatten(0, background.shape[:2])
        base = self.descriptor_norm(self.descriptor(torch.cat([background.mean(dim=-2), changes, state], dim=-1)))
        of_node, of_calendar = split_linear(self.context.first, nodes.shape[-1], pooled.shape[-1])
        by_node = self.node_context(nodes) @ of_node.T + self.context.first.bias
        scale, shift = self.context.finish(by_node + (pooled @ of_calendar.T)[:, None]).chunk(2, dim=-1)
        descriptor = self.relation_norm((1 + scale) * base + shift)  # eq. app_background_context
        return descriptor, changes

    def _choose(self, descriptor: Descriptors, trend: Descriptors) -> tuple[PairNumbers, PairNumbers, PairWeights]:
        """Return the top k (neighbour, channel) pairs of every node and their scores (eq. functional_graph).

        The pairs are found without gradients; their scores are then computed again with gradients, for them only.
        """
        nodes, channels = descriptor.shape[1], len(self.channels)
        of_level = torch.einsum("bnx,rxy->bnry", descriptor, self.level_relations)
        of_trend = self.trend_weight * torch.einsum("bnx,rxy->bnry", trend, self.trend_relations)
        queries = torch.cat([of_level, of_trend], dim=-1)  # batch node channel 2relation
        keys = torch.cat([descriptor, trend], dim=-1)  # batch node 2relation
        count = min(self.pairs, (nodes - 1) * channels)
        neighbour, channel = top_k_pairs(queries, keys, self.relation_bias, count)
        scores = pair_scores(queries, keys, neighbour, channel) + self.relation_bias[channel]
        return neighbour, channel, scores

    def _gather(self, refined: States, neighbour: PairNumbers, channel: PairNumbers, weights: PairWeights) -> States:
        """Return C^func, the weighted values of the chosen pairs (eq. app_functional_aggregation)."""
        # Each channel's value map as one affine map: restore after channel after reduce.
        channels = [channel for channel in self.channels if isinstance(channel, nn.Linear)]
        inner = torch.stack([channel.weight for channel in channels])  # channel value value
        inner_bias = torch.stack([channel.bias for channel in channels])
        maps = self.restore.weight @ inner @ self.reduce.weight
        offsets = (inner @ self.reduce.bias + inner_bias) @ self.restore.weight.T + self.restore.bias
        values = torch.einsum("bnpd,red->bnrpe", refined, maps) + offsets[:, None]
        return gather_pairs(values.flatten(3), neighbour, channel, weights).view(refined.shape)

    def correct(
        self, projected: Forecasts, context: States, descriptor: Descriptors, nodes: NodeTable, target_rows: TargetRows
    ) -> Forecasts:
        """Return F^func = LN(F0 + alpha gate * correction) (eq. app_functional_forecast)."""
        targets, forecast = projected.shape[2], projected.shape[3]
        ahead = project_patches(self.temporal, context, targets)
        widths = (forecast, forecast, descriptor.shape[-1], nodes.shape[-1], target_rows.shape[-1])
        of_forecast, of_context, of_descriptor, of_node, of_calendar = split_linear(self.joint, *widths)
        by_node = descriptor @ of_descriptor.T + nodes @ of_node.T + self.joint.bias  # batch node 2hidden
        by_calendar = target_rows @ of_calendar.T  # batch target 2hidden
        by_context = read_normalised(ahead, self.feature, self.context_norm, of_context)
        hidden = projected @ of_forecast.T + by_context + by_node[:, :, None] + by_calendar[:, None]
        hidden = self.dropout(F.gelu(hidden))
        # Scaling the weights is cheaper than scaling the result.
        correction = F.linear(hidden, self.scale * self.correction.weight, self.scale * self.correction.bias)
        return self.norm(add_gated(projected, correction, self.gate(hidden)))
