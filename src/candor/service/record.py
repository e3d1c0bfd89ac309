"""The readings of a served model: those of its run, overlaid by those that clients sent."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from candor.data.gridding import Grid, lay
from candor.data.panel import Covariate, Panel
from candor.data.preprocessing import last_reading
from candor.service.store import ReadingStore

_FIRST_LOOK_BACK = 64
_MOST_CELLS_AT_A_TIME = 4_000_000  # 16 MB


class Record:
    """One growing record on the grid of a model; rows are numbered by that grid.

    The sensors and the grid are those of `known`; `own` is the record of the run, None if it is not available.
    """

    def __init__(self, known: Panel, own: Panel | None, store: ReadingStore) -> None:
        self._known = known
        self._own = own
        self._store = store
        self._columns = {sensor: column for column, sensor in enumerate(known.sensor_ids)}
        self.grid = Grid(known.times if own is None else own.times)

    @cached_property
    def _own_rows(self) -> tuple[NDArray[np.int64], int]:
        """The first row with a reading by sensor, one beyond the end if there is none, and the row after the last."""
        if self._own is None:
            return np.zeros(len(self._columns), np.int64), 0
        mask = self._own.mask
        first = np.where(mask.any(axis=0), mask.argmax(axis=0), len(mask))
        filled = np.flatnonzero(mask.any(axis=1))
        return first, int(filled[-1]) + 1 if len(filled) else 0

    @property
    def has_sent_readings(self) -> bool:
        """Whether clients sent readings of this model."""
        return self._store.span(self._columns) is not None

    @property
    def has_own(self) -> bool:
        """Whether the record of the run is available."""
        return self._own is not None

    def span(self) -> tuple[int, int]:
        """Return the first row, and the row after the last reading; both are the same if there is no reading."""
        sent = self._store.span(self._columns)  # a newer model may not know all sensors of which readings are kept
        if sent is None:
            return 0, self._own_stop(0)
        first, last = (self.grid.row(moment) for moment in sent)
        return (first, last + 1) if self._own is None else (min(0, first), self._own_stop(last + 1))

    @property
    def last_time(self) -> str | None:
        """The local time of the last reading; None if there is none."""
        first, stop = self.span()
        return self.grid.local(stop - 1) if stop > first else None

    def _own_stop(self, least: int) -> int:
        """Return the row after the last reading of the run that was not withdrawn, or `least` if that is later."""
        for start, values in self._backwards(self._own_rows[1], least, 1):
            if len(filled := np.flatnonzero((~np.isnan(values)).any(axis=1))):
                return start + int(filled[-1]) + 1
        return least

    def _backwards(self, stop: int, least: int, step: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield the readings before a row back to `least`, in stretches from their first row on.

        Each is four times as long as the one before it, as far as memory allows.
        """
        while stop > least:
            start = max(stop - step, least)
            yield start, self._values(start, stop)
            stop, step = start, min(4 * step, max(step, _MOST_CELLS_AT_A_TIME // len(self._columns)))

    def rows(self, first: int, stop: int) -> Panel:
        """Return the rows `first` to `stop - 1`, NaN where there is no reading; they may lie outside the record."""
        own = self._own
        covariates = {  # those that the model reads
            name: Covariate(
                _cut(None if own is None else own.covariates[name].values, first, stop, len(self._columns)), known.unit
            )
            for name, known in self._known.covariates.items()
        }
        times, values = self.grid.axis.slice(first, stop), self._values(first, stop)
        return replace(self._known, values=values, times=times, covariates=covariates)

    def series(self, sensor: str, first: int, stop: int) -> NDArray[np.float32]:
        """Return what `rows` has of one sensor, without reading the others."""
        return self._values(first, stop, sensor)[:, 0]

    def _values(self, first: int, stop: int, sensor: str | None = None) -> NDArray[np.float32]:
        """Return the readings of some rows, row x sensor, of one sensor or of all."""
        places = self._columns if sensor is None else {sensor: 0}
        own = None if self._own is None else self._own.values
        if own is not None and sensor is not None:
            own = own[:, [self._columns[sensor]]]
        values = _cut(own, first, stop, len(places))
        sent = self._store.between(self.grid.edge(first), self.grid.edge(stop), sensor)
        columns = np.array([places.get(sensor, -1) for sensor in sent.sensors], np.int64)
        is_known = columns >= 0
        lay(self.grid, values, first, columns[is_known], sent.moments[is_known], sent.values[is_known])
        return values

    def before(self, origin: int, count: int) -> Panel:
        """Return `count` rows before an origin, and one more row before them with each sensor's last reading by then.

        So a model that fills gaps with the last reading sees the same as in the whole record, however long the gap is,
        and no more rows than needed are read. At the beginning of the record there may be fewer.
        """
        beginning = self.span()[0]
        first = max(origin - count, beginning)
        panel = self.rows(max(first - 1, beginning), origin)
        if first == beginning:
            return panel
        values = panel.values.copy()
        values[0] = np.where(np.isnan(values[0]), self._last_readings(first, np.isnan(values[0])), values[0])
        return replace(panel, values=values)

    def _last_readings(self, row: int, wanted: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the last readings of the wanted sensors before a row; NaN where there is none."""
        found = np.full(len(self._columns), np.nan, np.float32)
        begin = self._first_rows(wanted)
        for start, values in self._backwards(row - 1, int(begin[wanted].min(initial=row)), _FIRST_LOOK_BACK):
            found = np.where(wanted & np.isnan(found), last_values(values), found)
            if not (wanted & np.isnan(found) & (begin < start)).any():
                break
        return found

    def _first_rows(self, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the first row at which each wanted sensor may have a reading."""
        begin = self._own_rows[0].copy()
        if self._own is None:
            begin[:] = np.iinfo(np.int64).max
        for sensor, column in self._columns.items():
            if wanted[column] and (sent := self._store.span((sensor,))) is not None:
                begin[column] = min(begin[column], self.grid.row(sent[0]))
        return begin


def _cut(own: NDArray[np.float32] | None, first: int, stop: int, width: int) -> NDArray[np.float32]:
    """Return rows of an array of the run's own record, NaN where they lie outside of it."""
    values = np.full((stop - first, width), np.nan, np.float32)
    if own is not None and (begin := max(first, 0)) < (end := min(stop, len(own))):
        values[begin - first : end - first] = own[begin:end]
    return values


def last_values(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the last reading of each column, NaN where there is none."""
    last: NDArray[np.float32] = values[last_reading(values)[-1], np.arange(values.shape[1])]
    return last
