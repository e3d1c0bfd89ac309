"""iTransformer: inverted transformers (Liu, Hu, Zhang, Wu, Wang, Ma, Long; ICLR 2024).

Idea: a token is not what all sensors read at one step but what one sensor read at all steps. Attention among these
tokens then learns which series belong together, and the feed-forward layers learn what series look like.

Read: `thuml/iTransformer` (MIT; `model`, `layers`, `experiments`, `scripts/multivariate_forecasting/PEMS`) and its copy
in `thuml/Time-Series-Library` (MIT). Sizes, rate and batch are those of PEMS08 for 12 steps, the published traffic
network with the most similar number of sensors. The authors switch scaling within the window off for half of their
traffic settings: `normalise`. Nodes have no identity, so the network fits any order and number of them.

Changed: the original reads the calendar as further tokens wherever its files have times (those of PEMS have none); here
these are time of day and day of week, and `calendar` can leave them out. Training goes to the end instead of stopping
early; the best weights are kept either way.
"""

import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import Baseline, BaselineNetwork, BaselineRecipe, Bins, Forecast, Frame, Readings
from candor.nets.baselines import baselines
from candor.nets.baselines._layers import Attention, EncoderSizes, Rate, calendar_series, standardise
from candor.nets.dropout import Dropout
from candor.nets.recipe import UNCLIPPED

Series = Float[Tensor, "batch series width"]


class ITransformerSizes(EncoderSizes):
    """Sizes of iTransformer."""

    width: PositiveInt = 512
    feed_forward: PositiveInt = 512
    heads: PositiveInt = 8
    layers: PositiveInt = 2
    dropout: Rate = 0.1
    normalise: bool = True
    """Whether every series is scaled by its own mean and deviation within the window."""
    calendar: bool = True
    """Whether time of day and day of week are tokens, too."""


class ITransformerNetwork(BaselineNetwork):
    """A token for every series, an encoder, and one linear layer to the horizon."""

    def __init__(self, sizes: ITransformerSizes, frame: Frame) -> None:
        super().__init__()
        self.normalise, self.calendar = sizes.normalise, sizes.calendar
        self.embedding = nn.Linear(frame.history, sizes.width)
        self.layers = nn.Sequential(*(Layer(sizes) for _ in range(sizes.layers)))
        self.norm = nn.LayerNorm(sizes.width)
        self.head = nn.Linear(sizes.width, frame.horizon)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        _, steps, nodes = values.shape
        scores, mean, deviation = standardise(values) if self.normalise else (values, 0.0, 1.0)
        if self.calendar:
            scores = torch.cat([scores, calendar_series(time_of_day, day_of_week, steps)], dim=2)
        tokens = self.layers(self.dropout(self.embedding(scores.transpose(1, 2))))
        forecast = self.head(self.norm(tokens[:, :nodes]))
        return forecast.transpose(1, 2) * deviation + mean


class Layer(nn.Module):
    """Attention among all series, and a feed-forward layer; each is added and normalised."""

    def __init__(self, sizes: ITransformerSizes) -> None:
        super().__init__()
        self.attention = Attention(sizes.width, sizes.heads, sizes.dropout)
        self.first = nn.Linear(sizes.width, sizes.feed_forward)
        self.second = nn.Linear(sizes.feed_forward, sizes.width)
        self.attention_norm, self.norm = nn.LayerNorm(sizes.width), nn.LayerNorm(sizes.width)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, tokens: Series) -> Series:
        tokens = self.attention_norm(tokens + self.dropout(self.attention(tokens, tokens)))
        return self.norm(tokens + self.dropout(self.second(self.dropout(F.gelu(self.first(tokens))))))


@baselines.register("itransformer")
class ITransformer(Baseline):
    """Inverted transformers."""

    network = ITransformerNetwork
    sizes = ITransformerSizes()
    tiny = ITransformerSizes(width=8, feed_forward=16, heads=2, layers=1)
    # The rate is halved after every epoch but the first; gradients are not clipped.
    recipe = BaselineRecipe.of(
        loss="squared",
        epochs=10,
        batch=32,
        learning_rate=1e-4,
        weight_decay=0.0,
        milestones=tuple(range(2, 10)),
        clip=UNCLIPPED,
    )
