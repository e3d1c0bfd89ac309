"""AutoSTF: decoupled neural architecture search (Lyu, Zhang, Deng, Liu; KDD 2025).

Idea: operators over time and operators over the network are searched in two small cells, one after the other, with time
condensed to a few patches between them. The operators of the second cell are shared by all patches, but each patch
chooses among them for itself.

Read: `usail-hkust/AutoSTF` (MIT by its README; `src/model`, `search.py`, `train.py`, `model_settings/METR-LA.yaml`). As
there, the identity part is STID, every other layer of attention over the network attends to neighbours only, and
training begins with the weights of the search. A search weighs two operators of every edge, drawn by their
probabilities, and ends with the likeliest one of each; `training/found.json` of a run holds them.

Changed: graph operators propagate along the graph, as the paper describes: a node receives from those whose edges lead
to it, and over the learned graph a weighted mean. With `as_released` they keep only what a node sends to itself, and
positions of nodes do not learn. As released, each patch draws two operators anew whenever it forecasts, and the search
is forgotten; here the choice is final in both cells. Probabilities are learned beside the weights on the training part,
not on the validation part. Attention over time rates queries by all keys, not by a random sample. Keys have no bias: it
cancels in the softmax. Every node attends to itself, so that nodes without edges can. Both stages have ninety epochs
instead of 300 and 200 that stop early, and the second begins with the first rate (released: with rate, schedule and
optimiser of the best epoch of the search). Forecasts are not cut to the range of training. Where patches of equal
length need a longer history its first value is repeated; a short one has fewer patches.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from pydantic import PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from candor.core.settings import Settings
from candor.nets.baseline import BaselineNetwork, BaselineRecipe, BaselineStage, Frame
from candor.nets.baselines import baselines
from candor.nets.baselines.graph_wavenet import GatedConvolution
from candor.nets.baselines.stid import Stid, StidSizes
from candor.nets.dropout import Dropout, current_generator
from candor.nets.layers import FeatureNorm, attend, hops, side_by_side
from candor.nets.shapes import AtLeastTwo, Bins, Forecast, Graph, Hidden, Rate, Readings, Width

Choice = Mapping[str, Any]  # the operators of each edge by name: `temporal` one list, `spatial` one for every patch
Operators = Sequence[Sequence[str]]  # names of the operators that every edge of a cell has
Path = Sequence[tuple[str, Tensor | float]]  # operators of an edge with their weights

States = Float[Tensor, "batch node width"]
StatesInTime = Float[Tensor, "batch node time width"]
OfHeads = Float[Tensor, "batch node head time depth"]

DILATION = 2  # steps between the two that a convolution sees
SPARSITY = 3  # times the logarithm of the steps is how many of them attend to others
GROUPS = 2  # of features that share the weights of a layer
MASKED = -1e10  # a score with a share of zero
EXPANSION = 4  # how much wider feed-forward layers are inside
TEMPORAL = ("convolution", "attention")
SPATIAL = ("given-graph", "learned-graph", "attention")
SEARCH_SHARE = 0.5  # of a budget of time


class Graphs(NamedTuple):
    """Weights, receiver x sender, and which nodes may attend to which."""

    is_near: Tensor
    given: Graph
    learned: Graph | None = None


class AutoStfSizes(Settings):
    """Sizes of AutoSTF."""

    width: Width = 32
    head_width: Hidden = 512
    identity_layers: PositiveInt = 2  # residual blocks of the identity part
    patches: PositiveInt = 3  # into which time is condensed; at most as many as steps
    light_layers: PositiveInt = 4  # between the cells
    temporal_nodes: AtLeastTwo = 4  # of the cell over time, the one it begins with among them
    spatial_nodes: AtLeastTwo = 4  # of the cell over the network
    temporal_heads: PositiveInt = 4  # of attention over time
    spatial_heads: PositiveInt = 8  # of attention over the network
    attention_layers: PositiveInt = 2  # of attention over the network
    hops: PositiveInt = 2  # steps over a graph
    embedding: PositiveInt = 10  # of a node, for the learned graph
    dropout: Rate = 0.15  # in the identity part and after graph operators
    light_dropout: Rate = 0.1  # in light layers and in attention over the network
    as_released: bool = False  # graph operators use the diagonal only, and positions of nodes do not learn

    @model_validator(mode="after")
    def _fits_together(self) -> "AutoStfSizes":
        for divisor in (self.temporal_heads, self.spatial_heads, GROUPS):
            if self.width % divisor:
                raise ValueError(f"width ({self.width}) must be a multiple of the heads and of {GROUPS}")
        return self


@baselines.register("autostf")
class AutoStf(BaselineNetwork):
    """STID's identities beside a cell over time and, patch by patch, a cell over the network."""

    sizes: AutoStfSizes = AutoStfSizes()
    tiny = AutoStfSizes(
        width=8,
        head_width=8,
        identity_layers=1,
        patches=2,
        light_layers=1,
        temporal_nodes=3,
        spatial_nodes=3,
        temporal_heads=2,
        spatial_heads=2,
        embedding=3,
    )
    needs_whole_batches = True  # batch normalisation
    recipe = BaselineRecipe.of(
        epochs=90,
        batch=64,
        learning_rate=1e-3,
        weight_decay=1e-5,
        clip=5.0,
        milestones=(50, 60, 70, 80),
        decay=0.1,
        patience=30,
    )

    def __init__(self, sizes: AutoStfSizes, frame: Frame, is_searching: bool = False) -> None:
        super().__init__()
        width = sizes.width
        self.sizes, self.patches = sizes, min(sizes.patches, frame.history)
        steps = -(-frame.history // self.patches)
        self.repeated = self.patches * steps - frame.history
        self.choice: Choice = frame.found or operators_in_turn(sizes, self.patches)
        temporal: Operators = [[name] for name in self.choice["temporal"]]
        spatial: Operators = [sorted(set(names)) for names in zip(*self.choice["spatial"], strict=True)]
        if is_searching:
            temporal, spatial = len(temporal) * [TEMPORAL], len(spatial) * [SPATIAL]
        identity = StidSizes(width=width, layers=sizes.identity_layers, dropout=sizes.dropout)
        self.identity = Stid(identity, replace(frame, horizon=width))
        self.value = nn.Linear(1, width)
        over_time = {
            "convolution": lambda: NormedConvolution(width),
            "attention": lambda: SparseAttention(width, sizes.temporal_heads),
        }
        over_nodes = {
            "given-graph": lambda: HopOperator(sizes, is_given=True),
            "learned-graph": lambda: HopOperator(sizes, is_given=False),
            "attention": lambda: SpatialAttention(sizes, frame.nodes),
        }
        self.temporal_cell = OperatorCell(temporal, over_time)
        self.condense = nn.Linear(steps, 1)
        self.join = nn.Linear(2 * width, width)
        self.light = nn.Sequential(*(LightLayer(width, sizes.light_dropout) for _ in range(sizes.light_layers)))
        self.spatial_cell = OperatorCell(spatial, over_nodes)
        is_learned = any("learned-graph" in names for names in spatial)
        self.learned = LearnedGraph(frame.nodes, sizes.embedding) if is_learned else None
        self.fuse = nn.Linear(self.patches * width, width)
        self.head = nn.Sequential(
            nn.Linear(2 * width, sizes.head_width), nn.ReLU(), nn.Linear(sizes.head_width, frame.horizon)
        )
        is_near = (frame.adjacency + frame.adjacency.T > 0) | torch.eye(frame.nodes, dtype=torch.bool)
        self.given = nn.Buffer(frame.adjacency.T.contiguous(), persistent=False)
        self.is_near = nn.Buffer(is_near, persistent=False)

    def forward(self, values: Readings, time_of_day: Bins, day_of_week: Bins, *more: Tensor | None) -> Forecast:
        identity = self.identity(values, time_of_day, day_of_week).transpose(1, 2)  # batch node width
        series = F.pad(values.transpose(1, 2), (self.repeated, 0), mode="replicate")
        states = self.temporal_cell(self.value(series[..., None]), self.temporal_paths())
        steps = rearrange(states, "b n (p t) w -> b p n w t", p=self.patches)
        patches = self.condense(steps)[..., 0]  # batch patch node width
        patches = self.light(self.join(side_by_side(identity[:, None], patches)))
        weights = [self.given] if self.learned is None else [self.given, self.learned()]
        if self.sizes.as_released:
            weights = [graph.diagonal().diag() for graph in weights]
        graphs = Graphs(self.is_near, *weights)
        found = [
            self.spatial_cell(patches[:, patch], self.spatial_paths(patch), graphs) for patch in range(self.patches)
        ]
        fused = self.fuse(torch.cat(found, dim=-1))
        return self.head(torch.cat([identity, fused], dim=-1)).transpose(1, 2)

    def temporal_paths(self) -> list[Path]:
        """Return the operators of each edge of the cell over time."""
        return [[(name, 1.0)] for name in self.choice["temporal"]]

    def spatial_paths(self, patch: int) -> list[Path]:
        """Return the operators of each edge of the cell over the network for a patch."""
        return [[(name, 1.0)] for name in self.choice["spatial"][patch]]

    def inherit(self, earlier: nn.Module) -> None:
        """Take over the weights of the operators that the search chose, and of all parts around them."""
        known = earlier.state_dict()
        self.load_state_dict({name: known[name] for name in self.state_dict()})

    @classmethod
    def stages(cls, sizes: AutoStfSizes, recipe: BaselineRecipe) -> tuple[BaselineStage, ...]:
        """Return the search."""
        return (BaselineStage(recipe.training, "search", SEARCH_SHARE, build=partial(SearchNetwork, sizes)),)


class SearchNetwork(AutoStf):
    """All operators on all edges; every pass in training tries two of each edge, every pass in use the likeliest."""

    def __init__(self, sizes: AutoStfSizes, frame: Frame) -> None:
        super().__init__(sizes, frame, is_searching=True)
        edges = math.comb(sizes.spatial_nodes, 2)  # from each node of a cell to every later one
        self.temporal_scores = nn.Parameter(torch.zeros(math.comb(sizes.temporal_nodes, 2), len(TEMPORAL)))
        self.spatial_scores = nn.Parameter(torch.zeros(self.patches, edges, len(SPATIAL)))

    def temporal_paths(self) -> list[Path]:
        """Return the operators that each edge of the cell over time tries."""
        return [self._path(scores, TEMPORAL) for scores in self.temporal_scores]

    def spatial_paths(self, patch: int) -> list[Path]:
        """Return the operators that each edge of the cell over the network tries for a patch."""
        return [self._path(scores, SPATIAL) for scores in self.spatial_scores[patch]]

    def _path(self, scores: Float[Tensor, " operator"], names: Sequence[str]) -> Path:
        if not self.training:
            return [(names[int(scores.argmax())], 1.0)]
        probabilities = scores.detach().softmax(dim=0)
        drawn = torch.multinomial(probabilities, 2, replacement=True, generator=current_generator())
        if drawn[0] == drawn[1]:
            return [(names[int(drawn[0])], 1.0)]
        return list(zip([names[number] for number in drawn.tolist()], scores[drawn].softmax(dim=0), strict=True))

    def found(self) -> dict[str, Any]:
        """Return the likeliest operator of every edge."""
        return {
            "temporal": [TEMPORAL[best] for best in self.temporal_scores.argmax(dim=-1).tolist()],
            "spatial": [[SPATIAL[best] for best in patch] for patch in self.spatial_scores.argmax(dim=-1).tolist()],
        }


class OperatorCell(nn.Module):
    """Nodes in a row, each the sum of its edges' outputs for all nodes before it; returns the sum of all nodes."""

    def __init__(self, edges: Operators, make: Mapping[str, Callable[[], nn.Module]]) -> None:
        super().__init__()
        self.edges = nn.ModuleList(nn.ModuleDict({name: make[name]() for name in names}) for names in edges)

    def forward(self, states: Tensor, paths: Sequence[Path], *more: Graphs) -> Tensor:
        nodes, place = [states], 0
        while place < len(paths):
            arriving = [
                weight * self.get_submodule(f"edges.{place + sender}.{name}")(nodes[sender], *more)
                for sender in range(len(nodes))
                for name, weight in paths[place + sender]
            ]
            place += len(nodes)
            nodes.append(sum(arriving[1:], arriving[0]))
        return sum(nodes[1:], states)


def operators_in_turn(sizes: AutoStfSizes, patches: int) -> Choice:
    """Return a choice in which operators take turns, for networks without a search."""
    temporal, spatial = (range(math.comb(nodes, 2)) for nodes in (sizes.temporal_nodes, sizes.spatial_nodes))
    return {
        "temporal": [TEMPORAL[edge % len(TEMPORAL)] for edge in temporal],
        "spatial": [[SPATIAL[(patch + edge) % len(SPATIAL)] for edge in spatial] for patch in range(patches)],
    }


class NormedConvolution(GatedConvolution):
    """A gated convolution of positive states, normalised; zeros stand before the first step."""

    def __init__(self, width: int) -> None:
        super().__init__(width, DILATION)
        self.norm = FeatureNorm(width, affine=False)

    def forward(self, states: StatesInTime) -> StatesInTime:
        return self.norm(super().forward(F.pad(F.relu(states), (0, 0, DILATION, 0))))


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

    def weights(self, queries: OfHeads, keys: OfHeads) -> Float[Tensor, "batch node head time time2"]:
        """Return the weights of all steps for each step."""
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        steps = scores.shape[-1]
        count = SPARSITY * math.ceil(math.log(steps))
        if count >= steps:
            return scores.softmax(dim=-1)
        best = (scores.amax(dim=-1) - scores.mean(dim=-1)).topk(count, dim=-1).indices
        attends = torch.zeros_like(scores[..., 0], dtype=torch.bool).scatter(-1, best, True)
        return torch.where(attends[..., None], scores.softmax(dim=-1), 1 / steps)


class HopOperator(nn.Module):
    """States after no, one, two, ... steps over a graph, mixed by one linear layer and normalised."""

    def __init__(self, sizes: AutoStfSizes, is_given: bool) -> None:
        super().__init__()
        self.hops, self.is_given = sizes.hops, is_given
        self.linear = nn.Linear((sizes.hops + 1) * sizes.width, sizes.width)
        self.norm = FeatureNorm(sizes.width)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, states: States, graphs: Graphs) -> States:
        graph = graphs.given if self.is_given else graphs.learned
        assert graph is not None  # it is there where an operator needs it
        return self.dropout(self.norm(self.linear(torch.cat(hops(F.relu(states), graph, self.hops), dim=-1))))


class SpatialAttention(nn.Module):
    """Layers of attention among nodes, in turn among all and among neighbours."""

    def __init__(self, sizes: AutoStfSizes, nodes: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(nodes, sizes.width), requires_grad=not sizes.as_released)
        layer = NodeAttentionLayer(sizes.width, sizes.spatial_heads, sizes.light_dropout)
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(sizes.attention_layers))  # alike, as released
        self.norm = nn.LayerNorm(sizes.width)
        self.dropout = Dropout(sizes.light_dropout)

    def forward(self, states: States, graphs: Graphs) -> States:
        states = self.dropout(states + self.positions)
        for number, layer in enumerate(self.layers):
            states = layer(states, graphs.is_near if number % 2 else None)
        return self.norm(states)


class NodeAttentionLayer(nn.Module):
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

    def forward(self) -> Graph:
        """Return the graph, receiver x sender."""
        scores = F.relu(self.receivers @ self.senders.T)
        return scores.masked_fill(scores == 0, MASKED).softmax(dim=1)
