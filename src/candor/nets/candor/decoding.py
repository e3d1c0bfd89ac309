"""Representations, fusion, head, overlap average and masked error in one pass over blocks that stay in cache.

Errors are sums of absolute values, so their gradients are known as soon as a block is decoded: forward and backward of
a block follow each other while its activations are still at hand. Nothing as wide as a representation is ever stored
whole. The numbers are those of `represent`, `fuse`, `Head.forward` and the mean of absolute errors.

| equation | where |
|---|---|
| app_branch_supervision | `decoded_errors` |
| context_fusion | `_Sums._decode` |
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.fusion import ForecastInputs, Representations

# Rows of the representations that are made at a time: fewer cost more calls, more need more memory.
ROWS_AT_A_TIME = 3072
# Of them, rows that are decoded at a time: 1,024 x 512 numbers of the hidden layer are 2 MB in single precision.
ROWS_DECODED_AT_A_TIME = 1024


@dataclass(frozen=True)
class Supervision:
    """What forecasts are compared with.

    Args:
        wanted: targets in z-scores, sample x node x prefix; anything finite where they do not count.
        counts: 1 where a target counts, else 0.
        factor: what a sum of absolute errors is multiplied by: the deviation over the number of valid targets.
        branch_weight: weight of the mean of the branches' own errors beside the error of the fused forecast.
    """

    wanted: Tensor
    counts: Tensor
    factor: float
    branch_weight: float


class _Places:
    """Places that are written to block after block.

    Memory that was just used is still in cache, and fresh memory costs more to write to than the products that fill it.
    """

    def __init__(self) -> None:
        self._places: dict[str, Tensor] = {}

    def get(self, name: str, like: Tensor, width: int) -> Tensor:
        """Returns a place with a row for each row of `like`, the same for the same name; its content is anything."""
        place = self._places.get(name)
        if place is None or len(place) < len(like):
            place = self._places[name] = like.new_empty(len(like), width)
        return place[: len(like)]


class _HeadPass:
    """The head's forward and backward on one block after the other, with the gradients of its layers adding up."""

    def __init__(self, layers: list[Tensor], recovery: Tensor, needs_gradient: bool) -> None:
        self._layers, self._recovery = layers, recovery
        self._places = _Places()
        self.gradients = [torch.zeros_like(layer) for layer in layers] if needs_gradient else []

    def run(self, block: Tensor, wanted: Tensor, counts: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        """Returns the sum of absolute errors of a block, and `factor` times its gradient if gradients are needed."""
        targets = len(block) // len(wanted)
        series = max(1, ROWS_DECODED_AT_A_TIME // targets)
        gradient = torch.empty_like(block) if self.gradients else block
        total = block.new_zeros(())
        parts = zip(block.split(series * targets), gradient.split(series * targets), strict=True)
        for (rows, place), ahead, count in zip(parts, wanted.split(series), counts.split(series), strict=True):
            total += self._decode(rows, ahead, count, factor, place)
        return total, gradient

    def _decode(self, block: Tensor, wanted: Tensor, counts: Tensor, factor: float, gradient: Tensor) -> Tensor:
        """Returns the sum of absolute errors of some rows; writes `factor` times its gradient if that is needed."""
        first_weight, first_bias, second_weight, second_bias = self._layers
        inputs = torch.clamp(block, min=0, out=self._places.get("inputs", block, block.shape[1]))
        hidden = self._places.get("hidden", block, len(first_bias))
        torch.mm(inputs, first_weight.T, out=hidden).add_(first_bias).relu_()
        patches = torch.addmm(second_bias, hidden, second_weight.T)
        error = (patches.view(len(wanted), -1) @ self._recovery).sub_(wanted).mul_(counts)
        total = error.abs().sum()
        if not self.gradients:
            return total
        of_patches = (error.sign_().mul_(factor) @ self._recovery.T).view(patches.shape)
        self.gradients[2].addmm_(of_patches.T, hidden)
        self.gradients[3] += of_patches.sum(dim=0)
        of_hidden = torch.mm(of_patches, second_weight, out=self._places.get("of_hidden", block, len(first_bias)))
        _zero_where_shut(of_hidden, hidden)
        self.gradients[0].addmm_(of_hidden.T, inputs)
        self.gradients[1] += of_hidden.sum(dim=0)
        _zero_where_shut(torch.mm(of_hidden, first_weight, out=gradient), block)
        return total


def _zero_where_shut(gradient: Tensor, activation: Tensor) -> None:
    """Sets a gradient to zero, where it stands, wherever a rectifier was shut."""
    torch.ops.aten.threshold_backward.grad_input(gradient, activation, 0, grad_input=gradient)


def decoded_errors(
    network: CandorNetwork, inputs: ForecastInputs, supervision: Supervision
) -> tuple[Float[Tensor, ""], Float[Tensor, ""], Float[Tensor, ""]]:
    """Returns the weighted error of fused and branch forecasts, and each of the two for reading only.

    The second is the supervision of every branch by itself (eq. app_branch_supervision).
    """
    tensors = [*inputs.differentiable(), *network.representing(), *network.head.parameters()]
    return _DecodedErrors.apply(network, inputs, supervision, *tensors)


class _DecodedErrors(torch.autograd.Function):
    """Representations, fusion, head and errors of all blocks, with their gradients, as one differentiable function."""

    @staticmethod
    def forward(
        ctx: Any, network: CandorNetwork, inputs: ForecastInputs, supervision: Supervision, *tensors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        is_training = any(ctx.needs_input_grad)
        sums = _Sums(network, inputs, supervision, is_training)
        for samples, nodes in inputs.blocks(ROWS_AT_A_TIME):
            sums.add(samples, nodes)
        if is_training:
            ctx.save_for_backward(*sums.of_inputs, *sums.of_representing, *sums.head.gradients)
        prediction, branch = sums.fused * supervision.factor, sums.branches * supervision.factor / sums.count
        ctx.mark_non_differentiable(prediction, branch)
        return prediction + supervision.branch_weight * branch, prediction, branch

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Any:
        scale = float(outer[0])
        gradients = ctx.saved_tensors if scale == 1.0 else [scale * gradient for gradient in ctx.saved_tensors]
        return None, None, None, *gradients


class _Sums:
    """Errors and gradients as they add up over blocks."""

    def __init__(
        self, network: CandorNetwork, inputs: ForecastInputs, supervision: Supervision, is_training: bool
    ) -> None:
        self.network, self.inputs, self.supervision, self.is_training = network, inputs, supervision, is_training
        targets, prefix = inputs.target_rows.shape[1], supervision.wanted.shape[-1]
        layers = [parameter.detach() for parameter in network.head.parameters()]
        self.places = _Places()
        self.head = _HeadPass(layers, network.head.covering(targets, prefix), is_training)
        self.count = len(network.settings.branches)
        self.fused = self.branches = inputs.nodes.new_zeros(())
        self.parameters = network.representing()
        self.of_inputs = [torch.zeros_like(tensor) for tensor in inputs.differentiable()] if is_training else []
        self.of_representing = [torch.zeros_like(parameter) for parameter in self.parameters] if is_training else []

    def add(self, samples: slice, nodes: slice) -> None:
        """Adds one block: forward, and backward at once while everything is still in cache."""
        block = self.inputs.block(samples, nodes)
        leaves = [tensor.detach().requires_grad_(self.is_training) for tensor in block.differentiable()]
        with torch.set_grad_enabled(self.is_training):
            found = self.network.represent(block.with_differentiable(leaves))
        changed = self._decode(found, self.supervision.wanted[samples, nodes], self.supervision.counts[samples, nodes])
        if not self.is_training:
            return
        outputs = [*found.branches, found.fusion_weights][: len(changed)]
        gradients = torch.autograd.grad(outputs, [*leaves, *self.parameters], changed, allow_unused=True)
        places = self.inputs.with_differentiable(self.of_inputs).block(samples, nodes).differentiable()
        for place, gradient in zip([*places, *self.of_representing], gradients, strict=True):
            if gradient is not None:  # e.g. of nodes, which only learned fusion and the functional branch read
                place.add_(gradient)

    def _decode(self, found: Representations, wanted: Tensor, counts: Tensor) -> list[Tensor]:
        """Adds the errors of the block; returns the gradients of the branches' representations and of the weights."""
        shape, supervision = found.branches[0].shape, self.supervision
        wanted, counts = wanted.flatten(0, 1), counts.flatten(0, 1)
        parts = [branch.detach().reshape(-1, shape[-1]) for branch in found.branches]
        shares = found.fusion_weights.detach().reshape(-1, self.count, 1).unbind(dim=1)
        place = self.places.get("fused", parts[0], shape[-1])
        fused = torch.mul(shares[0], parts[0], out=place)  # eq. context_fusion
        for share, part in zip(shares[1:], parts[1:], strict=True):
            fused.addcmul_(share, part)
        total, of_fused = self.head.run(fused, wanted, counts, supervision.factor)
        self.fused = self.fused + total
        branch_factor = supervision.factor * supervision.branch_weight / self.count
        of_branches, of_weights = [], []
        for share, part in zip(shares, parts, strict=True):
            total, of_branch = self.head.run(part, wanted, counts, branch_factor)
            self.branches = self.branches + total
            if self.is_training:
                of_branches.append(of_branch.addcmul_(share, of_fused).view(shape))
                of_weights.append(torch.mul(of_fused, part, out=place).sum(dim=-1))  # `fused` is not needed any more
        if not found.fusion_weights.requires_grad:  # avg Fusion, or no training
            return of_branches
        return [*of_branches, torch.stack(of_weights, dim=-1).view(found.fusion_weights.shape)]
