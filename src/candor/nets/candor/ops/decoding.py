"""Representations, fusion, head, overlap average and masked error in one pass over blocks.

Errors are sums of absolute values, so their gradients are known as soon as a block is decoded: forward and backward of
a block follow each other while its activations are still in cache. Nothing as wide as a representation is ever stored
whole. The values are those of `decoded_errors_plain`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.fusion import ForecastInputs, Representations, fuse
from candor.nets.candor.ops import block_size, is_plain

# Rows of the representations that are made at a time: fewer cost more calls, more need more memory.
ROWS_AT_A_TIME = 3072
# Of them, rows that are decoded at a time: 1,024 x 512 numbers of the hidden layer are 2 MB in single precision.
ROWS_DECODED_AT_A_TIME = 1024
# A GPU has no such caches, but memory that large networks must not exceed.
ROWS_AT_A_TIME_ON_GPU = 65_536

Errors = tuple[Float[Tensor, ""], Float[Tensor, ""], Float[Tensor, ""]]


@dataclass(frozen=True)
class Supervision:
    """What forecasts are compared with."""

    targets: Float[Tensor, "batch node prefix"]
    """In z-scores; anything finite where they do not count."""
    mask: Float[Tensor, "batch node prefix"]
    """1 where a target counts, else 0."""
    factor: float
    """Of a sum of absolute errors: the deviation over the number of valid targets."""
    branch_weight: float
    """Of the mean of the branches' own errors beside the error of the fused forecast."""


def decoded_errors(network: CandorNetwork, inputs: ForecastInputs, supervision: Supervision) -> Errors:
    """Return the weighted sum of two errors, and each without gradient: fused forecast, mean of the branches."""
    if is_plain():
        return decoded_errors_plain(network, inputs, supervision)
    tensors = [*inputs.differentiable(), *_representing(network), *network.head.parameters()]
    return _DecodedErrors.apply(network, inputs, supervision, *tensors)


def decoded_errors_plain(network: CandorNetwork, inputs: ForecastInputs, supervision: Supervision) -> Errors:
    def error(representation: Tensor) -> Tensor:
        forecast = network.head(representation, supervision.targets.shape[-1]).transpose(1, 2)
        return ((forecast - supervision.targets) * supervision.mask).abs().sum() * supervision.factor

    made = network.represent(inputs)
    prediction = error(fuse(made.fusion_weights, made.branches))
    branch = torch.stack([error(representation) for representation in made.branches]).mean()
    return prediction + supervision.branch_weight * branch, prediction.detach(), branch.detach()


def _representing(network: CandorNetwork) -> list[nn.Parameter]:
    """Return the parameters outside the head; those that representations do not depend on get no gradient."""
    return [parameter for name, parameter in network.named_parameters() if not name.startswith("head.")]


class _DecodedErrors(torch.autograd.Function):
    """The errors of all blocks and their gradients as one differentiable function."""

    @staticmethod
    def forward(
        ctx: Any, network: CandorNetwork, inputs: ForecastInputs, supervision: Supervision, *tensors: Tensor
    ) -> Errors:
        is_training = any(ctx.needs_input_grad)
        sums = _Sums(network, inputs, supervision, is_training)
        for samples, nodes in inputs.blocks(block_size(inputs.nodes, cpu=ROWS_AT_A_TIME, other=ROWS_AT_A_TIME_ON_GPU)):
            sums.add(samples, nodes)
        if is_training:
            ctx.save_for_backward(*sums.of_inputs, *sums.of_parameters, *sums.of_head)
        prediction, branch = sums.fused * supervision.factor, sums.branches * supervision.factor
        ctx.mark_non_differentiable(prediction, branch)
        return prediction + supervision.branch_weight * branch, prediction, branch

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        scale = float(outer[0])
        gradients = ctx.saved_tensors
        if scale != 1.0:
            gradients = [None if gradient is None else scale * gradient for gradient in gradients]
        return None, None, None, *gradients


class _Sums:
    """Errors and gradients as they add up over blocks.

    Its buffers are written to block after block: what was just used is still in cache, and fresh memory costs more to
    write to than the products that fill it.
    """

    def __init__(
        self, network: CandorNetwork, inputs: ForecastInputs, supervision: Supervision, is_training: bool
    ) -> None:
        self.network, self.inputs, self.supervision, self.is_training = network, inputs, supervision, is_training
        self.recovery = network.head.covering(inputs.target_rows.shape[1], supervision.targets.shape[-1])
        self.layers = [parameter.detach() for parameter in network.head.parameters()]
        self.parameters = _representing(network)
        self.buffers: dict[str, Tensor] = {}
        self.fused = self.branches = inputs.nodes.new_zeros(())
        self.of_inputs = [torch.zeros_like(tensor) for tensor in inputs.differentiable()] if is_training else []
        self.of_parameters: list[Tensor | None] = [None] * len(self.parameters)
        self.of_head = [torch.zeros_like(layer) for layer in self.layers] if is_training else []

    def add(self, samples: slice, nodes: slice) -> None:
        """Add one block: forward, and backward at once."""
        block = self.inputs.block(samples, nodes)
        leaves = [tensor.detach().requires_grad_(self.is_training) for tensor in block.differentiable()]
        with torch.set_grad_enabled(self.is_training):
            made = self.network.represent(block.with_differentiable(leaves))
        of_made = self._decode(made, self.supervision.targets[samples, nodes], self.supervision.mask[samples, nodes])
        if not self.is_training:
            return
        outputs = [*made.branches, made.fusion_weights][: len(of_made)]
        gradients = torch.autograd.grad(outputs, [*leaves, *self.parameters], of_made, allow_unused=True)
        of_inputs = self.inputs.with_differentiable(self.of_inputs).block(samples, nodes).differentiable()
        for total, gradient in zip(of_inputs, gradients[: len(leaves)], strict=True):
            if gradient is not None:  # e.g. of nodes, which only learned fusion and the functional branch read
                total.add_(gradient)
        for place, gradient in enumerate(gradients[len(leaves) :]):
            if gradient is not None:
                so_far = self.of_parameters[place]
                self.of_parameters[place] = gradient.clone() if so_far is None else so_far.add_(gradient)

    def _decode(self, made: Representations, targets: Tensor, mask: Tensor) -> list[Tensor]:
        """Add the errors of the block; returns the gradients of the branches' representations and of the weights."""
        shape, supervision, count = made.branches[0].shape, self.supervision, len(made.branches)
        targets, mask = targets.flatten(0, 1), mask.flatten(0, 1)
        parts = [branch.detach().reshape(-1, shape[-1]) for branch in made.branches]
        shares = made.fusion_weights.detach().reshape(-1, count, 1).unbind(dim=1)
        buffer = self._buffer("fused", parts[0], shape[-1])
        fused = torch.mul(shares[0], parts[0], out=buffer)
        for share, part in zip(shares[1:], parts[1:], strict=True):
            fused.addcmul_(share, part)
        error, of_fused = self._decode_rows(fused, targets, mask, supervision.factor)
        self.fused = self.fused + error
        branch_factor = supervision.factor * supervision.branch_weight / count
        of_branches, of_weights = [], []
        for share, part in zip(shares, parts, strict=True):
            error, of_branch = self._decode_rows(part, targets, mask, branch_factor)
            self.branches = self.branches + error / count
            if self.is_training:
                of_branches.append(of_branch.addcmul_(share, of_fused).view(shape))
                of_weights.append(torch.mul(of_fused, part, out=buffer).sum(dim=-1))  # `fused` is not needed any more
        if not made.fusion_weights.requires_grad:  # avg Fusion, or no training
            return of_branches
        return [*of_branches, torch.stack(of_weights, dim=-1).view(made.fusion_weights.shape)]

    def _decode_rows(self, rows: Tensor, targets: Tensor, mask: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        """Return the sum of absolute errors of decoded rows, and `factor` times its gradient in training."""
        patches = len(rows) // len(targets)
        series = max(1, block_size(rows, cpu=ROWS_DECODED_AT_A_TIME, other=ROWS_AT_A_TIME_ON_GPU) // patches)
        gradient = torch.empty_like(rows) if self.is_training else rows
        total = rows.new_zeros(())
        parts = (tensor.split(series * patches) for tensor in (rows, gradient))
        supervised = (tensor.split(series) for tensor in (targets, mask))
        for part, of_part, wanted, counts in zip(*parts, *supervised, strict=True):
            total += self._decode_part(part, wanted, counts, factor, of_part)
        return total, gradient

    def _decode_part(self, rows: Tensor, targets: Tensor, mask: Tensor, factor: float, gradient: Tensor) -> Tensor:
        """Return the sum of absolute errors of some rows; writes `factor` times its gradient in training."""
        first_weight, first_bias, second_weight, second_bias = self.layers
        inputs = torch.clamp(rows, min=0, out=self._buffer("inputs", rows, rows.shape[1]))
        hidden = self._buffer("hidden", rows, len(first_bias))
        torch.mm(inputs, first_weight.T, out=hidden).add_(first_bias).relu_()
        patches = torch.addmm(second_bias, hidden, second_weight.T)
        error = (patches.view(len(targets), -1) @ self.recovery).sub_(targets).mul_(mask)
        total = error.abs().sum()
        if not self.is_training:
            return total
        of_patches = (error.sign_().mul_(factor) @ self.recovery.T).view(patches.shape)
        self.of_head[2].addmm_(of_patches.T, hidden)
        self.of_head[3] += of_patches.sum(dim=0)
        of_hidden = torch.mm(of_patches, second_weight, out=self._buffer("of_hidden", rows, len(first_bias)))
        _relu_backward_(of_hidden, hidden)
        self.of_head[0].addmm_(of_hidden.T, inputs)
        self.of_head[1] += of_hidden.sum(dim=0)
        _relu_backward_(torch.mm(of_hidden, first_weight, out=gradient), rows)
        return total

    def _buffer(self, name: str, like: Tensor, width: int) -> Tensor:
        """Return memory with a row for each row of `like`; its content is anything."""
        buffer = self.buffers.get(name)
        if buffer is None or len(buffer) < len(like):
            buffer = self.buffers[name] = like.new_empty(len(like), width)
        return buffer[: len(like)]


def _relu_backward_(gradient: Tensor, activation: Tensor) -> None:
    """Set a gradient to zero, in place, where a rectifier was not active."""
    torch.ops.aten.threshold_backward.grad_input(gradient, activation, 0, grad_input=gradient)
