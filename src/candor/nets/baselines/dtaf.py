"""DTAF: temporal stabilisation and frequency differencing (Lu, Chen, Guo, Shu, Wang, Yang; AAAI 2026).

Idea: in time, a mixture of Kolmogorov-Arnold experts removes what drifts in the embedding of a patch, and what stays is
joined with the patches before; in frequency, those components of a patch are kept that grew most since the patch
before. Attention refines both branches, and one linear layer forecasts each series by itself.

Read: `PandaJunk/DTAF` (no licence file; `ts_benchmark/baselines/dtaf`, `scripts/DTAF`); there are no settings for this
protocol. The norm within the fusion is left out, as in most of its scripts. Frequencies are those along the features of
an embedded patch. In training every window passes twice with different dropout, and to each series a random part of
another one is added, in the targets too.

Changed: each branch has an attention of its own, as the paper describes; `as_released` has one for both. A patch has at
most a third of the history, patches begin at most half a patch apart, and the moving average spans at most half of them
(as released 16, 8 and 25). Growths are ranked without the exponential, which may overflow. The term that makes patches
alike is the mean over all series, of which the original draws sixteen, without all pairs of patches. Where a target or
the one that is added to it is missing nothing is learned. With one expert there is no router. Training has twenty
epochs instead of a hundred that stop early: the rate is halved every epoch, and later ones change nothing.
"""

import math
from dataclasses import replace

import torch
from einops import rearrange
from jaxtyping import Float, Int, Shaped
from pydantic import NonNegativeFloat, PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout, current_generator
from candor.nets.layers import Attention, moving_average, odd_at_most, patch_length, sinusoidal_positions, standardise
from candor.nets.shapes import AtLeastTwo, Forecast, HeadedSizes, Heads, Layers, Rate, Readings, Terms

PROBABILITY_FLOOR = 1e-8
LEAST_PATCHES = 3  # without overlap
SECOND_READING = 0.5  # weight of the errors of the second pass of a window
INTERVALS = 5  # of the splines, over -1..1
FIRST_NOISE = 0.1 / INTERVALS  # spread of the curves that splines begin with

Patches = Float[Tensor, "series patch width"]


class DtafSizes(HeadedSizes):
    """Sizes of DTAF, and the weights of its objective."""

    width: AtLeastTwo = 64  # of an embedded patch
    patch: PositiveInt = 16  # steps of a patch; at most a third of the history
    stride: PositiveInt = 8  # steps from patch to patch; at most half a patch
    layers: Layers = 1
    experts: PositiveInt = 2  # of the mixture that estimates what drifts
    division: PositiveInt = 4  # how much narrower than a patch an expert is inside
    average: PositiveInt = 25  # patches of the moving average; at most half of them
    components: PositiveInt = 2  # frequencies that are kept of a patch
    heads: Heads = 4
    dropout: Rate = 0.005
    mixing: NonNegativeFloat = 0.1  # deviation of the part of another series that is added in training
    agreement: NonNegativeFloat = 1e-4  # weight of the squared difference of both passes of a window
    likeness: NonNegativeFloat = 0.1  # weight of the divergence between stabilised patches
    as_released: bool = False  # whether one attention serves both branches, as in the released code

    @model_validator(mode="after")
    def _fits_together(self) -> "DtafSizes":
        if self.components > self.width // 2 + 1:
            raise ValueError(f"a width of {self.width} has no {self.components} frequencies")
        return self


@baselines.register("dtaf")
class Dtaf(BaselineNetwork):
    """Embedded patches, stabilised, as they are and by their growing frequencies; series by series."""

    sizes = DtafSizes()
    tiny = DtafSizes(width=8, heads=2)
    # The rate is halved after every epoch but the first.
    recipe = BaselineRecipe.of(
        epochs=20, batch=32, optimiser="adamw", learning_rate=5e-3, weight_decay=1e-5, milestones=tuple(range(2, 20))
    )

    def __init__(self, sizes: DtafSizes, frame: Frame) -> None:
        super().__init__()
        width = sizes.width
        self.sizes = sizes
        self.patch = patch_length(sizes.patch, frame.history, LEAST_PATCHES)
        self.stride = max(1, min(sizes.stride, self.patch // 2))
        patches = (frame.history - self.patch) // self.stride + 2
        self.embedding = nn.Linear(self.patch, width, bias=False)
        self.positions = nn.Buffer(sinusoidal_positions(patches, width), persistent=False)
        self.stabilisers = nn.ModuleList(Stabiliser(sizes, patches) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(width)
        self.in_frequency = Refinement(sizes)
        self.in_time = None if sizes.as_released else Refinement(sizes)
        self.head = nn.Linear(2 * patches * width, frame.horizon)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, values: Readings, *more: Tensor | None) -> Forecast:
        return self.read(values)[0]

    def read(self, values: Readings) -> tuple[Forecast, Patches]:
        """Return the forecast, and the patches of all series without what drifts."""
        scores, mean, deviation = standardise(values)
        series = rearrange(scores, "b t n -> (b n) t")
        longer = torch.cat([series, series[:, -1:].expand(-1, self.stride)], dim=1)
        patches = longer.unfold(1, self.patch, self.stride)  # series patch step
        states = self.dropout(self.embedding(patches) + self.positions)
        for stabiliser in self.stabilisers:
            joined, stable = stabiliser(states)
            states = self.norm(states + self.dropout(joined))
        growing = growing_frequencies(states, self.sizes.components)
        in_time = self.in_time or self.in_frequency
        both = torch.cat([in_time(states), self.in_frequency(growing)], dim=1)
        ahead = self.dropout(self.head(both.transpose(1, 2).flatten(1)))  # series horizon
        return rearrange(ahead, "(b n) h -> b h n", b=values.shape[0]) * deviation + mean, stable

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the forecast without what was added, and both passes' errors, disagreement and divergence."""
        values, steps, sizes = inputs[0], targets.wanted.shape[1], self.sizes
        partner, part = self._companions(values)
        added = part[:, None] * _of(partner, targets.wanted)
        mask = targets.mask & _of(partner, targets.mask)
        kept = int(mask.sum()) / max(int(targets.mask.sum()), 1)  # of the targets; a mean has to be one over these
        aims = replace(targets, wanted=targets.wanted + added, mask=mask, valid=round(kept * targets.valid))
        mixed = values + part[:, None] * _of(partner, values)
        first, stable = self.read(mixed)
        second, stable_again = self.read(mixed)
        unlike = divergence(stable) + SECOND_READING * divergence(stable_again)
        scale = targets.unit * targets.share
        return first[:, :steps] - added, {
            "prediction": aims.error(first) + SECOND_READING * aims.error(second),
            "agreement": scale * sizes.agreement * F.mse_loss(first, second),
            "likeness": scale * sizes.likeness * unlike,
        }

    def _companions(self, values: Readings) -> tuple[Int[Tensor, "batch node"], Float[Tensor, "batch node"]]:
        """Return for each series of each window another one at random, and the part of it that is added."""
        shape, generator = (values.shape[0], values.shape[2]), current_generator()
        if not self.training:
            return torch.arange(shape[1], device=values.device).expand(shape), values.new_zeros(shape)
        partner = values.new_empty(shape, dtype=torch.int64).random_(0, shape[1], generator=generator)
        return partner, values.new_empty(shape).normal_(0, self.sizes.mixing, generator=generator)


class Stabiliser(nn.Module):
    """Removes what drifts, and joins every patch with those before it."""

    def __init__(self, sizes: DtafSizes, patches: int) -> None:
        super().__init__()
        width, inside = sizes.width, max(1, sizes.width // sizes.division)
        self.parts = [sizes.experts if sizes.experts > 1 else 0] + sizes.experts * [inside]
        self.opening = SplineLinear(width, sum(self.parts))  # the router, and the first layer of every expert
        self.closing = nn.ModuleList(SplineLinear(inside, width) for _ in range(sizes.experts))
        self.of_stable, self.of_states = (Extractor(width, sizes.average, patches) for _ in range(2))
        self.weights = nn.Linear(width, patches)
        self.history = nn.Linear(width, width)
        self.gate = nn.Linear(width, 1)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, states: Patches) -> tuple[Patches, Patches]:
        """Return joined patches, and patches without what drifts."""
        stable = states - self.drift(states)
        weights = self.weights(self.of_stable(stable)).softmax(dim=-1).tril()  # series patch earlier
        history = self.dropout(self.history(weights @ stable))
        gate = self.gate(self.of_states(states)).expand_as(stable)
        return history + self.dropout(gate) * stable, stable

    def drift(self, states: Patches) -> Patches:
        """Return the drift as the experts estimate it."""
        routed, *opened = self.opening(states).split(self.parts, dim=-1)
        estimates = torch.stack([expert(inside) for expert, inside in zip(self.closing, opened, strict=True)])
        if len(estimates) == 1:
            return estimates[0]
        return torch.einsum("spe,espd->spd", routed.softmax(dim=-1), estimates)


class Extractor(nn.Module):
    """A linear map of the moving average over patches and one of the rest, together."""

    def __init__(self, width: int, average: int, patches: int) -> None:
        super().__init__()
        self.window = odd_at_most(min(average, patches // 2))  # centred on a patch
        self.slow, self.fast = nn.Linear(width, width), nn.Linear(width, width)
        for layer in (self.slow, self.fast):
            nn.init.constant_(layer.weight, 1 / width)

    def forward(self, states: Patches) -> Patches:
        average = moving_average(states.transpose(1, 2), self.window).transpose(1, 2)
        return self.slow(average) + self.fast(states - average)


class SplineLinear(nn.Module):
    """A layer of a Kolmogorov-Arnold network: sums of learned curves, each a SiLU and a cubic spline."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.base, self.scale = nn.Parameter(torch.empty(outputs, inputs)), nn.Parameter(torch.empty(outputs, inputs))
        for weight in (self.base, self.scale):
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5))
        knots = torch.linspace(-1, 1, INTERVALS + 1)
        curves = FIRST_NOISE * (torch.rand(len(knots), outputs, inputs) - 0.5)
        fitted = torch.einsum("bk,koi->oib", torch.linalg.pinv(spline_bases(knots)), curves)
        self.splines = nn.Parameter(fitted.contiguous())

    def forward(self, values: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        splines = (self.splines * self.scale[..., None]).flatten(1)
        return F.linear(F.silu(values), self.base) + F.linear(spline_bases(values).flatten(-2), splines)


class Refinement(nn.Module):
    """Attention among the patches of a series, with the first weights of PyTorch's own, added to them, and a norm."""

    def __init__(self, sizes: DtafSizes) -> None:
        super().__init__()
        self.attention = Attention(sizes.width, sizes.heads, sizes.dropout)
        limit = math.sqrt(6 / (sizes.width + 3 * sizes.width))  # queries, keys and values are one matrix there
        for layer in (self.attention.query, self.attention.key_value):
            nn.init.uniform_(layer.weight, -limit, limit)
        for layer in (self.attention.query, self.attention.key_value, self.attention.out):
            nn.init.zeros_(layer.bias)
        self.norm = nn.LayerNorm(sizes.width)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, states: Patches) -> Patches:
        return self.norm(states + self.dropout(self.attention(states, states)))


def spline_bases(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape base"]:
    """Return the cubic B-splines on evenly spaced knots over -1..1 and three more on either side."""
    peaks = torch.arange(INTERVALS + 3, dtype=values.dtype, device=values.device) - 1  # in steps from -1
    distance = ((values + 1) * (INTERVALS / 2)).unsqueeze(-1).sub(peaks).abs()
    return ((2 - distance).relu() ** 3 - 4 * (1 - distance).relu() ** 3) / 6


def growing_frequencies(states: Patches, components: int) -> Patches:
    """Return every patch with those frequencies only that grew most since the patch before; the first is whole."""
    spectrum = torch.fft.rfft(states)
    sizes = spectrum.detach().abs()
    growth = sizes[:, 1:] - sizes[:, :-1]
    is_kept = torch.zeros_like(growth).scatter(-1, growth.topk(components).indices, 1.0)
    return torch.cat([states[:, :1], torch.fft.irfft(spectrum[:, 1:] * is_kept, n=states.shape[-1])], dim=1)


def divergence(stable: Patches) -> Tensor:
    """Return the mean Kullback-Leibler divergence between softmaxed patches of a series, over all pairs of them."""
    shares = stable.softmax(dim=-1)
    logarithms = (shares + PROBABILITY_FLOOR).log()
    own = (shares * logarithms).sum(dim=-1).mean()
    crossed = (shares.mean(dim=1) * logarithms.mean(dim=1)).sum(dim=-1).mean()
    return own - crossed


def _of(partner: Int[Tensor, "batch node"], series: Shaped[Tensor, "batch step node"]) -> Tensor:
    """Return the series of every node's partner."""
    return series.gather(2, partner[:, None].expand(-1, series.shape[1], -1))
