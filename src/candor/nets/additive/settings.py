"""Sizes of the shared networks, and how they follow from the record: per-sensor weights need many windows."""

import math

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from candor.core.settings import Settings
from candor.nets.recipe import NetworkRecipe, TrainingSettings

_LONG_RECORD = 1000  # windows that share no target, from which on sensors may have weights of their own
_PASSES_OF_LONG_RECORD, _FEWEST_PASSES = 6.0, 1.5
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
    own: bool | None = None
    """Whether every sensor has gains of hidden units and an output of its own."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Share of hidden units that is left out in training."""

    def settled(self, disjoint: float) -> "SharedSizes":
        """Return the sizes for a record of so many windows that share no target."""
        is_long = disjoint >= _LONG_RECORD
        chosen = {"width": 96 if is_long else 64, "own": is_long, "dropout": 0.15 if is_long else 0.3}
        return self.model_copy(update={key: value for key, value in chosen.items() if getattr(self, key) is None})


class SharedRecipe(NetworkRecipe):
    """Sizes and training of the shared networks."""

    sizes: SharedSizes = SharedSizes()
    """Of each network."""
    training: TrainingSettings = TrainingSettings(
        epochs=40, batch=16, optimiser="adamw", learning_rate=3e-3, weight_decay=0.05, schedule="one-cycle",
        averaging=0.999, keeps_start=True, patience=40,
    )  # fmt: skip
    """Optimiser and schedules; an epoch is a part of the passes between two looks at the validation part."""
    passes: PositiveFloat | None = None
    """Over all training windows, of each network; None follows from the length of the record."""
    networks: PositiveInt | None = None
    """How many are trained one after the other and averaged; None: as many as the budget lets learn to their end."""

    def passes_for(self, disjoint: float) -> float:
        """Return the passes of a network, for a record of so many windows that share no target."""
        long = min(1.0, disjoint / (2 * _LONG_RECORD))
        return self.passes or max(_FEWEST_PASSES, _PASSES_OF_LONG_RECORD * long)

    def training_of(self, windows: int, passes: float) -> TrainingSettings:
        """Return the schedule of one network over its passes."""
        epochs = min(self.training.epochs, max(_LOOKS, math.ceil(passes)))
        of_epoch = self.training.epoch_windows or max(self.training.batch, int(passes * windows / epochs))
        return self.training.model_copy(update={"epochs": epochs, "epoch_windows": min(of_epoch, windows)})
