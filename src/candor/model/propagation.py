"""Operators on edges: the support of one direction, its normalised weights, and walks along it.

W = RowNorm(T * omega * a) is one softmax over incoming edges, because both softmax denominators depend on the receiver
only and cancel: of log T + the score of omega + the score of a. Powers of W are never formed:
g[m] = W^m x - diag(W^m) x, with W^m x by repeated application and diag(W^m) from the closed walks of length m.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

# Below this many nodes a dense product is faster than gathering along edges (measured by benchmarks/speed.py).
DENSE_BELOW = 700

EdgeWeights = Float[Tensor, "batch position edge"]
Features = Float[Tensor, "batch position node feature"]


@dataclass(frozen=True)
class EdgeArrays:
    """Edges of the physical graph as plain arrays: entry e leads from `source[e]` to `target[e]`, J > 0."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len({len(self.source), len(self.target), len(self.weight)}) > 1:
            raise ValueError("the columns of the edges differ in length")
        if len(self.weight) and not (np.isfinite(self.weight).all() and self.weight.min() > 0):
            raise ValueError("edge weights must be positive numbers")
        if len(np.unique(np.stack([self.source, self.target]), axis=1).T) < len(self.source):
            raise ValueError("an edge is listed twice")


class DirectionalSupport(nn.Module):
    """T of one direction on edges (eq. app_directional_support), receiver and sender of each, and its closed walks."""

    receiver: Tensor
    sender: Tensor
    log_support: Tensor

    def __init__(self, edges: EdgeArrays, nodes: int, orders: int, *, is_reverse: bool) -> None:
        super().__init__()
        self.nodes = nodes
        # Forward: the source sends to the target, normalised over what the source sends. Reverse: the other way round.
        sender, receiver = (edges.target, edges.source) if is_reverse else (edges.source, edges.target)
        strength = np.zeros(nodes)
        np.add.at(strength, sender, edges.weight)
        support = edges.weight / strength[sender]
        self.register_buffer("receiver", torch.from_numpy(receiver.astype(np.int64)), persistent=False)
        self.register_buffer("sender", torch.from_numpy(sender.astype(np.int64)), persistent=False)
        log_support = torch.from_numpy(np.log(support)).to(torch.get_default_dtype())
        self.register_buffer("log_support", log_support, persistent=False)
        for order in range(1, orders + 1):
            walks = torch.from_numpy(closed_walks(receiver, sender, nodes, order))
            self.register_buffer(f"walks_{order}", walks, persistent=False)

    def normalise(self, scores: EdgeWeights) -> EdgeWeights:
        """Returns the weights of the softmax over each receiver's incoming edges."""
        shape = (*scores.shape[:-1], self.nodes)
        receiver = self.receiver.expand_as(scores)
        largest = scores.new_full(shape, -torch.inf).scatter_reduce(-1, receiver, scores.detach(), "amax")
        exponentials = torch.exp(scores - largest.gather(-1, receiver))
        sums = scores.new_zeros(shape).scatter_add(-1, receiver, exponentials)
        return exponentials / sums.gather(-1, receiver)

    def operator(self, weights: EdgeWeights, orders: int) -> "Operator":
        """Returns W with what is needed to walk along it up to `orders` steps."""
        diagonals = [self._diagonal(weights, order) for order in range(1, orders + 1)]
        if self.nodes >= DENSE_BELOW:
            return Operator(self, weights, None, diagonals)
        cells = (self.receiver * self.nodes + self.sender).expand_as(weights)
        dense = weights.new_zeros(*weights.shape[:-1], self.nodes**2).scatter(-1, cells, weights)
        return Operator(self, weights, dense.unflatten(-1, (self.nodes, self.nodes)), diagonals)

    def _diagonal(self, weights: EdgeWeights, order: int) -> Float[Tensor, "batch position node"]:
        walks: Tensor = getattr(self, f"walks_{order}")
        along = weights[..., walks].prod(dim=-2)  # batch position walk
        start = self.receiver[walks[0]].expand_as(along)
        return weights.new_zeros(*weights.shape[:-1], self.nodes).scatter_add(-1, start, along)


@dataclass(frozen=True)
class Operator:
    """W of one direction, sample and position, ready to be applied."""

    support: DirectionalSupport
    weights: EdgeWeights
    dense: Float[Tensor, "batch position node node2"] | None
    diagonals: list[Float[Tensor, "batch position node"]]

    def walk(self, features: Features) -> list[Float[Tensor, "batch node feature"]]:
        """Returns W^m x without the diagonal, summed over positions, m = 1, 2, ... (eq. app_multihop_aggregation)."""
        contributions, reached = [], features
        for diagonal in self.diagonals:
            reached = self._spread(reached)
            contributions.append((reached - diagonal[..., None] * features).sum(dim=1))
        return contributions

    def _spread(self, features: Features) -> Features:
        if self.dense is not None:
            return self.dense @ features
        messages = self.weights[..., None] * features.index_select(2, self.support.sender)
        return torch.zeros_like(features).index_add(2, self.support.receiver, messages)


def closed_walks(
    receiver: NDArray[np.integer], sender: NDArray[np.integer], nodes: int, length: int
) -> NDArray[np.int64]:
    """Returns the walks of `length` edges that end where they begin, as edge numbers: step x walk.

    A walk i <- j <- ... <- i takes edges whose sender is the receiver of the next one.
    """
    receiver, sender = receiver.astype(np.int64), sender.astype(np.int64)
    by_receiver = np.argsort(receiver, kind="stable")
    first = np.searchsorted(receiver[by_receiver], np.arange(nodes + 1))
    walks = np.arange(len(receiver), dtype=np.int64)[None]
    for _ in range(length - 1):
        middle = sender[walks[-1]]
        choices = first[middle + 1] - first[middle]
        repeated = np.repeat(walks, choices, axis=1)
        offset = np.arange(choices.sum()) - np.repeat(np.cumsum(choices) - choices, choices)
        onward = by_receiver[np.repeat(first[middle], choices) + offset]
        walks = np.concatenate([repeated, onward[None]])
    return walks[:, sender[walks[-1]] == receiver[walks[0]]]
