"""A network as training sees it: its objective on some windows, and its forecast."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from candor.data.windows import Batch
from candor.nets.products import choose_product_library

choose_product_library()


@dataclass(frozen=True)
class StepContext:
    """How far training has come, and how a micro-batch counts within its batch."""

    prefix: int
    """Steps of the horizon that are supervised."""
    is_active: bool
    """Whether the activation epoch is reached."""
    valid: int
    """Observed targets within the prefix in the whole batch of the optimiser, over all processes."""
    share: float
    """This micro-batch's part of the windows of the whole batch."""
    done: float = 0.0
    """Share of the epochs that have ended."""


@dataclass(frozen=True)
class Objective:
    """A micro-batch's part of the objective."""

    total: Tensor
    """To be differentiated."""
    error: Tensor
    """Its part of the mean absolute error over the prefix, in the sensors' unit, to be read."""
    terms: dict[str, Tensor]
    """Its part of every term of the objective by name, to be read."""


def tensors_of(batch: Batch) -> dict[str, Tensor]:
    """Return the arrays of a batch as tensors by name, calendar positions as int64 for embedding tables."""
    arrays = {name: torch.from_numpy(array) for name, array in vars(batch).items() if array is not None}
    return arrays | {name: arrays[name].long() for name in ("time_of_day", "day_of_week", "week_of_year")}


class Trainable(ABC):
    """A network with its objective. Inputs are batches by name, as `tensors_of` gives them."""

    network: nn.Module
    horizon: int

    @abstractmethod
    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        """Return the part of the objective that a micro-batch adds; the parts of a batch sum up to its objective."""

    @abstractmethod
    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the forecast in the sensors' unit, window x horizon x sensor."""

    def inherit(self, earlier: "Trainable") -> None:  # noqa: B027 - most have no stage before them
        """Take over what the stage before learned; by default nothing."""

    def found(self) -> dict[str, Any]:
        """Return what later stages are built from besides weights, such as a choice of parts, as JSON holds it."""
        return {}
