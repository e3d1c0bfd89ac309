"""The readings of one sensor without its gaps, sorted once for all the checks that ask for quantiles."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# With fewer readings nothing can be said about what is usual at a sensor.
LEAST_READINGS = 50


@dataclass(frozen=True, eq=False)
class Series:
    """The readings of one sensor in order of time.

    Args:
        rows: the rows of the panel at which there is a reading.
        values: the readings in the sensor's unit; float64, so that differences of float32 extremes stay finite.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def ordered(self) -> NDArray[np.float64]:
        """The readings from the smallest to the largest."""
        return np.sort(self.values)

    @cached_property
    def steps(self) -> NDArray[np.float64]:
        """How far each reading is from the one before it, without sign."""
        return np.abs(np.diff(self.values))

    def without(self, is_wrong: NDArray[np.bool_]) -> "Series":
        """Returns the series without some of its readings, so that each wrong reading is reported once."""
        return Series(self.rows[~is_wrong], self.values[~is_wrong]) if is_wrong.any() else self


def series_of(column: NDArray[np.float32]) -> Series:
    """Returns the series in a column of a panel."""
    rows = np.flatnonzero(~np.isnan(column))
    return Series(rows, column[rows].astype(np.float64))


def quantile(ordered: NDArray[np.float64], share: float) -> float:
    """Returns the reading below which a share of the ordered readings lies."""
    return float(ordered[int(share * (len(ordered) - 1))])
