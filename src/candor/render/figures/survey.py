"""What the network of CANDOR did over many windows: fusion weights and mean weights of edges."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from candor.core.progress import Report, silent
from candor.data.panel import Panel
from candor.data.splits import Origins, Split
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states
from candor.render.figures.edges import WeightedEdges
from candor.training.batches import micro_batches

_MOST_WINDOWS, _WINDOWS_AT_A_TIME = 200, 16


@dataclass(frozen=True, eq=False)
class Survey:
    """Weights over windows.

    Args:
        windows: how many there were.
        fusion: by name of the branch, window x sensor x target patch.
        steps: first and last forecast step (1 is the first) that each target patch covers.
        edges: by direction, with weights that are means over windows and positions.
    """

    windows: int
    fusion: dict[str, NDArray[np.float32]]
    steps: tuple[tuple[int, int], ...]
    edges: dict[str, WeightedEdges]


def choose_windows(split: Split, length: int) -> Origins:
    """Returns some windows spread evenly over the test part; where it is empty, over the part before it.

    Args:
        split: the parts.
        length: rows of the panel; without any part the forecast after the last of them is taken.
    """
    parts = (split.test, split.validation, split.train, np.array([length], np.int64))
    origins = next(part for part in parts if len(part))
    places = np.linspace(0, len(origins) - 1, min(len(origins), _MOST_WINDOWS)).round().astype(np.int64)
    return origins[places]


@torch.no_grad()
def survey(candor: Candor, panel: Panel, origins: Origins, report: Report = silent) -> Survey:
    """Returns the survey of the windows at `origins`."""
    trainable, windows = candor.trained(), candor.windows(panel, origins)
    settings, physical = trainable.network.settings, trainable.network.physical
    fusion, sums = [], dict.fromkeys(settings.directions, torch.tensor(0.0))
    for places in micro_batches(np.arange(len(origins)), _WINDOWS_AT_A_TIME):
        states, _ = network_states(trainable, windows.batch(places).tensors())
        fusion.append(states.representations.fusion_weights)
        for direction in settings.directions:  # over positions and windows
            sums[direction] = sums[direction] + states.paths[direction].weights.mean(dim=1).sum(dim=0)
        report("asking the model how it forecasts", (int(places[-1]) + 1) / len(origins))
    weights = torch.cat(fusion).numpy()  # window sensor target branch
    supports = {} if physical is None else {name: physical.support(name) for name in settings.directions}
    length, last = settings.patch_length, settings.history + settings.horizon
    return Survey(
        windows=len(origins),
        fusion={branch: weights[..., place] for place, branch in enumerate(settings.branches)},
        steps=tuple(
            (max(start - settings.history, 0) + 1, min(start + length, last) - settings.history)
            for start in settings.target_starts
        ),
        edges={
            direction: WeightedEdges(
                support.sender.numpy(), support.receiver.numpy(), (sums[direction] / len(origins)).numpy()
            )
            for direction, support in supports.items()
        },
    )
