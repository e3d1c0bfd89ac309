"""What only CANDOR can tell: what the recent past of every sensor is made of, and what its forecasts rest on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from candor.core.progress import Report, silent
from candor.data.protocol import Task
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states
from candor.nets.candor.decomposition import Components
from candor.nets.candor.history import COMPONENT_NAMES
from candor.render.figures.edges import WeightedEdges
from candor.render.figures.runs import picture_fusion
from candor.render.figures.survey import choose_windows, survey

Numbers = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Makeup:
    """What the history before the next forecast was split into.

    Args:
        starts: local times of the first readings of the patches.
        ends: local times of their last readings.
        strengths: by name of the component, sensor x patch, in the network's own measure: its root mean square before
            the norm.
        gates: by name of the gate, sensor x patch: 0 shut, 1 open.
    """

    starts: Sequence[datetime]
    ends: Sequence[datetime]
    strengths: Mapping[str, Numbers]
    gates: Mapping[str, Numbers]


@dataclass(frozen=True, eq=False)
class Reasons:
    """Where the forecasts of CANDOR come from.

    Args:
        makeup: of the history before the next forecast; None for a network that does not split it.
        ahead: middle of each target patch, in `ahead_unit` after the last reading.
        ahead_unit: such as days.
        fusion: how much each branch counts in the next forecast, by its name, sensor x target patch.
        usual_fusion: the same by target patch, mean over sensors and windows.
        edges: by direction, with weights that are means over windows.
        windows: how many windows the means are over.
    """

    makeup: Makeup | None
    ahead: Sequence[float]
    ahead_unit: str
    fusion: Mapping[str, Numbers]
    usual_fusion: Mapping[str, Numbers]
    edges: Mapping[str, WeightedEdges]
    windows: int


def find_reasons(candor: Candor, task: Task, report: Report = silent) -> Reasons:
    """Returns where the forecasts of CANDOR come from, by the windows of the test part and the next forecast."""
    panel = task.panel
    usual = survey(candor, panel, choose_windows(task.split, panel.times.length), report)
    following = survey(candor, panel, np.array([panel.times.length]))
    picture = picture_fusion(usual, panel)
    return Reasons(
        makeup=_makeup(candor, task),
        ahead=picture.ahead,
        ahead_unit=picture.ahead_unit,
        fusion={branch: weights[0] for branch, weights in following.fusion.items()},
        usual_fusion={branch: weights.mean(axis=(0, 1)) for branch, weights in usual.fusion.items()},
        edges=usual.edges,
        windows=usual.windows,
    )


@torch.no_grad()
def _makeup(candor: Candor, task: Task) -> Makeup | None:
    trainable, origin = candor.trained(), task.panel.times.length
    windows = candor.windows(task.panel, np.array([origin]))
    states, _ = network_states(trainable, windows.batch(np.array([0])).tensors())
    components, settings = states.components, trainable.network.settings
    if not isinstance(components, Components):
        return None
    shock = {}
    if settings.gates_shocks:  # where rain stands for shocks there are none
        shock["shock, against this background"] = components.shock_gate_u[0].numpy()
        shock["shock, against the next"] = components.shock_gate_v[0].numpy()
    times = list(task.panel.times.slice(origin - settings.history, origin).local.to_pydatetime())
    return Makeup(
        starts=[times[start] for start in settings.history_starts],
        ends=[times[start + settings.patch_length - 1] for start in settings.history_starts],
        strengths={name: _size(getattr(components, f"raw_{name}")[0]) for name in COMPONENT_NAMES},
        gates={
            "accumulation": components.accumulation_gate[0].mean(dim=-1).numpy(),
            "release": components.release_gate[0].mean(dim=-1).numpy(),
        }
        | shock,
    )


def _size(states: Tensor) -> Numbers:
    """Returns the root mean square over hidden."""
    size: Numbers = states.square().mean(dim=-1).sqrt().numpy()
    return size
