"""Section "Context-Adaptive Forecast Fusion": how much each branch counts for each node and target patch.

| symbol | code | shape |
|---|---|---|
| c | context (never formed whole) | batch node target 4 hidden |
| lambda | weights | batch node target branch |
| F^fuse | fused | batch node target forecast |

| equation | where |
|---|---|
| app_fusion_context | `Fusion.weights` |
| context_fusion | `fuse` |
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from candor.nets.candor.embedding import CalendarTables
from candor.nets.candor.history import Forecasts
from candor.nets.candor.settings import Branch, ModelSettings
from candor.nets.layers import Mlp, sinusoidal_positions, split_linear

FIRST_WEIGHTS: dict[Branch, float] = {"functional": 0.5, "forward": 0.25, "reverse": 0.25}


class Fusion(CalendarTables):
    """Softmax weights of the branches by node, target calendar and position, with calendar tables of its own."""

    positions: Tensor

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self.mlp = Mlp(4 * settings.hidden, settings.fusion_width, len(settings.branches), settings.dropout)
        positions = sinusoidal_positions(settings.target_patches, settings.hidden)
        self.register_buffer("positions", positions, persistent=False)

    def weights(
        self,
        nodes: Float[Tensor, "node hidden"],
        time_of_day: Int[Tensor, "batch target"],
        day_of_week: Int[Tensor, "batch target"],
        week_of_year: Int[Tensor, "batch target"] | None = None,
    ) -> Float[Tensor, "batch node target branch"]:
        """Returns lambda at the target patches whose calendar is given (eq. app_fusion_context)."""
        width, targets = nodes.shape[-1], time_of_day.shape[1]
        of_node, of_calendar, of_position = split_linear(self.mlp.first, width, 2 * width, width)
        by_node = nodes @ of_node.T + self.mlp.first.bias
        rows = self.rows(time_of_day, day_of_week, week_of_year)
        by_target = rows @ of_calendar.T + self.positions[:targets] @ of_position.T
        return self.mlp.finish(by_node[:, None] + by_target[:, None]).softmax(dim=-1)


class MeanFusion(nn.Module):
    """All branches count alike (avg Fusion); so does the only branch where there is but one."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.branches = len(settings.branches)

    def weights(
        self, nodes: Float[Tensor, "node hidden"], time_of_day: Int[Tensor, "batch target"], *others: Tensor
    ) -> Float[Tensor, "batch node target branch"]:
        """Returns one over the number of branches."""
        batch, targets = time_of_day.shape
        return nodes.new_full((batch, len(nodes), targets, self.branches), 1 / self.branches)


def fuse(weights: Float[Tensor, "batch node target branch"], forecasts: tuple[Forecasts, ...]) -> Forecasts:
    """Returns the weighted sum of the branches' forecast representations (eq. context_fusion)."""
    shares = weights.unsqueeze(-1).unbind(dim=-2)
    fused = shares[0] * forecasts[0]
    for share, forecast in zip(shares[1:], forecasts[1:], strict=True):
        fused = torch.addcmul(fused, share, forecast)
    return fused
