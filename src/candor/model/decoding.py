"""Fusion, head, overlap average and masked error in one pass over blocks that stay in cache.

Errors are sums of absolute values, so their gradients are known as soon as a block is decoded: forward and backward of
a block follow each other while its activations are still at hand. Neither the fused representation nor anything of the
head's width is ever stored. The numbers are those of fusing, `Head.forward` and the mean of absolute errors.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

# Rows of the head's hidden layer at a time: 2,048 x 512 numbers are 4 MB in single precision.
ROWS_AT_A_TIME = 2048


@dataclass(frozen=True)
class Supervision:
    """What forecasts are compared with, for each series (one node of one sample) and step of the prefix.

    Args:
        wanted: targets in z-scores, series x prefix; anything finite where they do not count.
        counts: 1 where a target counts, else 0.
        factor: what a sum of absolute errors is multiplied by: the deviation over the number of valid targets.
        branch_weight: weight of the mean of the branches' own errors beside the error of the fused forecast.
    """

    wanted: Tensor
    counts: Tensor
    factor: float
    branch_weight: float


class _HeadPass:
    """The head's forward and backward on one block after the other, with the gradients of its layers adding up."""

    def __init__(self, layers: list[Tensor], recovery: Tensor, needs_gradient: bool) -> None:
        self._layers, self._recovery = layers, recovery
        self.gradients = [torch.zeros_like(layer) for layer in layers] if needs_gradient else []

    def run(self, block: Tensor, wanted: Tensor, counts: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        """Returns the sum of absolute errors of a block, and `factor` times its gradient if gradients are needed."""
        first_weight, first_bias, second_weight, second_bias = self._layers
        inputs = block.clamp(min=0)
        hidden = torch.addmm(first_bias, inputs, first_weight.T).relu_()
        patches = torch.addmm(second_bias, hidden, second_weight.T)
        error = (patches.view(len(wanted), -1) @ self._recovery).sub_(wanted).mul_(counts)
        total = error.abs().sum()
        if not self.gradients:
            return total, block
        of_patches = (error.sign_().mul_(factor) @ self._recovery.T).view(patches.shape)
        self.gradients[2].addmm_(of_patches.T, hidden)
        self.gradients[3] += of_patches.sum(dim=0)
        of_hidden = torch.ops.aten.threshold_backward(of_patches @ second_weight, hidden, 0)
        self.gradients[0].addmm_(of_hidden.T, inputs)
        self.gradients[1] += of_hidden.sum(dim=0)
        return total, torch.ops.aten.threshold_backward(of_hidden @ first_weight, block, 0)


class DecodedErrors(torch.autograd.Function):
    """The error of the fused forecast plus the weighted mean of the branches' errors, as one differentiable function.

    Arguments of `apply`: the three branches' representations (series target forecast), the fusion weights (series
    target branch), weight and bias of both layers of the head, the recovery matrix, and the supervision. Results: the
    weighted sum, and for reading only the error of the fused forecast and the mean error of the branches.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        *branches, weights, first_weight, first_bias, second_weight, second_bias, recovery, supervision = arguments
        needs_gradient = any(ctx.needs_input_grad)  # type: ignore[attr-defined]
        head = _HeadPass([first_weight, first_bias, second_weight, second_bias], recovery, needs_gradient)
        series, targets, width = branches[0].shape
        changed = [torch.empty_like(part) for part in (*branches, weights)] if needs_gradient else []
        fused_total, branch_total = weights.new_zeros(()), weights.new_zeros(())
        factor = supervision.factor
        branch_factor = factor * supervision.branch_weight / len(branches)
        block = max(1, ROWS_AT_A_TIME // targets)
        for start in range(0, series, block):
            place = slice(start, start + block)
            wanted, counts = supervision.wanted[place], supervision.counts[place]
            parts = [branch[place].reshape(-1, width) for branch in branches]
            shares = weights[place].reshape(-1, len(branches)).unsqueeze(-1).unbind(dim=1)  # eq. context_fusion
            fused = shares[0] * parts[0]
            for share, part in zip(shares[1:], parts[1:], strict=True):
                fused.addcmul_(share, part)
            total, of_fused = head.run(fused, wanted, counts, factor)
            fused_total += total
            for number, (share, part) in enumerate(zip(shares, parts, strict=True)):
                total, of_branch = head.run(part, wanted, counts, branch_factor)
                branch_total += total
                if needs_gradient:
                    of_branch.addcmul_(share, of_fused)
                    changed[number][place] = of_branch.view(-1, targets, width)
                    changed[-1][place, :, number] = (of_fused * part).sum(dim=-1).view(-1, targets)
        if needs_gradient:
            ctx.save_for_backward(*changed, *head.gradients)
        prediction, branch = fused_total * factor, branch_total * factor / len(branches)
        ctx.mark_non_differentiable(prediction, branch)
        return prediction + supervision.branch_weight * branch, prediction, branch

    @staticmethod
    def backward(ctx: FunctionCtx, *outer: Any) -> Any:
        saved = ctx.saved_tensors  # type: ignore[attr-defined]
        scale = float(outer[0])
        gradients = saved if scale == 1.0 else [scale * gradient for gradient in saved]
        return *gradients, None, None
