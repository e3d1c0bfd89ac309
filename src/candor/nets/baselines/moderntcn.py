"""ModernTCN: a modern pure convolution structure for general time series analysis (Luo, Wang; ICLR 2024).

Idea: give convolutions over time the wide kernels that made them strong again for images. A convolution of each channel
by itself mixes time; one MLP mixes the features of a node, another one the nodes of a feature.

Read: `luodhhh/ModernTCN` (MIT; `ModernTCN-Long-term-forecasting`: `models/ModernTCN.py`, `exp/exp_ModernTCN.py`,
`scripts`). One stage, as in all scripts, with a wide and a narrow kernel side by side that are not merged after
training. No calendar is read. Both MLPs have weights of their own for every node or feature, so that the size grows
with the square of the nodes: 6.5 million parameters on METR-LA. No sizes for this protocol are published: ours are
smaller than those of Traffic (width 64, ratio 8, dropout 0.9), which would make 58 million.

Changed: the original reads 960 steps in patches of 8 that begin every 4. Here patches begin more often where the
history has less than 24 of these, and have one step where one begins at each, as at a history of 12. A kernel is never
wider than the tokens it passes over, the narrow one at most a third of the wide one: 11 and 3 instead of 51 and 5. A
history of a single step is read twice. Left out are the bias that the first normalisation removes again, and what the
original declares and does not use: further stages, their fusion, the embedding of the calendar, and a schedule that
slows down its first epoch and sets a momentum of 0.95 but never steps.
"""

from collections import OrderedDict

from einops import rearrange
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import odd_at_most, standardise
from candor.nets.shapes import Forecast, Layers, Rate, Readings, Width

LEAST_TOKENS = 24

States = Float[Tensor, "batch node width token"]
Channels = Float[Tensor, "batch channel token"]


class ModernTcnSizes(Settings):
    """Sizes of ModernTCN."""

    width: Width = 32
    ratio: PositiveInt = 2  # how many times wider the hidden layers of both MLPs are
    blocks: Layers = 1
    stride: PositiveInt = 4  # steps from patch to patch, fewer if the history is short; a patch is twice as long
    wide_kernel: PositiveInt = 51  # tokens that a convolution covers; at most as many as there are
    narrow_kernel: PositiveInt = 5  # tokens that the convolution beside it covers; at most a third of the wide one
    dropout: Rate = 0.3  # after every linear layer of the MLPs


@baselines.register("moderntcn")
class ModernTcn(BaselineNetwork):
    """Patches of every node, convolutional blocks, and one linear layer to the horizon that all nodes share."""

    sizes = ModernTcnSizes()
    tiny = ModernTcnSizes(width=4, ratio=2)
    needs_whole_batches = True  # batch normalisation
    # Rate and batch are those of Electricity. The rate falls after every epoch but the first three.
    recipe = BaselineRecipe.of(
        loss="squared", epochs=100, batch=32, learning_rate=1e-4, milestones=(*range(4, 100),), decay=0.9, patience=10
    )

    def __init__(self, sizes: ModernTcnSizes, frame: Frame) -> None:
        super().__init__()
        stride = max(1, min(sizes.stride, frame.history // LEAST_TOKENS))
        patch = 2 * stride if stride > 1 else 1
        tokens = max(2, frame.history // stride)  # a lone token could not be normalised within a batch of one window
        self.repeated = (tokens - 1) * stride + patch - frame.history
        self.stem = nn.Conv1d(1, sizes.width, patch, stride, bias=False)
        self.stem_norm = nn.BatchNorm1d(sizes.width)
        self.blocks = nn.Sequential(*(ConvolutionBlock(sizes, frame.nodes, tokens) for _ in range(sizes.blocks)))
        self.head = nn.Linear(sizes.width * tokens, frame.horizon)

    def forward(self, values: Readings, *more: Tensor | None) -> Forecast:
        scores, mean, deviation = standardise(values)
        series = F.pad(rearrange(scores, "b t n -> (b n) 1 t"), (0, self.repeated), mode="replicate")
        states = rearrange(self.stem_norm(self.stem(series)), "(b n) w t -> b n w t", b=values.shape[0])
        forecast = self.head(self.blocks(states).flatten(2))  # batch node horizon
        return forecast.transpose(1, 2) * deviation + mean


class ConvolutionBlock(nn.Module):
    """Time, then the features of each node, then the nodes of each feature; added to what came in."""

    def __init__(self, sizes: ModernTcnSizes, nodes: int, tokens: int) -> None:
        super().__init__()
        width = sizes.width
        wide = odd_at_most(min(sizes.wide_kernel, tokens))
        narrow = odd_at_most(min(sizes.narrow_kernel, wide // 3))
        self.wide, self.wide_norm = _over_time(nodes * width, wide), nn.BatchNorm1d(nodes * width)
        self.narrow, self.narrow_norm = _over_time(nodes * width, narrow), nn.BatchNorm1d(nodes * width)
        self.norm = nn.BatchNorm1d(width)
        self.features = grouped_mlp(nodes, width, sizes.ratio * width, sizes.dropout)
        self.nodes = grouped_mlp(width, nodes, sizes.ratio * nodes, sizes.dropout)

    def forward(self, states: States) -> States:
        _, nodes, width, _ = states.shape
        mixed = rearrange(self.over_time(states.flatten(1, 2)), "b (n w) t -> (b n) w t", w=width)
        mixed = self.features(rearrange(self.norm(mixed), "(b n) w t -> b (n w) t", n=nodes))
        mixed = self.nodes(rearrange(mixed, "b (n w) t -> b (w n) t", w=width))
        return states + rearrange(mixed, "b (w n) t -> b n w t", w=width)

    def over_time(self, channels: Channels) -> Channels:
        """Return the sum of both normalised convolutions of every channel."""
        return self.wide_norm(self.wide(channels)) + self.narrow_norm(self.narrow(channels))


def grouped_mlp(groups: int, width: int, hidden: int, dropout: float) -> nn.Sequential:
    """Return an MLP of its own for every group of channels, at every token alike."""
    first = nn.Conv1d(groups * width, groups * hidden, 1, groups=groups)
    second = nn.Conv1d(groups * hidden, groups * width, 1, groups=groups)
    parts = {"first": first, "dropped": Dropout(dropout), "gelu": nn.GELU(), "second": second, "out": Dropout(dropout)}
    return nn.Sequential(OrderedDict(parts))


def _over_time(channels: int, kernel: int) -> nn.Conv1d:
    return nn.Conv1d(channels, channels, kernel, padding=kernel // 2, groups=channels, bias=False)
