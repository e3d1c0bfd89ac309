"""Small parts that several sections use."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

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
        self.dropout = nn.Dropout(dropout)

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


class Recurrence(nn.Module):
    """A gated recurrent unit (Cho et al. 2014; gates as in PyTorch) whose state can be carried from step to step."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(3 * width, width))
        self.weight_hh = nn.Parameter(torch.empty(3 * width, width))
        bound = 1 / math.sqrt(width)
        self.bias_ih = nn.Parameter(torch.empty(3 * width).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(3 * width).uniform_(-bound, bound))

    def forward(self, inputs: Float[Tensor, "*rows time width"]) -> Float[Tensor, "*rows time width"]:
        """Returns the states at all times, from a zero state."""
        from_inputs = F.linear(inputs, self.weight_ih, self.bias_ih)  # all times at once
        state = torch.zeros_like(inputs[..., 0, :])
        states = []
        for sums in from_inputs.unbind(dim=-2):
            state = self._advance(sums, state)
            states.append(state)
        return torch.stack(states, dim=-2)

    def step(
        self, inputs: Float[Tensor, "*rows width"], state: Float[Tensor, "*rows width"]
    ) -> Float[Tensor, "*rows width"]:
        """Returns the state after one more input."""
        return self._advance(F.linear(inputs, self.weight_ih, self.bias_ih), state)

    def _advance(self, sums: Tensor, state: Tensor) -> Tensor:
        reset_in, update_in, new_in = sums.chunk(3, dim=-1)
        reset_state, update_state, new_state = F.linear(state, self.weight_hh, self.bias_hh).chunk(3, dim=-1)
        reset = torch.sigmoid(reset_in + reset_state)
        update = torch.sigmoid(update_in + update_state)
        new = torch.tanh(new_in + reset * new_state)
        return torch.lerp(new, state, update)


def sinusoidal_positions(count: int, width: int) -> Float[Tensor, "count width"]:
    """Returns encodings of positions 0, 1, ...: sine at even features, cosine at odd (eq. app_fusion_position)."""
    position = torch.arange(count, dtype=torch.float64)[:, None]
    feature = torch.arange(width)
    angle = position / 10000 ** ((feature - feature % 2) / width)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(torch.get_default_dtype())
