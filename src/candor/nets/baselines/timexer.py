"""TimeXer: transformers with exogenous variables (Wang, Wu, Dong, Liu, Qiu, Zhang, Wang, Long; NeurIPS 2024).

Idea: a series that is forecast becomes patches and one learned global token, a series that is only an input becomes a
single token. Patches attend to each other; the global token alone attends to the other series and passes on to the
patches what it finds there.

Read: `thuml/TimeXer` (no licence file; `models/TimeXer.py`, `scripts/multivariate/Traffic`), multivariate mode: every
node is forecast, and all nodes and the calendar are inputs, scaled within the window. Dropout is applied to the
forecast itself too, as released. No sizes for this protocol are published: ours are a quarter of the width that Traffic
has. Training does not stop early.

Changed: a patch has at most a quarter of the history; where patches do not fill the history the oldest steps are left
out (as released: the newest). Of the calendar it reads time of day and day of week, not day of month and of year.
Covariates, an extension in between its two modes, become input tokens through the same embedding as the others; these
do not say of which node they are, and scaling within the window keeps their course but not their amount.
"""

import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Attention, calendar_series, cut_patches, patch_length, sinusoidal_positions, standardise
from candor.nets.shapes import Bins, Covariates, EncoderSizes, Forecast, PatchSteps, Rate, Readings

NodeTokens = Float[Tensor, "batch node token width"]


class TimeXerSizes(EncoderSizes):
    """Sizes of TimeXer."""

    width: PositiveInt = 128
    feed_forward: PositiveInt = 256
    heads: PositiveInt = 8
    layers: PositiveInt = 2
    patch: PatchSteps = 12
    dropout: Rate = 0.1


@baselines.register("timexer")
class TimeXer(BaselineNetwork):
    """Patches and a global token of every node, the tokens of all series, and one linear layer to the horizon."""

    sizes = TimeXerSizes()
    tiny = TimeXerSizes(width=8, feed_forward=16, heads=2, layers=1)
    reads_covariates = True
    # The rate is halved after every epoch but the first.
    recipe = BaselineRecipe.of(loss="squared", epochs=10, batch=16, learning_rate=1e-3, milestones=tuple(range(2, 10)))

    def __init__(self, sizes: TimeXerSizes, frame: Frame) -> None:
        super().__init__()
        width = sizes.width
        self.history, self.patch = frame.history, patch_length(sizes.patch, frame.history)
        patches = frame.history // self.patch
        self.patch_embedding = nn.Linear(self.patch, width, bias=False)
        self.positions = nn.Buffer(sinusoidal_positions(patches, width), persistent=False)
        self.global_tokens = nn.Parameter(torch.randn(frame.nodes, 1, width))
        self.series_embedding = nn.Linear(frame.history, width)
        self.layers = nn.ModuleList(TimeXerLayer(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear((patches + 1) * width, frame.horizon)
        self.dropout = Dropout(sizes.dropout)

    def forward(
        self, values: Readings, time_of_day: Bins, day_of_week: Bins, covariates: Covariates = None, /
    ) -> Forecast:
        scores, mean, deviation = standardise(values)
        inputs = [scores, calendar_series(time_of_day, day_of_week, self.history)]
        if covariates is not None:
            inputs.append(standardise(covariates.flatten(2))[0])
        exogenous = self.dropout(self.series_embedding(torch.cat(inputs, dim=2).transpose(1, 2)))
        patches = self.patch_embedding(cut_patches(scores, self.patch)) + self.positions
        tokens = self.dropout(torch.cat([patches, self.global_tokens.expand(values.shape[0], -1, -1, -1)], dim=2))
        for layer in self.layers:
            tokens = layer(tokens, exogenous)
        forecast = self.dropout(self.head(self.norm(tokens).flatten(2)))  # batch node horizon
        return forecast.transpose(1, 2) * deviation + mean


class TimeXerLayer(nn.Module):
    """Attention among a node's tokens, of its global token to all series, and a feed-forward layer."""

    def __init__(self, sizes: TimeXerSizes) -> None:
        super().__init__()
        width = sizes.width
        self.within = Attention(width, sizes.heads, sizes.dropout)
        self.across = Attention(width, sizes.heads, sizes.dropout)
        self.first = nn.Linear(width, sizes.feed_forward)
        self.second = nn.Linear(sizes.feed_forward, width)
        self.within_norm, self.across_norm, self.norm = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = Dropout(sizes.dropout)

    def forward(self, tokens: NodeTokens, exogenous: Float[Tensor, "batch series width"]) -> NodeTokens:
        rows = tokens.flatten(0, 1)
        tokens = self.within_norm(rows + self.dropout(self.within(rows, rows))).view_as(tokens)
        summary = tokens[:, :, -1]  # batch node width
        summary = self.across_norm(summary + self.dropout(self.across(summary, exogenous)))
        tokens = torch.cat([tokens[:, :, :-1], summary[:, :, None]], dim=2)
        return self.norm(tokens + self.dropout(self.second(self.dropout(F.gelu(self.first(tokens))))))
