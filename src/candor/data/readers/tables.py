"""CSV and Parquet files and data frames as readings: a row per time (wide) or a row per reading (long)."""

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.readers.cells import NumberReader, distinct_ids, id_text
from candor.data.readers.columns import Columns, with_whole_times
from candor.data.readers.options import ReadOptions
from candor.data.readers.readings import Block, Readings, Stamps
from candor.data.readers.stamps import StampReader, looks_like_time

_ROW_NUMBERS = ("index", "level_0", "unnamed: 0", "__index_level_0__", "")  # what pandas calls them, or leaves unnamed
_TIME_NAMES = (
    *("time", "timestamp", "datetime", "date_time", "date time", "date", "utc", "stamp"),
    *("time_utc", "timestamp_utc", "datetime_utc", "local_time", "ds"),
    *_ROW_NUMBERS,
)
# As a word of its own, also in DateUTC; but UTC+1 is another zone.
_UTC_WORD = re.compile(r"(?:(?<![A-Za-z])(?i:utc)|(?<=[a-z])UTC)(?![A-Za-z]|.*(?:[+\-\u2212]\s*\d|(?i:offset)))")
_SENSOR_NAMES = (
    *("sensor", "sensor_id", "station", "station_id", "site", "site_no", "site_id", "location", "location_id"),
    *("gauge", "gauge_id", "gage", "gage_id", "well", "well_id", "device", "device_id", "monitoring_location_id"),
    *("detector", "detector_id", "node", "node_id", "station_name", "id"),
)
_VALUE_NAMES = ("value", "reading", "values", "result", "measurement", "observation", "y")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")


class TableReadings(Readings):
    """The readings of a table, wide or long."""

    def __init__(self, columns: Columns, options: ReadOptions) -> None:
        if options.time_column is None:
            columns = with_whole_times(columns)
        self._columns, self.remark, self.has_decimal_comma = columns, columns.remark, columns.has_decimal_comma
        self._time, self._sensor, self._values = time, sensor, values = _find_columns(columns, options.time_column)
        unused = [i for i in range(len(columns.names)) if i not in {time, sensor, *values}]
        self.unused = [columns.names[i] or f"column {i + 1} without a name" for i in unused]
        self.is_long = sensor is not None
        name = columns.names[time]
        self._stamp_reader = StampReader(
            lambda: (batch[0] for batch in columns.batches([time])),
            f"{columns.where}, column {name!r}",
            options.day_first,
        )
        is_utc = _UTC_WORD.search(name) is not None  # whatever zone the sensors live in
        self.has_zone, self.guess = self._stamp_reader.has_zone or is_utc, self._stamp_reader.guess
        self.ids, self.matrix_rows = self._find_ids()
        self._place = {sensor_id: place for place, sensor_id in enumerate(self.ids)}

    @property
    def zones(self) -> tuple[str, ...]:  # type: ignore[override]
        """The zones and offsets that the stamps carry, known after a walk over them."""
        return self._stamp_reader.zones

    def stamps(self) -> Iterator[tuple[Stamps, NDArray[np.int32] | None]]:
        """Yield the stamps in file order, and for long readings the sensors they belong to."""
        time, sensor = self._time, self._sensor
        for batch in self._columns.batches([time] if sensor is None else [time, sensor]):
            yield self._stamp_reader.read(batch[0]), None if sensor is None else self._places_of(batch[1])

    def blocks(self, numbers: NumberReader) -> Iterator[Block]:
        """Yield all readings in file order."""
        time, sensor, values = self._time, self._sensor, self._values
        sample = next(self._columns.batches(values))
        numeric = [i for i, column in zip(values, sample, strict=True) if _holds_numbers(column)]
        if sensor is None:
            for batch in self._columns.batches([time, *values], numeric):
                read = np.empty((len(batch[0]), len(values)), np.float32)
                for place, sensor_id in enumerate(self.ids):
                    read[:, place] = numbers.read(batch[place + 1], sensor_id)
                yield Block(self._stamp_reader.read(batch[0]), numbers.clean(read, self.ids))
            return
        label = self._columns.names[values[0]]
        for batch in self._columns.batches([time, sensor, *values], numeric):
            places = self._places_of(batch[1])
            known = places >= 0
            self.rows_without_sensor += int((~known).sum())
            read = numbers.clean(numbers.read(batch[2], label), [label])
            yield Block(self._stamp_reader.read(batch[0])[known], read[known], places[known])

    def _find_ids(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """Return the sensors in the order of the panel, and in that of a matrix without ids if it is another one."""
        names, where = self._columns.names, self._columns.where
        if self._sensor is None:
            return distinct_ids([names[i] for i in self._values], where), None
        known: dict[str, None] = {}  # in order of appearance
        for batch in self._columns.batches([self._sensor]):
            known.update(dict.fromkeys(id_text(cell) for cell in pc.unique(batch[0]).to_pylist()))
        known.pop("", None)
        if not known:
            place = f"{where}, column {names[self._sensor]!r}"
            raise InputError("no row names its sensor", where=place, hint="fill the column of sensors")
        return tuple(sorted(known)), _rows_of_a_matrix(tuple(known))

    def _places_of(self, column: pa.Array) -> NDArray[np.int32]:
        coded = pc.dictionary_encode(column)
        places = [self._place.get(id_text(cell), -1) for cell in coded.dictionary.to_pylist()]
        lookup = np.array([*places, -1], np.int32)
        return np.asarray(lookup[coded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)])


def _find_columns(columns: Columns, time_column: str | None) -> tuple[int, int | None, list[int]]:
    """Return which columns hold the times, the sensors if the table is long, and the readings."""
    sample = next(columns.batches(range(len(columns.names))), None) if columns.names else None
    if sample is None:
        raise InputError("there are no rows", where=columns.where, hint="export the readings again")
    plain = [name.strip().lower() for name in columns.names]
    time = _find_time(columns, plain, sample, time_column)
    rest = [i for i in range(len(plain)) if i != time]
    no_fractions = [i for i in rest if not any(map(_FRACTION.fullmatch, _first_texts(sample[i])))]
    sensor = _first_called(_SENSOR_NAMES, plain, no_fractions)
    value = _first_called(_VALUE_NAMES, plain, [i for i in rest if i != sensor])
    values = [i for i in rest if i != sensor and plain[i] not in _ROW_NUMBERS]
    if not values:
        what, hint = "there is a time column but no readings beside it", "one column per sensor, or sensor and value"
        raise InputError(what, where=columns.where, hint=hint)
    if sensor is not None:
        if value is None and len(values) > 1:
            raise InputError(
                f"rows belong to a {plain[sensor]}, but several columns may hold its readings: "
                f"{listed(columns.names[i] for i in values)}",
                where=columns.where,
                hint=f"call one of them `value`; or, if each is a sensor of its own, remove the column {plain[sensor]}",
            )
        values = [values[0] if value is None else value]
    return time, sensor, values


def _find_time(columns: Columns, plain: list[str], sample: list[pa.Array], wanted: str | None) -> int:
    """Return the column of times: the wanted one, else one that is called and looks like it, else one that looks."""
    if wanted is not None:
        if wanted.strip().lower() in plain:
            return plain.index(wanted.strip().lower())
        hint = f"the columns are {listed(columns.names)}"
        raise InputError(f"there is no column called {wanted!r}", where=columns.where, hint=hint)
    named = [position for name in _TIME_NAMES for position in range(len(plain)) if plain[position] == name]
    fitting = [position for position in named if _holds_times(sample[position], or_numbers=True)]
    fitting = fitting or [position for position in range(len(plain)) if _holds_times(sample[position])]
    if fitting:
        return fitting[0]
    if named and plain[named[0]] not in _ROW_NUMBERS:
        return named[0]  # whose reader says what is wrong with it
    hint = "call the column of times `time`, or name it with --time-column"
    raise InputError("no column holds times", where=columns.where, hint=hint)


def _holds_times(column: pa.Array, or_numbers: bool = False) -> bool:
    is_typed = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    return is_typed or looks_like_time(_first_texts(column), or_numbers)


def _first_texts(column: pa.Array) -> list[str]:
    return [id_text(cell) for cell in column.drop_null().slice(0, 50).to_pylist()]


def _holds_numbers(column: pa.Array) -> bool:
    try:
        column.cast(pa.float64())
    except pa.ArrowException:
        return False
    return True


def _first_called(names: tuple[str, ...], plain: list[str], positions: list[int]) -> int | None:
    return next((position for name in names for position in positions if plain[position] == name), None)


def _rows_of_a_matrix(ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the order of the sensors of a long table in a matrix without ids, given that of their appearance.

    A long table may be sorted anyhow, so that its own order says nothing alone. Ids that count from 0 or 1 are the
    numbers of the rows. Others leave no doubt if they appear as people sort them, 2 before 10; else there is none.
    """
    sensible = tuple(sorted(ids, key=_as_people_sort))
    numbers = [int(sensor_id) for sensor_id in sensible if re.fullmatch(r"\d{1,18}", sensor_id)]
    counts = any(numbers == list(range(first, first + len(ids))) for first in (0, 1))
    return sensible if counts or sensible == ids else ()


def _as_people_sort(sensor_id: str) -> list[str | int]:
    """Return the texts and whole numbers that an id is made of, by turns."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d{1,18})", sensor_id))]
