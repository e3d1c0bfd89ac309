"""What a network of CANDOR learned, for all sensors at once: their recent past, the branches, and the edges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from candor.core.arrays import Floats
from candor.core.progress import Report, silent
from candor.core.text import time_unit
from candor.data.panel import Panel
from candor.data.protocol import Task
from candor.explain.analyses.fusion import fusion_weights
from candor.explain.analyses.operator import mean_edge_weights
from candor.explain.choices import choose_windows
from candor.explain.pictures import ComponentPicture, WeightedEdges
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states, split_history


@dataclass(frozen=True, eq=False)
class Learned:
    """Where the forecasts of CANDOR come from.

    Args:
        components: what the history before the next forecast was split into, sensor x patch; None for a network that
            does not split it.
        ahead: middle of each target patch, in `ahead_unit` after the last reading.
        ahead_unit: such as days.
        fusion: how much each branch counts in the next forecast, by its name, sensor x target patch.
        usual_fusion: the same by target patch, mean over sensors and windows.
        edges: by direction, with weights that are means over windows.
        windows: how many windows the means are over.
    """

    components: ComponentPicture | None
    ahead: Sequence[float]
    ahead_unit: str
    fusion: Mapping[str, Floats]
    usual_fusion: Mapping[str, Floats]
    edges: Mapping[str, WeightedEdges]
    windows: int


def find_learned(candor: Candor, task: Task, report: Report = silent) -> Learned:
    """Returns where the forecasts of CANDOR come from, by some windows of the test part and the next forecast."""
    panel, length = task.panel, task.panel.times.length
    _, origins = choose_windows(task.split, length)
    usual, following = fusion_weights(candor, panel, origins), fusion_weights(candor, panel, np.array([length]))
    unit, size = time_unit(panel.times.interval)
    return Learned(
        components=_components(candor, panel),
        ahead=[panel.times.interval / size * (first + last) / 2 for first, last in usual.steps],
        ahead_unit=unit,
        fusion={branch: weights[0] for branch, weights in following.weights.items()},
        usual_fusion={branch: weights.mean(axis=(0, 1)) for branch, weights in usual.weights.items()},
        edges=mean_edge_weights(candor, panel, origins, report),
        windows=len(origins),
    )


@torch.no_grad()
def _components(candor: Candor, panel: Panel) -> ComponentPicture | None:
    """Returns what the history before the next forecast was split into, sensor x patch."""
    trainable, origin = candor.trained(), panel.times.length
    states, _ = network_states(trainable, candor.windows(panel, np.array([origin])).batch(np.array([0])).tensors())
    settings = trainable.network.settings
    components, gates = split_history(states, slice(None), settings.gates_shocks)
    if gates is None:
        return None
    times = list(panel.times.slice(origin - settings.history, origin).local.to_pydatetime())
    return ComponentPicture(
        sensor="",
        starts=[times[start] for start in settings.history_starts],
        ends=[times[start + settings.patch_length - 1] for start in settings.history_starts],
        strengths={name: component.raw_strength for name, component in components.items()},
        gates=gates.by_name(),
    )
