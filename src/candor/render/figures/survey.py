"""What the network of CANDOR did over many windows: fusion weights and mean weights of edges."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from candor.core.progress import Report, silent
from candor.data.panel import Panel
from candor.data.protocol import Origins, Split
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states
from candor.forecasting.inference import infer
from candor.nets.candor.trainable import CandorTrainable
from candor.render.figures.edges import WeightedEdges

_MOST_WINDOWS = 200


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


def survey(candor: Candor, panel: Panel, origins: Origins, report: Report = silent) -> Survey:
    """Returns the survey of the windows at `origins`."""
    trainable, windows = candor.trained(), candor.windows(panel, origins)
    settings, physical = trainable.network.settings, trainable.network.physical

    def look(replica: CandorTrainable, batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        states, _ = network_states(replica, batch)
        edges: dict[str, Tensor] = {
            name: states.paths[name].weights.mean(dim=1).sum(dim=0) for name in settings.directions
        }
        return states.representations.fusion_weights, edges

    found = list(infer(trainable, windows, look, report, "reading how the model forecasts"))
    weights = torch.cat([fusion for fusion, _ in found]).numpy()  # window sensor target branch
    sums = {name: torch.stack([edges[name] for _, edges in found]).sum(dim=0) for name in settings.directions}
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
