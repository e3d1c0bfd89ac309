"""A linear map of a normalised wide layer, without the wide layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


def read_normalised(
    states: Float[Tensor, "*rows inputs"], layer: nn.Linear, norm: nn.LayerNorm, reading: Float[Tensor, "outputs wide"]
) -> Float[Tensor, "*rows outputs"]:
    """Returns R LN(A x + a) without the wide A x + a, on every device and in traced graphs too.

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


def read_normalised_plain(states: Tensor, layer: nn.Linear, norm: nn.LayerNorm, reading: Tensor) -> Tensor:
    return F.linear(norm(layer(states)), reading)
