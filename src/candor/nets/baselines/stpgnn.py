"""STPGNN: Spatio-Temporal Pivotal Graph Neural Networks (Kong, Guo, Liu; AAAI 2024).

Idea: a few pivotal sensors gather and pass on the traffic of many. Sensors are scored by how strongly they lead and
follow all others, and a graph among the highest works beside a learned graph that changes with the time of day.

Read: the paper's abstract, another reader's summary, and `Kongwy5689/STPGNN` (MIT; `model.py`, `engine.py`, `train.py`,
`util.py`). It grew out of Graph WaveNet, see there for convolutions in time and for histories of other lengths. As
released, the zeros in front of a history count when sensors are scored, and a pivotal sensor receives from those that
follow it.

Changed:
- The weights of leading and following are learned, a number for each pair of sensors, as described; the released code
  draws them anew in every pass and never trains them.
- Every window has its own scores and pivotal graph; the released code sums the windows of a batch first. There is no
  switch back: a forecast must not depend on random numbers or on other windows.
- Products of leading and following are divided by the sum of the follower's absolute values instead of its values,
  which may add up to almost nothing in z-scores.
- One slot for each step of the day (at most 288), taken from the calendar, instead of 48 that repeat every four hours.
- A fifth of the sensors is pivotal, as in most of the published settings; METR-LA has none of its own.
- The rate is constant: the released schedule is never stepped. Dropout is passed around there but never applied.
- Convolutions and normalisations that never reach the forecast are left out: of 377,935 parameters on METR-LA 360,463
  remain, and 42,849 weights of pairs are new.
"""

from typing import Annotated

import torch
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.baselines.graph_wavenet import DilatedSizes, GatedConvolution, make_head
from candor.nets.layers import FeatureNorm, hops, slot_of_day
from candor.nets.shapes import Bins, Forecast, Readings

ORDER = 2  # steps over each graph
FIRST_BALANCE = -5.0  # the pivotal graph begins with a share of 0.7 %
SMALLEST_SUM = 1e-6

States = Float[Tensor, "batch node time width"]
Graphs = Float[Tensor, "batch node node2"]  # one of each window


class StpgnnSizes(DilatedSizes):
    """Sizes of STPGNN."""

    skip_width: PositiveInt = 8  # of what the head reads of every layer and step
    embedding: PositiveInt = 32  # of a time of day, of a node that receives and of a node that sends
    pivotal_share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Of the nodes that are pivotal in a window; at least one is."""


@baselines.register("stpgnn")
class Stpgnn(BaselineNetwork):
    """Layers with a graph of the time of day and a graph of pivotal nodes; the head reads all their steps."""

    sizes = StpgnnSizes()
    tiny = StpgnnSizes(width=4, skip_width=2, head_width=8, embedding=3, blocks=1, pivotal_share=0.6)
    needs_whole_batches = True  # batch normalisation
    recipe = BaselineRecipe.of(epochs=200, batch=64, learning_rate=1e-3, weight_decay=1e-4, clip=5.0, patience=200)

    def __init__(self, sizes: StpgnnSizes, frame: Frame) -> None:
        super().__init__()
        dilations = sizes.dilations(frame.history)
        self.last_step = frame.history - 1
        self.padding = 1 + sum(dilations) - frame.history
        self.start = nn.Linear(1, sizes.width)
        self.daily_graph = DailyGraph(sizes.embedding, frame)
        self.pivotal_graph = PivotalGraph(sizes.pivotal_share, frame.nodes)
        self.balance = nn.Parameter(torch.tensor(FIRST_BALANCE))
        self.layers = nn.ModuleList(PivotalLayer(sizes.width, dilation) for dilation in dilations)
        self.skips = nn.ModuleList(nn.Linear(sizes.width, sizes.skip_width) for _ in dilations)
        self.normalisations = nn.ModuleList(FeatureNorm(sizes.width) for _ in dilations[1:])
        steps = [1 + sum(dilations[number + 1 :]) for number in range(len(dilations))]
        self.head = make_head(sizes.skip_width * sum(steps), sizes.head_width, frame.horizon)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        series = F.pad(values.transpose(1, 2), (self.padding, 0))
        daily = self.daily_graph(time_of_day[:, self.last_step])
        pivotal = self.pivotal_graph(series)
        share = torch.sigmoid(self.balance)
        outputs, found = self.start(series[..., None]), []  # batch node time width
        normalisations = (nn.Identity(), *self.normalisations)
        for normalisation, layer, skip in zip(normalisations, self.layers, self.skips, strict=True):
            outputs = layer(normalisation(outputs), daily, pivotal, share)
            found.append(skip(outputs).flatten(2))
        return self.head(torch.cat(found, dim=-1)).transpose(1, 2)


class PivotalLayer(nn.Module):
    """The states, plus those after a gated convolution spread over one graph, plus earlier ones over the other."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.convolution = GatedConvolution(width, dilation)
        self.daily = HopConvolution(width)
        self.pivotal = HopConvolution(width)

    def forward(self, states: States, daily: Graphs, pivotal: Graphs, share: Float[Tensor, ""]) -> States:
        earlier, later = states[:, :, : -self.dilation], states[:, :, self.dilation :]
        over_all = self.daily(self.convolution(states), daily)
        return later + share * self.pivotal(earlier, pivotal) + (1 - share) * over_all


class HopConvolution(nn.Module):
    """One linear layer of the states and of what one, two, ... steps over a graph bring."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear((1 + ORDER) * width, width)

    def forward(self, states: States, graph: Graphs) -> States:
        received = hops(states.flatten(2), graph, ORDER)
        return self.linear(torch.cat([part.view_as(states) for part in received], dim=-1))


class DailyGraph(nn.Module):
    """A graph for every time of day: one product of embeddings of the time, of receivers and of senders."""

    def __init__(self, embedding: int, frame: Frame) -> None:
        super().__init__()
        self.slots = frame.slots
        self.times = nn.Parameter(torch.randn(self.slots, embedding))
        self.receivers = nn.Parameter(torch.randn(frame.nodes, embedding))
        self.senders = nn.Parameter(torch.randn(frame.nodes, embedding))
        self.core = nn.Parameter(torch.randn(embedding, embedding, embedding))

    def forward(self, time_of_day: Int[Tensor, " batch"]) -> Graphs:
        times = self.times[slot_of_day(time_of_day, self.slots)]
        at_time = torch.einsum("bt,trs->brs", times, self.core)
        return F.softmax(F.relu(self.receivers @ at_time @ self.senders.T), dim=-1)


class PivotalGraph(nn.Module):
    """A graph among the nodes of a window that lead and follow the others most; the rest receive alike from all."""

    def __init__(self, share: float, nodes: int) -> None:
        super().__init__()
        self.pivotal = max(1, round(share * nodes))
        self.start = nn.Linear(1, 1)
        self.weights = nn.Parameter(torch.randn(nodes, nodes))

    def forward(self, series: Float[Tensor, "batch node time"]) -> Graphs:
        series = self.start(series[..., None])[..., 0]
        leading = series[..., :-1] @ series[..., 1:].transpose(1, 2)  # batch leader follower
        sums = series.abs().sum(dim=-1) + SMALLEST_SUM
        strength = leading / sums[:, None] * self.weights
        scores = (strength.sum(dim=1) + strength.sum(dim=2)).detach()
        is_pivotal = torch.zeros_like(scores).scatter(1, scores.topk(self.pivotal).indices, 1.0)
        among = strength * is_pivotal[:, :, None] * is_pivotal[:, None]
        return F.softmax(F.relu(among), dim=-1)
