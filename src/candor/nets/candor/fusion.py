"""Section "Context-Adaptive Forecast Fusion": how much each branch counts, prediction and overlap recovery.

| symbol | code | shape |
|---|---|---|
| F^func, F->, F<- | by_branch | batch node target forecast |
| c | context (never formed whole) | batch node target 4 hidden |
| lambda | fusion_weights | batch node target branch |
| F^fuse | fused | batch node target forecast |
| y^patch | patches | batch node target length |
| Y | forecast | batch horizon node |

Equations: app_fusion_context, context_fusion, app_fusion_prediction, app_overlap_recovery.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.decomposition import CalendarTables, Forecasts, NodeTable, TargetRows
from candor.nets.candor.settings import Branch, ModelSettings
from candor.nets.layers import Mlp, sinusoidal_positions, split_linear

TargetIndex = Int[Tensor, "batch target"]
FusionWeights = Float[Tensor, "batch node target branch"]
FIRST_WEIGHTS: dict[Branch, float] = {"functional": 0.5, "forward": 0.25, "reverse": 0.25}


class Fusion(CalendarTables):
    """Softmax weights of the branches by node, target calendar and position, with calendar tables of its own."""

    positions: Tensor

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self.mlp = Mlp(4 * settings.hidden, settings.fusion_width, len(settings.branches), settings.dropout)
        positions = sinusoidal_positions(settings.target_patches, settings.hidden)
        self.register_buffer("positions", positions, persistent=False)

    def weights(self, nodes: NodeTable, *clock: TargetIndex) -> FusionWeights:
        """Return lambda at the target patches whose calendar is given (eq. app_fusion_context)."""
        width, targets = nodes.shape[-1], clock[0].shape[1]
        of_node, of_calendar, of_position = split_linear(self.mlp.first, width, 2 * width, width)
        by_node = nodes @ of_node.T + self.mlp.first.bias
        by_target = self.rows(*clock) @ of_calendar.T + self.positions[:targets] @ of_position.T
        return self.mlp.finish(by_node[:, None] + by_target[:, None]).softmax(dim=-1)


class MeanFusion(nn.Module):
    """Equal weights (avg Fusion), also where there is only one branch."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.branches = len(settings.branches)

    def weights(self, nodes: NodeTable, *clock: TargetIndex) -> FusionWeights:
        """Return one over the number of branches."""
        batch, targets = clock[0].shape
        return nodes.new_full((batch, len(nodes), targets, self.branches), 1 / self.branches)


def fuse(weights: FusionWeights, forecasts: tuple[Forecasts, ...]) -> Forecasts:
    """Return the weighted sum of the branches' forecast representations (eq. context_fusion)."""
    shares = weights.unsqueeze(-1).unbind(dim=-2)
    fused = shares[0] * forecasts[0]
    for share, forecast in zip(shares[1:], forecasts[1:], strict=True):
        fused = torch.addcmul(fused, share, forecast)
    return fused


class Head(nn.Module):
    """Two layers from a forecast representation to the values of its patch; overlapping patches are averaged."""

    recovery: Tensor

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.length = settings.patch_length
        self.first = nn.Linear(settings.forecast_width, settings.head_width)
        self.second = nn.Linear(settings.head_width, settings.patch_length)
        self.register_buffer("recovery", recovery_matrix(settings), persistent=False)

    def forward(self, representation: Forecasts, prefix: int) -> Float[Tensor, "batch prefix node"]:
        """Return the forecast of the first `prefix` steps."""
        patches = self.second(F.relu(self.first(F.relu(representation))))  # eq. app_fusion_prediction
        return self.recover(patches, prefix)

    def recover(self, patches: Forecasts, prefix: int) -> Float[Tensor, "batch prefix node"]:
        """Return the mean over the patches that cover each step (eq. app_overlap_recovery)."""
        steps = patches.flatten(2) @ self.covering(patches.shape[2], prefix)  # batch node prefix
        return steps.transpose(1, 2)

    def covering(self, targets: int, prefix: int) -> Float[Tensor, "places prefix"]:
        """Return the part of the recovery matrix that the first patches and steps need."""
        return self.recovery[: targets * self.length, :prefix]


def recovery_matrix(settings: ModelSettings) -> Float[Tensor, "places horizon"]:
    """Return the map from all places of all target patches to the steps of the horizon: the mean over I_h."""
    starts = torch.tensor(settings.target_starts)
    step_of_place = (starts[:, None] + torch.arange(settings.patch_length)).flatten() - settings.history
    covers = step_of_place[:, None] == torch.arange(settings.horizon)
    return (covers / covers.sum(dim=0).clamp(min=1)).to(torch.get_default_dtype())


@dataclass(frozen=True)
class Representations:
    """The forecast representations by branch, and the weights they are fused with, in the same order."""

    by_branch: dict[str, Forecasts]
    fusion_weights: FusionWeights

    @property
    def branches(self) -> tuple[Forecasts, ...]:
        """The branches in the order of the fusion weights."""
        return tuple(self.by_branch.values())


@dataclass(frozen=True)
class ForecastInputs:
    """Inputs of the representations, which are eight times as wide and therefore made block by block."""

    states: dict[str, Tensor]
    """States by sample and node: predictions of the paths by direction; for the functional branch the components after
    normalisation, C^func as context and h^B as descriptor."""
    nodes: NodeTable
    """The node table e."""
    target_rows: TargetRows
    """Calendar rows at the target patches."""
    clock: tuple[TargetIndex, ...]
    """Time of day, day of week and, with a season, week of the year at the target patches."""

    def differentiable(self) -> list[Tensor]:
        """Return the tensors that gradients flow into."""
        return [*self.states.values(), self.nodes, self.target_rows]

    def with_differentiable(self, tensors: list[Tensor]) -> "ForecastInputs":
        """Return the same with other tensors in place of those of `differentiable`."""
        *states, nodes, rows = tensors
        return ForecastInputs(dict(zip(self.states, states, strict=True)), nodes, rows, self.clock)

    def block(self, samples: slice, nodes: slice) -> "ForecastInputs":
        """Return the part of some samples and some nodes."""
        states = {name: tensor[samples, nodes] for name, tensor in self.states.items()}
        clock = tuple(index[samples] for index in self.clock)
        return ForecastInputs(states, self.nodes[nodes], self.target_rows[samples], clock)

    def blocks(self, rows: int) -> Iterator[tuple[slice, slice]]:
        """Yield samples and nodes of blocks of about `rows` rows of the representations each."""
        (samples, targets, _), nodes = self.target_rows.shape, len(self.nodes)
        many_samples = max(1, rows // (nodes * targets))
        many_nodes = nodes if many_samples > 1 else max(1, rows // targets)
        for sample in range(0, samples, many_samples):
            for node in range(0, nodes, many_nodes):
                yield slice(sample, sample + many_samples), slice(node, node + many_nodes)
