"""Causal attention over patches whose keys and values can be carried from patch to patch."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.model.settings import ModelSettings

Rows = Float[Tensor, "batch node patch hidden"]
Heads = Float[Tensor, "batch node head patch width"]


class CausalAttention(nn.Module):
    """Multi-head attention in which a patch sees itself and those before it (Vaswani et al. 2017)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width = settings.hidden
        self.heads, self.dropout = settings.heads, settings.dropout
        self.in_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_bias = nn.Parameter(torch.zeros(3 * width))
        self.out = nn.Linear(width, width)
        nn.init.zeros_(self.out.bias)  # as PyTorch's own attention begins

    def project(self, states: Rows) -> tuple[Heads, Heads, Heads]:
        """Returns the queries, keys and values of the states."""
        projected = F.linear(states, self.in_weight, self.in_bias)
        split = "batch node patch (part head width) -> part batch node head patch width"
        query, key, value = rearrange(projected, split, part=3, head=self.heads)
        return query, key, value

    def attend(
        self,
        query: Float[Tensor, "batch node head asked width"],
        key: Float[Tensor, "batch node head seen width"],
        value: Float[Tensor, "batch node head seen width"],
    ) -> Float[Tensor, "batch node asked hidden"]:
        """Returns what the last patches see; queries stand for the last of the patches that have keys."""
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        seen, asked = key.shape[-2], query.shape[-2]
        is_later = torch.ones(asked, seen, dtype=torch.bool, device=scores.device).triu(seen - asked + 1)
        weights = scores.masked_fill(is_later, -torch.inf).softmax(dim=-1)
        mixed = F.dropout(weights, self.dropout, self.training) @ value
        return self.out(rearrange(mixed, "batch node head patch width -> batch node patch (head width)"))
