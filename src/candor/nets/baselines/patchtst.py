"""PatchTST: a time series is worth 64 words (Nie, Nguyen, Sinthong, Kalagnanam; ICLR 2023).

Idea: a transformer reads overlapping patches of a series instead of single steps. Every sensor is read by itself with
the same weights, so that all of them train one small network.

Read: `yuqinie98/PatchTST` (Apache-2.0; `PatchTST_supervised`: `models/PatchTST.py`, `layers/PatchTST_backbone.py`,
`scripts`), and the settings of the BasicTS library for METR-LA (336 steps from 336), which are ours: absolute errors
and not squared ones, as for other models in that library. Batch normalisation takes the place of layer normalisation,
and every layer adds the scores of its attention to those of the layer before. No calendar is read. The head of
self-supervised training, the decomposition and heads for single sensors, which the published settings switch off, are
left out.

Changed: a patch has at most a quarter of the history, and the next begins half a patch later, rounded up: 3 and 2 steps
at a history of 12 instead of 16 and 8 at 336. The batch is 64 instead of 16, because windows are so much shorter.
"""

import math

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import Baseline, BaselineNetwork, BaselineRecipe, Forecast, Frame, Readings
from candor.nets.baselines import baselines
from candor.nets.baselines._layers import (
    Attention,
    EncoderSizes,
    FeatureNorm,
    Rate,
    Tokens,
    patch_length,
    standardise,
)
from candor.nets.dropout import Dropout

FIRST_RANGE = 0.02

Scores = Float[Tensor, "rows head token token2"]


class PatchTstSizes(EncoderSizes):
    """Sizes of PatchTST."""

    width: PositiveInt = 128
    feed_forward: PositiveInt = 256
    heads: PositiveInt = 16
    layers: PositiveInt = 3
    patch: PositiveInt = 16
    """Steps of a patch; at most a quarter of the history."""
    dropout: Rate = 0.2
    """Everywhere but on the weights of attention and on the forecast."""


class PatchTstNetwork(BaselineNetwork):
    """Patches with learned positions, an encoder, and one linear layer to the horizon; node by node."""

    def __init__(self, sizes: PatchTstSizes, frame: Frame) -> None:
        super().__init__()
        self.patch = patch_length(sizes.patch, frame.history)
        self.stride = (self.patch + 1) // 2
        patches = (frame.history + self.stride - self.patch) // self.stride + 1
        self.embedding = nn.Linear(self.patch, sizes.width)
        self.positions = nn.Parameter(torch.empty(patches, sizes.width).uniform_(-FIRST_RANGE, FIRST_RANGE))
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.head = nn.Linear(sizes.width * patches, frame.horizon)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, values: Readings, *more: Tensor | None) -> Forecast:
        standard, mean, deviation = standardise(values)
        series = F.pad(standard.transpose(1, 2), (0, self.stride), mode="replicate")  # repeats the newest value
        patches = series.unfold(2, self.patch, self.stride).flatten(0, 1)
        tokens = self.dropout(self.embedding(patches) + self.positions)
        scores = None
        for layer in self.layers:
            tokens, scores = layer(tokens, scores)
        forecast = self.head(rearrange(tokens, "(b n) p w -> b n (w p)", b=values.shape[0]))
        return forecast.transpose(1, 2) * deviation + mean


class Layer(nn.Module):
    """Attention among the patches of a series, and a feed-forward layer; each is added and normalised."""

    def __init__(self, sizes: PatchTstSizes) -> None:
        super().__init__()
        self.attention = ResidualAttention(sizes.width, sizes.heads)
        self.first = nn.Linear(sizes.width, sizes.feed_forward)
        self.second = nn.Linear(sizes.feed_forward, sizes.width)
        self.attention_norm, self.norm = FeatureNorm(sizes.width), FeatureNorm(sizes.width)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, tokens: Tokens, before: Scores | None) -> tuple[Tokens, Scores]:
        seen, scores = self.attention(tokens, before)
        tokens = self.attention_norm(tokens + self.dropout(self.dropout(seen)))  # twice, as released
        hidden = self.dropout(F.gelu(self.first(tokens)))
        return self.norm(tokens + self.dropout(self.second(hidden))), scores


class ResidualAttention(Attention):
    """Multi-head attention whose scores are added to those of the layer before (He et al. 2020)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads, dropout=0.0)

    def forward(self, tokens: Tokens, before: Scores | None) -> tuple[Tokens, Scores]:  # type: ignore[override]
        queries = rearrange(self.query(tokens), "s p (h d) -> s h p d", h=self.heads)
        keys, values = rearrange(self.key_value(tokens), "s p (two h d) -> two s h p d", two=2, h=self.heads)
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        scores = scores if before is None else scores + before
        return self.out(rearrange(scores.softmax(dim=-1) @ values, "s h p d -> s p (h d)")), scores


@baselines.register("patchtst")
class PatchTst(Baseline):
    """Patches of every series as the tokens of a transformer."""

    network = PatchTstNetwork
    sizes = PatchTstSizes()
    tiny = PatchTstSizes(width=8, feed_forward=16, heads=2, layers=2)
    needs_whole_batches = True  # batch normalisation
    recipe = BaselineRecipe.of(
        epochs=100, batch=64, learning_rate=1e-3, weight_decay=5e-4, milestones=(1, 25, 50), patience=100
    )
