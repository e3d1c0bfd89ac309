"""How parameters begin: Xavier-uniform on logical tensors; stated values win."""

from typing import TYPE_CHECKING

import torch
from torch import nn

from candor.nets.candor.decomposition import ShockGate
from candor.nets.candor.fusion import FIRST_WEIGHTS, Fusion
from candor.nets.candor.roles import Roles

if TYPE_CHECKING:
    from candor.nets.candor.candor import CandorNetwork


def initialise(network: "CandorNetwork") -> None:
    """Sets every parameter; biases keep PyTorch's defaults, which the modules have set already."""
    for name, parameter in network.named_parameters():
        # All but biases, scales of norms, and scalars; the season (beyond the paper) begins at zero.
        if parameter.ndim >= 2 and not name.endswith("season.weight"):
            nn.init.xavier_uniform_(parameter)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, ShockGate):
                module.second.weight.zero_()
                module.second.bias.zero_()
            elif isinstance(module, Fusion):
                shares = torch.tensor([FIRST_WEIGHTS[branch] for branch in network.settings.branches])
                module.mlp.second.weight.zero_()
                module.mlp.second.bias.copy_((shares / shares.sum()).log())
            elif isinstance(module, Roles):
                for role in module.parameters():
                    nn.init.eye_(role)
