"""The answers of a trained CANDOR, over the test part: its gates, components, edge weights and relations."""

from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from candor.core.arrays import Doubles
from candor.core.errors import InputError
from candor.core.progress import Report, silent
from candor.data.panel import Edges
from candor.data.protocol import Task
from candor.forecasting.candor import Candor
from candor.nets.candor.candor import CandorNetwork, Encoding
from candor.nets.candor.decomposition import Components
from candor.nets.candor.functional import resemblances
from candor.nets.candor.physical import PathStates, PhysicalBranch
from candor.nets.candor.physical_operator import DirectionalSupport
from candor.nets.candor.settings import ModelSettings
from candor.research.encodings import encode_histories


@dataclass(frozen=True, eq=False)
class ModelAnswers:
    """Means over the test windows that read what the answer is about.

    A patch is known by the row it begins with: it is read by as many windows as have it in their history."""

    starts: NDArray[np.int64]  # first rows of the patches, ascending
    patch_length: int  # rows of a patch
    by_patch: dict[str, Doubles]  # by name, patch x sensor: sizes of components before their norm; gates from 0 to 1
    weights: Doubles  # of the forward operator, edge x position, oldest position first
    arrived: Doubles  # edge x position: size of what the edge brings from that position
    likeness: Doubles  # sensor x sensor: weight that the row's functional relations give to the column
    resemblance: Doubles  # sensor x sensor: cosine of the descriptors of backgrounds, which relations are chosen by


def refuse_variants(settings: ModelSettings) -> None:
    """Refuse a model that lacks a part that questions are about."""
    parts = {
        "decomposition": settings.decomposition,
        "shock gates": settings.gates_shocks or not settings.decomposition,  # without decomposition: named once
        "functional branch": "functional" in settings.branches,
        "relations": settings.relations > 0,
        "forward path": "forward" in settings.branches,
    }
    if lacking := [name for name, is_there in parts.items() if not is_there]:
        raise InputError(
            f"this variant of CANDOR has no {' and no '.join(lacking)}: its explanations cannot be scored",
            hint="leave out the settings that take parts of the model away",
        )


@torch.no_grad()
def collect_answers(candor: Candor, task: Task, report: Report = silent) -> ModelAnswers:
    """Return the answers of a fitted CANDOR over the test part of a task."""
    network, origins = candor.trained().network, task.split.test
    settings, sensors = network.settings, len(task.panel.sensors)
    refuse_variants(settings)
    sums: dict[str, Doubles] = {}
    patches = np.zeros(task.panel.times.length)
    for rows, encoding in encode_histories(candor, task.panel, origins, report, "collecting the model's answers"):
        np.add.at(patches, rows, 1)
        for name, found in _by_patch(encoding).items():
            into = sums.setdefault(name, np.zeros((task.panel.times.length, sensors)))
            np.add.at(into, rows, found.transpose(1, 2).double().numpy())
        for name, found in _by_window(network, encoding, sensors).items():
            sums[name] = sums.get(name, 0.0) + found.double().sum(dim=0).numpy()
    known = np.flatnonzero(patches)
    order = _in_order_of(task.panel.edges, _branch(network).support("forward"))
    by_window = {name: sums.pop(name) / len(origins) for name in ("weights", "arrived", "likeness", "resemblance")}
    by_window |= {name: by_window[name][order] for name in ("weights", "arrived")}
    by_patch = {name: total[known] / patches[known, None] for name, total in sums.items()}
    return ModelAnswers(known, settings.patch_length, by_patch, **by_window)


def _by_patch(encoding: Encoding) -> dict[str, Tensor]:
    """Return the answers about patches, each window x sensor x patch."""
    components = encoding.components
    assert isinstance(components, Components)  # variants without are refused
    return {
        "shock": _size(components.raw_shock),
        "shock gates": components.shock_activity,
        "accumulation": _size(components.raw_accumulation),
        "release": _size(components.raw_release),
        "accumulation gate": components.accumulation_gate.mean(dim=-1),
        "release gate": components.release_gate.mean(dim=-1),
    }


def _by_window(network: CandorNetwork, encoding: Encoding, sensors: int) -> dict[str, Tensor]:
    """Return weights and what arrived, window x edge x position; likeness, resemblance, window x sensor x sensor."""
    functional, states = encoding.functional, encoding.paths["forward"]
    assert functional is not None  # variants without are refused
    likeness = torch.zeros(len(functional.weights), sensors, sensors)
    likeness.scatter_add_(2, functional.neighbour, functional.weights)  # all channels of a neighbour together
    return {
        "weights": states.weights.transpose(1, 2),
        "arrived": _arrived(_branch(network), states),
        "likeness": likeness,
        "resemblance": resemblances(functional.descriptor),
    }


def _arrived(branch: PhysicalBranch, states: PathStates) -> Tensor:
    """Return the size of what each edge brings to the last history patch, window x edge x position."""
    path, support = branch.path("forward"), branch.support("forward")
    patches = states.residual.shape[2]
    # What would lie before the first patch is the first one again.
    read = [max(patches - path.span + position, 0) for position in range(path.span)]
    mapped = F.relu(path.window_map(states.residual[:, :, read].flatten(2)))  # Psi
    mapped = rearrange(mapped, "window sensor (position hidden) -> window sensor position hidden", position=path.span)
    return states.weights.transpose(1, 2) * _size(mapped)[:, support.sender]


def _in_order_of(edges: Edges, support: DirectionalSupport) -> NDArray[np.int64]:
    """Return for each edge of the panel its place among the edges of the operator."""
    ends = zip(support.sender.tolist(), support.receiver.tolist(), strict=True)
    places = {pair: place for place, pair in enumerate(ends)}
    wanted = zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    return np.array([places[pair] for pair in wanted], np.int64)


def _branch(network: CandorNetwork) -> PhysicalBranch:
    assert network.physical is not None  # variants without are refused
    return network.physical


def _size(states: Tensor) -> Tensor:
    """Return the root mean square over hidden."""
    return states.square().mean(dim=-1).sqrt()
