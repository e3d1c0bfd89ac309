"""Head, overlap average and masked error in one pass over blocks that stay in cache.

The error is a sum of absolute values, so its gradient is known as soon as a block is decoded: forward and backward of a
block follow each other while its activations are still at hand, and nothing of the head's width is ever stored. The
numbers are those of `Head.forward` followed by the masked mean of absolute errors.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

# Rows of the head's hidden layer at a time: 2,048 x 512 numbers are 4 MB in single precision.
ROWS_AT_A_TIME = 2048


class DecodedError(torch.autograd.Function):
    """Sum of |forecast - target| over valid targets, times a factor, as one differentiable function.

    Arguments of `apply`, in order: representation (series target forecast), weight and bias of both layers of the head,
    recovery (target patches x length, prefix), wanted and counts (series prefix: targets in z-scores, and 1 where they
    are valid, else 0), factor. A series is one node of one sample.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, *arguments: Any) -> Tensor:
        representation, *layers, recovery, wanted, counts, factor = arguments
        first_weight, first_bias, second_weight, second_bias = layers
        needs_gradient = any(ctx.needs_input_grad[:5])  # type: ignore[attr-defined]
        series, targets, width = representation.shape
        block = max(1, ROWS_AT_A_TIME // targets)
        gradients = [torch.zeros_like(layer) for layer in layers] if needs_gradient else []
        changed = torch.empty_like(representation) if needs_gradient else representation
        total = representation.new_zeros(())
        for start in range(0, series, block):
            part = representation[start : start + block].reshape(-1, width)
            inputs = part.clamp(min=0)
            hidden = torch.addmm(first_bias, inputs, first_weight.T).relu_()
            patches = torch.addmm(second_bias, hidden, second_weight.T)
            steps = patches.view(-1, recovery.shape[0]) @ recovery
            error = (steps - wanted[start : start + block]).mul_(counts[start : start + block])
            total += error.abs().sum()
            if not needs_gradient:
                continue
            of_patches = (error.sign_().mul_(factor) @ recovery.T).view(patches.shape)
            gradients[2].addmm_(of_patches.T, hidden)
            gradients[3] += of_patches.sum(dim=0)
            of_hidden = torch.ops.aten.threshold_backward(of_patches @ second_weight, hidden, 0)
            gradients[0].addmm_(of_hidden.T, inputs)
            gradients[1] += of_hidden.sum(dim=0)
            of_inputs = torch.ops.aten.threshold_backward(of_hidden @ first_weight, part, 0)
            changed[start : start + block] = of_inputs.view(-1, targets, width)
        if needs_gradient:
            ctx.save_for_backward(changed, *gradients)
        return total * factor

    @staticmethod
    def backward(ctx: FunctionCtx, *outputs: Any) -> Any:
        (outer,) = outputs
        saved = ctx.saved_tensors  # type: ignore[attr-defined]
        return *(outer * gradient for gradient in saved), None, None, None, None
