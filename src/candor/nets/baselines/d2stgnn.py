"""D2STGNN: Decoupled Dynamic Spatial-Temporal Graph Neural Network (Shao, Zhang, Wei, Wang et al.; VLDB 2022).

Idea: a sensor's readings mix what diffused to it from its neighbours with what is its own. Every layer estimates the
diffused part with a gate, explains it with graph convolutions, subtracts it, explains the rest with a recurrence and
attention, subtracts that too, and forecasts both parts as hidden states that the layers add up.

Read: `zezhishao/D2STGNN` (no licence file; `models`, `configs/METR-LA.yaml`, `main.py`, `utils`), whose recipe this is.
As released, positions are added to all remembered states again at every forecast step, and the roads weigh the dynamic
graphs but are not graphs of their own.

Changed, with the same result: a graph that is repeated for every step of the kernel is applied once to the sum over
those steps. Nothing depends on what is left out: a batch norm in every diffusion block, a projection of the time slot,
and the last layer's remainder.

Changed for other data: a kernel is at most as long as the history, there are only as many layers as the history has
room for, and a hidden state forecasts at most the horizon; longer horizons have four hidden states too, of more steps
each. A batch norm that sees a single row uses its running statistics. The curriculum, a step more every six epochs,
takes twelfths of longer horizons, so that they too are whole at epoch 66.
"""

import math

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import FeatureNorm, attend, hops, side_by_side, sinusoidal_positions, transitions, xavier_table
from candor.nets.shapes import Bins, Forecast, HeadedSizes, Heads, Rate, Readings, Width

_PUBLISHED_HORIZON = 12

NO_EDGE = 1e-7  # weight of a pair of nodes without an edge, so that every row of a graph can be normalised
TABLES = 2  # of node identities, and so of dynamic graphs

States = Float[Tensor, "time series width"]
Calendar = Float[Tensor, "batch time calendar"]
Signal = Float[Tensor, "batch time node width"]
Supports = Float[Tensor, "batch support node node"]


class D2stgnnSizes(HeadedSizes):
    """Sizes of D2STGNN."""

    width: Width = 32
    node_width: PositiveInt = 10  # of each of a node's two identities
    time_width: PositiveInt = 10  # of the identities of time of day and day of week
    layers: PositiveInt = 5  # decoupling layers at most
    kernel: PositiveInt = 3  # steps that a diffusion sees at once, k_t
    order: PositiveInt = 2  # highest power of each graph, k_s
    gap: PositiveInt = 3  # steps that a hidden state forecasts at a horizon of twelve; see `steps_of_a_state`
    heads: Heads = 4
    gate_width: PositiveInt = 64  # hidden width of the gate
    forecast_width: PositiveInt = 256  # of the hidden states of the future that all layers add up
    output_width: PositiveInt = 512  # hidden width of the last two layers
    dropout: Rate = 0.1  # within graphs, convolutions, recurrence and attention


def steps_of_a_state(gap: int, horizon: int) -> int:
    """Return how many steps a hidden state of the future forecasts, so many that there are four states at most."""
    # States before a new one pass a dropout again: of 64, at a horizon of 192, nothing of the first would be left.
    return min(max(gap, -(-gap * horizon // _PUBLISHED_HORIZON)), horizon)


@baselines.register("d2stgnn")
class D2stgnn(BaselineNetwork):
    """Layers that each explain a diffused and an inherent part of the signal and forecast both."""

    sizes = D2stgnnSizes()
    tiny = D2stgnnSizes(
        width=8, node_width=4, time_width=4, layers=2, heads=2, gate_width=8, forecast_width=16, output_width=16
    )
    needs_whole_batches = True  # a batch norm within the dynamic graphs
    recipe = BaselineRecipe.of(
        epochs=80,
        batch=32,
        learning_rate=2e-3,
        weight_decay=1e-5,
        clip=5.0,
        milestones=(1, 30, 38, 46, 54, 62, 70, 80),
        curriculum=1,
        period=6,
        patience=100,
    )

    def __init__(self, sizes: D2stgnnSizes, frame: Frame) -> None:
        super().__init__()
        self.history, self.horizon, self.order = frame.history, frame.horizon, sizes.order
        kernel, gap = min(sizes.kernel, frame.history), steps_of_a_state(sizes.gap, frame.horizon)
        layers = sizes.layers if kernel == 1 else min(sizes.layers, (frame.history - 1) // (kernel - 1))
        future = math.ceil(frame.horizon / gap)
        self.upstream = xavier_table(frame.nodes, sizes.node_width)
        self.downstream = xavier_table(frame.nodes, sizes.node_width)
        self.time_of_day = xavier_table(BINS_PER_DAY, sizes.time_width)
        self.day_of_week = xavier_table(DAYS_PER_WEEK, sizes.time_width)
        self.embed = nn.Linear(1, sizes.width)
        self.graphs = DynamicGraphs(sizes, frame)
        self.layers = nn.ModuleList(
            DecouplingLayer(sizes, kernel, future, frame.history, is_last=number == layers - 1)
            for number in range(layers)
        )
        self.hidden = nn.Linear(sizes.forecast_width, sizes.output_width)
        self.output = nn.Linear(sizes.output_width, gap)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        seen = slice(0, self.history)
        calendar = side_by_side(self.time_of_day[time_of_day[:, seen]], self.day_of_week[day_of_week[:, seen]])
        identities = side_by_side(self.upstream, self.downstream)
        supports = self.supports(values, calendar[:, -1])
        signal, futures = self.embed(values[..., None]), []
        for layer in self.layers:
            signal, *found = layer(signal, supports, calendar, identities)
            futures += found
        steps = self.output(F.relu(self.hidden(F.relu(torch.stack(futures).sum(dim=0)))))
        return rearrange(steps, "batch future node gap -> batch (future gap) node")[:, : self.horizon]

    def supports(self, values: Readings, now: Float[Tensor, "batch calendar"]) -> Supports:
        """Return the powers of the two dynamic graphs and of the learned static one, receiver x sender."""
        dynamic = self.graphs(values, now, self.downstream, self.upstream)
        static = powers(F.relu(self.upstream @ self.downstream.T).softmax(dim=-1), self.order)
        return torch.cat([dynamic, static.expand(values.shape[0], -1, -1, -1)], dim=1)

    @classmethod
    def recipe_for(cls, recipe: BaselineRecipe, horizon: int) -> BaselineRecipe:
        """Return the recipe with its curriculum in twelfths of the horizon."""
        training = recipe.training
        steps = -(-training.curriculum * horizon // _PUBLISHED_HORIZON)
        return recipe.model_copy(update={"training": training.model_copy(update={"curriculum": steps})})


class DynamicGraphs(nn.Module):
    """Attention among nodes at the end of the window, along the roads and against them."""

    def __init__(self, sizes: D2stgnnSizes, frame: Frame) -> None:
        super().__init__()
        width, features = sizes.width, sizes.width + 2 * sizes.time_width + sizes.node_width
        self.order = sizes.order
        self.first = nn.Linear(frame.history, 2 * width)
        self.norm = FeatureNorm(2 * width)
        self.dropout = Dropout(sizes.dropout)
        self.second = nn.Linear(2 * width, width)
        self.query = nn.Linear(features, width, bias=False)
        self.key = nn.Linear(features, width, bias=False)
        walks = torch.stack([transitions(frame.adjacency).T, transitions(frame.adjacency.T).T])  # receiver x sender
        self.walks = nn.Buffer(walks, persistent=False)

    def forward(self, values: Readings, now: Tensor, *tables: Float[Tensor, "node identity"]) -> Supports:
        batch, _, nodes = values.shape
        rows = F.relu(self.first(rearrange(values, "batch time node -> (batch node) time")))
        recent = self.second(self.dropout(self.norm(rows))).view(batch, nodes, -1)
        found = []
        for table, walk in zip(tables, self.walks, strict=True):
            features = side_by_side(recent, now[:, None], table)
            query, key = self.query(features), self.key(features)
            graph = (query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])).softmax(dim=-1) * (walk + NO_EDGE)
            found.append(powers(graph / graph.sum(dim=-1, keepdim=True), self.order))
        return torch.cat(found, dim=1)


def powers(graph: Float[Tensor, "*batch node node"], order: int) -> Float[Tensor, "*batch order node node"]:
    """Return the first powers of a graph, each without its diagonal: a node does not diffuse to itself."""
    return torch.stack(hops(graph, graph, order - 1), dim=-3) * (1 - torch.eye(graph.shape[-1], device=graph.device))


class DecouplingLayer(nn.Module):
    """Gate, diffused part, inherent part; the rest goes to the next layer."""

    def __init__(self, sizes: D2stgnnSizes, kernel: int, future: int, history: int, is_last: bool) -> None:
        super().__init__()
        self.gate = DiffusionGate(sizes)
        self.diffusion = DiffusionBlock(sizes, kernel, future)
        self.without_diffused = Remainder(sizes.width)
        self.inherent = InherentBlock(sizes, history, future)
        self.without_inherent = None if is_last else Remainder(sizes.width)

    def forward(self, signal: Signal, supports: Supports, calendar: Calendar, identities: Tensor) -> tuple[Signal, ...]:
        """Return the signal for the next layer, and the hidden futures of the diffused and of the inherent part."""
        gated = signal * self.gate(calendar[:, -signal.shape[1] :], identities)
        diffused, diffused_future = self.diffusion(gated, supports)
        rest = self.without_diffused(signal, diffused)
        inherent, inherent_future = self.inherent(rest)
        left = rest if self.without_inherent is None else self.without_inherent(rest, inherent)
        return left, diffused_future, inherent_future


class DiffusionGate(nn.Module):
    """The share of a signal that was diffused, which depends on time and node alone."""

    def __init__(self, sizes: D2stgnnSizes) -> None:
        super().__init__()
        self.first = nn.Linear(2 * sizes.time_width + TABLES * sizes.node_width, sizes.gate_width)
        self.second = nn.Linear(sizes.gate_width, 1)

    def forward(self, calendar: Calendar, identities: Float[Tensor, "node identity"]) -> Signal:
        of_calendar, of_nodes = self.first.weight.tensor_split([calendar.shape[-1]], dim=1)
        by_node = F.linear(identities, of_nodes, self.first.bias)
        return torch.sigmoid(self.second(F.relu(F.linear(calendar, of_calendar)[:, :, None] + by_node)))


class DiffusionBlock(nn.Module):
    """Graph convolutions over a few steps of all nodes at once, also of their own forecasts."""

    def __init__(self, sizes: D2stgnnSizes, kernel: int, future: int) -> None:
        super().__init__()
        self.kernel, self.future = kernel, future
        self.mix = nn.Linear(kernel * sizes.width, kernel * sizes.width, bias=False)
        self.spread = nn.Linear((1 + (TABLES + 1) * sizes.order) * sizes.width, sizes.width)
        self.forecast = nn.Linear(sizes.width, sizes.forecast_width)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, gated: Signal, supports: Supports) -> tuple[Signal, Signal]:
        """Return the explained part, `kernel` - 1 steps shorter than the signal, and its hidden future."""
        explained = self.convolve(gated, supports)
        steps = [*gated.unbind(dim=1), explained[:, -1]]
        for _ in range(self.future - 1):
            steps.append(self.convolve(torch.stack(steps[-self.kernel :], dim=1), supports)[:, 0])
        return explained, self.forecast(torch.stack(steps[-self.future :], dim=1))

    def convolve(self, signal: Signal, supports: Supports) -> Signal:
        """Return the state of every node after each `kernel` steps of itself and its neighbours."""
        order = "batch time node width step -> batch time node (step width)"
        stretches = rearrange(signal.unfold(1, self.kernel, 1), order)
        mixed = F.relu(self.mix(stretches)).unflatten(-1, (self.kernel, -1)).sum(dim=-2)
        received = torch.einsum("bsmn,btnw->btmsw", supports, mixed)
        return self.dropout(self.spread(torch.cat([mixed[..., None, :] / self.kernel, received], dim=-2).flatten(-2)))


class InherentBlock(nn.Module):
    """A recurrence and attention over all its states, node by node, also of their own forecasts."""

    def __init__(self, sizes: D2stgnnSizes, history: int, future: int) -> None:
        super().__init__()
        self.future = future
        self.recurrence = nn.GRU(sizes.width, sizes.width)
        self.attention = MemoryAttention(sizes)
        self.forecast = nn.Linear(sizes.width, sizes.forecast_width)
        self.dropout = Dropout(sizes.dropout)
        self.positions = nn.Buffer(sinusoidal_positions(history + future, sizes.width), persistent=False)

    def forward(self, signal: Signal) -> tuple[Signal, Signal]:
        """Return the explained part and its hidden future."""
        series = rearrange(signal, "batch time node width -> time (batch node) width")
        memory = self._placed(self.dropout(self.recurrence(series)[0]))
        explained = self.attention(memory, memory)
        steps = [explained[-1:]]
        for _ in range(self.future - 1):
            state, _ = self.recurrence(steps[-1], memory[-1:].contiguous())
            memory = self._placed(torch.cat([memory, state]))
            steps.append(self.attention(state, memory))
        back = "time (batch node) width -> batch time node width"
        futures = self.forecast(rearrange(torch.cat(steps), back, batch=signal.shape[0]))
        return rearrange(explained, back, batch=signal.shape[0]), futures

    def _placed(self, memory: States) -> States:
        return self.dropout(memory + self.positions[: len(memory), None])


class MemoryAttention(nn.Module):
    """Multi-head attention over time, with PyTorch's parameters and first weights."""

    def __init__(self, sizes: D2stgnnSizes) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.project = nn.Linear(sizes.width, 3 * sizes.width)
        self.out = nn.Linear(sizes.width, sizes.width)
        self.dropout = Dropout(sizes.dropout)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, states: States, memory: Float[Tensor, "past series width"]) -> States:
        width = states.shape[-1]
        of_states, of_memory = self.project.weight.tensor_split([width])
        states_bias, memory_bias = self.project.bias.tensor_split([width])
        queries = F.linear(states, of_states, states_bias).transpose(0, 1)  # series time width
        keys, values = F.linear(memory, of_memory, memory_bias).transpose(0, 1).chunk(2, dim=-1)
        seen = attend(queries, keys, values, self.heads, self.dropout).transpose(0, 1)
        return self.dropout(self.out(seen))


class Remainder(nn.Module):
    """The rest of the last steps of a signal once the explained part is subtracted."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.backcast = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, signal: Signal, explained: Signal) -> Signal:
        return self.norm(signal[:, -explained.shape[1] :] - F.relu(self.backcast(explained)))
