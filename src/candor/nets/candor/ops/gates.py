"""The step of a gated recurrent unit, a gated sum, and a linear map of a normalised wide layer without that layer."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from candor.nets.candor.ops import is_fast_on_cpu

Columns = Float[Tensor, "width series"]
Weight = Float[Tensor, "three_width width"]
Bias = Float[Tensor, " three_width"]
Rows = Float[Tensor, "*rows wide"]


def gated_step(
    inputs: Float[Tensor, "series width"], state: Columns,
    weight_ih: Weight, weight_hh: Weight, bias_ih: Bias, bias_hh: Bias,
) -> Columns:  # fmt: skip
    """Return the next state of a gated recurrent unit: (1 - z) n + z h with n = tanh(W x + r (U h)).

    Weights hold reset gate r, update gate z and proposal n, one below the other, as in PyTorch. States have features
    first, so that the gates are contiguous.
    """
    given = (inputs, state, weight_ih, weight_hh, bias_ih, bias_hh)
    return _GatedStep.apply(*given) if is_fast_on_cpu(inputs) else gated_step_plain(*given)


def gated_step_plain(
    inputs: Tensor, state: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor
) -> Tensor:
    from_inputs = (weight_ih @ inputs.T + bias_ih[:, None]).chunk(3)
    from_state = (weight_hh @ state + bias_hh[:, None]).chunk(3)
    reset = torch.sigmoid(from_inputs[0] + from_state[0])
    update = torch.sigmoid(from_inputs[1] + from_state[1])
    proposal = torch.tanh(from_inputs[2] + reset * from_state[2])
    return (1 - update) * proposal + update * state


class _GatedStep(torch.autograd.Function):
    """The gradient is written out because small products and gates cost more to record than to compute."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, state: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor
    ) -> Tensor:
        width = len(state)
        from_inputs = torch.addmm(bias_ih[:, None], weight_ih, inputs.T)
        gates = torch.addmm(bias_hh[:, None], weight_hh, state)
        gates[: 2 * width].add_(from_inputs[: 2 * width]).sigmoid_()
        reset, update, from_state = gates.split(width)
        proposal = torch.addcmul(from_inputs[2 * width :], reset, from_state).tanh_()
        ctx.save_for_backward(inputs, state, weight_ih, weight_hh, gates, proposal)
        return torch.lerp(proposal, state, update)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        inputs, state, weight_ih, weight_hh, gates, proposal = ctx.saved_tensors
        reset, update, from_state = gates.split(len(state))
        kept = outer * update
        of_proposal = torch.ops.aten.tanh_backward(outer - kept, proposal)
        of_gates = torch.ops.aten.sigmoid_backward(
            torch.cat([of_proposal * from_state, (state - proposal).mul_(outer)]), gates[: 2 * len(state)]
        )
        of_inputs_sum = torch.cat([of_gates, of_proposal])
        of_state_sum = torch.cat([of_gates, of_proposal * reset])
        return (
            of_inputs_sum.T @ weight_ih,
            kept.addmm_(weight_hh.T, of_state_sum),
            of_inputs_sum @ inputs,
            of_state_sum @ state.T,
            of_inputs_sum.sum(dim=1),
            of_state_sum.sum(dim=1),
        )


def add_gated(base: Rows, change: Rows, logits: Rows) -> Rows:
    """Return base + change * sigmoid(logits)."""
    return _AddGated.apply(base, change, logits) if is_fast_on_cpu(base) else add_gated_plain(base, change, logits)


def add_gated_plain(base: Tensor, change: Tensor, logits: Tensor) -> Tensor:
    return base + change * torch.sigmoid(logits)


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


def read_normalised(
    states: Float[Tensor, "*rows inputs"], layer: nn.Linear, norm: nn.LayerNorm, reading: Float[Tensor, "outputs wide"]
) -> Float[Tensor, "*rows outputs"]:
    """Return R LN(A x + a) without the wide A x + a, on every device and in traced graphs too.

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
