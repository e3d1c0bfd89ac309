"""What the network is made of: modules, shapes of their parameters, and how many there are."""

from dataclasses import dataclass

import numpy as np
import torch

from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.propagation import EdgeArrays
from candor.nets.candor.settings import ModelSettings


@dataclass(frozen=True)
class ModuleSummary:
    """A module that holds parameters of its own: its name, their shapes by name, and their number."""

    module: str
    shapes: dict[str, tuple[int, ...]]
    parameters: int


def summarise(settings: ModelSettings) -> list[ModuleSummary]:
    """Returns the modules with parameters in the order of the paper; edges carry none, so none are needed."""
    no_edges = EdgeArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    network = CandorNetwork(settings, no_edges)
    rows = []
    for name, module in network.named_modules():
        own: dict[str, torch.nn.Parameter] = dict(module.named_parameters(recurse=False))
        if own:
            shapes = {key: tuple(parameter.shape) for key, parameter in own.items()}
            rows.append(ModuleSummary(name, shapes, sum(parameter.numel() for parameter in own.values())))
    return rows
