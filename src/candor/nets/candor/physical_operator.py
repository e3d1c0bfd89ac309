"""The physical operator W of one direction: support on the edges, normalised weights, and walks along it.

W = RowNorm(T * omega * a) is one softmax over incoming edges, because both softmax denominators depend on the receiver
only and cancel: of log T + the score of omega + the score of a. Powers of W are never formed:
g[m] = W^m x - diag(W^m) x, with W^m x by repeated application and diag(W^m) from the closed walks of length m.

A position is the age of a patch: its place in the window of the last K_t patches, from the oldest to the newest. Every
age has weights of its own, and walks never lead from one age to another.

Equations: app_directional_support, app_multihop_aggregation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from candor.nets.candor.ops import is_plain
from candor.nets.candor.ops.sparse import EdgeList, SparseMatrix, sddmm, spmm

# From this share of all pairs of nodes on a dense product is faster than sums along edges (benchmarks/scaling.py).
DENSE_FROM = 0.2

EdgeWeights = Float[Tensor, "batch position edge"]
Features = Float[Tensor, "batch node position feature"]


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
    """T of one direction on edges (eq. app_directional_support) and its closed walks; edges are listed by receiver."""

    receiver: Tensor
    sender: Tensor
    log_support: Tensor
    by_receiver_and_position: Tensor
    by_sender: Tensor
    by_sender_and_position: Tensor

    def __init__(self, edges: EdgeArrays, nodes: int, orders: int, positions: int, *, is_reverse: bool) -> None:
        super().__init__()
        self.nodes, self.orders, self.positions = nodes, orders, positions
        # Forward: the source sends to the target, normalised over what the source sends. Reverse: the other way round.
        sender, receiver = (edges.target, edges.source) if is_reverse else (edges.source, edges.target)
        order = np.argsort(receiver, kind="stable")
        sender, receiver, weight = sender[order], receiver[order], edges.weight[order]
        strength = np.zeros(nodes)
        np.add.at(strength, sender, weight)
        log_support = torch.from_numpy(np.log(weight / strength[sender])).to(torch.get_default_dtype())
        self.register_buffer("log_support", log_support, persistent=False)
        # A node at a position of the window is a row of its own; there is no edge from one position to another.
        of_position = np.arange(positions)[:, None]
        by_receiver_and_position = np.argsort((receiver * positions + of_position).ravel(), kind="stable")
        sender_and_position = (sender * positions + of_position).ravel()[by_receiver_and_position]
        numbers = {
            "receiver": receiver,
            "sender": sender,
            "by_sender": np.argsort(sender, kind="stable"),
            "by_receiver_and_position": by_receiver_and_position,
            "by_sender_and_position": np.argsort(sender_and_position, kind="stable"),
        } | {f"walks_{length}": closed_walks(receiver, sender, nodes, length) for length in range(1, orders + 1)}
        for name, array in numbers.items():
            self.register_buffer(name, torch.from_numpy(array.astype(np.int64)), persistent=False)

    def scores(
        self, receiving: Float[Tensor, "batch node width"], sending: Float[Tensor, "batch node width"]
    ) -> Float[Tensor, "batch edge"]:
        """Return the inner product of the states at both ends of each edge."""
        if is_plain():  # a batch of any size
            return (receiving[:, self.receiver] * sending[:, self.sender]).sum(dim=-1)
        single = EdgeList.of(self.receiver, self.sender, self.by_sender, self.nodes, self.nodes)
        edges = single.repeated(len(receiving))
        return sddmm(edges, receiving.flatten(0, 1), sending.flatten(0, 1)).view(len(receiving), -1)

    def normalise(self, scores: EdgeWeights) -> EdgeWeights:
        """Return the weights of the softmax over each receiver's incoming edges."""
        shape = (*scores.shape[:-1], self.nodes)
        receiver = self.receiver.expand_as(scores)
        largest = scores.new_full(shape, -torch.inf).scatter_reduce(-1, receiver, scores.detach(), "amax")
        exponentials = torch.exp(scores - largest.gather(-1, receiver))
        sums = scores.new_zeros(shape).scatter_add(-1, receiver, exponentials)
        return exponentials / sums.gather(-1, receiver)

    def operator(self, weights: EdgeWeights) -> "Operator":
        """Return W, ready to be applied."""
        diagonals = [self._diagonal(weights, length) for length in range(1, self.orders + 1)]
        if not len(self.receiver):
            return Operator(diagonals, torch.zeros_like)
        if is_plain() or len(self.receiver) >= DENSE_FROM * self.nodes**2:
            dense = self._dense(weights)
            return Operator(diagonals, lambda features: (dense @ features.transpose(1, 2)).transpose(1, 2))
        receiver, sender = (
            (ends * self.positions + torch.arange(self.positions, device=ends.device)[:, None]).flatten()
            for ends in (self.receiver, self.sender)
        )
        order = self.by_receiver_and_position
        rows = self.nodes * self.positions
        single = EdgeList.of(receiver[order], sender[order], self.by_sender_and_position, rows, rows)
        ordered = weights.flatten(1).index_select(1, order).flatten()
        matrix = SparseMatrix(single.repeated(len(weights)), ordered)
        return Operator(diagonals, lambda features: spmm(matrix, features.flatten(0, 2)).view(features.shape))

    def _dense(self, weights: EdgeWeights) -> Float[Tensor, "batch position node node2"]:
        cells = (self.receiver * self.nodes + self.sender).expand_as(weights)
        dense = weights.new_zeros(*weights.shape[:-1], self.nodes**2).scatter(-1, cells, weights)
        return dense.unflatten(-1, (self.nodes, self.nodes))

    def _diagonal(self, weights: EdgeWeights, length: int) -> Float[Tensor, "batch node position"]:
        walks: Tensor = getattr(self, f"walks_{length}")
        if not walks.shape[1]:
            return weights.new_zeros(weights.shape[0], self.nodes, self.positions)
        along = weights[..., walks].prod(dim=-2)  # batch position walk
        start = self.receiver[walks[0]].expand_as(along)
        return weights.new_zeros(*weights.shape[:-1], self.nodes).scatter_add(-1, start, along).transpose(1, 2)


@dataclass(frozen=True)
class Operator:
    """W of one direction for every sample and position, ready to be applied.

    Args:
        diagonals: of W, W^2, ...
        multiply: gives the product W x.
    """

    diagonals: list[Float[Tensor, "batch node position"]]
    multiply: Callable[[Tensor], Tensor]

    def walk(self, features: Features) -> list[Float[Tensor, "batch node feature"]]:
        """Return W^m x without the diagonal, summed over positions, m = 1, 2, ... (eq. app_multihop_aggregation)."""
        contributions, reached = [], features
        for diagonal in self.diagonals:
            reached = self.multiply(reached)
            contributions.append(torch.addcmul(reached, diagonal[..., None], features, value=-1).sum(dim=2))
        return contributions


def closed_walks(
    receiver: NDArray[np.integer], sender: NDArray[np.integer], nodes: int, length: int
) -> NDArray[np.int64]:
    """Return the walks of `length` edges that end where they begin, as edge numbers: step x walk.

    A walk i <- j <- ... <- i takes edges whose sender is the receiver of the next one. The last edge is found by its
    two ends: following all edges would need memory for every open walk, of which dense networks have many.
    """
    receiver, sender = receiver.astype(np.int64), sender.astype(np.int64)
    walks = np.arange(len(receiver), dtype=np.int64)[None]
    if length == 1:
        return walks[:, sender == receiver]
    by_receiver = np.argsort(receiver, kind="stable")
    first = np.searchsorted(receiver[by_receiver], np.arange(nodes + 1))
    for _ in range(length - 2):
        middle = sender[walks[-1]]
        choices = first[middle + 1] - first[middle]
        repeated = np.repeat(walks, choices, axis=1)
        offset = np.arange(choices.sum()) - np.repeat(np.cumsum(choices) - choices, choices)
        onward = by_receiver[np.repeat(first[middle], choices) + offset]
        walks = np.concatenate([repeated, onward[None]])
    by_ends = np.argsort(receiver * nodes + sender)
    ends, wanted = (receiver * nodes + sender)[by_ends], sender[walks[-1]] * nodes + receiver[walks[0]]
    place = np.searchsorted(ends, wanted)
    place[place == len(ends)] = 0  # beyond the last
    is_closed = ends[place] == wanted
    return np.concatenate([walks[:, is_closed], by_ends[place[is_closed]][None]])
