"""How a network learns from a panel: optimiser, schedules and scaling. Epochs count from 0."""

import math
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from candor.core.settings import Settings

UNCLIPPED = 1e9
"""A value of `clip` that no gradient reaches."""

_FEWEST_EPOCHS = 8  # of a shortened training, so that its schedules keep their shape
_FEWEST_STEPS, LEAST_BATCH = 1000, 16  # of a shortened training: few large steps would leave it at its beginning
_RISING, _LEAST_RATE = 0.15, 0.005  # shares of all epochs, and of the largest rate, of the schedule of one cycle
_SHARE_OF_LEARNING = 0.8  # of a budget; the rest is validation, and a margin


class TrainingSettings(Settings):
    """The optimiser and its schedules; defaults are the paper's shared values."""

    epochs: PositiveInt = 40
    """Passes over the training windows."""
    epoch_windows: PositiveInt | None = None
    """Windows that an epoch takes, chosen anew for each; None takes all."""
    validation_windows: PositiveInt | None = None
    """Windows of the validation part, evenly spread, that choose the best weights; None takes all."""
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
    schedule: Literal["milestones", "cosine", "one-cycle"] = "milestones"
    """Whether the learning rate is multiplied by `decay` at the milestones, or falls to zero along half a cosine over
    all epochs, or rises step by step for the first part of them and then falls so."""
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
    """Epoch e_0 from which losses count that start late, if the network has any."""
    patience: PositiveInt = 50
    """Epochs without a better validation error after which training ends."""
    averaging: float | None = Field(default=None, gt=0, lt=1)
    """Share of the running mean of the weights that each step keeps; the mean is validated and kept. None: no mean."""
    keeps_start: bool = False
    """Whether the first weights are validated too, so that training that only loses leaves nothing behind."""

    def prefix(self, epoch: int, horizon: int) -> int:
        """Return how many steps of the horizon are supervised."""
        if self.curriculum == 0 or epoch < self.warm_up:
            return horizon
        return min(horizon, self.curriculum * (1 + (epoch - self.warm_up) // self.period))

    def rate(self, epoch: int, of_epoch: float = 0.0) -> float:
        """Return the learning rate, when so much of an epoch is done."""
        if self.schedule == "one-cycle":
            done = (epoch + of_epoch) / self.epochs
            rising = done / _RISING
            falling = (1 + math.cos(math.pi * (done - _RISING) / (1 - _RISING))) / 2
            return self.learning_rate * max(_LEAST_RATE, min(rising, falling) if done < _RISING else falling)
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        passed = sum(milestone <= epoch for milestone in self.milestones)
        return self.learning_rate * self.decay**passed

    def is_active(self, epoch: int) -> bool:
        """Return whether the activation epoch is reached."""
        return epoch >= self.activation

    def within(self, windows: int, affordable: int, horizon: int) -> "TrainingSettings":
        """Return the settings with all schedules shortened to the time there is, or unchanged if they fit.

        Args:
            windows: training windows there are.
            affordable: how many of them, with repetition, there is time to learn from.
            horizon: steps of a forecast.
        """
        learned = int(_SHARE_OF_LEARNING * affordable)
        windows = min(windows, self.epoch_windows or windows)
        if learned >= self.epochs * windows:
            return self
        epochs = min(self.epochs, max(_FEWEST_EPOCHS, learned // windows))
        batch = min(self.batch, max(LEAST_BATCH, learned // _FEWEST_STEPS))
        of_epoch = in_whole_batches(learned // epochs, batch, windows)
        for_validation = max(1, of_epoch // 2)  # forecasting takes about a third of learning
        return self.in_epochs(epochs, horizon).model_copy(
            update={
                "batch": batch,
                "epoch_windows": of_epoch,
                "validation_windows": min(self.validation_windows or for_validation, for_validation),
            }
        )

    def in_epochs(self, epochs: int, horizon: int) -> "TrainingSettings":
        """Return the settings for so many epochs, with all schedules in proportion.

        The last epoch learns the whole horizon, and losses that start at e_0 start after the first epoch at the
        earliest, if there are two. Milestones that fall into the same epoch all count, so that the final learning rate
        is the same.
        """
        share = epochs / self.epochs
        warm_up = min(round(share * self.warm_up), epochs - 1)
        stages = 1 if self.curriculum == 0 else -(-horizon // self.curriculum)
        curriculum_epochs = max(1, min(epochs - warm_up, round(share * stages * self.period)))
        fewer_stages = min(stages, curriculum_epochs)
        return self.model_copy(
            update={
                "epochs": epochs,
                "milestones": tuple(round(share * milestone) for milestone in sorted(self.milestones)),
                "warm_up": warm_up,
                "curriculum": 0 if self.curriculum == 0 else -(-horizon // fewer_stages),
                "period": max(1, curriculum_epochs // fewer_stages),
                "activation": min(epochs - 1, max(1, round(share * self.activation))) if self.activation else 0,
            }
        )


def in_whole_batches(windows: int, size: int, there: int) -> int:
    """Return how many windows an epoch takes if it wants `windows` of `there`: all, or whole batches, at least one.

    A last batch of a window or two would move the weights as far as all the others.
    """
    return there if windows >= there else max(min(size, there), windows - windows % size)


class NetworkRecipe(Settings):
    """How any network learns from a panel."""

    training: TrainingSettings = TrainingSettings()
    """Optimiser and schedules."""
    loss_space: Literal["original", "scores"] = "scores"
    """Whether errors are measured in the sensors' unit or in z-scores."""
    scaler: Literal["rows", "windows"] = "rows"
    """Whether each row counts once for mean and deviation, or as often as windows read it (traffic benchmarks)."""
    selection: Literal["half", "whole"] = "half"
    """Which part of validation chooses the best weights; the second half calibrates intervals."""


@dataclass(frozen=True)
class Stage:
    """A training with a beginning and an end."""

    training: TrainingSettings
    name: str = ""
    """Of its folder, and in reports; the last stage has none, and its state lies in the folder of all."""
    share: float = 1.0
    """Of the time that a budget leaves when it begins; stages after it get the rest."""
