"""TimeMixer++: a general time series pattern machine (Wang, Li, Shi, Ye, Mo, Lin, Ju, Chu, Jin; ICLR 2025).

Idea: a series is read at several scales, and each scale is folded by several periods into images with a row per cycle
and a column per phase. Attention along the two axes separates season from trend, convolutions carry seasons to coarser
and trends to finer scales, and periods are weighted by their amplitudes; every scale forecasts, and the mean is taken.

Read: the paper, and `WenjieDu/PyPOTS` (BSD-3-Clause; `pypots/nn/modules/timemixerpp`), third-party code that by its own
account follows an anonymous repository of the authors; they released none. Where both differ the paper is followed:
scales are made by strided convolutions, all of them forecast, periods are rounded up, and queries and keys are as wide
as the states. Where the paper is silent PyPOTS is followed: windows are scaled at every scale, with a weight and a
shift per node, and attention is added to its input, in images with a weight that begins at zero. Nodes share all
further weights, as in PyPOTS; the paper's embedding of all nodes together would leave a handful of numbers to forecast
from. Seasons attend to one phase of all cycles and trends to all phases of one cycle, as in PyPOTS and the paper's
formulas; its words say the reverse.

Changed: the periods are those of the strongest frequencies of the training windows, found once, instead of those of the
batch at hand: a forecast must not depend on other windows. A history is halved as long as six steps are left, and there
are as many periods as the coarsest scale can hold: twelve steps give two scales, and periods of 6, 3 and 2. Where
halving leaves a remainder the oldest steps are left out. Keys have no bias: it cancels in the softmax. Kernels of 1, 3
and 5 places are added up to one. The paper gives ranges only: its lowest rate, batches that fit, and sizes of
third-party settings are taken.
"""

import math

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.windows import Windows
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import Attention, standardise, training_batches
from candor.nets.shapes import Forecast, Layers, Rate, Readings, Width

VARIANCE_FLOOR = 1e-5
LEAST_STEPS = 6  # of the coarsest scale: three frequencies

States = Float[Tensor, "series width time"]
Image = Float[Tensor, "series width cycle phase"]


class TimeMixerPPSizes(Settings):
    """Sizes of TimeMixer++."""

    width: Width = 16
    hidden: PositiveInt = 32  # within the convolutions that carry season and trend between scales
    halvings: NonNegativeInt = 3  # scales beside the history itself; fewer where it is short
    periods: PositiveInt = 3  # by which scales are folded; fewer where the coarsest scale is short
    kernels: PositiveInt = 3  # square kernels of a convolution, of 1, 3, 5, ... places
    layers: Layers = 2
    dropout: Rate = 0.1  # of embedded steps, and of the attention weights of nodes


@baselines.register("timemixerpp")
class TimeMixerPP(BaselineNetwork):
    """Scales of every node, attention of nodes at the coarsest, mixing blocks, and the mean of all forecasts."""

    sizes = TimeMixerPPSizes()
    tiny = TimeMixerPPSizes(width=4, hidden=4, halvings=1, periods=2, kernels=2, layers=1)
    # The rate falls smoothly, as in the paper after its warm-up.
    recipe = BaselineRecipe.of(loss="squared", epochs=30, batch=32, learning_rate=1e-3, schedule="cosine")

    def __init__(self, sizes: TimeMixerPPSizes, frame: Frame) -> None:
        super().__init__()
        width = sizes.width
        possible = range(sizes.halvings, 0, -1)
        halvings = next((number for number in possible if frame.history >> number >= LEAST_STEPS), 0)
        self.steps = [(frame.history >> halvings) << (halvings - scale) for scale in range(halvings + 1)]
        self.coarser = _circular(1, stride=2) if halvings else None
        self.weights = nn.Parameter(torch.ones(halvings + 1, frame.nodes, 1))
        self.shifts = nn.Parameter(torch.zeros(halvings + 1, frame.nodes, 1))
        self.across = Attention(self.steps[-1], 1, sizes.dropout)
        self.embedding = _circular(width)
        nn.init.kaiming_normal_(self.embedding.weight, nonlinearity="leaky_relu")
        self.blocks = nn.ModuleList(MixingBlock(sizes, halvings > 0) for _ in range(sizes.layers))
        self.heads = nn.ModuleList(nn.Linear(steps, frame.horizon) for steps in self.steps)
        self.projection = nn.Linear(width, 1)
        self.dropout = Dropout(sizes.dropout)
        self.possible = max(1, self.steps[-1] // 2)  # frequencies
        self.frequencies = nn.Buffer(torch.arange(1, 1 + min(sizes.periods, self.possible)))

    def prepare(self, training: Windows) -> None:
        """Choose the frequencies whose amplitudes are greatest on average over all nodes of the training windows."""
        if self.possible == len(self.frequencies):
            return
        amplitudes = torch.zeros(self.possible, dtype=torch.float64)
        for batch in training_batches(training):
            scores, _, _ = without_gradient(batch["inputs"][:, -self.steps[0] :].transpose(1, 2))
            amplitudes += torch.fft.rfft(scores).abs().double().sum(dim=(0, 1))[1 : self.possible + 1]
        self.frequencies.copy_(1 + amplitudes.topk(len(self.frequencies)).indices.sort().values)

    def forward(self, values: Readings, *more: Tensor | None) -> Forecast:
        finest = values[:, -self.steps[0] :].transpose(1, 2)
        _, mean, deviation = without_gradient(finest)
        scales = self.scales(finest)
        scales[-1] = scales[-1] + self.across(scales[-1], scales[-1])  # tokens are nodes
        states = [self.dropout(self.embedding(rearrange(scale, "b n t -> (b n) 1 t"))) for scale in scales]
        for block in self.blocks:
            states = block(states, self.frequencies)
        ahead = [head(state).transpose(1, 2) for head, state in zip(self.heads, states, strict=True)]
        forecasts = self.projection(torch.stack(ahead).mean(dim=0))  # the mean of projections: series horizon 1
        scores = rearrange(forecasts, "(b n) h 1 -> b n h", b=values.shape[0])
        scores = (scores - self.shifts[0]) / (self.weights[0] + VARIANCE_FLOOR)
        return (scores * deviation + mean).transpose(1, 2)

    def scales(self, finest: Float[Tensor, "batch node time"]) -> list[Tensor]:
        """Return the history and coarser ones, batch x node x time each, every one scaled by itself."""
        scales = [finest]
        if self.coarser is not None:
            for _ in self.steps[1:]:
                series = rearrange(scales[-1], "b n t -> (b n) 1 t")
                scales.append(rearrange(self.coarser(series), "(b n) 1 t -> b n t", b=finest.shape[0]))
        return [
            without_gradient(scale)[0] * weight + shift
            for scale, weight, shift in zip(scales, self.weights, self.shifts, strict=True)
        ]


class MixingBlock(nn.Module):
    """Images of all scales by all periods: season and trend apart, carried between scales, together again."""

    def __init__(self, sizes: TimeMixerPPSizes, has_scales: bool) -> None:
        super().__init__()
        self.season, self.trend = AxisAttention(sizes.width), AxisAttention(sizes.width)
        if has_scales:
            self.season_down, self.season_out = Inception(sizes), Inception(sizes, is_out=True)
            self.trend_up, self.trend_out = Inception(sizes, is_up=True), Inception(sizes, is_out=True)
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, states: list[States], frequencies: Tensor) -> list[States]:
        steps = states[-1].shape[-1]
        spectrum = torch.fft.rfft(states[-1], n=max(2, steps)).abs().mean(dim=1)  # series frequency
        shares = spectrum[:, frequencies].softmax(dim=-1)
        mixed = [torch.zeros_like(state) for state in states]
        for place, frequency in enumerate(frequencies.tolist()):
            for scale, unfolded in enumerate(self.mix(states, math.ceil(steps / frequency))):
                mixed[scale] = mixed[scale] + shares[:, place, None, None] * unfolded
        pairs = zip(states, mixed, strict=True)
        return [self.norm((state + added).transpose(1, 2)).transpose(1, 2) for state, added in pairs]

    def mix(self, states: list[States], period: int) -> list[States]:
        """Return season and trend of all scales, mixed over the scales, by one period."""
        images = [fold(state, period) for state in states]
        seasons = [rearrange(self.season(rearrange(i, "s d c p -> s p c d")), "s p c d -> s d c p") for i in images]
        trends = [rearrange(self.trend(rearrange(i, "s d c p -> s c p d")), "s c p d -> s d c p") for i in images]
        for scale in range(1, len(images)):
            carried = self.season_down(seasons[scale - 1])
            seasons[scale] = seasons[scale] + self.season_out(F.gelu(carried))
        for scale in reversed(range(len(images) - 1)):
            carried = self.trend_up(trends[scale + 1], trends[scale].shape[2])
            trends[scale] = trends[scale] + self.trend_out(F.gelu(carried))
        together = [season + trend for season, trend in zip(seasons, trends, strict=True)]
        return [image.flatten(2)[..., : state.shape[-1]] for image, state in zip(together, states, strict=True)]


class AxisAttention(nn.Module):
    """Attention along one axis of an image, not scaled down, added with a learned weight."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, tokens: Float[Tensor, "*rows token width"]) -> Float[Tensor, "*rows token width"]:
        likeness = (self.query(tokens) @ self.key(tokens).transpose(-1, -2)).softmax(dim=-1)
        return tokens + self.weight * (likeness @ self.value(tokens))


class Inception(nn.Module):
    """The mean of square convolutions of 1, 3, 5, ... places, which halve the cycles, double them, or keep them."""

    def __init__(self, sizes: TimeMixerPPSizes, *, is_up: bool = False, is_out: bool = False) -> None:
        super().__init__()
        self.is_up, self.stride, self.reach = is_up, 1 if is_out else 2, sizes.kernels - 1
        outputs, inputs = (sizes.width, sizes.hidden) if is_out else (sizes.hidden, sizes.width)
        channels = (inputs, outputs) if is_up else (outputs, inputs)
        places = [2 * reach + 1 for reach in range(sizes.kernels)]
        self.weights = nn.ParameterList(torch.empty(*channels, number, number) for number in places)
        self.biases = nn.ParameterList(torch.zeros(outputs) for _ in places)
        for weight in self.weights:
            nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")

    def forward(self, image: Image, cycles: int = 0) -> Image:
        """Return the image after convolution; where cycles are doubled, with as many of them as asked for."""
        padded = [F.pad(weight, 4 * [self.reach - reach]) for reach, weight in enumerate(self.weights)]
        weight, bias = torch.stack(padded).mean(dim=0), torch.stack(list(self.biases)).mean(dim=0)
        if not self.is_up:
            return F.conv2d(image, weight, bias, (self.stride, 1), self.reach)
        odd = cycles - (2 * image.shape[2] - 1)  # 1 where their number is even
        return F.conv_transpose2d(image, weight, bias, (self.stride, 1), self.reach, (odd, 0))


def _circular(outputs: int, stride: int = 1) -> nn.Conv1d:
    return nn.Conv1d(1, outputs, 3, stride, padding=1, padding_mode="circular", bias=False)


def without_gradient(series: Float[Tensor, "*rows time"]) -> tuple[Tensor, Tensor, Tensor]:
    """Return series with mean 0 and deviation 1, their means and their deviations, which pass no gradient."""
    with torch.no_grad():
        _, mean, deviation = standardise(series, dim=-1)
    return (series - mean) / deviation, mean, deviation


def fold(states: States, period: int) -> Image:
    """Return states cycle by cycle, with zeros where the last one is not full."""
    lacking = -states.shape[-1] % period
    return rearrange(F.pad(states, (0, lacking)), "s d (c p) -> s d c p", p=period)
