"""Causal attention over patches whose keys and values are carried from patch to patch.

Features come first and series (one node of one sample) last, so that every step works on long contiguous rows. Keys and
values, and in training their gradients, live in one place and are never copied as the sequence grows.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.settings import ModelSettings
from candor.nets.dropout import dropout_mask

Columns = Float[Tensor, "hidden series"]


@dataclass
class Shelf:
    """Keys and values of the patches so far, with room for those to come, and in training their gradients.

    Every step keeps it for its gradient, so it may hold nothing that remembers a step: such a circle is never freed.
    """

    keys: Float[Tensor, "patch head width series"]
    values: Float[Tensor, "patch head width series"]
    key_gradients: Tensor | None = None
    value_gradients: Tensor | None = None

    def gradients(self) -> tuple[Tensor, Tensor]:
        """Returns the places where the gradients of keys and values add up, zeros at first."""
        if self.key_gradients is None or self.value_gradients is None:
            self.key_gradients, self.value_gradients = torch.zeros_like(self.keys), torch.zeros_like(self.values)
        return self.key_gradients, self.value_gradients


@dataclass
class AttentionMemory:
    """What is carried from step to step: the shelf, how full it is, and `turn`, which orders the steps' gradients."""

    shelf: Shelf
    turn: Tensor
    length: int = 0


class CausalAttention(nn.Module):
    """Multi-head attention in which a patch sees itself and those before it (Vaswani et al. 2017)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width = settings.hidden
        self.heads, self.rate = settings.heads, settings.dropout
        self.in_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_bias = nn.Parameter(torch.zeros(3 * width))
        self.out = nn.Linear(width, width)
        nn.init.zeros_(self.out.bias)  # as PyTorch's own attention begins

    def begin(self, series: int, patches: int) -> AttentionMemory:
        """Returns an empty memory with room for `patches` patches."""
        shape = (patches, self.heads, self.out.in_features // self.heads, series)
        keys, values = self.in_weight.new_empty(2, *shape).unbind()
        return AttentionMemory(Shelf(keys, values), self.in_weight.new_zeros(()))

    def step(self, states: Columns, memory: AttentionMemory) -> Float[Tensor, "series hidden"]:
        """Returns what the next patch sees, given its states, and updates the memory."""
        seen = memory.length + 1
        mask = None
        if self.training and self.rate > 0:
            mask = dropout_mask((seen, self.heads, states.shape[1]), self.rate, states)
        place = memory.shelf, memory.length
        mixed, memory.turn = _Attend.apply(states, self.in_weight, self.in_bias, memory.turn, mask, *place)
        memory.length = seen
        return F.linear(mixed.T, self.out.weight, self.out.bias)


class _Attend(torch.autograd.Function):
    """One query against all keys so far.

    A step's keys and values are used by all later steps: those add to the gradients on the shelf, and `turn`, handed
    from step to step, makes sure that they have done so before a step reads the gradients of its own.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor,
        turn: Tensor,
        mask: Tensor | None,
        shelf: Shelf,
        place: int,
    ) -> tuple[Tensor, Tensor]:
        _, heads, width, series = shelf.keys.shape
        query, key, value = torch.addmm(bias[:, None], weight, states).view(3, heads, width, series)
        shelf.keys[place], shelf.values[place] = key, value
        keys, values = shelf.keys[: place + 1], shelf.values[: place + 1]
        scores = (keys * query).sum(dim=2).mul_(width**-0.5)  # patch head series
        weights = scores.softmax(dim=0)
        used = weights if mask is None else weights * mask
        mixed = (values * used[:, :, None]).sum(dim=0).view(heads * width, series)
        ctx.save_for_backward(states, weight, query, weights, used, mask)
        ctx.shelf, ctx.place = shelf, place
        return mixed, turn.clone()

    @staticmethod
    def backward(ctx: Any, outer: Tensor, turn: Tensor) -> Any:
        states, weight, query, weights, used, mask = ctx.saved_tensors
        shelf, seen = ctx.shelf, ctx.place + 1
        keys, values = shelf.keys[:seen], shelf.values[:seen]
        of_keys, of_values = shelf.gradients()
        outer = outer.contiguous().view(query.shape)
        of_values[:seen].addcmul_(used[:, :, None], outer)
        of_used = (values * outer).sum(dim=2)
        of_weights = of_used if mask is None else of_used.mul_(mask)
        of_scores = torch.ops.aten._softmax_backward_data(of_weights, weights, 0, weights.dtype)
        of_scores.mul_(query.shape[1] ** -0.5)
        of_query = (keys * of_scores[:, :, None]).sum(dim=0)
        of_keys[:seen].addcmul_(of_scores[:, :, None], query)
        of_projected = torch.cat([of_query, of_keys[ctx.place], of_values[ctx.place]]).view(3 * len(states), -1)
        return weight.T @ of_projected, of_projected @ states.T, of_projected.sum(dim=1), turn, None, None, None
