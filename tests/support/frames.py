"""What baselines are tried on: frames, calendars, windows, targets and counts."""

from datetime import UTC, datetime, timedelta

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from candor.data.panel import Panel, Sensor
from candor.data.times import TimeAxis
from candor.data.windows import Windows
from candor.nets.baseline import BaselineNetwork, Frame, Targets


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


def targets(
    wanted: Tensor, mask: Tensor | None = None, share: float = 1.0, valid: int | None = None, unit: float = 1.0
) -> Targets:
    """Returns z-scores as targets of absolute errors; without a mask all are observed."""
    mask = torch.ones_like(wanted, dtype=torch.bool) if mask is None else mask
    return Targets(
        torch.where(mask, wanted, 0.0), mask, int(mask.sum()) if valid is None else valid, share, unit, False
    )


def hourly_windows(values: NDArray[np.float32], history: int, end: int, horizon: int = 6) -> Windows:
    """Returns windows of hourly readings since 2024-01-03 with origins before `end`; gaps are filled with 99."""
    axis = TimeAxis(datetime(2024, 1, 3, tzinfo=UTC), timedelta(hours=1), len(values), "UTC")
    panel = Panel(values, axis, tuple(Sensor(f"sensor {node}") for node in range(values.shape[1])))
    return Windows(panel, np.nan_to_num(values, nan=99.0), np.arange(history, end), history, horizon)


def nodes_moved_by(network: BaselineNetwork, node: int, nodes: int = 5, history: int = 12) -> list[int]:
    """Returns the nodes whose forecast changes with the readings of a node."""
    generator = torch.Generator().manual_seed(0)
    values, others = torch.randn(2, 2, history, nodes, generator=generator, dtype=next(network.parameters()).dtype)
    other = torch.where(torch.arange(nodes) == node, others, values)
    time = calendar(2, history + 240, 12)  # longer than any horizon here
    with torch.no_grad():
        differs = network.eval()(values, *time) != network(other, *time)
    return differs.any(dim=1).any(dim=0).nonzero().flatten().tolist()


def unread_steps(network: BaselineNetwork, nodes: int, history: int) -> list[int]:
    """Returns the steps that can be exchanged with the next one without any effect on the forecasts.

    Exchanging steps keeps the mean and the deviation of a window, so that a step that is not read shows.
    """
    values, found = torch.randn(1, history, nodes, generator=torch.Generator().manual_seed(0)), []
    with torch.no_grad():
        known = network.eval()(values, *calendar(1, history + 6))
        for step in range(history - 1):
            exchanged = values.clone()
            exchanged[:, [step, step + 1]] = values[:, [step + 1, step]]
            moved = (network(exchanged, *calendar(1, history + 6)) - known).abs().amax(dim=(0, 1))
            found += [] if (moved > 1e-5).all() else [step]
    return found
