"""Graph WaveNet (Wu, Pan, Long, Jiang, Zhang; IJCAI 2019).

Idea: gated dilated convolutions cover a long stretch of time in few layers, and after each of them states diffuse over
the network. They diffuse along the roads, against them, and over a graph that two tables of node embeddings form.

Read: `nnzhan/Graph-WaveNet` (MIT; `model.py`, `engine.py`, `util.py`). An edge's weight is divided by all that its
sender sends, and in the reverse graph by all that its receiver receives. Convolutions are written as the linear layers
they are: 1 x 1 ones over states, those in time over pairs of states.

Changed: only the newest step of the skip connections reaches the forecast, so only that is computed. The 1 x 1
convolutions beside the graph convolutions, and the last layer's graph convolution and normalisation, never reach it
and are left out: 293,688 parameters on METR-LA instead of 309,400. A history shorter than the 13 steps that the layers
cover is filled up with zeros in front, as published. For a longer one every block gets further layers, each with twice
the dilation of the one before, until the whole history is covered.
"""

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.data.times import BINS_PER_DAY
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import FeatureNorm, hops, transitions, with_calendar
from candor.nets.shapes import Bins, Forecast, Graph, Hidden, Rate, Readings, Width

CHANNELS = 2  # value, time of day
ORDER = 2  # steps of the diffusion
GRAPHS = 3  # along the edges, against them, learned

States = Float[Tensor, "node batch time width"]  # a convolution leaves fewer of the oldest steps


class DilatedSizes(Settings):
    """Sizes of layers of dilated convolutions, all of which the head reads."""

    width: Width = 32
    skip_width: PositiveInt = 256  # of what the head reads of every layer
    head_width: Hidden = 512
    embedding: PositiveInt = 10  # of a node, for the learned graph
    blocks: PositiveInt = 4  # groups of layers; the dilation begins with 1 in each
    layers: PositiveInt = 2  # of a block, at least: there are more where these do not cover the whole history

    def dilations(self, history: int) -> list[int]:
        """Return the dilations 1, 2, 4, ... of all layers, as many in each block as it takes to cover the history."""
        layers = self.layers
        while 1 + self.blocks * (2**layers - 1) < history:
            layers += 1
        return [2**layer for _ in range(self.blocks) for layer in range(layers)]


class GraphWavenetSizes(DilatedSizes):
    """Sizes of Graph WaveNet."""

    dropout: Rate = 0.3  # after every graph convolution


@baselines.register("graph-wavenet")
class GraphWavenet(BaselineNetwork):
    """Layers of gated convolutions in time and diffusion over three graphs; the head reads what all layers add."""

    sizes = GraphWavenetSizes()
    tiny = GraphWavenetSizes(width=4, skip_width=8, head_width=8, embedding=3, blocks=1)
    needs_whole_batches = True  # batch normalisation
    recipe = BaselineRecipe.of(epochs=100, batch=64, learning_rate=1e-3, weight_decay=1e-4, clip=5.0, patience=100)

    def __init__(self, sizes: GraphWavenetSizes, frame: Frame) -> None:
        super().__init__()
        dilations = sizes.dilations(frame.history)
        self.history = frame.history
        self.padding = 1 + sum(dilations) - frame.history
        powers = [_powers(transitions(graph)) for graph in (frame.adjacency, frame.adjacency.T)]
        self.road_powers = nn.Buffer(torch.cat(powers), persistent=False)
        self.senders = nn.Parameter(torch.randn(frame.nodes, sizes.embedding))
        self.receivers = nn.Parameter(torch.randn(frame.nodes, sizes.embedding))
        self.start = nn.Linear(CHANNELS, sizes.width)
        self.convolutions = nn.ModuleList(GatedConvolution(sizes.width, dilation) for dilation in dilations)
        self.skips = nn.ModuleList(nn.Linear(sizes.width, sizes.skip_width) for _ in dilations)
        self.diffusions = nn.ModuleList(GraphDiffusion(sizes.width, sizes.dropout) for _ in dilations[1:])
        self.head = make_head(sizes.skip_width, sizes.head_width, frame.horizon)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        channels = with_calendar(values, time_of_day[:, : self.history] / BINS_PER_DAY)
        channels = rearrange(channels, "batch time node channel -> node batch time channel")
        states = self.start(F.pad(channels, (0, 0, self.padding, 0)))
        learned = F.softmax(F.relu(self.senders @ self.receivers.T), dim=1)  # shares in which each node sends to all
        powers = (self.road_powers, _powers(learned))
        outputs = self.convolutions[0](states)
        found = self.skips[0](outputs[:, :, -1])
        for convolution, skip, diffusion in zip(self.convolutions[1:], self.skips[1:], self.diffusions, strict=True):
            states = diffusion(states, outputs, powers)
            outputs = convolution(states)
            found = found + skip(outputs[:, :, -1])
        return rearrange(self.head(found), "node batch horizon -> batch horizon node")


def make_head(inputs: int, hidden: int, horizon: int) -> nn.Sequential:
    """Return the layers from what the head reads to the steps of the horizon."""
    return nn.Sequential(nn.ReLU(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, horizon))


class GatedConvolution(nn.Module):
    """tanh(W x) * sigmoid(V x), where x are the states of two steps, `dilation` apart."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.linear = nn.Linear(2 * width, 2 * width)

    def forward(self, states: States) -> States:
        pairs = torch.cat([states[:, :, : -self.dilation], states[:, :, self.dilation :]], dim=-1)
        signal, gate = self.linear(pairs).chunk(2, dim=-1)
        return torch.tanh(signal) * torch.sigmoid(gate)


class GraphDiffusion(nn.Module):
    """What a layer's outputs and all that arrives with them over the graphs add to its states, normalised."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear((1 + GRAPHS * ORDER) * width, width)
        self.dropout = Dropout(dropout)
        self.normalisation = FeatureNorm(width)

    def forward(self, states: States, outputs: States, powers: tuple[Tensor, Tensor]) -> States:
        nodes, _, steps, width = outputs.shape
        flat = outputs.flatten(1)
        received = torch.cat([flat, *(matrices @ flat for matrices in powers)])  # apart: roads need no gradient
        order = "(power node) (row width) -> (node row) (power width)"
        added = self.linear(rearrange(received, order, node=nodes, width=width))
        return self.normalisation(states[:, :, -steps:] + self.dropout(added).view_as(outputs))


def _powers(graph: Graph) -> Float[Tensor, "power_node node"]:
    """Return what one, two, ... steps over a graph bring to each node, receiver x sender."""
    return torch.cat(hops(graph.T, graph.T, ORDER - 1))
