"""Sizes of the shared network."""

from pydantic import Field, NonNegativeInt, PositiveInt

from candor.core.settings import Settings


class SharedSizes(Settings):
    """Sizes of the shared network."""

    width: PositiveInt = 96
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
    dropout: float = Field(default=0.15, ge=0, lt=1)
    """Share of hidden units that is left out in training."""
