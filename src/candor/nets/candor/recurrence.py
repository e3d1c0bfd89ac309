"""A gated recurrent unit (Cho et al. 2014; gates as in PyTorch) whose state can be carried from step to step.

States stand with features first and series (one node of one sample) last, so that the gates are contiguous.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

Columns = Float[Tensor, "width series"]


class Recurrence(nn.Module):
    """h' = (1 - z) n + z h, with reset gate r, update gate z and proposal n = tanh(W x + r (U h))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(3 * width, width))
        self.weight_hh = nn.Parameter(torch.empty(3 * width, width))
        bound = 1 / math.sqrt(width)
        self.bias_ih = nn.Parameter(torch.empty(3 * width).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(3 * width).uniform_(-bound, bound))

    def begin(self, series: int) -> Columns:
        """Returns the state before anything was seen."""
        return self.weight_hh.new_zeros(self.weight_hh.shape[1], series)

    def step(self, inputs: Float[Tensor, "series width"], state: Columns) -> Columns:
        """Returns the state after one more input."""
        return _Advance.apply(inputs, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class _Advance(torch.autograd.Function):
    """One step; the gradient is written out because small products and gates cost more to record than to compute."""

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
