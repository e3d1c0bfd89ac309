"""How parameters begin (spec, section 3): Xavier-uniform on logical tensors; stated values win."""

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from candor.model.fusion import FIRST_WEIGHTS

if TYPE_CHECKING:
    from candor.model.candor import CandorNetwork


def initialise(network: "CandorNetwork") -> None:
    """Sets every parameter; biases keep PyTorch's defaults, which the modules have set already."""
    for name, parameter in network.named_parameters():
        # All but biases, scales of norms, and scalars; the season (beyond the paper) begins at zero.
        if parameter.ndim >= 2 and not name.endswith("season.weight"):
            nn.init.xavier_uniform_(parameter)
    with torch.no_grad():
        for gate in (network.decomposition.shock_u, network.decomposition.shock_v):
            gate.second.weight.zero_()
            gate.second.bias.zero_()
        network.fusion.mlp.second.weight.zero_()
        network.fusion.mlp.second.bias.copy_(torch.tensor([math.log(share) for share in FIRST_WEIGHTS]))
        for role in network.roles.parameters():
            nn.init.eye_(role)
