"""What an account is made of; what is left open is chosen on the readings."""

from typing import Literal

from pydantic import NonNegativeFloat

from candor.account.usual import Cycle
from candor.core.settings import Settings

PartName = Literal["usual", "own", "arrivals"]
PARTS: tuple[PartName, ...] = ("usual", "own", "arrivals")


class AccountSettings(Settings):
    """What an account is made of; None lets cross-validation choose."""

    parts: tuple[PartName, ...] = PARTS
    """What forecasts are made of; without `usual` it is the sensor's mean at all times."""
    cycle: Cycle | None = None
    """What repeats: nothing, the day or the week."""
    year: bool | None = None
    """Whether the usual has a wave over the year."""
    own_penalty: NonNegativeFloat | None = None
    """On weights of a sensor's own lags, in units of one window whose inputs stand one robust spread from the usual."""
    edge_penalty: NonNegativeFloat | None = None
    """On weights of lags of edges."""
