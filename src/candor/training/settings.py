"""How a network is trained, and the schedules that follow from it. Epochs count from 0."""

import math
from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from candor.settings import Settings


class TrainingSettings(Settings):
    """The optimiser and its schedules; defaults are the paper's shared values."""

    epochs: PositiveInt = 40
    """Passes over the training windows."""
    batch: PositiveInt = 64
    """Windows of one step of the optimiser, over all processes together."""
    optimiser: Literal["adam", "adamw"] = "adam"
    """Adam with weight decay added to the gradient, or AdamW, which takes it off the weights."""
    learning_rate: PositiveFloat = 2e-3
    """At the beginning."""
    weight_decay: NonNegativeFloat = 1e-5
    """On all parameters."""
    adam_floor: PositiveFloat = 1e-8
    """Adam's epsilon."""
    clip: PositiveFloat = 5.0
    """Largest norm of the gradient of all parameters together."""
    schedule: Literal["milestones", "every-epoch", "cosine"] = "milestones"
    """Whether the learning rate is multiplied by `decay` at the milestones, or after every epoch, or falls to zero
    along half a cosine over all epochs."""
    milestones: tuple[NonNegativeInt, ...] = ()
    """See `schedule`."""
    decay: PositiveFloat = 0.5
    """See `schedule`."""
    warm_up: NonNegativeInt = 0
    """Epochs with the whole horizon before the curriculum begins."""
    curriculum: NonNegativeInt = 0
    """Steps that are supervised at first, and by which they grow; 0 supervises the whole horizon from the start."""
    period: PositiveInt = 1
    """Epochs after which the supervised steps grow."""
    activation: NonNegativeInt = 0
    """Epoch from which terms that wait for sensible states count, e_0."""
    patience: PositiveInt = 50
    """Epochs without a better validation error after which training ends."""

    def prefix(self, epoch: int, horizon: int) -> int:
        """Returns how many steps of the horizon are supervised."""
        if self.curriculum == 0 or epoch < self.warm_up:
            return horizon
        return min(horizon, self.curriculum * (1 + (epoch - self.warm_up) // self.period))

    def rate(self, epoch: int) -> float:
        """Returns the learning rate."""
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        passed = sum(milestone <= epoch for milestone in self.milestones)
        return self.learning_rate * self.decay ** (epoch if self.schedule == "every-epoch" else passed)

    def is_active(self, epoch: int) -> bool:
        """Returns whether the activation epoch is reached, chi."""
        return epoch >= self.activation
