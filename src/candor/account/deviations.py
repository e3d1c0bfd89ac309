"""Readings minus what is usual, in the sensor's own robust spread: what stages learn from."""

from dataclasses import dataclass

from candor.account.usual import Usual, Values
from candor.data.preprocessing import fill
from candor.data.times import Calendar


@dataclass(frozen=True, eq=False)
class Deviations:
    """The way from readings to deviations and back.

    Args:
        usual: in the sensors' units.
        spread: of each sensor, in its unit.
    """

    usual: Usual
    spread: Values

    def of(self, values: Values, calendar: Calendar) -> Values:
        """Return the deviations of readings, time x sensor, NaN where missing."""
        found: Values = (values - self.usual.at(calendar)) / self.spread
        return found

    def filled(self, values: Values, calendar: Calendar) -> Values:
        """Return the deviations with gaps carried forward; before a sensor's first reading they are zero."""
        return fill(self.of(values, calendar), "last")
