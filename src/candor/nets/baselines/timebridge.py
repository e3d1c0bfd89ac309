"""TimeBridge: non-stationarity matters for long-term forecasting (Liu, Wu, Hu, Li, Dai, Bao, Xia; ICML 2025).

Idea: drift within a series makes patches look alike that are not, so attention among the patches of a series compares
them without their local means. Drift in common relates series, so attention across series keeps it.

Read: `Hank0626/TimeBridge` (MIT; `model`, `layers`, `experiments`, `scripts/TimeBridge.sh`). The objective adds the
error of the forecast's Fourier coefficients to its absolute error. The means that are taken off run along the features
of an embedded patch, and no gradient passes through them. Attention across series is axial: they are laid out as a
square in the order of the sensors, zeros fill it up and are attended to. No sizes for this protocol are published: ours
lie between those of Solar and Electricity.

Changed: a patch has at most a quarter of the history, and as many patches are kept as there are, at most; where patches
do not fill the history the oldest steps are left out. Of the calendar it reads time of day and day of week, not day of
month and of year. Missing targets count neither in time nor in frequency. A history of one step has deviation 0. Keys
have no bias: it cancels in the softmax. A norm that the original declares and never uses is left out. Training has
twenty epochs instead of a hundred that stop early: the rate is halved every epoch, and later ones change nothing.
"""

import copy
import math
from typing import Annotated

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Mlp, attend, calendar_series, cut_patches, patch_length
from candor.nets.shapes import Bins, Forecast, HeadedSizes, PatchSteps, Rate, Readings, Terms, Tokens

DEVIATION_FLOOR = 1e-5
MARKS = 2  # time of day, day of week

SeriesTokens = Float[Tensor, "batch series patch width"]


class TimeBridgeSizes(HeadedSizes):
    """Sizes of TimeBridge, and the weight of its second error."""

    width: PositiveInt = 128
    feed_forward: PositiveInt = 256
    heads: PositiveInt = 8
    patch: PatchSteps = 12
    kept: PositiveInt = 4  # patches that sampling keeps; at most as many as there are
    integrated_layers: NonNegativeInt = 1  # attention among the patches of a series
    sampling_layers: NonNegativeInt = 1  # attention that keeps fewer patches
    cointegrated_layers: NonNegativeInt = 1  # attention across series
    stable: Annotated[int, Field(ge=2)] = 4  # features whose mean is taken off before patches are compared
    frequency: Annotated[float, Field(ge=0.0, le=1.0)] = 0.2  # share of the objective: error of Fourier coefficients
    dropout: Rate = 0.0  # of tokens and in the feed-forward layers
    attention_dropout: Rate = 0.15  # of the weights of every attention

    @model_validator(mode="after")
    def _fits_together(self) -> "TimeBridgeSizes":
        if self.stable > self.width:
            raise ValueError(f"stable ({self.stable}) must not exceed width ({self.width})")
        return self


@baselines.register("timebridge")
class TimeBridge(BaselineNetwork):
    """Patches of every series and of the calendar, three kinds of attention, and one linear layer to the horizon."""

    sizes = TimeBridgeSizes()
    tiny = TimeBridgeSizes(width=8, feed_forward=16, heads=2, kept=2)
    # The rate is halved after every epoch but the first.
    recipe = BaselineRecipe.of(epochs=20, batch=16, learning_rate=5e-4, milestones=tuple(range(2, 20)))

    def __init__(self, sizes: TimeBridgeSizes, frame: Frame) -> None:
        super().__init__()
        self.sizes, self.history, self.nodes = sizes, frame.history, frame.nodes
        self.patch = patch_length(sizes.patch, frame.history)
        patches = frame.history // self.patch
        kept = min(sizes.kept, patches)
        self.embedding = nn.Linear(self.patch, sizes.width, bias=False)
        self.layers = nn.Sequential(
            *(IntegratedLayer(sizes) for _ in range(sizes.integrated_layers)),
            *(SamplingLayer(sizes, patches if layer == 0 else kept, kept) for layer in range(sizes.sampling_layers)),
            *(CointegratedLayer(sizes, frame.nodes + MARKS) for _ in range(sizes.cointegrated_layers)),
        )
        left = kept if sizes.sampling_layers else patches
        self.head = nn.Linear(left * sizes.width, frame.horizon, bias=False)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        mean = values.mean(dim=1, keepdim=True)
        deviation = values.std(dim=1, keepdim=True, correction=min(1, self.history - 1))
        scores = (values - mean) / (deviation + DEVIATION_FLOOR)
        series = torch.cat([scores, calendar_series(time_of_day, day_of_week, self.history)], dim=2)
        tokens = self.dropout(self.embedding(cut_patches(series, self.patch)))
        forecast = self.head(self.layers(tokens)[:, : self.nodes].flatten(2))  # batch node horizon
        return forecast.transpose(1, 2) * deviation + mean

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast, and its errors in time and in frequency."""
        forecast, share = self(*inputs), self.sizes.frequency
        return forecast, {
            "prediction": (1 - share) * targets.error(forecast),
            "frequency": share * frequency_error(forecast, targets),
        }


def frequency_error(forecast: Forecast, targets: Targets) -> Tensor:
    """Return this micro-batch's part of the mean modulus of the errors' Fourier coefficients over the prefix."""
    coefficients = torch.fft.rfft(targets.misses(forecast), dim=1)
    of_a_step = coefficients.shape[1] / targets.wanted.shape[1]
    return targets.unit * coefficients.abs().sum() / (max(targets.valid, 1) * of_a_step)


class ThreeWayAttention(nn.Module):
    """Multi-head attention whose keys and values may come from different tokens."""

    def __init__(self, sizes: TimeBridgeSizes) -> None:
        super().__init__()
        width, self.heads = sizes.width, sizes.heads
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias=False)
        self.dropout = Dropout(sizes.attention_dropout)

    def forward(self, queries: Tokens, keys: Tokens, values: Tokens) -> Tokens:
        projected = (self.query(queries), self.key(keys), self.value(values))
        return self.out(attend(*projected, self.heads, self.dropout))


class BridgeLayer(nn.Module):
    """What follows every attention: a norm, a feed-forward layer and another norm."""

    def __init__(self, sizes: TimeBridgeSizes) -> None:
        super().__init__()
        self.attention = ThreeWayAttention(sizes)
        self.feed_forward = Mlp(sizes.width, sizes.feed_forward, sizes.width, sizes.dropout)
        self.first_norm, self.second_norm = nn.LayerNorm(sizes.width), nn.LayerNorm(sizes.width)
        self.dropout = Dropout(sizes.dropout)

    def after_attention(self, tokens: SeriesTokens) -> SeriesTokens:
        """Return tokens as the next layer reads them."""
        tokens = self.first_norm(tokens)
        return self.second_norm(tokens + self.dropout(self.feed_forward(tokens)))


class IntegratedLayer(BridgeLayer):
    """Patches of a series attend to those that are alike without their local means."""

    def __init__(self, sizes: TimeBridgeSizes) -> None:
        super().__init__(sizes)
        self.stable = sizes.stable

    def forward(self, tokens: SeriesTokens) -> SeriesTokens:
        rows = tokens.flatten(0, 1)
        with torch.no_grad():
            compared = detrended(rows, self.stable)
        seen = self.attention(compared, compared, rows).view_as(tokens)
        return self.after_attention(tokens + self.dropout(seen))


class SamplingLayer(BridgeLayer):
    """A few mixtures of the patches attend to all of them and replace them."""

    def __init__(self, sizes: TimeBridgeSizes, patches: int, kept: int) -> None:
        super().__init__(sizes)
        self.mixture = nn.Linear(patches, kept, bias=False)
        self.correction = nn.Linear(kept + 1, kept, bias=False)

    def forward(self, tokens: SeriesTokens) -> SeriesTokens:
        rows = tokens.flatten(0, 1)
        mixed = self.mixture(rows.transpose(1, 2))  # rows width kept
        with_mean = torch.cat([mixed, rows.mean(dim=1)[:, :, None]], dim=2)
        mixed = (mixed + self.correction(with_mean)).transpose(1, 2)
        sampled = self.attention(mixed, rows, rows) + self.dropout(mixed)
        return self.after_attention(rearrange(sampled, "(b n) t d -> b n t d", b=tokens.shape[0]))


class CointegratedLayer(BridgeLayer):
    """Series attend to each other, patch by patch: first along the rows of a square, then along its columns."""

    def __init__(self, sizes: TimeBridgeSizes, series: int) -> None:
        super().__init__(sizes)
        self.series, self.side = series, math.ceil(math.sqrt(series))
        self.across_rows = copy.deepcopy(self.attention)  # both begin alike, as released

    def forward(self, tokens: SeriesTokens) -> SeriesTokens:
        square = F.pad(tokens, (0, 0, 0, 0, 0, self.side**2 - self.series))
        rows = rearrange(square, "b (r c) t d -> (b t r) c d", r=self.side)
        sizes = {"b": tokens.shape[0], "r": self.side, "t": tokens.shape[2]}
        columns = rearrange(self.attention(rows, rows, rows), "(b t r) c d -> (b t c) r d", **sizes)
        columns = columns + self.across_rows(columns, columns, columns)
        seen = rearrange(columns, "(b t c) r d -> b (r c) t d", **sizes)
        return self.after_attention(tokens + self.dropout(seen[:, : self.series]))


def detrended(tokens: Tokens, length: int) -> Tokens:
    """Return tokens without the mean of every feature and the `length` - 1 before it; the first ones share a mean."""
    means = F.avg_pool1d(tokens, length, stride=1)
    return tokens - F.pad(means, (length - 1, 0), mode="replicate")
