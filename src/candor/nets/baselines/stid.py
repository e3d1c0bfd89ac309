"""STID: Spatial-Temporal Identity (Shao, Zhang, Wang, Wei, Xu; CIKM 2022).

Idea: graph models gain mostly because samples become distinguishable in space and time. A learned identity of the
sensor, the time of day and the day of week beside the history lets a plain residual MLP do as well.

Read: the paper and `zezhishao/STID` (no licence file; `stid/stid_arch`, `stid/STID_METR-LA.py`). The identities are
those of the last step that was read. 1 x 1 convolutions over nodes are written as the linear layers they are.

Changed: calendar positions come as whole numbers; beside the values the network reads them as fractions of a day and of
a week, where the released code reads the day as 0 to 6. Epochs and batch are those of the BasicTS library.
"""

import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.nets.baseline import Baseline, BaselineNetwork, BaselineRecipe, Calendar, Forecast, Frame, Readings
from candor.nets.baselines import baselines
from candor.nets.baselines._parts import Rate
from candor.nets.dropout import Dropout
from candor.nets.recipe import TrainingSettings

CHANNELS = 3  # value, time of day, day of week


class StidSizes(Settings):
    """Sizes of STID."""

    width: PositiveInt = 32
    """Of the embedded history and of each identity."""
    layers: PositiveInt = 3
    """Residual blocks."""
    dropout: Rate = 0.15
    """Within the blocks."""


class StidNetwork(BaselineNetwork):
    """History and identities side by side, residual blocks, one linear layer to the horizon; node by node."""

    def __init__(self, sizes: StidSizes, frame: Frame) -> None:
        super().__init__()
        width = sizes.width
        self.history = frame.history
        self.series = nn.Linear(CHANNELS * frame.history, width)
        self.nodes = nn.Parameter(torch.empty(frame.nodes, width))
        self.time_of_day = nn.Parameter(torch.empty(BINS_PER_DAY, width))
        self.day_of_week = nn.Parameter(torch.empty(DAYS_PER_WEEK, width))
        for table in (self.nodes, self.time_of_day, self.day_of_week):
            nn.init.xavier_uniform_(table)
        self.blocks = nn.ModuleList(ResidualBlock(4 * width, sizes.dropout) for _ in range(sizes.layers))
        self.head = nn.Linear(4 * width, frame.horizon)

    def forward(self, values: Readings, time_of_day: Calendar, day_of_week: Calendar, *more: Tensor | None) -> Forecast:
        batch, _, nodes = values.shape
        seen = slice(0, self.history)
        clock = torch.stack([time_of_day[:, seen] / BINS_PER_DAY, day_of_week[:, seen] / DAYS_PER_WEEK], dim=-1)
        channels = torch.cat([values[..., None], clock[:, :, None].expand(-1, -1, nodes, -1)], dim=-1)
        last = self.history - 1
        identities = (
            self.series(channels.transpose(1, 2).flatten(2)),
            self.nodes.expand(batch, -1, -1),
            self.time_of_day[time_of_day[:, last]][:, None].expand(-1, nodes, -1),
            self.day_of_week[day_of_week[:, last]][:, None].expand(-1, nodes, -1),
        )
        states = torch.cat(identities, dim=-1)  # batch node 4width
        for block in self.blocks:
            states = block(states)
        return self.head(states).transpose(1, 2)


class ResidualBlock(nn.Module):
    """x + W2 dropout(relu(W1 x))."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "batch node width"]) -> Float[Tensor, "batch node width"]:
        return states + self.second(self.dropout(F.relu(self.first(states))))


@baselines.register("stid")
class Stid(Baseline):
    """Spatial-Temporal Identity."""

    network = StidNetwork
    sizes = StidSizes()
    recipe = BaselineRecipe(
        training=TrainingSettings(
            epochs=100, batch=64, learning_rate=2e-3, weight_decay=1e-4, milestones=(1, 50, 80), patience=100
        ),
    )

    tiny = StidSizes(width=8, layers=1)
