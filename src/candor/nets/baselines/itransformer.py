"""iTransformer: inverted transformers (Liu, Hu, Zhang, Wu, Wang, Ma, Long; ICLR 2024).

Idea: a token is not what all sensors read at one step but what one sensor read at all steps. Attention among these
tokens then learns which series belong together, and the feed-forward layers learn what series look like.

Read: `thuml/iTransformer` (MIT; `model`, `layers`, `experiments`, `scripts/multivariate_forecasting/PEMS`) and its copy
in `thuml/Time-Series-Library` (MIT). Sizes, rate and batch are those of PEMS08 for 12 steps, the published traffic
network with the most similar number of sensors. Scaling within the window (`normalise`) is off in half of the authors'
traffic settings. Nodes have no identity, so the network fits any order and number of them.

Changed: the calendar tokens, which the original reads wherever its files have times (those of PEMS have none), are time
of day and day of week, and `calendar` can leave them out. Training does not stop early.
"""

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Attention, EncoderLayer, calendar_series, standardise
from candor.nets.shapes import Bins, EncoderSizes, Forecast, Rate, Readings


class ITransformerSizes(EncoderSizes):
    """Sizes of iTransformer."""

    width: PositiveInt = 512
    feed_forward: PositiveInt = 512
    heads: PositiveInt = 8
    layers: PositiveInt = 2
    dropout: Rate = 0.1
    normalise: bool = True  # whether every series is scaled by its own mean and deviation within the window
    calendar: bool = True  # whether time of day and day of week are tokens, too


@baselines.register("itransformer")
class ITransformer(BaselineNetwork):
    """A token for every series, an encoder, and one linear layer to the horizon."""

    sizes = ITransformerSizes()
    tiny = ITransformerSizes(width=8, feed_forward=16, heads=2, layers=1)
    # The rate is halved after every epoch but the first.
    recipe = BaselineRecipe.of(loss="squared", epochs=10, batch=32, learning_rate=1e-4, milestones=tuple(range(2, 10)))

    def __init__(self, sizes: ITransformerSizes, frame: Frame) -> None:
        super().__init__()
        self.normalise, self.calendar = sizes.normalise, sizes.calendar
        self.embedding = nn.Linear(frame.history, sizes.width)
        self.layers = nn.Sequential(
            *(EncoderLayer(sizes, Attention(sizes.width, sizes.heads, sizes.dropout)) for _ in range(sizes.layers))
        )
        self.norm = nn.LayerNorm(sizes.width)
        self.head = nn.Linear(sizes.width, frame.horizon)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        _, steps, nodes = values.shape
        scores, mean, deviation = standardise(values) if self.normalise else (values, 0.0, 1.0)
        if self.calendar:
            scores = torch.cat([scores, calendar_series(time_of_day, day_of_week, steps)], dim=2)
        tokens = self.layers(self.dropout(self.embedding(scores.transpose(1, 2))))  # batch series width
        return self.head(self.norm(tokens[:, :nodes])).transpose(1, 2) * deviation + mean
