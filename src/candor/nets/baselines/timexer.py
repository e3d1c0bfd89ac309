"""TimeXer: transformers with exogenous variables (Wang, Wu, Dong, Liu, Qiu, Zhang, Wang, Long; NeurIPS 2024).

Idea: a series that is forecast becomes patches and one learned global token, a series that only informs becomes a
single token. Patches attend to each other; the global token alone looks at the other series and tells the patches.

Read: `thuml/TimeXer` (no licence file; `models/TimeXer.py`, `scripts/multivariate/Traffic`), multivariate mode: every
node is forecast, and all nodes and the calendar inform. Every series is scaled by its own mean and deviation within the
window. Dropout falls on the forecast itself too, as released. No sizes for this protocol are published: ours are a
quarter of the width that Traffic has. Training goes to the end instead of stopping early; the best weights are kept
either way.

Changed: a patch has at most a quarter of the history, so that short histories have four; where patches do not fill the
history the oldest steps are left out (as released: the newest). Of the calendar it reads time of day and day of week,
not day of month and of year. Covariates, an extension in between its two modes: those of every node become tokens that
inform, through the same embedding as the others, so they add no parameters; like theirs, these tokens do not say of
which node they are, and scaling within the window keeps their course but not their amount. Not read: the future.
"""

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import (
    Baseline,
    BaselineNetwork,
    BaselineRecipe,
    Calendar,
    Covariates,
    Forecast,
    Frame,
    Readings,
)
from candor.nets.baselines import baselines
from candor.nets.baselines._parts import Attention, HeadedSizes, Rate, calendar_series, standardise
from candor.nets.dropout import Dropout
from candor.nets.layers import sinusoidal_positions
from candor.nets.recipe import UNCLIPPED, TrainingSettings

LEAST_PATCHES = 4

Tokens = Float[Tensor, "batch node token width"]
Series = Float[Tensor, "batch series width"]


class TimeXerSizes(HeadedSizes):
    """Sizes of TimeXer."""

    width: PositiveInt = 128
    """Of a token."""
    feed_forward: PositiveInt = 256
    """Hidden width of the feed-forward layers."""
    heads: PositiveInt = 8
    """Of every attention."""
    layers: PositiveInt = 2
    """Of the encoder."""
    patch: PositiveInt = 12
    """Steps of a patch; at most a quarter of the history."""
    dropout: Rate = 0.1
    """Everywhere."""


class TimeXerNetwork(BaselineNetwork):
    """Patches and a global token of every node, the tokens of all series, and one linear layer to the horizon."""

    def __init__(self, sizes: TimeXerSizes, frame: Frame) -> None:
        super().__init__()
        width = sizes.width
        self.history = frame.history
        self.patch = max(1, min(sizes.patch, frame.history // LEAST_PATCHES))
        patches = frame.history // self.patch
        self.patch_embedding = nn.Linear(self.patch, width, bias=False)
        self.register_buffer("positions", sinusoidal_positions(patches, width), persistent=False)
        self.global_tokens = nn.Parameter(torch.randn(frame.nodes, 1, width))
        self.series_embedding = nn.Linear(frame.history, width)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear((patches + 1) * width, frame.horizon)
        self.dropout = Dropout(sizes.dropout)

    def forward(
        self, values: Readings, time_of_day: Calendar, day_of_week: Calendar, covariates: Covariates = None
    ) -> Forecast:
        scores, mean, deviation = standardise(values)
        informing = [scores, calendar_series(time_of_day, day_of_week, self.history)]
        if covariates is not None:
            informing.append(standardise(covariates.flatten(2))[0])
        exogenous = self.dropout(self.series_embedding(torch.cat(informing, dim=2).transpose(1, 2)))
        tokens = self._endogenous(scores)
        for layer in self.layers:
            tokens = layer(tokens, exogenous)
        forecast = self.dropout(self.head(self.norm(tokens).flatten(2)))  # batch node horizon
        return forecast.transpose(1, 2) * deviation + mean

    def _endogenous(self, scores: Readings) -> Tokens:
        """Returns the patches of every node, its global token after them."""
        left_out = self.history % self.patch
        patches = rearrange(scores[:, left_out:], "b (t p) n -> b n t p", p=self.patch)
        embedded = self.patch_embedding(patches) + self.get_buffer("positions")
        return self.dropout(torch.cat([embedded, self.global_tokens.expand(len(scores), -1, -1, -1)], dim=2))


class Layer(nn.Module):
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

    def forward(self, tokens: Tokens, exogenous: Series) -> Tokens:
        series = tokens.flatten(0, 1)
        series = self.within_norm(series + self.dropout(self.within(series, series)))
        tokens = series.view_as(tokens)
        summary = tokens[:, :, -1]  # batch node width
        summary = self.across_norm(summary + self.dropout(self.across(summary, exogenous)))
        tokens = torch.cat([tokens[:, :, :-1], summary[:, :, None]], dim=2)
        return self.norm(tokens + self.dropout(self.second(self.dropout(F.gelu(self.first(tokens))))))


@baselines.register("timexer")
class TimeXer(Baseline):
    """Transformers with exogenous variables."""

    network = TimeXerNetwork
    sizes = TimeXerSizes()
    # The rate is halved after every epoch but the first; gradients are not clipped.
    recipe = BaselineRecipe(
        loss="squared",
        training=TrainingSettings(
            epochs=10, batch=16, learning_rate=1e-3, weight_decay=0.0, milestones=tuple(range(2, 10)), clip=UNCLIPPED
        ),
    )

    reads_covariates = True
    tiny = TimeXerSizes(width=8, feed_forward=16, heads=2, layers=1)
