"""What is known about a synthetic network: the answers to the questions a model is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

# In the order in which they are summed.
COMPONENTS = ("background", "storage", "shock", "transported", "noise")


@dataclass(frozen=True, eq=False)
class Shocks:
    """Injected jumps, in the order of time: when (step), where (position), how large (signed)."""

    time: NDArray[np.int64]
    sensor: NDArray[np.int64]
    size: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class Truth:
    """The parts that the readings are the sum of, and the laws that made them.

    All series are time x sensor, in the unit of the readings; before the first step every storage,
    shock and transport is zero. Edges and sensors are numbered as in the panel.

    Args:
        delays: per edge, in steps.
        attenuation: per edge, the share of a deviation that arrives.
        shocks: every jump that was injected; it then fades by `shock_retention` per step.
        components: background, storage, shock, transported and noise.
        twins: pairs of positions of sensors that share a background and no path.
        storage_retention: per sensor, the share of what is stored that is left one step later.
        shock_retention: per sensor, the share of a shock that is left one step later.
        bounds: the smallest and largest reading; the sum is clipped to them.
    """

    delays: NDArray[np.int64]
    attenuation: NDArray[np.float64]
    shocks: Shocks
    components: Mapping[str, NDArray[np.float32]]
    twins: tuple[tuple[int, int], ...]
    storage_retention: NDArray[np.float64]
    shock_retention: NDArray[np.float64]
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        ordered = {name: self.components[name] for name in COMPONENTS}
        object.__setattr__(self, "components", MappingProxyType(ordered))

    @property
    def accumulation(self) -> NDArray[np.float32]:
        """By how much the stored amount rose in each step, zero where it fell."""
        return np.maximum(self._storage_change, 0)

    @property
    def release(self) -> NDArray[np.float32]:
        """By how much the stored amount fell in each step, zero where it rose."""
        return np.maximum(-self._storage_change, 0)

    @cached_property
    def clipped(self) -> NDArray[np.bool_]:
        """Where the sum of the components lies beyond the bounds, so that the reading does not."""
        low, high = self.bounds
        total = total_of(self.components)
        return (total < low) | (total > high)

    @property
    def _storage_change(self) -> NDArray[np.float32]:
        storage = self.components["storage"]
        return np.diff(storage, axis=0, prepend=np.zeros_like(storage[:1]))


def total_of(components: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    """Returns the sum of the components, which the readings are before clipping."""
    total = components[COMPONENTS[0]].astype(np.float64)
    for name in COMPONENTS[1:]:
        total += components[name]
    return total
