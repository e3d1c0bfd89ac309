"""What baselines are tried on: frames, calendars and counts."""

import torch
from torch import Tensor, nn

from candor.nets.baseline import Frame


def frame(nodes: int = 5, history: int = 12, horizon: int = 6, steps_per_day: int = 24, covariates: int = 0) -> Frame:
    """Returns a frame on a random directed graph with self-loops."""
    generator = torch.Generator().manual_seed(1)
    adjacency = torch.rand(nodes, nodes, generator=generator)
    adjacency = torch.where(adjacency > 0.6, adjacency, 0.0) + torch.eye(nodes)
    return Frame(nodes, history, horizon, steps_per_day, adjacency, covariates)


def metr_la_frame() -> Frame:
    """Returns a frame of METR-LA's shape: 207 nodes, 12 steps of five minutes from 12."""
    return frame(207, 12, 12, 288)


def calendar(batch: int, steps: int, bins_per_step: int = 1) -> tuple[Tensor, Tensor]:
    """Returns time-of-day bins and days of week of some windows that begin at different times."""
    bins = torch.arange(steps) * bins_per_step + 40 * torch.arange(batch)[:, None]
    return bins % 288, (bins // 288 + torch.arange(batch)[:, None]) % 7


def parameters(network: nn.Module) -> int:
    """Returns the number of trainable parameters."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
