"""TESTAM: Time-Enhanced Spatio-Temporal Attention Model with mixture of experts (Lee, Ko; ICLR 2024).

Idea: three experts read the same window, one node by node, one along a learned graph, one with attention among all
nodes. A gate sends each node and step to one of them; it is trained as a classifier on the errors of the experts.

Read: `HyunWookL/TESTAM` (MIT; `model.py`, `engine.py`, `util.py`, `run.py`) after its update of August 2024. The labels
that train the gate are those of that code with the published settings: if the chosen expert erred most, the two others
in proportion to their errors, so that the worse of the two weighs more, and besides always the expert that erred least.

Changed:
- The original forecasts as many steps as it reads. Where horizon and history differ, a linear layer over time follows
  the states of each expert and the memory that the gate reads.
- Slots of the future are those of the calendar, not the present ones moved by as many five-minute slots as steps.
- The adaptive expert's head also makes a residual that nothing reads: left out, 1,056 parameters at METR-LA's shape.
- Adam keeps its usual second beta (0.98 there). The original rate rises for 4,000 steps to 2.8e-3 and then falls from
  twice that to zero every 4,000 steps; here it falls once along a cosine from 2.8e-3, its mean there, with a patience
  of 30 epochs instead of 15.
- Layer norm has its floor of 1e-6 under the root; a label without any error to share out is zero instead of undefined.
"""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from candor.data.times import BINS_PER_DAY
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, Frame, Targets
from candor.nets.baselines import baselines
from candor.nets.dropout import Dropout
from candor.nets.layers import GroupAttention, Mlp, hops, with_calendar
from candor.nets.shapes import Bins, Forecast, Graph, HeadedSizes, Heads, Layers, Rate, Readings, Terms, Width

CHANNELS = 2  # value, time of day
EXPERTS = 3
NORM_VARIANCE_FLOOR = 1e-12
States = Float[Tensor, "batch node time width"]
Channels = Float[Tensor, "batch node time channel"]
OfExperts = Float[Tensor, "*place expert"]


class TestamSizes(HeadedSizes):
    """Sizes of TESTAM."""

    width: Width = 32
    layers: Layers = 3
    heads: Heads = 4
    memories: PositiveInt = 20  # rows of the memory from which the learned graph is made and which the gate reads
    memory_width: PositiveInt = 32  # of each row
    dropout: Rate = 0.0  # after each attention, graph convolution and feed-forward part


@baselines.register("testam")
class Testam(BaselineNetwork):
    """Three experts and the gate that chooses among them, node by node and step by step."""

    sizes = TestamSizes()
    tiny = TestamSizes(width=4, layers=1, heads=1, memories=3, memory_width=4)
    # Beside which the gate's term stands
    recipe = BaselineRecipe.of(
        loss_space="original",
        epochs=100,
        batch=16,
        learning_rate=2.8e-3,
        adam_floor=1e-9,
        clip=5.0,
        schedule="cosine",
        activation=3,
        patience=30,
    )

    def __init__(self, sizes: TestamSizes, frame: Frame) -> None:
        super().__init__()
        self.history = frame.history
        self.identity = IdentityExpert(sizes, frame.nodes)
        self.adaptive = SpatialExpert(sizes, lambda: TwoWayConvolution(sizes))
        self.attention = SpatialExpert(sizes, lambda: NodeAttention(sizes.width, sizes.heads, has_bias=False))
        self.heads = nn.ModuleList(nn.Linear(sizes.width, 1) for _ in range(EXPERTS))
        self.to_horizon = nn.ModuleList(OverTime(frame.history, frame.horizon) for _ in range(EXPERTS + 1))
        self.gate = ExpertGate(sizes, frame.nodes)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        return chosen(*self.expert_forecasts(values, time_of_day))

    def expert_forecasts(self, values: Readings, time_of_day: Bins) -> tuple[OfExperts, OfExperts]:
        """Return the forecasts of all experts, and the gate's scores of them."""
        now, future = time_of_day[:, : self.history], time_of_day[:, self.history :]
        channels = with_calendar(values, now / BINS_PER_DAY).transpose(1, 2)  # batch node time channel
        values = values.transpose(1, 2)
        nothing = values.new_zeros(*values.shape[:2], future.shape[1])
        future_states = self.identity(nothing, future)
        hidden = [
            self.identity(values, now),
            self.adaptive(channels, future_states, *self.gate.graphs()),
            self.attention(channels, future_states),
        ]
        *to_horizon, memory_to_horizon = self.to_horizon
        hidden = [ahead(states) for ahead, states in zip(to_horizon, hidden, strict=True)]
        forecasts = [head(F.relu(states)) for head, states in zip(self.heads, hidden, strict=True)]
        scores = self.gate(memory_to_horizon(self.gate.read(channels)), hidden)
        order = "batch node horizon expert -> batch horizon node expert"
        return rearrange(torch.cat(forecasts, dim=-1), order), rearrange(scores, order)

    def objective(self, inputs: tuple[Tensor, ...], targets: Targets) -> tuple[Forecast, Terms]:
        """Return the routed forecast, the experts' mean error, and how badly the gate matches its labels."""
        forecasts, scores = self.expert_forecasts(*inputs[:2])
        error = torch.stack([targets.error(single) for single in forecasts.unbind(dim=-1)]).mean()
        routing = error.new_zeros(())
        if targets.is_active:
            prefix = targets.wanted.shape[1]
            errors = (forecasts[:, :prefix].detach() - targets.wanted[..., None]).abs()
            labels = routing_labels(errors, scores[:, :prefix], targets.mask)
            routing = -targets.share * (labels * scores[:, :prefix].log_softmax(dim=-1)).mean()
        return chosen(forecasts, scores), {"prediction": error, "routing": routing}


def chosen(forecasts: OfExperts, scores: OfExperts) -> Float[Tensor, "*place"]:
    """Return the forecasts of the experts that the gate chooses."""
    return forecasts.gather(-1, scores.argmax(dim=-1, keepdim=True))[..., 0]


def routing_labels(errors: OfExperts, scores: OfExperts, mask: Bool[Tensor, "*place"]) -> OfExperts:
    """Return the gate's labels: half to avoid the worst expert, half to choose the best; 0 if unobserved."""
    experts = errors.shape[-1]
    routed, worst, best = (
        F.one_hot(found, experts).to(errors.dtype)
        for found in (scores.argmax(dim=-1), errors.argmax(dim=-1), errors.argmin(dim=-1))
    )
    others = errors * (1 - worst)
    others = others / others.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(errors.dtype).tiny)
    is_worst = (routed * worst).sum(dim=-1, keepdim=True) > 0
    labels = (torch.where(is_worst, others, routed) + best) / 2
    return torch.where(mask[..., None], labels, 0.0)


class IdentityExpert(nn.Module):
    """Attention over time, node by node, of values beside an embedding of the time of day at each node."""

    def __init__(self, sizes: TestamSizes, nodes: int) -> None:
        super().__init__()
        width = sizes.width
        self.slots = nn.Embedding(BINS_PER_DAY, width)
        self.clock = nn.Linear(width, width)
        self.nodes = nn.Parameter(torch.empty(nodes, width))
        self.value = nn.Linear(1, width)
        self.join = nn.Linear(2 * width, width)
        self.layers = nn.Sequential(
            *(nn.Sequential(over_time(sizes), feed_forward(sizes)) for _ in range(sizes.layers))
        )

    def forward(self, values: Float[Tensor, "batch node time"], slots: Int[Tensor, "batch time"]) -> States:
        periodic, linear = self.clock(self.slots(slots)).split([1, self.nodes.shape[1] - 1], dim=-1)
        clock = torch.cat([linear, periodic.sin()], dim=-1)[:, None] * self.nodes[:, None]  # batch node time width
        return self.layers(self.join(torch.cat([self.value(values[..., None]), clock], dim=-1)))


class SpatialExpert(nn.Module):
    """Layers over time, nodes and the future; two experts differ in the part over nodes."""

    def __init__(self, sizes: TestamSizes, over_nodes: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.start = nn.Linear(CHANNELS, sizes.width)
        self.layers = nn.ModuleList(SpatialLayer(sizes, over_nodes()) for _ in range(sizes.layers))

    def forward(self, channels: Channels, future_states: States, *graphs: Graph) -> States:
        states = self.start(channels)
        for layer in self.layers:
            states = layer(states, future_states, *graphs)
        return states


class SpatialLayer(nn.Module):
    """One layer of a spatial expert; its third part attends to the future, "time-enhanced attention"."""

    def __init__(self, sizes: TestamSizes, over_nodes: nn.Module) -> None:
        super().__init__()
        self.over_time = over_time(sizes)
        self.over_nodes = AddAndNorm(sizes, over_nodes)
        self.ahead = over_time(sizes)
        self.feed_forward = feed_forward(sizes)

    def forward(self, states: States, future_states: States, *graphs: Graph) -> States:
        states = self.over_nodes(self.over_time(states), *graphs)
        return self.feed_forward(self.ahead(states, future_states))


class ExpertGate(nn.Module):
    """Compares the memory that matches the input with the states of each expert."""

    def __init__(self, sizes: TestamSizes, nodes: int) -> None:
        super().__init__()
        self.memory = nn.Parameter(torch.empty(sizes.memories, sizes.memory_width))
        self.senders = nn.Parameter(torch.empty(nodes, sizes.memories))
        self.receivers = nn.Parameter(torch.empty(nodes, sizes.memories))
        self.ask = nn.Linear(CHANNELS, sizes.memory_width, bias=False)
        self.views = nn.ModuleList(ExpertView(sizes) for _ in range(EXPERTS))

    def graphs(self) -> tuple[Graph, Graph]:
        """Return the learned graph in both directions, sender x receiver, rows adding up to 1."""
        affinity = (self.senders @ self.memory) @ (self.receivers @ self.memory).T
        return F.relu(affinity).softmax(dim=-1), F.relu(affinity.T).softmax(dim=-1)

    def read(self, channels: Channels) -> Float[Tensor, "batch node time memory"]:
        """Return the memory that matches each reading."""
        return (self.ask(channels) @ self.memory.T).softmax(dim=-1) @ self.memory

    def forward(self, memory: Float[Tensor, "batch node horizon memory"], hidden: list[States]) -> OfExperts:
        views = (view(states) for view, states in zip(self.views, hidden, strict=True))
        return torch.stack([F.cosine_similarity(memory, view, dim=-1) for view in views], dim=-1)


class ExpertView(nn.Module):
    """The states of an expert as the gate compares them, after an attention over time whose scores are not scaled."""

    def __init__(self, sizes: TestamSizes) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(sizes.width, sizes.memory_width, bias=False) for _ in range(3))

    def forward(self, states: States) -> Float[Tensor, "batch node time memory"]:
        return F.scaled_dot_product_attention(self.query(states), self.key(states), self.value(states), scale=1.0)


class NodeAttention(GroupAttention):
    """Attention among all nodes, step by step."""

    def forward(self, states: States, source: States | None = None) -> States:
        return super().forward(states.transpose(1, 2)).transpose(1, 2)


class TwoWayConvolution(nn.Module):
    """States of the nodes one and two steps away along each graph, joined."""

    def __init__(self, sizes: TestamSizes) -> None:
        super().__init__()
        self.join = nn.Linear(5 * sizes.width, sizes.width)

    def forward(self, states: States, *graphs: Graph) -> States:
        flat = states.flatten(2)
        received = [step for graph in graphs for step in hops(flat, graph.T, 2)[1:]]  # from sender to receiver
        return self.join(torch.cat([step.view_as(states) for step in (flat, *received)], dim=-1))


class AddAndNorm(nn.Module):
    """norm(x + dropout(part(x)))."""

    def __init__(self, sizes: TestamSizes, part: nn.Module) -> None:
        super().__init__()
        self.part = part
        self.norm = nn.LayerNorm(sizes.width, eps=NORM_VARIANCE_FLOOR)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, states: States, *more: Tensor) -> States:
        return self.norm(states + self.dropout(self.part(states, *more)))


def over_time(sizes: TestamSizes) -> AddAndNorm:
    """Return attention among the steps of each node, or from them to the steps of a source."""
    return AddAndNorm(sizes, GroupAttention(sizes.width, sizes.heads, has_bias=False))


def feed_forward(sizes: TestamSizes) -> AddAndNorm:
    """Return the last part of every layer."""
    return AddAndNorm(sizes, Mlp(sizes.width, 4 * sizes.width, sizes.width, dropout=0.0))


class OverTime(nn.Module):
    """Brings states of the history to the steps of the horizon; if these are as many, each stays as it is."""

    def __init__(self, history: int, horizon: int) -> None:
        super().__init__()
        self.mix = nn.Identity() if history == horizon else nn.Linear(history, horizon)

    def forward(self, states: States) -> Float[Tensor, "batch node horizon width"]:
        return self.mix(states.transpose(2, 3)).transpose(2, 3)
