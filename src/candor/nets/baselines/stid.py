"""STID: Spatial-Temporal Identity (Shao, Zhang, Wang, Wei, Xu; CIKM 2022).

Idea: graph models gain mostly because samples become distinguishable in space and time. A learned identity of the
sensor, the time of day and the day of week beside the history lets a plain residual MLP do as well.

Read: the paper and `zezhishao/STID` (no licence file; `stid/stid_arch`, `stid/STID_METR-LA.py`). The identities are
those of the last step that is read. 1 x 1 convolutions over nodes are written as the linear layers they are.

Changed: beside the values the network reads time of day and day of week as fractions of a day and of a week; the
released code reads the day as 0 to 6. Epochs and batch are those of the BasicTS library.
"""

from jaxtyping import Float
from torch import Tensor, nn

from candor.core.settings import Settings
from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.layers import Mlp, side_by_side, with_calendar, xavier_table
from candor.nets.shapes import Bins, Forecast, Layers, Rate, Readings, Width

CHANNELS = 3  # value, time of day, day of week

States = Float[Tensor, "batch node width"]


class StidSizes(Settings):
    """Sizes of STID; the embedded history and each identity are as wide as `width`."""

    width: Width = 32
    layers: Layers = 3
    dropout: Rate = 0.15


@baselines.register("stid")
class Stid(BaselineNetwork):
    """History and identities side by side, residual blocks, one linear layer to the horizon; node by node."""

    sizes = StidSizes()
    tiny = StidSizes(width=8, layers=1)
    recipe = BaselineRecipe.of(
        epochs=100, batch=64, learning_rate=2e-3, weight_decay=1e-4, clip=5.0, milestones=(1, 50, 80), patience=100
    )

    def __init__(self, sizes: StidSizes, frame: Frame) -> None:
        super().__init__()
        width = sizes.width
        self.series = nn.Linear(CHANNELS * frame.history, width)
        self.nodes = xavier_table(frame.nodes, width)
        self.time_of_day = xavier_table(BINS_PER_DAY, width)
        self.day_of_week = xavier_table(DAYS_PER_WEEK, width)
        self.blocks = nn.Sequential(*(ResidualBlock(4 * width, sizes.dropout) for _ in range(sizes.layers)))
        self.head = nn.Linear(4 * width, frame.horizon)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        last = values.shape[1] - 1
        series = self.series(history_channels(values, time_of_day, day_of_week))  # batch node width
        slot, day = self.time_of_day[time_of_day[:, last]], self.day_of_week[day_of_week[:, last]]
        return self.head(self.blocks(side_by_side(series, self.nodes, slot[:, None], day[:, None]))).transpose(1, 2)


def history_channels(values: Readings, time_of_day: Bins, day_of_week: Bins) -> States:
    """Return what is read of every node: all steps with their value, time of day and day of week."""
    steps = values.shape[1]
    channels = with_calendar(values, time_of_day[:, :steps] / BINS_PER_DAY, day_of_week[:, :steps] / DAYS_PER_WEEK)
    return channels.transpose(1, 2).flatten(2)


class ResidualBlock(Mlp):
    """x + W2 dropout(relu(W1 x))."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(width, width, width, dropout, nn.ReLU())

    def forward(self, states: States) -> States:
        return states + super().forward(states)
