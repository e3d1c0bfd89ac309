"""What carries a state from patch to patch: a gated recurrent unit and causal attention.

States stand with features first and series (one node of one sample) last, see ops/.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.ops.attention import KeyValueCache, attend
from candor.nets.candor.ops.gates import gated_step
from candor.nets.candor.settings import ModelSettings
from candor.nets.dropout import dropout_mask

Columns = Float[Tensor, "hidden series"]


class Recurrence(nn.Module):
    """A gated recurrent unit (Cho et al. 2014; gates as in PyTorch), one step at a time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(3 * width, width))
        self.weight_hh = nn.Parameter(torch.empty(3 * width, width))
        bound = 1 / math.sqrt(width)
        self.bias_ih = nn.Parameter(torch.empty(3 * width).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(3 * width).uniform_(-bound, bound))

    def begin(self, series: int) -> Columns:
        """Return the state before anything was seen."""
        return self.weight_hh.new_zeros(self.weight_hh.shape[1], series)

    def step(self, inputs: Float[Tensor, "series width"], state: Columns) -> Columns:
        """Return the state after one more input."""
        return gated_step(inputs, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


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

    def begin(self, patches: int) -> KeyValueCache:
        """Return an empty cache for `patches` patches."""
        return KeyValueCache(patches, self.heads)

    def step(self, states: Columns, cache: KeyValueCache) -> Float[Tensor, "series hidden"]:
        """Return what the next patch sees, given its states, and add it to the cache."""
        mask = None
        if self.training and self.rate > 0:
            mask = dropout_mask((cache.length + 1, self.heads, states.shape[1]), self.rate, states)
        mixed = attend(states, self.in_weight, self.in_bias, cache, mask)
        return F.linear(mixed.T, self.out.weight, self.out.bias)
