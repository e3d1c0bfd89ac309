"""The states of CANDOR over many windows of a run, before and after training: what the analyses look at."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from candor.core.progress import Report, silent
from candor.data.protocol import Origins
from candor.data.times import BINS_PER_DAY
from candor.data.windows import Windows
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states
from candor.forecasting.inference import infer
from candor.forecasting.network import edges_of
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.decomposition import Components
from candor.nets.candor.functional import FunctionalStates
from candor.nets.candor.physical import PathStates, PhysicalBranch
from candor.nets.candor.trainable import CandorTrainable

_HOURS, _FEWEST_ALIKE = 24, 8  # groups of the day, and windows that a group has on average


@dataclass(frozen=True, eq=False)
class WindowStates:
    """The states of a network over windows; the first axis of every tensor is the window."""

    trainable: CandorTrainable
    origins: Origins  # rows of the first forecast steps
    time_of_day: Tensor  # bin 0..287 of the first forecast step; 0 where readings are daily
    values: Tensor  # what the network read, window x time x sensor: z-scores less the anchor
    anchor: Tensor  # z-scores that were subtracted, window x 1 x sensor; zero if nothing was
    observed: Tensor  # where a reading was measured, window x time x sensor
    embedded: Tensor  # Z, window x sensor x patch x hidden
    components: Components | None  # None if the network does not decompose
    paths: dict[str, PathStates]  # the physical branch by direction, without its predictions; empty without the branch
    functional: FunctionalStates | None  # None if the network has no functional branch

    @property
    def network(self) -> CandorNetwork:
        """The network that computed the states."""
        return self.trainable.network

    @property
    def physical(self) -> PhysicalBranch:
        """The physical branch of a network that has one."""
        assert self.network.physical is not None
        return self.network.physical

    def over_paths(self, name: str) -> Tensor:
        """Return a state of the physical branch, summed over its directions."""
        return torch.stack([getattr(path, name) for path in self.paths.values()]).sum(dim=0)

    def usual(self, states: Tensor) -> Tensor:
        """Return for states, window x ..., their means over windows of about the same hour of the day.

        Without the hour, what repeats every day would count as something that happened.
        """
        groups = int(np.clip(len(self.origins) // _FEWEST_ALIKE, 1, _HOURS))
        group = self.time_of_day * groups // BINS_PER_DAY
        total = states.new_zeros(groups, *states.shape[1:]).index_add(0, group, states)
        count = torch.bincount(group, minlength=groups).clamp(min=1)
        return (total / count.view(-1, *[1] * (states.dim() - 1)))[group]

    def deviations(self, states: Tensor) -> Tensor:
        """Return what is left of states, window x ..., when what is usual is subtracted."""
        return states - self.usual(states)


def untrained(candor: Candor) -> CandorTrainable:
    """Return the network with the weights that training began with, drawn again from the seed.

    A training that began with the weights of another run began elsewhere: see `RunRecord.start`.
    """
    trained: CandorTrainable = candor.trained()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(candor.seed)
        network = CandorNetwork(trained.network.settings, edges_of(candor.state_))
    network.eval()
    return replace(trained, network=network)


def window_states(trainable: CandorTrainable, windows: Windows, report: Report = silent) -> WindowStates:
    """Return the states of a network over windows, at least one."""
    parts = list(infer(trainable, windows, _states_of_batch, report, f"reading {len(windows)} windows"))
    whole: WindowStates = _joined(parts)
    return replace(whole, trainable=trainable, origins=windows.origins)


def _states_of_batch(trainable: CandorTrainable, batch: dict[str, Tensor]) -> WindowStates:
    values, _ = trainable.anchored(batch)
    states, _ = network_states(trainable, batch)
    return WindowStates(
        trainable=trainable,
        origins=np.empty(0, np.int64),  # known where batches are joined
        time_of_day=batch["time_of_day"][:, trainable.network.settings.history],
        values=values,
        anchor=(batch["inputs"] - values)[:, :1],
        observed=batch["input_mask"],
        embedded=states.embedded,
        components=states.components if isinstance(states.components, Components) else None,
        paths={
            direction: replace(path, predictions=path.predictions[:, :, :0], target_gates=path.target_gates[..., :0])
            for direction, path in states.paths.items()
        },
        functional=states.functional,
    )


def _joined(parts: Sequence[Any]) -> Any:
    """Return the states of batches as one: tensors are joined wherever they stand, what all share is the first's."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.cat(list(parts))
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    if isinstance(first, WindowStates | Components | PathStates | FunctionalStates):
        own = [field.name for field in fields(first) if field.name != "shared_scores"]
        return replace(first, **{name: _joined([getattr(part, name) for part in parts]) for name in own})
    return first
