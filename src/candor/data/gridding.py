"""Which row of a regular time grid a reading belongs to, and which of several readings in one cell counts.

The one rule for files, for basins built from services, for readings sent over HTTP and for new readings of a model.
Moments are microseconds since 1970 UTC.

- A reading belongs to the row nearest to it; half-way between two rows, to the earlier one.
- Of several readings in one cell (row and sensor) the nearest to the row counts; of two equally near, the one taken
  later; of two taken at one moment, the one that comes last in the file or was sent last.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from candor.data.times import TimeAxis

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(moment: datetime) -> int:
    """Return the microseconds from 1970 UTC to a moment."""
    return (moment - EPOCH) // _MICROSECOND


@dataclass(frozen=True)
class Grid:
    """The rows of a time axis, going on before its start and after its end."""

    axis: TimeAxis

    @property
    def start(self) -> int:
        """The moment of row 0."""
        return to_microseconds(self.axis.start)

    @property
    def step(self) -> int:
        """The distance between two rows in microseconds."""
        return self.axis.interval // _MICROSECOND

    def rows(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row that each moment belongs to."""
        return np.asarray(-((self.step // 2 - (moments - self.start)) // self.step))

    def row(self, moment: int) -> int:
        """Return the row that one moment belongs to."""
        return int(self.rows(np.array([moment]))[0])

    def offsets(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how far moments lie after their rows, in microseconds; before them is negative."""
        return moments - self.start - self.rows(moments) * self.step

    def edge(self, row: int) -> int:
        """Return the first whole microsecond that belongs to a row."""
        return self.start + row * self.step - (self.step - 1 - self.step // 2)

    def local(self, row: int) -> str:
        """Return the time of a row on the local clock, as ISO text with its offset."""
        return self.axis.iso(row)

    def locals(self, first: int, stop: int) -> list[str]:
        """Return the local times of several rows."""
        return [moment.isoformat() for moment in self.axis.slice(first, stop).local]


def precedence(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each reading from its offset; in one cell the lowest counts, of equal ones the last."""
    return 2 * np.abs(offsets) - (offsets > 0)


def winners(cells: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the positions of the readings that count, one for every cell that occurs, given their precedence."""
    order = np.lexsort((-ranks, cells))  # stable: of equal ones the last stays last
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = np.diff(cells[order]) != 0
    return order[is_last]


def lay(
    grid: Grid,
    values: NDArray[np.float32],
    first: int,
    columns: NDArray[np.int64],
    moments: NDArray[np.int64],
    readings: NDArray[np.float32],
) -> None:
    """Lay readings of some columns and moments over `values`, row x sensor, whose first row is `first` of the grid.

    NaN withdraws what was there: an earlier reading of the same sensor and moment, and what stood in the cell unless
    another reading belongs there.
    """
    _, moment = np.unique(moments, return_inverse=True)
    last = np.sort(winners(moment * values.shape[1] + columns, np.zeros(len(moments), np.int64)))
    columns, moments, readings = columns[last], moments[last], readings[last]
    cells = (grid.rows(moments) - first) * values.shape[1] + columns
    withdrawn = np.isnan(readings)
    values.flat[cells[withdrawn]] = np.nan
    cells, readings, ranks = cells[~withdrawn], readings[~withdrawn], precedence(grid.offsets(moments[~withdrawn]))
    kept = winners(cells, ranks)
    values.flat[cells[kept]] = readings[kept]


def lay_series(
    grid: Grid, moments: NDArray[np.int64], readings: NDArray[np.float64], *, takes_mean: bool = False
) -> NDArray[np.float32]:
    """Return one sensor's value for every row of the grid's axis, NaN where no reading belongs to it.

    `readings` are finite; those beyond the axis are left out. With `takes_mean` a row takes the mean of all its
    readings instead of the one that counts.
    """
    rows, length = grid.rows(moments), grid.axis.length
    is_inside = (rows >= 0) & (rows < length)
    rows, moments, readings = rows[is_inside], moments[is_inside], readings[is_inside]
    if takes_mean:
        count, total = np.bincount(rows, minlength=length), np.bincount(rows, readings, length)
        means: NDArray[np.float64] = np.divide(total, count, out=np.full(length, np.nan), where=count > 0)
        return means.astype(np.float32)
    values = np.full((length, 1), np.nan, np.float32)
    lay(grid, values, 0, np.zeros(len(rows), np.int64), moments, readings.astype(np.float32))
    return values[:, 0]


def lay_rows(
    grid: Grid, moments: NDArray[np.int64], values: NDArray[np.float32], first: int, stop: int
) -> NDArray[np.float32]:
    """Return whole rows of readings, one for each moment and a column for each sensor, laid on rows of the grid."""
    rows, offsets = grid.rows(moments) - first, grid.offsets(moments)
    laid = np.full((stop - first, values.shape[1]), np.nan, np.float32)
    order = np.argsort(-precedence(offsets), kind="stable")  # what counts comes last
    for same in np.split(order, np.flatnonzero(np.diff(offsets[order])) + 1):  # no two of one offset share a row
        laid[rows[same]] = np.where(np.isnan(values[same]), laid[rows[same]], values[same])
    return laid
