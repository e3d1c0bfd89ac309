"""How a network is trained, and the schedules that follow from it (spec, section 5). Epochs count from 0."""

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from candor.settings import Settings


class TrainingSettings(Settings):
    """The optimiser and its schedules; defaults are the paper's shared values."""

    epochs: PositiveInt = 40
    """Passes over the training windows."""
    batch: PositiveInt = 64
    """Windows of one step of the optimiser, over all processes together."""
    learning_rate: PositiveFloat = 2e-3
    """Of Adam, at the beginning."""
    weight_decay: NonNegativeFloat = 1e-5
    """Coupled, on all parameters."""
    adam_floor: PositiveFloat = 1e-8
    """Adam's epsilon."""
    clip: PositiveFloat = 5.0
    """Largest norm of the gradient of all parameters together."""
    milestones: tuple[NonNegativeInt, ...] = ()
    """Epochs at which the learning rate is multiplied by `decay`."""
    decay: PositiveFloat = 0.5
    """See `milestones`."""
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
        return self.learning_rate * self.decay ** sum(milestone <= epoch for milestone in self.milestones)

    def is_active(self, epoch: int) -> bool:
        """Returns whether the activation epoch is reached, chi."""
        return epoch >= self.activation
