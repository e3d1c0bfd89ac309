"""Sizes and training of the shared networks, and how both follow from the length of the record."""

import math
from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from candor.core.settings import Settings
from candor.nets.recipe import NetworkRecipe, TrainingSettings

_LONG_RECORD = 1000  # windows that share no target
_PASSES_OF_LONG_RECORD, _FEWEST_PASSES, _FEWEST_STEPS = 6.5, 1.5, 250
_LOOKS = 8  # at the validation part, at least


class SharedSizes(Settings):
    """Sizes of a shared network; None follows from the length of the record."""

    width: PositiveInt | None = None
    """Hidden units of each sensor."""
    blocks: PositiveInt = 3
    """Residual blocks."""
    mixings: NonNegativeInt = 2
    """Blocks after which hidden states are mixed among sensors."""
    mixed: PositiveInt = 48
    """Channels that are mixed."""
    rank: PositiveInt = 16
    """Of the learned likeness of sensors."""
    alike: NonNegativeInt = 8
    """Sensors whose training deviations correlate most, whose mean is read too."""
    identity: NonNegativeInt = 32
    """Numbers that stand for a sensor."""
    clock: PositiveInt = 32
    """Numbers that stand for a time of the day; half as many for a day of the week."""
    season: bool | None = None
    """Whether the week of the year is part of the clock; None: of every other network, where there are years."""
    reads_level: bool = True
    """Whether networks read how high deviations and readings stand, or only how they differ from the last ones."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Share of hidden units that is left out in training."""
    silenced: float = Field(default=0.05, ge=0, lt=1)
    """Share of sensors and windows of which nothing is read in training, so that neighbours are listened to."""

    def settled(self, disjoint: float) -> "SharedSizes":
        """Return the sizes for a record of so many windows that share no target."""
        is_long = disjoint >= _LONG_RECORD
        chosen = {"width": 96 if is_long else 64, "dropout": 0.15 if is_long else 0.3}
        return self.model_copy(update={key: value for key, value in chosen.items() if getattr(self, key) is None})


class SharedTraining(TrainingSettings):
    """Optimiser and schedules; an epoch is what lies between two looks at the validation part, not a whole pass."""

    epochs: PositiveInt = 40
    batch: PositiveInt = 16
    optimiser: Literal["adam", "adamw"] = "adamw"
    learning_rate: PositiveFloat = 3e-3
    weight_decay: NonNegativeFloat = 0.1
    schedule: Literal["milestones", "cosine", "one-cycle"] = "one-cycle"
    averaging: float | None = Field(default=0.999, gt=0, lt=1)
    keeps_start: bool = True


class SharedRecipe(NetworkRecipe):
    """Sizes and training of the shared networks."""

    sizes: SharedSizes = SharedSizes()
    """Of each network."""
    training: SharedTraining = SharedTraining()
    """Optimiser and schedules."""
    passes: PositiveFloat | None = None
    """Over all training windows, of each network; None follows from the length of the record."""
    networks: PositiveInt | None = None
    """How many are trained one after the other and averaged; None: as many as the budget lets learn to their end."""

    def passes_for(self, windows: int, disjoint: float) -> float:
        """Return the passes of a network over so many windows, so many of which share no target.

        More passes learn the record by heart, and further networks are worth more: their mean forgets what only one
        of them has seen.
        """
        long = min(1.0, disjoint / (2 * _LONG_RECORD))
        fewest = max(_FEWEST_PASSES, _FEWEST_STEPS * self.training.batch / max(windows, 1))
        return self.passes or max(fewest, _PASSES_OF_LONG_RECORD * long)

    def training_of(self, windows: int, passes: float) -> SharedTraining:
        """Return the schedule of one network over its passes."""
        epochs = min(self.training.epochs, max(_LOOKS, math.ceil(passes)))
        of_epoch = self.training.epoch_windows or max(self.training.batch, int(passes * windows / epochs))
        return self.training.model_copy(update={"epochs": epochs, "epoch_windows": min(of_epoch, windows)})
