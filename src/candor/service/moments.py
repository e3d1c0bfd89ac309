"""Times as clients write them, and rows of a model's grid."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.times import TimeAxis, zone_from_name

_FIRST_YEAR, _LAST_YEAR = 1900, 2200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parse_moment(text: str, zone: str) -> datetime:
    """Returns the moment that an ISO 8601 text names, in UTC.

    Without an offset it is read on the clock of the zone; where that clock showed it twice, the first time counts.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone_from_name(zone))
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{text[:60]!r} is not a time", hint="write it like 2024-03-01T06:00:00+01:00") from None
    if not _FIRST_YEAR <= moment.year < _LAST_YEAR:
        what = f"{text[:60]!r} is a time out of all proportion; expected are years from {_FIRST_YEAR} to {_LAST_YEAR}"
        raise InputError(what, hint="write it like 2024-03-01T06:00:00+01:00")
    return moment


def to_microseconds(moment: datetime) -> int:
    """Returns the microseconds from 1970 UTC to a moment."""
    return (moment - _EPOCH) // _MICROSECOND


@dataclass(frozen=True)
class Grid:
    """The moments that a model knows; row 0 is that of its time axis, and rows go on in both directions."""

    axis: TimeAxis

    @property
    def start(self) -> int:
        """Row 0, in microseconds since 1970 UTC."""
        return to_microseconds(self.axis.start)

    @property
    def step(self) -> int:
        """The distance between two rows in microseconds."""
        return self.axis.interval // _MICROSECOND

    def rows(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the nearest rows of moments in microseconds since 1970 UTC; half-way is the earlier one."""
        return np.asarray(-((self.step // 2 - (moments - self.start)) // self.step))

    def row(self, moment: int) -> int:
        """Returns the nearest row of one moment."""
        return int(self.rows(np.array([moment]))[0])

    def row_from(self, text: str) -> int:
        """Returns the first row at or after the time that a client wrote."""
        return -(-(to_microseconds(parse_moment(text, self.axis.zone)) - self.start) // self.step)

    def beside(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns how far moments lie after their nearest rows, in microseconds; before them is negative."""
        return moments - self.start - self.rows(moments) * self.step

    def edge(self, row: int) -> int:
        """Returns the first whole microsecond since 1970 UTC whose nearest row is `row`."""
        return self.start + row * self.step - (self.step - 1 - self.step // 2)

    def local(self, row: int) -> str:
        """Returns the time of a row on the local clock, as ISO text with its offset."""
        return self.axis.iso(row)

    def locals(self, first: int, stop: int) -> list[str]:
        """Returns the local times of several rows."""
        return [moment.isoformat() for moment in self.axis.slice(first, stop).local]


def lay(
    grid: Grid,
    values: NDArray[np.float32],
    first: int,
    columns: NDArray[np.int64],
    moments: NDArray[np.int64],
    readings: NDArray[np.float32],
) -> None:
    """Lays readings over values, row x sensor, whose first row is `first` of the grid.

    Of the same moment and column the last counts. Where several readings meet in a cell the nearest to its moment wins,
    of equally near ones the later. NaN withdraws what was there, unless another reading meets it.

    Args:
        grid: of the rows.
        values: are written to.
        first: row of the grid that the first row of the values is.
        columns: of the readings.
        moments: of the readings, in microseconds since 1970 UTC.
        readings: in the sensors' units.
    """
    by_moment = np.lexsort((moments, columns))  # stable: those of one moment stay in their order
    is_last = np.ones(len(by_moment), np.bool_)
    is_last[:-1] = (np.diff(moments[by_moment]) != 0) | (np.diff(columns[by_moment]) != 0)
    kept = np.sort(by_moment[is_last])
    columns, moments, readings = columns[kept], moments[kept], readings[kept]
    beside = grid.beside(moments)
    order = np.lexsort((beside, -np.abs(beside), ~np.isnan(readings)))  # the winner of each cell comes last
    values[grid.rows(moments)[order] - first, columns[order]] = readings[order]
