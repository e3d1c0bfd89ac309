"""Layers that several networks use.

| equation | where |
|---|---|
| app_fusion_position | `sinusoidal_positions` |
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

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
        """Returns the output for the sum of the first layer, for callers that compute it part by part."""
        return self.second(self.dropout(self.activation(hidden)))


def split_linear(layer: nn.Linear, *widths: int) -> tuple[Tensor, ...]:
    """Returns the blocks of a layer's weight that belong to the parts of a concatenated input.

    W [x || y] = W_x x + W_y y: parts that are shared by nodes, samples or patches are multiplied once and broadcast.
    """
    if sum(widths) != layer.in_features:
        raise ValueError(f"parts of widths {widths} do not make up {layer.in_features} inputs")
    return torch.split(layer.weight, list(widths), dim=1)


def sinusoidal_positions(count: int, width: int) -> Float[Tensor, "count width"]:
    """Returns encodings of positions 0, 1, ...: sine at even features, cosine at odd (eq. app_fusion_position)."""
    position = torch.arange(count, dtype=torch.float64)[:, None]
    feature = torch.arange(width)
    angle = position / 10000 ** ((feature - feature % 2) / width)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(torch.get_default_dtype())
