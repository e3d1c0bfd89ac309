"""Small parts that several sections use.

| equation | where |
|---|---|
| app_fusion_position | `sinusoidal_positions` |
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.dropout import Dropout

NORM_FLOOR = 1e-5


class Mlp(nn.Module):
    """Linear, activation, dropout, Linear."""

    def __init__(
        self, inputs: int, hidden: int, outputs: int, dropout: float, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)
        self.activation = activation or nn.GELU()
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        return self.finish(self.first(inputs))

    def finish(self, hidden: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows outputs"]:
        """Returns the output from the first layer's sum, for callers that computed it part by part."""
        return self.second(self.dropout(self.activation(hidden)))


def split_linear(layer: nn.Linear, *widths: int) -> tuple[Tensor, ...]:
    """Returns the blocks of a layer's weight that belong to the parts of a concatenated input.

    W [x || y] = W_x x + W_y y: parts that are shared by nodes, samples or patches are multiplied once and broadcast.
    """
    if sum(widths) != layer.in_features:
        raise ValueError(f"parts of widths {widths} do not make up {layer.in_features} inputs")
    return torch.split(layer.weight, list(widths), dim=1)


def read_normalised(
    states: Float[Tensor, "*rows inputs"], layer: nn.Linear, norm: nn.LayerNorm, reading: Float[Tensor, "outputs wide"]
) -> Float[Tensor, "*rows outputs"]:
    """Returns R LN(A x + a) without the wide A x + a.

    Less its mean over features that is A' x + a'; its variance is then a quadratic form in x, and R reads it through
    the narrow map R diag(g) A'.
    """
    centred = layer.weight - layer.weight.mean(dim=0)
    offset = layer.bias - layer.bias.mean()
    scaled = reading * norm.weight
    quadratic = centred.T @ centred / len(centred)
    linear = centred.T @ offset * (2 / len(centred))
    both = F.linear(states, torch.cat([quadratic, scaled @ centred]), torch.cat([linear, scaled @ offset]))
    of_variance, read = both.split([states.shape[-1], len(reading)], dim=-1)
    variance = (of_variance * states).sum(dim=-1, keepdim=True) + offset.square().mean()
    return read * torch.rsqrt(variance.clamp(min=0) + norm.eps) + reading @ norm.bias


def add_gated(
    base: Float[Tensor, "*rows wide"], change: Float[Tensor, "*rows wide"], logits: Float[Tensor, "*rows wide"]
) -> Float[Tensor, "*rows wide"]:
    """Returns base + change * sigmoid(logits)."""
    return _AddGated.apply(base, change, logits)


class _AddGated(torch.autograd.Function):
    """The gradient is written out: that of `addcmul` multiplies both factors by one before it uses them."""

    @staticmethod
    def forward(ctx: Any, base: Tensor, change: Tensor, logits: Tensor) -> Tensor:
        gate = torch.sigmoid(logits)
        ctx.save_for_backward(change, gate)
        return torch.addcmul(base, change, gate)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        change, gate = ctx.saved_tensors
        return outer, outer * gate, torch.ops.aten.sigmoid_backward(outer * change, gate)


def sinusoidal_positions(count: int, width: int) -> Float[Tensor, "count width"]:
    """Returns encodings of positions 0, 1, ...: sine at even features, cosine at odd (eq. app_fusion_position)."""
    position = torch.arange(count, dtype=torch.float64)[:, None]
    feature = torch.arange(width)
    angle = position / 10000 ** ((feature - feature % 2) / width)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(torch.get_default_dtype())
