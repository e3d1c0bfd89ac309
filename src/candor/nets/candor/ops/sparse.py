"""Products with sparse matrices whose entries are the edges of a batch of graphs.

    spmm(W, x)_i  = sum over edges e into i of w_e x_sender(e)      sparse-dense product
    sddmm(q, k)_e = <q_receiver(e), k_sender(e)>                    sampled dense-dense product

Each gives the gradients of the other. The fast forms never form anything of the size edges x features: rows are read
where they stand and summed by `embedding_bag`, on every device.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from candor.nets.candor.ops import is_plain

Receivers = Float[Tensor, "receiver feature"]
Senders = Float[Tensor, "sender feature"]
EdgeValues = Float[Tensor, " edge"]


@dataclass(frozen=True)
class CompressedRows:
    """The entries of a sparse matrix by row: `column` of each entry, `first` entry of each row, `row` of each entry."""

    column: Int[Tensor, " edge"]
    first: Int[Tensor, " row_plus_one"]
    row: Int[Tensor, " edge"]

    @classmethod
    def of(cls, row: Tensor, column: Tensor, rows: int) -> "CompressedRows":
        """Return the entries that are given in the order of their rows."""
        return cls(column, torch.searchsorted(row, torch.arange(rows + 1, device=row.device)), row)

    def product(self, weights: EdgeValues, dense: Float[Tensor, "column feature"]) -> Float[Tensor, "row feature"]:
        """Return the product with a dense matrix."""
        return F.embedding_bag(
            self.column, dense.contiguous(), self.first, mode="sum", per_sample_weights=weights,
            include_last_offset=True,
        )  # fmt: skip

    def inner_products(self, left: Float[Tensor, "row feature"], right: Float[Tensor, "column feature"]) -> EdgeValues:
        """Return the inner products of row and column at each entry.

        PyTorch has them as the gradient of `embedding_bag` with respect to its weights.
        """
        parts = left.contiguous(), right.contiguous(), self.column, self.first, self.row
        return torch.ops.aten._embedding_bag_per_sample_weights_backward(*parts, 0)


@dataclass(frozen=True)
class EdgeList:
    """Edges of a batch of graphs, listed by receiver; values of edges stand in this order."""

    by_receiver: CompressedRows
    by_sender: CompressedRows
    order: Int[Tensor, " edge"]
    """For each edge by sender its place among those by receiver."""

    @classmethod
    def of(cls, receiver: Tensor, sender: Tensor, order: Tensor, receivers: int, senders: int) -> "EdgeList":
        """Return the list of edges that are sorted by receiver; `order` is the order that sorts them by sender."""
        by_sender = CompressedRows.of(sender[order], receiver[order], senders)
        return cls(CompressedRows.of(receiver, sender, receivers), by_sender, order)

    def repeated(self, copies: int) -> "EdgeList":
        """Return the edges of several copies of the graph, one after the other."""
        edges = len(self.order)
        receivers, senders = len(self.by_receiver.first) - 1, len(self.by_sender.first) - 1

        def repeat(half: CompressedRows, rows: int, columns: int) -> CompressedRows:
            first = torch.cat([_shifted(half.first[:-1], copies, edges), half.first.new_tensor([copies * edges])])
            return CompressedRows(_shifted(half.column, copies, columns), first, _shifted(half.row, copies, rows))

        return EdgeList(
            repeat(self.by_receiver, receivers, senders),
            repeat(self.by_sender, senders, receivers),
            _shifted(self.order, copies, edges),
        )


def _shifted(numbers: Tensor, copies: int, by: int) -> Tensor:
    return (numbers + by * torch.arange(copies, device=numbers.device)[:, None]).flatten()


@dataclass(frozen=True)
class SparseMatrix:
    """A matrix of receivers x senders with a weight for each edge."""

    edges: EdgeList
    weights: EdgeValues

    @cached_property
    def transposed_weights(self) -> EdgeValues:
        """The weights in the order of senders, which gradients need: made once for many products."""
        return self.weights.detach()[self.edges.order]


def spmm(matrix: SparseMatrix, dense: Senders) -> Receivers:
    """Return the weighted sums of what the edges bring to each receiver."""
    if is_plain():
        return spmm_plain(matrix, dense)
    return _Spmm.apply(matrix.weights, dense, matrix.transposed_weights, matrix.edges)


def spmm_plain(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    entries = matrix.edges.by_receiver
    sent = matrix.weights[:, None] * dense[entries.column]
    return dense.new_zeros(len(entries.first) - 1, dense.shape[1]).index_add(0, entries.row, sent)


def sddmm(edges: EdgeList, left: Receivers, right: Senders) -> EdgeValues:
    """Return the inner products of a row of `left` at the receiver and one of `right` at the sender of each edge."""
    return sddmm_plain(edges, left, right) if is_plain() else _Sddmm.apply(left, right, edges)


def sddmm_plain(edges: EdgeList, left: Tensor, right: Tensor) -> Tensor:
    return (left[edges.by_receiver.row] * right[edges.by_receiver.column]).sum(dim=1)


class _Spmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, dense: Tensor, transposed_weights: Tensor, edges: EdgeList) -> Tensor:
        ctx.save_for_backward(dense, transposed_weights)
        ctx.edges = edges
        return edges.by_receiver.product(weights, dense)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        dense, transposed_weights = ctx.saved_tensors
        of_weights = ctx.edges.by_receiver.inner_products(outer, dense)
        return of_weights, ctx.edges.by_sender.product(transposed_weights, outer), None, None


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, edges: EdgeList) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.edges = edges
        return edges.by_receiver.inner_products(left, right)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        left, right = ctx.saved_tensors
        edges = ctx.edges
        of_left = edges.by_receiver.product(outer, right)
        return of_left, edges.by_sender.product(outer[edges.order], left), None
