"""Operators that AutoSTF chooses from, and layers around them; see `candor.nets.baselines.autostf`."""

import copy
import math
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.baselines._layers import FeatureNorm, attend
from candor.nets.dropout import Dropout

States = Float[Tensor, "batch node width"]
StatesInTime = Float[Tensor, "batch node time width"]

DILATION = 2  # steps between the two that a convolution sees
SPARSITY = 3  # times the logarithm of the steps is how many of them attend to others
GROUPS = 2  # of features that share the weights of a layer
MASKED = -1e10  # a score with a share of zero
EXPANSION = 4  # how much wider feed-forward layers are inside


class Graphs(NamedTuple):
    """Weights, receiver x sender, and which nodes may attend to which."""

    given: Float[Tensor, "node node2"]
    learned: Float[Tensor, "node node2"] | None
    is_near: Tensor


class GatedConvolution(nn.Module):
    """tanh(W x) * sigmoid(V x), normalised, where x are the states of two steps, `DILATION` apart."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width, 2 * width)
        self.norm = FeatureNorm(width, affine=False)

    def forward(self, states: StatesInTime) -> StatesInTime:
        states = F.relu(states)
        before = F.pad(states, (0, 0, DILATION, 0))[:, :, :-DILATION]
        signal, gate = self.linear(torch.cat([before, states], dim=-1)).chunk(2, dim=-1)
        return self.norm(torch.tanh(signal) * torch.sigmoid(gate))


class SparseAttention(nn.Module):
    """Attention among steps as in Informer (Zhou et al. 2021): only those attend whose scores differ most.

    The others take the mean of all. A feed-forward layer follows; both are added and normalised.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.forward_part = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.norm, self.forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, states: StatesInTime) -> StatesInTime:
        queries, keys, values = (
            rearrange(layer(states), "b n t (h d) -> b n h t d", h=self.heads)
            for layer in (self.query, self.key, self.value)
        )
        seen = self.weights(queries, keys) @ values
        states = self.norm(states + self.out(rearrange(seen, "b n h t d -> b n t (h d)")))
        return self.forward_norm(states + self.forward_part(states))

    def weights(
        self, queries: Float[Tensor, "batch node head time depth"], keys: Float[Tensor, "batch node head time depth"]
    ) -> Float[Tensor, "batch node head time time2"]:
        """Returns the weights of all steps for each step."""
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        steps = scores.shape[-1]
        count = SPARSITY * math.ceil(math.log(steps))
        if count >= steps:
            return scores.softmax(dim=-1)
        best = (scores.amax(dim=-1) - scores.mean(dim=-1)).topk(count, dim=-1).indices
        attends = torch.zeros_like(scores[..., 0], dtype=torch.bool).scatter(-1, best, True)
        return torch.where(attends[..., None], scores.softmax(dim=-1), 1 / steps)


class GraphConvolution(nn.Module):
    """States after no, one, two, ... steps over a graph, mixed by one linear layer and normalised."""

    def __init__(self, width: int, hops: int, dropout: float, is_given: bool) -> None:
        super().__init__()
        self.hops, self.is_given = hops, is_given
        self.linear = nn.Linear((hops + 1) * width, width)
        self.norm = FeatureNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: States, graphs: Graphs) -> States:
        graph = graphs.given if self.is_given else graphs.learned
        assert graph is not None  # it is there where an operator needs it
        terms = [F.relu(states)]
        for _ in range(self.hops):
            terms.append(graph @ terms[-1])
        return self.dropout(self.norm(self.linear(torch.cat(terms, dim=-1))))


class SpatialAttention(nn.Module):
    """Layers of attention among nodes, in turn among all and among neighbours."""

    def __init__(self, nodes: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(nodes, width))
        layer = AttentionLayer(width, heads, dropout)
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(layers))  # all begin alike, as released
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: States, graphs: Graphs) -> States:
        states = self.dropout(states + self.positions)
        for number, layer in enumerate(self.layers):
            states = layer(states, graphs.is_near if number % 2 else None)
        return self.norm(states)


class AttentionLayer(nn.Module):
    """Multi-head attention and a light feed-forward layer, each added and normalised."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = GroupedLinear(width, width), GroupedLinear(width, width, bias=False)
        self.value, self.out = GroupedLinear(width, width), GroupedLinear(width, width)
        for layer in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(layer.weight)
        for layer in (self.query, self.value, self.out):
            nn.init.zeros_(layer.bias)
        self.light = LightForward(width, dropout)
        self.norm, self.light_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, states: States, mask: Tensor | None) -> States:
        projected = (self.query(states), self.key(states), self.value(states))
        seen = attend(*projected, self.heads, self.dropout, mask)
        states = self.norm(states + self.dropout(self.out(seen)))
        return self.light_norm(states + self.light(states))


class LightLayer(nn.Module):
    """A norm, a light feed-forward layer that is added to what was normalised, and a norm."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.first_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.light = LightForward(width, dropout)

    def forward(self, states: Float[Tensor, "batch patch node width"]) -> Float[Tensor, "batch patch node width"]:
        states = self.first_norm(states)
        return self.norm(states + self.light(states))


class LightForward(nn.Module):
    """A feed-forward layer whose second linear map is shared by all groups of features."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Linear(width, EXPANSION * width)
        self.second = GroupedLinear(EXPANSION * width, width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        return self.dropout(self.second(self.dropout(F.gelu(self.first(states)))))


class GroupedLinear(nn.Linear):
    """A linear layer that maps each group of features by itself, all with the same weights."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__(inputs // GROUPS, outputs // GROUPS, bias)

    def forward(self, states: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        return super().forward(states.unflatten(-1, (GROUPS, -1))).flatten(-2)


class LearnedGraph(nn.Module):
    """The learned shares in which each node receives from others; equal shares if it has no senders."""

    def __init__(self, nodes: int, width: int) -> None:
        super().__init__()
        self.receivers = nn.Parameter(torch.randn(nodes, width))
        self.senders = nn.Parameter(torch.randn(nodes, width))

    def forward(self) -> Float[Tensor, "node node2"]:
        """Returns the graph, receiver x sender."""
        scores = F.relu(self.receivers @ self.senders.T)
        return scores.masked_fill(scores == 0, MASKED).softmax(dim=1)
