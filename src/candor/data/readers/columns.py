"""The columns of CSV files, Parquet files and data frames, walked in batches without ever standing in memory whole."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from candor.core.errors import InputError
from candor.core.text import counted, listed
from candor.data.readers.cells import EMPTY_CELLS
from candor.data.readers.small_tables import plain_words
from candor.data.readers.sources import Source, TextLayout, sniff_layout
from candor.data.readers.stamps import count_times

_BLOCK_BYTES = 4 << 20
_NUMBERS_PER_BATCH = 1 << 20
_MOST_UNPACKED_BYTES = 2 << 30
_DATES, _CLOCKS = ("date", "day", "datum", "local_date"), ("time", "clock", "time_of_day", "local_time", "uhrzeit")
_BARE_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{8}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[AaPp]\.?[Mm]\.?)?")
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


class BatchReader(Protocol):
    """Walks over chosen columns of a table."""

    def __call__(self, wanted: Sequence[int], numeric: Sequence[int] | None = None) -> Iterator[list[pa.Array]]: ...


@dataclass(frozen=True)
class Columns:
    """A table whose columns can be walked in batches, as often as needed.

    `batches` yields the columns at the given positions, batch by batch, no batch without rows. A walk over readings
    names those columns again that are expected to hold numbers; they may still come as text. `where` is what to call
    the table in messages, `remark` what was done to its columns.
    """

    names: tuple[str, ...]
    batches: BatchReader
    where: str
    has_decimal_comma: bool = False
    remark: str = ""


def csv_columns(source: Source) -> Columns:
    """Return the columns of a delimited text file, as text or numbers; ragged rows are an error."""
    layout = sniff_layout(source)
    _refuse_wrong_top(layout, str(source.path))

    def batches(wanted: Sequence[int], numeric: Sequence[int] | None = None) -> Iterator[list[pa.Array]]:
        # Readings are walked with all other columns beside them, to notice a cell that swallows further lines.
        others = [] if numeric is None else sorted(set(range(len(layout.names))) - set(wanted))
        rows = 0
        if numeric:
            with suppress(InputError):  # the quick way: numbers are read as numbers while nothing else turns up
                for batch in _walk_csv(source, layout, [*wanted, *others], numeric):
                    rows += batch.num_rows
                    yield batch.columns[: len(wanted)]
                return
        # The walk over texts tells whether the file is damaged or merely holds text.
        for batch in _walk_csv(source, layout, [*wanted, *others], ()):
            rest = batch.slice(min(rows, batch.num_rows))
            rows -= batch.num_rows - rest.num_rows
            if rest.num_rows:
                yield rest.columns[: len(wanted)]

    return Columns(tuple(layout.names), batches, str(source.path), layout.has_decimal_comma)


def _refuse_wrong_top(layout: TextLayout, where: str) -> None:
    if times := count_times(layout.names):
        what, hint = "readings, not column names", "put names on top: time, then one for each sensor"
        if times > 1:
            what = "several times: times must stand in a column, one row each"
            hint = "turn the table, so that each sensor is a column"
        raise InputError(f"the first row holds {what}", where=where, hint=hint)
    if not layout.has_rows:
        raise InputError("there are column names but no rows", where=where, hint="export the readings again")
    if layout.cells_below:
        what = f"the first row, {listed(layout.names, 2)[:60]!r}, has {counted(len(layout.names), 'cell')}"
        what += f" where the next ones have {layout.cells_below}: it does not name all columns"
        hint = "remove the lines above the column names, or begin each with #; every column needs a name"
        raise InputError(what, where=where, hint=hint)


def _walk_csv(
    source: Source, layout: TextLayout, wanted: Sequence[int], numeric: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    reading = pa_csv.ReadOptions(
        use_threads=False,  # the number of a ragged row is known only then
        column_names=[f"{i}" for i in range(len(layout.names))],
        skip_rows=layout.lines_on_top,
        block_size=_BLOCK_BYTES,
    )
    types = {f"{i}": pa.string() for i in wanted} | {f"{i}": pa.float64() for i in numeric}
    cells = pa_csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=EMPTY_CELLS, strings_can_be_null=True
    )
    with source.open() as stream, _csv_errors(str(source.path)):
        for batch in pa_csv.open_csv(stream, reading, pa_csv.ParseOptions(delimiter=layout.delimiter), cells):
            texts = [column for column in batch.columns if pa.types.is_string(column.type)]
            if any(pc.any(pc.match_substring_regex(column, r"[\r\n]")).as_py() for column in texts):
                raise pa.ArrowInvalid("newlines_in_values")
            if batch.num_rows:
                yield batch


@contextmanager
def _csv_errors(where: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        if "newlines_in_values" in str(error):  # pyarrow itself says so of a cell that lies across two blocks
            hint = "close its quotes, and take line breaks out of texts"
            raise InputError("a cell runs over several lines", where=where, hint=hint) from None
        if "straddling" in str(error):
            what = f"a line is longer than {_BLOCK_BYTES >> 20} MB"
            raise InputError(what, where=where, hint="check that this is a table") from None
        if match := _RAGGED.search(str(error)):
            what = f"row {match[1]} (blank lines not counted) has {match[3]} cells where the first row has {match[2]}"
            hint = "a delimiter inside a name or number needs quotes; a cut file must be fetched again"
            raise InputError(what, where=where, hint=hint) from None
        raise


def parquet_columns(source: Source) -> Columns:
    """Return the columns of a Parquet file; a packed one is unpacked in memory."""
    content: pa.Buffer | None = None
    if source.packing is not None:
        with source.open() as stream:
            content = pa.py_buffer(stream.read(_MOST_UNPACKED_BYTES + 1))
        if content.size > _MOST_UNPACKED_BYTES:
            raise InputError("the file is too large to be read while packed", where=str(source.path), hint="unpack it")

    def open_file() -> pq.ParquetFile:
        return pq.ParquetFile(source.path if content is None else pa.BufferReader(content))

    with plain_words(source.path), open_file() as file:
        names = tuple(file.schema_arrow.names)

    def batches(wanted: Sequence[int], numeric: Sequence[int] | None = None) -> Iterator[list[pa.Array]]:
        rows = max(1, _NUMBERS_PER_BATCH // max(len(wanted), 1))
        with plain_words(source.path), open_file() as file:
            for batch in file.iter_batches(rows, columns=[names[i] for i in wanted]):
                if batch.num_rows:
                    yield [_plain(batch.column(names[i])) for i in wanted]

    return Columns(names, batches, str(source.path))


def frame_columns(frame: pd.DataFrame) -> Columns:
    """Return the columns of a data frame; an index that is more than row numbers counts as its first columns."""
    named = [(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]
    index = frame.index.to_timestamp() if isinstance(frame.index, pd.PeriodIndex) else frame.index
    if isinstance(index, pd.DatetimeIndex):
        named.insert(0, ("time", index.to_series()))
    elif not pd.api.types.is_integer_dtype(index.dtype) or index.name is not None:
        levels = [index.get_level_values(level) for level in range(index.nlevels)]
        named = [("index" if level.name is None else str(level.name), level.to_series()) for level in levels] + named
    arrays = [_array_of(column) for _, column in named]

    def batches(wanted: Sequence[int], numeric: Sequence[int] | None = None) -> Iterator[list[pa.Array]]:
        rows = max(1, _NUMBERS_PER_BATCH // max(len(wanted), 1))
        for first in range(0, len(frame), rows):
            yield [arrays[i].slice(first, rows) for i in wanted]

    return Columns(tuple(name for name, _ in named), batches, "data frame")


def with_whole_times(columns: Columns) -> Columns:
    """Return the table with the time of day beside the date, if loggers wrote them into two columns."""
    plain = [name.strip().lower() for name in columns.names]
    dates, clocks = ([i for i, name in enumerate(plain) if name in names] for names in (_DATES, _CLOCKS))
    if len(dates) != 1 or len(clocks) != 1:
        return columns
    (date,), (clock,) = dates, clocks
    sample = next(columns.batches([date, clock]), None)
    if sample is None or not (_all_like(_BARE_DATE, sample[0]) and _all_like(_CLOCK, sample[1])):
        return columns
    kept = [i for i in range(len(plain)) if i != clock]

    def batches(wanted: Sequence[int], numeric: Sequence[int] | None = None) -> Iterator[list[pa.Array]]:
        chosen = [kept[i] for i in wanted]
        has_date = date in chosen
        numbers = None if numeric is None else [kept[i] for i in numeric]
        for batch in columns.batches([*chosen, clock] if has_date else chosen, numbers):
            if has_date:
                parts = [part.cast(pa.string()) for part in (batch[chosen.index(date)], batch.pop())]
                batch[chosen.index(date)] = pc.binary_join_element_wise(*parts, " ")
            yield batch

    remark = f"{columns.names[date]!r} and {columns.names[clock]!r} were read as date and time of day of one moment"
    return replace(columns, names=tuple(columns.names[i] for i in kept), batches=batches, remark=remark)


def _all_like(form: re.Pattern[str], column: pa.Array) -> bool:
    """Return whether the first cells have a form, those left aside that are empty."""
    texts = [str(cell).strip() for cell in column.drop_null().slice(0, 50).to_pylist()]
    return bool(texts) and all(map(form.fullmatch, texts))


def _array_of(column: "pd.Series[Any]") -> pa.Array:
    """Return a column of a data frame; if it mixes kinds, such as numbers and texts, all of it as text."""
    try:
        array = pa.Array.from_pandas(column)
        return _plain(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        is_missing = column.isna().to_numpy()
        texts = [None if missing else str(cell) for cell, missing in zip(column, is_missing, strict=True)]
        return pa.array(texts, pa.string())


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without the ways of storing it that say nothing about its cells."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        column = column.cast(pa.string())
    return column
