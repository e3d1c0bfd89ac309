"""PatchTST: a time series is worth 64 words (Nie, Nguyen, Sinthong, Kalagnanam; ICLR 2023).

Idea: a transformer reads overlapping patches of a series instead of single steps. Every sensor is read by itself with
the same weights, so that all of them train one small network.

Read: `yuqinie98/PatchTST` (Apache-2.0; `PatchTST_supervised`: `models/PatchTST.py`, `layers/PatchTST_backbone.py`,
`scripts`), and the settings of the BasicTS library for METR-LA (336 steps from 336), which are ours, absolute errors
included. Layers have batch normalisation and add the scores of their attention to those of the layer before. No
calendar is read. What the published settings switch off is left out: the head of self-supervised training, the
decomposition, and heads for single sensors.

Changed: a patch has at most a quarter of the history, and the next begins half a patch later, rounded up: 3 and 2 steps
at a history of 12 instead of 16 and 8 at 336. The batch is 64 instead of 16, because windows are so much shorter.
"""

import math

from einops import rearrange
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Attention, EncoderLayer, FeatureNorm, patch_length, standardise, uniform_table
from candor.nets.shapes import EncoderSizes, Forecast, PatchSteps, Rate, Readings, Tokens

FIRST_RANGE = 0.02

Scores = Float[Tensor, "rows head token token2"]


class PatchTstSizes(EncoderSizes):
    """Sizes of PatchTST."""

    width: PositiveInt = 128
    feed_forward: PositiveInt = 256
    heads: PositiveInt = 16
    layers: PositiveInt = 3
    patch: PatchSteps = 16
    dropout: Rate = 0.2  # everywhere but on the weights of attention and on the forecast


@baselines.register("patchtst")
class PatchTst(BaselineNetwork):
    """Patches with learned positions, an encoder, and one linear layer to the horizon; node by node."""

    sizes = PatchTstSizes()
    tiny = PatchTstSizes(width=8, feed_forward=16, heads=2, layers=2)
    needs_whole_batches = True  # batch normalisation
    recipe = BaselineRecipe.of(
        epochs=100, batch=64, learning_rate=1e-3, weight_decay=5e-4, clip=5.0, milestones=(1, 25, 50), patience=100
    )

    def __init__(self, sizes: PatchTstSizes, frame: Frame) -> None:
        super().__init__()
        self.patch = patch_length(sizes.patch, frame.history)
        self.stride = (self.patch + 1) // 2
        patches = (frame.history + self.stride - self.patch) // self.stride + 1
        self.embedding = nn.Linear(self.patch, sizes.width)
        self.positions = uniform_table(patches, sizes.width, bound=FIRST_RANGE)
        self.layers = nn.ModuleList(PatchTstLayer(sizes) for _ in range(sizes.layers))
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


class PatchTstLayer(EncoderLayer):
    """An encoder layer with batch normalisation that hands on the scores of its attention (He et al. 2020)."""

    attention: Attention

    def __init__(self, sizes: PatchTstSizes) -> None:
        super().__init__(sizes, Attention(sizes.width, sizes.heads, dropout=0.0), FeatureNorm)

    def forward(self, tokens: Tokens, before: Scores | None) -> tuple[Tokens, Scores]:  # type: ignore[override]
        seen, scores = self.attend(tokens, before)
        tokens = self.attention_norm(tokens + self.dropout(self.dropout(seen)))  # twice, as released
        return self.feed_forward(tokens), scores

    def attend(self, tokens: Tokens, before: Scores | None) -> tuple[Tokens, Scores]:
        """Return what tokens find in each other, and the scores for the layer after."""
        heads = self.attention.heads
        queries = rearrange(self.attention.query(tokens), "s p (h d) -> s h p d", h=heads)
        keys, values = rearrange(self.attention.key_value(tokens), "s p (two h d) -> two s h p d", two=2, h=heads)
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        scores = scores if before is None else scores + before
        return self.attention.out(rearrange(scores.softmax(dim=-1) @ values, "s h p d -> s p (h d)")), scores
