"""STAEformer: Spatio-Temporal Adaptive Embedding transformer (Liu, Dong, Jiang, Deng, Deng, Chen, Song; CIKM 2023).

Idea: each pair of a step of the history and a sensor has an embedding of its own, learned freely and shared by all
windows. With it a plain transformer, first over time and then over sensors, needs neither a graph nor other devices.

Read: `XDZhelheim/STAEformer` (no licence file; `model/STAEformer.py`, its YAML settings and `model/train.py`). The head
is the released default: all steps of a sensor side by side, one linear layer to the horizon.

Changed: calendar positions are whole numbers, from which the fractions are made (released: fractions multiplied back).
The table of the time of day always has 288 rows, of which coarser data use some. Gradients are not clipped, as there.
"""

from typing import Self

from pydantic import PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import GroupAttention, Groups, side_by_side, with_calendar, xavier_table
from candor.nets.shapes import Bins, Forecast, Heads, Layers, Rate, Readings

CHANNELS = 3  # value, time of day, day of week


class StaeformerSizes(Settings):
    """Sizes of STAEformer."""

    value_width: PositiveInt = 24  # of the embedded value
    time_of_day_width: PositiveInt = 24  # of the embedded time of day
    day_of_week_width: PositiveInt = 24  # of the embedded day of week
    adaptive_width: PositiveInt = 80  # of the free embedding of a step and a sensor
    feed_forward_width: PositiveInt = 256  # between the two linear layers that follow each attention
    heads: Heads = 4
    layers: Layers = 3  # layers over time, and as many over sensors
    dropout: Rate = 0.1  # after each attention and each feed-forward part

    @property
    def width(self) -> int:
        """Width of the states: all embeddings side by side."""
        return self.value_width + self.time_of_day_width + self.day_of_week_width + self.adaptive_width

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"the widths add up to {self.width}, which is not a multiple of heads ({self.heads})")
        return self


@baselines.register("staeformer")
class Staeformer(BaselineNetwork):
    """Embeddings side by side, layers over time, layers over sensors, one linear layer to the horizon."""

    sizes = StaeformerSizes()
    tiny = StaeformerSizes(
        value_width=2,
        time_of_day_width=2,
        day_of_week_width=2,
        adaptive_width=6,
        feed_forward_width=12,
        heads=2,
        layers=1,
    )
    recipe = BaselineRecipe.of(
        epochs=200, batch=16, learning_rate=1e-3, weight_decay=3e-4, milestones=(20, 30), decay=0.1, patience=30
    )

    def __init__(self, sizes: StaeformerSizes, frame: Frame) -> None:
        super().__init__()
        self.history = frame.history
        self.value = nn.Linear(CHANNELS, sizes.value_width)
        self.time_of_day = nn.Embedding(BINS_PER_DAY, sizes.time_of_day_width)
        self.day_of_week = nn.Embedding(DAYS_PER_WEEK, sizes.day_of_week_width)
        self.adaptive = xavier_table(frame.history, frame.nodes, sizes.adaptive_width)
        self.over_time = nn.Sequential(*(TransformerLayer(sizes) for _ in range(sizes.layers)))
        self.over_nodes = nn.Sequential(*(TransformerLayer(sizes) for _ in range(sizes.layers)))
        self.head = nn.Linear(frame.history * sizes.width, frame.horizon)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        time_of_day, day_of_week = time_of_day[:, : self.history], day_of_week[:, : self.history]
        value = self.value(with_calendar(values, time_of_day / BINS_PER_DAY, day_of_week.to(values.dtype)))
        calendar = (self.time_of_day(time_of_day)[:, :, None], self.day_of_week(day_of_week)[:, :, None])
        states = side_by_side(value, *calendar, self.adaptive)  # batch time node width
        states = self.over_time(states.transpose(1, 2)).transpose(1, 2)
        states = self.over_nodes(states)  # batch time node width
        return self.head(states.transpose(1, 2).flatten(2)).transpose(1, 2)


class TransformerLayer(GroupAttention):
    """Attention among the places of each group, then two linear layers; each is added and normalised after that."""

    def __init__(self, sizes: StaeformerSizes) -> None:
        width = sizes.width
        super().__init__(width, sizes.heads)
        self.first = nn.Linear(width, sizes.feed_forward_width)
        self.second = nn.Linear(sizes.feed_forward_width, width)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, states: Groups) -> Groups:  # type: ignore[override]
        states = self.attention_norm(states + self.dropout(super().forward(states)))
        return self.feed_forward_norm(states + self.dropout(self.second(F.relu(self.first(states)))))
