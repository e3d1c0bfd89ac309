"""What CANDOR computes over many windows of a run, before training and after it: the states that a reading looks at."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from candor.core.progress import Report, silent
from candor.data.protocol import Origins, Split
from candor.data.times import BINS_PER_DAY
from candor.data.windows import Windows
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states
from candor.forecasting.inference import infer
from candor.forecasting.network import edges_of
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.candor import Explanation as NetworkStates
from candor.nets.candor.decomposition import Components
from candor.nets.candor.functional import FunctionalStates
from candor.nets.candor.trainable import CandorTrainable
from candor.training.batches import spread_evenly

_MOST_WINDOWS, _MOST_NUMBERS = 200, 6_000_000  # numbers of one state: 24 MB, and there are about twenty of them
_HOURS, _FEWEST_ALIKE = 24, 8  # groups of the day, and windows that a group has on average


@dataclass(frozen=True, eq=False)
class PathReading:
    """What one direction of the physical branch did.

    Args:
        temporal: L, window x sensor x patch x hidden.
        residual: E, of the same shape.
        contribution: o, of the same shape.
        weights: W, window x position x edge.
        shared_scores: of omega, position x edge; None if the operator is not learned.
        sample_scores: of a, window x edge; None if the operator is not learned.
    """

    temporal: Tensor
    residual: Tensor
    contribution: Tensor
    weights: Tensor
    shared_scores: Tensor | None
    sample_scores: Tensor | None


@dataclass(frozen=True, eq=False)
class Relations:
    """What the functional branch chose, and what it chose by.

    Args:
        peer: of each chosen pair, window x sensor x pair.
        weight: of the same shape.
        descriptor: h^B of each background, window x sensor x relation width.
    """

    peer: Tensor
    weight: Tensor
    descriptor: Tensor


@dataclass(frozen=True, eq=False)
class Reading:
    """The states of a network over windows.

    Args:
        trainable: the network.
        origins: rows of the first forecast steps of the windows.
        time_of_day: bin 0..287 of the first forecast step by window; 0 where readings are daily.
        values: what the network read, window x time x sensor: z-scores without what was taken off.
        anchor: what was taken off, window x 1 x sensor: z-scores, zero if nothing was.
        observed: where a reading was measured, window x time x sensor.
        embedded: Z, window x sensor x patch x hidden.
        components: None if the network does not decompose.
        paths: by direction; none if the network has no physical branch.
        relations: None if the network has no functional branch.
    """

    trainable: CandorTrainable
    origins: Origins
    time_of_day: Tensor
    values: Tensor
    anchor: Tensor
    observed: Tensor
    embedded: Tensor
    components: Components | None
    paths: dict[str, PathReading]
    relations: Relations | None

    @property
    def network(self) -> CandorNetwork:
        """The network that computed the states."""
        return self.trainable.network

    def usual(self, states: Tensor) -> Tensor:
        """Returns for states, window x ..., their means over windows of about the same hour of the day.

        Without the hour, what repeats every day would count as something that happened.
        """
        groups = int(np.clip(len(self.origins) // _FEWEST_ALIKE, 1, _HOURS))
        group = self.time_of_day * groups // BINS_PER_DAY
        total = states.new_zeros(groups, *states.shape[1:]).index_add(0, group, states)
        count = torch.bincount(group, minlength=groups).clamp(min=1)
        return (total / count.view(-1, *[1] * (states.dim() - 1)))[group]

    def deviations(self, states: Tensor) -> Tensor:
        """Returns what is left of states, window x ..., when what is usual is taken off."""
        return states - self.usual(states)


def choose_origins(split: Split, length: int, windows: int) -> tuple[str, Origins]:
    """Returns the name of the last part that has windows, and some of them spread evenly over it.

    Args:
        split: the parts.
        length: rows of the panel; without any part the forecast after the last of them is taken.
        windows: how many at most.
    """
    parts = {"test part": split.test, "validation part": split.validation, "training part": split.train}
    for name, origins in parts.items():
        if len(origins):
            return name, origins[spread_evenly(len(origins), windows)]
    return "end of the record", np.array([length], np.int64)


def affordable_windows(network: CandorNetwork) -> int:
    """Returns how many windows are read if nobody says: 200, or fewer where a network is so large that they fill up."""
    settings = network.settings
    return int(np.clip(_MOST_NUMBERS // (settings.nodes * settings.patches * settings.hidden), 2, _MOST_WINDOWS))


def untrained(candor: Candor) -> CandorTrainable:
    """Returns the network with the weights that training began with, drawn again from the seed.

    A training that began with the weights of another run began elsewhere: `RunRecord.start` tells.
    """
    trained = candor.trained()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(candor.seed)
        network = CandorNetwork(trained.network.settings, edges_of(candor.state_))
    network.eval()
    return replace(trained, network=network)


def read_windows(trainable: CandorTrainable, windows: Windows, report: Report = silent) -> Reading:
    """Returns the states of a network over windows, at least one; the report is told of windows."""
    parts = list(infer(trainable, windows, _read_batch, report, f"reading {len(windows)} windows"))
    first = parts[0]
    return Reading(
        trainable=trainable,
        origins=windows.origins,
        time_of_day=torch.cat([part.time_of_day for part in parts]),
        values=torch.cat([part.values for part in parts]),
        anchor=torch.cat([part.anchor for part in parts]),
        observed=torch.cat([part.observed for part in parts]),
        embedded=torch.cat([part.embedded for part in parts]),
        components=_join_components([part.components for part in parts if part.components is not None]),
        paths={direction: _join_paths([part.paths[direction] for part in parts]) for direction in first.paths},
        relations=_join_relations([part.relations for part in parts if part.relations is not None]),
    )


def _read_batch(trainable: CandorTrainable, batch: dict[str, Tensor]) -> Reading:
    values, _ = trainable.anchored(batch)
    states, _ = network_states(trainable, batch)
    functional = states.functional
    return Reading(
        trainable=trainable,
        origins=np.empty(0, np.int64),  # known where batches are joined
        time_of_day=batch["time_of_day"][:, trainable.network.settings.history],
        values=values,
        anchor=(batch["inputs"] - values)[:, :1],
        observed=batch["input_mask"],
        embedded=states.embedded,
        components=states.components if isinstance(states.components, Components) else None,
        paths={direction: _read_path(states, direction) for direction in states.paths},
        relations=None if functional is None else _read_relations(functional),
    )


def _read_relations(functional: FunctionalStates) -> Relations:
    return Relations(functional.neighbour, functional.weights, functional.descriptor)


def _read_path(states: NetworkStates, direction: str) -> PathReading:
    path = states.paths[direction]
    return PathReading(**{field.name: getattr(path, field.name) for field in fields(PathReading)})


def _join_components(parts: Sequence[Components]) -> Components | None:
    if not parts:
        return None
    return Components(
        **{field.name: torch.cat([getattr(p, field.name) for p in parts]) for field in fields(Components)}
    )


def _join_paths(parts: Sequence[PathReading]) -> PathReading:
    """Returns the parts of windows as one; what all windows share is that of the first."""
    sample_scores = [part.sample_scores for part in parts if part.sample_scores is not None]
    return PathReading(
        temporal=torch.cat([part.temporal for part in parts]),
        residual=torch.cat([part.residual for part in parts]),
        contribution=torch.cat([part.contribution for part in parts]),
        weights=torch.cat([part.weights for part in parts]),
        shared_scores=parts[0].shared_scores,
        sample_scores=torch.cat(sample_scores) if sample_scores else None,
    )


def _join_relations(parts: Sequence[Relations]) -> Relations | None:
    if not parts:
        return None
    return Relations(**{field.name: torch.cat([getattr(p, field.name) for p in parts]) for field in fields(Relations)})
