"""Causal attention of one patch at a time, with a cache of keys and values.

Features come first and series (one node of one sample) last, so that every step works on long contiguous rows.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from candor.nets.candor.ops import is_fast_on_cpu

Columns = Float[Tensor, "hidden series"]


class KeyValueCache:
    """Keys and values of the patches so far, of which there will be `patches` at most."""

    def __init__(self, patches: int, heads: int) -> None:
        self.patches, self.heads = patches, heads
        self.length = 0
        self.keys: list[Tensor] = []  # of the plain form: head width series
        self.values: list[Tensor] = []
        self.storage: _Storage | None = None  # of the fast form
        self.order: Tensor | None = None  # of the fast form, see `_Attend`


def attend(
    states: Columns,
    weight: Float[Tensor, "three_hidden hidden"],
    bias: Float[Tensor, " three_hidden"],
    cache: KeyValueCache,
    mask: Float[Tensor, "patch head series"] | None = None,
) -> Columns:
    """Return what the next patch takes from itself and the patches before it, and add it to the cache.

    Weight and bias are those of the projections to queries, keys and values, one below the other; the mask holds
    factors of the attention weights (dropout).
    """
    step = _attend_fast if is_fast_on_cpu(states) else attend_plain
    mixed = step(states, weight, bias, cache, mask)
    cache.length += 1
    return mixed


def attend_plain(states: Tensor, weight: Tensor, bias: Tensor, cache: KeyValueCache, mask: Tensor | None) -> Tensor:
    projected = (weight @ states + bias[:, None]).unflatten(0, (3, cache.heads, -1))
    query, key, value = projected[0], projected[1], projected[2]
    cache.keys.append(key)
    cache.values.append(value)
    keys, values = torch.stack(cache.keys), torch.stack(cache.values)  # patch head width series
    weights = ((keys * query).sum(dim=2) * query.shape[1] ** -0.5).softmax(dim=0)
    if mask is not None:
        weights = weights * mask
    return (values * weights[:, :, None]).sum(dim=0).flatten(0, 1)


def _attend_fast(states: Tensor, weight: Tensor, bias: Tensor, cache: KeyValueCache, mask: Tensor | None) -> Tensor:
    if cache.storage is None:
        shape = (cache.patches, cache.heads, len(states) // cache.heads, states.shape[1])
        cache.storage, cache.order = _Storage(weight.new_empty(2, *shape)), weight.new_zeros(())
    mixed: Tensor
    mixed, cache.order = _Attend.apply(states, weight, bias, cache.order, mask, cache.storage, cache.length)
    return mixed


class _Storage:
    """Keys and values in memory that is never copied as the sequence grows, and in training their gradients.

    Every step refers to it until its gradient is computed, so it may not refer to a step: such a circle of references
    through autograd is never freed.
    """

    def __init__(self, keys_and_values: Float[Tensor, "2 patch head width series"]) -> None:
        self.keys, self.values = keys_and_values.unbind()
        self._gradients: Tensor | None = None

    def gradients(self) -> tuple[Tensor, ...]:
        """Return where the gradients of keys and values add up, zeros at first."""
        if self._gradients is None:
            self._gradients = self.keys.new_zeros(2, *self.keys.shape)
        return self._gradients.unbind()


class _Attend(torch.autograd.Function):
    """One query against all keys so far, with its gradient.

    A step's keys and values are used by all later steps, which add to their gradients in the storage. The scalar
    `order` is passed from step to step, so that autograd runs those steps before the one that made the keys.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        states, weight, bias, order, mask, storage, place = inputs
        _, heads, width, series = storage.keys.shape
        query, key, value = torch.addmm(bias[:, None], weight, states).view(3, heads, width, series)
        storage.keys[place], storage.values[place] = key, value
        keys, values = storage.keys[: place + 1], storage.values[: place + 1]
        scores = (keys * query).sum(dim=2).mul_(width**-0.5)  # patch head series
        weights = scores.softmax(dim=0)
        used = weights if mask is None else weights * mask
        mixed = (values * used[:, :, None]).sum(dim=0).view(heads * width, series)
        ctx.save_for_backward(states, weight, query, weights, used, mask)
        ctx.storage, ctx.place = storage, place
        return mixed, order.clone()

    @staticmethod
    def backward(ctx: Any, outer: Tensor, order: Tensor) -> Any:
        states, weight, query, weights, used, mask = ctx.saved_tensors
        storage, seen = ctx.storage, ctx.place + 1
        keys, values = storage.keys[:seen], storage.values[:seen]
        of_keys, of_values = storage.gradients()
        outer = outer.contiguous().view(query.shape)
        of_values[:seen].addcmul_(used[:, :, None], outer)
        of_used = (values * outer).sum(dim=2)
        of_weights = of_used if mask is None else of_used.mul_(mask)
        of_scores = torch.ops.aten._softmax_backward_data(of_weights, weights, 0, weights.dtype)
        of_scores.mul_(query.shape[1] ** -0.5)
        of_query = (keys * of_scores[:, :, None]).sum(dim=0)
        of_keys[:seen].addcmul_(of_scores[:, :, None], query)
        of_projected = torch.cat([of_query, of_keys[ctx.place], of_values[ctx.place]]).view(3 * len(states), -1)
        return weight.T @ of_projected, of_projected @ states.T, of_projected.sum(dim=1), order, None, None, None
