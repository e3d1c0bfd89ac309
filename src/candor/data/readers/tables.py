"""CSV and Parquet files and data frames as readings: a row per time (wide) or a row per reading (long)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from candor.data.findings import listed
from candor.data.readers.numbers import EMPTY_CELLS, NumberReader
from candor.data.readers.options import ReadOptions
from candor.data.readers.readings import Block, Stamps
from candor.data.readers.sources import Source, sniff_table, unreadable
from candor.data.readers.stamps import StampReader, looks_like_time
from candor.errors import InputError

_TIME_NAMES = (
    "time",
    "timestamp",
    "datetime",
    "date_time",
    "date time",
    "date",
    "utc",
    "stamp",
    "index",
    "",
)
_SENSOR_NAMES = (
    "sensor",
    "sensor_id",
    "station",
    "station_id",
    "site",
    "site_no",
    "site_id",
    "id",
    "node",
    "detector",
)
_VALUE_NAMES = ("value", "reading", "values", "result", "measurement", "observation", "y")
_BLOCK_BYTES = 4 << 20
_NUMBERS_PER_BATCH = 1 << 20


class BatchReader(Protocol):
    """Walks over chosen columns of a table."""

    def __call__(self, wanted: Sequence[int], numeric: Sequence[int] = ()) -> Iterator[list[pa.Array]]: ...


@dataclass(frozen=True)
class Columns:
    """A table whose columns can be walked in batches, as often as needed.

    Attributes:
        names: the columns, in file order.
        batches: yields the columns at the given positions, batch by batch; those expected to hold numbers are named
            again, and may still come as text.
        where: what to call the table in messages.
    """

    names: tuple[str, ...]
    batches: "BatchReader"
    where: str
    allows_decimal_comma: bool = False


def csv_columns(source: Source) -> Columns:
    """Returns the columns of a delimited text file, all of them as text; ragged rows are an error."""
    delimiter, names = sniff_table(source)
    if looks_like_time(names[:1]):
        raise InputError(
            "the first row holds readings, not column names",
            where=str(source.path),
            mend="put a row with the names of the columns on top: time, then one per sensor",
        )
    ragged: set[int] = set()

    def note_ragged(row: pa_csv.InvalidRow) -> str:
        ragged.add(row.number if row.number is not None else -1)
        return "skip"

    positions = [f"{i}" for i in range(len(names))]

    def walk(wanted: Sequence[int], numeric: Sequence[int]) -> Iterator[pa.RecordBatch]:
        ragged.clear()
        types = {f"{i}": pa.string() for i in wanted} | {f"{i}": pa.float32() for i in numeric}
        with source.open() as stream:
            reader = pa_csv.open_csv(
                stream,
                pa_csv.ReadOptions(
                    use_threads=False,  # row numbers of ragged rows are known only then
                    column_names=positions,
                    skip_rows=1,
                    block_size=_BLOCK_BYTES,
                ),
                pa_csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note_ragged),
                pa_csv.ConvertOptions(
                    column_types=types,
                    include_columns=[f"{i}" for i in wanted],
                    null_values=EMPTY_CELLS,
                    strings_can_be_null=True,
                ),
            )
            yield from reader
        if ragged:
            lines = listed(sorted(number for number in ragged if number > 0))
            raise InputError(
                f"{len(ragged)} rows do not have {len(names)} cells like the first row",
                where=f"{source.path}{', lines ' + lines if lines else ''}",
                mend="a delimiter inside a name or number needs quotes; a cut file must be fetched again",
            )

    def batches(wanted: Sequence[int], numeric: Sequence[int] = ()) -> Iterator[list[pa.Array]]:
        rows = 0
        try:  # the quick way: numbers are read as numbers while nothing else turns up
            for batch in walk(wanted, numeric):
                rows += batch.num_rows
                yield batch.columns
            return
        except InputError:
            if not numeric:
                raise
        for batch in walk(wanted, ()):
            rest = batch.slice(min(rows, batch.num_rows))
            rows -= batch.num_rows - rest.num_rows
            if rest.num_rows:
                yield rest.columns

    return Columns(tuple(names), batches, str(source.path), allows_decimal_comma=delimiter != ",")


def parquet_columns(source: Source) -> Columns:
    """Returns the columns of a Parquet file."""
    try:
        with pq.ParquetFile(source.path) as file:
            names = tuple(file.schema_arrow.names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(source.path, error) from None

    def batches(wanted: Sequence[int], numeric: Sequence[int] = ()) -> Iterator[list[pa.Array]]:
        rows = max(1, _NUMBERS_PER_BATCH // max(len(wanted), 1))
        try:
            with pq.ParquetFile(source.path) as file:
                for batch in file.iter_batches(rows, columns=[names[i] for i in wanted]):
                    yield [batch.column(names[i]) for i in wanted]
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise unreadable(source.path, error) from None

    return Columns(names, batches, str(source.path))


def frame_columns(frame: pd.DataFrame) -> Columns:
    """Returns the columns of a data frame; an index of times counts as its first column."""
    if isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1).rename_axis("time")
        frame = frame.reset_index()
    names = tuple(str(name) for name in frame.columns)
    try:
        arrays = [pa.Array.from_pandas(frame.iloc[:, i]) for i in range(len(names))]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"the data frame has a column of mixed kinds ({error})") from None
    whole = [part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part for part in arrays]

    def batches(wanted: Sequence[int], numeric: Sequence[int] = ()) -> Iterator[list[pa.Array]]:
        rows = max(1, _NUMBERS_PER_BATCH // max(len(wanted), 1))
        for first in range(0, len(frame), rows):
            yield [whole[i].slice(first, rows) for i in wanted]

    return Columns(names, batches, "data frame")


class TableReadings:
    """The readings of a table, wide or long, as `candor.data.readers.readings.Readings`."""

    def __init__(self, columns: Columns, options: ReadOptions) -> None:
        self._columns = columns
        self.numbers = NumberReader(options, columns.allows_decimal_comma)
        self.rows_without_sensor = 0
        self._time, self._sensor, self._values = self._find_roles(options)
        self.is_long = self._sensor is not None
        sample = next((batch[0] for batch in columns.batches([self._time]) if len(batch[0])), None)
        if sample is None:
            raise InputError(
                "there are column names but no rows",
                where=columns.where,
                mend="export the readings again",
            )
        self._stamp_reader = StampReader(
            sample, f"{columns.where}, column {columns.names[self._time]!r}", options.day_first
        )
        self.has_zone = self._stamp_reader.has_zone
        self.ids = self._find_ids()

    def stamps(self) -> Iterator[tuple[Stamps, NDArray[np.int32] | None]]:
        """Yields the stamps in file order, and for long readings the sensors they belong to."""
        wanted = [self._time] if self._sensor is None else [self._time, self._sensor]
        for batch in self._columns.batches(wanted):
            sensor = None if self._sensor is None else self._positions_of(batch[1])
            yield self._stamp_reader.read(batch[0]), sensor

    def blocks(self) -> Iterator[Block]:
        """Yields all readings in file order."""
        names = self._columns.names
        if self._sensor is None:
            for batch in self._columns.batches([self._time, *self._values], self._values):
                values = np.empty((len(batch[0]), len(self._values)), np.float32)
                for place in range(len(self._values)):
                    values[:, place] = self.numbers.read(batch[place + 1], self.ids[place])
                yield Block(self._stamp_reader.read(batch[0]), self.numbers.clean(values, self.ids))
            return
        (value,) = self._values
        for batch in self._columns.batches([self._time, self._sensor, value], [value]):
            sensor = self._positions_of(batch[1])
            self.rows_without_sensor += int((sensor < 0).sum())
            numbers = self.numbers.clean(self.numbers.read(batch[2], names[value]), [names[value]])
            known = sensor >= 0
            yield Block(self._stamp_reader.read(batch[0])[known], numbers[known], sensor[known])

    def _find_roles(self, options: ReadOptions) -> tuple[int, int | None, list[int]]:
        """Returns the positions of the time column, of the sensor column if long, and of the values."""
        names, where = self._columns.names, self._columns.where
        plain = [name.strip().lower() for name in names]
        time = self._find_time(plain, options.time_column)
        sensor = next((plain.index(n) for n in _SENSOR_NAMES if n in plain and plain.index(n) != time), None)
        value = next((plain.index(n) for n in _VALUE_NAMES if n in plain), None)
        if sensor is not None and value is not None:
            return time, sensor, [value]
        values = [i for i in range(len(names)) if i != time]
        if not values:
            raise InputError(
                "there is a time column but no readings beside it",
                where=where,
                mend="one column per sensor, or the columns sensor and value",
            )
        repeated = [n for n, count in Counter(names[i].strip() for i in values).items() if count > 1]
        if repeated:
            raise InputError(
                f"two columns have the same name: {listed(repeated)}",
                where=where,
                mend="rename one of them",
            )
        return time, None, values

    def _find_time(self, plain: list[str], wanted: str | None) -> int:
        if wanted is not None:
            if wanted.strip().lower() in plain:
                return plain.index(wanted.strip().lower())
            raise InputError(
                f"there is no column called {wanted!r}",
                where=self._columns.where,
                mend=f"the columns are {listed(self._columns.names)}",
            )
        for name in _TIME_NAMES:
            if name in plain:
                return plain.index(name)
        for position in range(min(len(plain), 5)):
            sample = next((b[0] for b in self._columns.batches([position]) if len(b[0])), None)
            if sample is None:
                continue
            if pa.types.is_timestamp(sample.type) or pa.types.is_date(sample.type):
                return position
            if looks_like_time([str(cell) for cell in sample.slice(0, 50).to_pylist() if cell is not None]):
                return position
        raise InputError(
            "no column holds times",
            where=self._columns.where,
            mend="call the column of times `time`, or name it with --time-column",
        )

    def _find_ids(self) -> tuple[str, ...]:
        if self._sensor is None:
            return tuple(self._columns.names[i].strip() for i in self._values)
        known: set[str] = set()
        for batch in self._columns.batches([self._sensor]):
            known.update(_texts(pc.unique(batch[0])))
        known.discard("")
        if not known:
            raise InputError("no row names its sensor", where=self._columns.where)
        self._place = {sensor_id: i for i, sensor_id in enumerate(sorted(known))}
        return tuple(self._place)

    def _positions_of(self, column: pa.Array) -> NDArray[np.int32]:
        coded = pc.dictionary_encode(column)
        places = [self._place.get(text, -1) for text in _texts(coded.dictionary)]
        lookup = np.array([*places, -1], np.int32)
        return np.asarray(lookup[coded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)])


def _texts(column: pa.Array) -> list[str]:
    """Returns the cells as sensor ids: stripped text, whole numbers without a decimal point."""
    cells = column.to_pylist()
    return [
        "" if cell is None
        else str(int(cell)) if isinstance(cell, float) and cell.is_integer()
        else str(cell).strip()
        for cell in cells
    ]  # fmt: skip
