"""Sums along edges and products across them: the two operations that every graph term is made of.

    spread(w, x)_i = sum over edges e into i of w_e x_sender(e)
    meet(q, k)_e   = <q_receiver(e), k_sender(e)>

Each gives the gradients of the other, and neither forms anything of the size edges x features: rows are read where they
stand and summed bag by bag.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

Table = Float[Tensor, "row feature"]
Ending = Float[Tensor, "bag feature"]
PerEdge = Float[Tensor, " edge"]


@dataclass(frozen=True)
class Bags:
    """Edges listed by the row they end in: `rows` are read, `first` says where the edges of each row begin."""

    rows: Int[Tensor, " edge"]
    first: Int[Tensor, " row_plus_one"]
    owner: Int[Tensor, " edge"]

    @property
    def count(self) -> int:
        """How many bags there are."""
        return len(self.first) - 1

    def total(self, table: Table, weights: PerEdge) -> Ending:
        """Returns the weighted sum of the rows that each bag reads."""
        table = table.contiguous()
        return F.embedding_bag(
            self.rows, table, self.first, mode="sum", per_sample_weights=weights, include_last_offset=True
        )

    def products(self, ending: Ending, beginning: Table) -> PerEdge:
        """Returns for each edge the inner product of the row it ends in and the row it reads.

        That is how sums of bags depend on their weights, and PyTorch has it as the gradient of that.
        """
        parts = ending.contiguous(), beginning.contiguous(), self.rows, self.first, self.owner
        return torch.ops.aten._embedding_bag_per_sample_weights_backward(*parts, 0)


@dataclass(frozen=True)
class Routes:
    """Edges of a batch of graphs in both directions; values on edges are listed in the order of `along`.

    Args:
        along: edges by receiver.
        back: edges by sender.
        turn: for each edge of `back` its place in `along`.
    """

    along: Bags
    back: Bags
    turn: Int[Tensor, " edge"]

    @classmethod
    def of(
        cls,
        receiver: Int[Tensor, " edge"],
        sender: Int[Tensor, " edge"],
        turn: Int[Tensor, " edge"],
        receivers: int,
        senders: int,
    ) -> "Routes":
        """Returns the routes of edges that are sorted by receiver; `turn` is the order that sorts them by sender."""
        return cls(_bags(receiver, sender, receivers), _bags(sender[turn], receiver[turn], senders), turn)

    def repeated(self, copies: int) -> "Routes":
        """Returns the routes of several copies of the graph, one after the other."""
        edges = len(self.turn)

        def repeat(bags: Bags, other: Bags) -> Bags:
            first = torch.cat([_shifted(bags.first[:-1], copies, edges), bags.first.new_tensor([copies * edges])])
            return Bags(_shifted(bags.rows, copies, other.count), first, _shifted(bags.owner, copies, bags.count))

        along, back = repeat(self.along, self.back), repeat(self.back, self.along)
        return Routes(along, back, _shifted(self.turn, copies, edges))


def _bags(ending: Tensor, beginning: Tensor, rows: int) -> Bags:
    first = torch.searchsorted(ending, torch.arange(rows + 1, device=ending.device))
    return Bags(beginning, first, ending)


def _shifted(numbers: Tensor, copies: int, by: int) -> Tensor:
    return (numbers + by * torch.arange(copies, device=numbers.device)[:, None]).flatten()


def spread(routes: Routes, weights: PerEdge, turned: PerEdge, features: Table) -> Ending:
    """Returns the weighted sum of what arrives at each row.

    Args:
        routes: the edges.
        weights: their weights.
        turned: the same in the order of `routes.back`, which the gradient needs; made once for many calls.
        features: what is sent.
    """
    return _Spread.apply(weights, features, turned, routes)


def meet(routes: Routes, receiving: Ending, sending: Table) -> PerEdge:
    """Returns the inner products of the rows at both ends of each edge."""
    return _Meet.apply(receiving, sending, routes)


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, weights: Tensor, features: Tensor, turned: Tensor, routes: Routes) -> Tensor:
        ctx.save_for_backward(features, turned)
        ctx.routes = routes  # type: ignore[attr-defined]
        return routes.along.total(features, weights)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        features, turned = ctx.saved_tensors
        return ctx.routes.along.products(outer, features), ctx.routes.back.total(outer, turned), None, None


class _Meet(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, receiving: Tensor, sending: Tensor, routes: Routes) -> Tensor:
        ctx.save_for_backward(receiving, sending)
        ctx.routes = routes  # type: ignore[attr-defined]
        return routes.along.products(receiving, sending)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        receiving, sending = ctx.saved_tensors
        routes = ctx.routes
        return routes.along.total(sending, outer), routes.back.total(receiving, outer[routes.turn]), None
