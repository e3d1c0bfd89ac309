"""Small tables read whole, as text: lists of edges, matrices, descriptions of sensors."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from candor.core.errors import InputError
from candor.data.readers.cells import DECIMAL_COMMA, LIKE_THOUSANDS, id_text, is_number
from candor.data.readers.sources import Source, TextLayout, find_source, sniff_layout, unreadable

MOST_BYTES = 512 * 2**20  # unpacked
MOST_CELLS = 30_000_000  # a Python text takes some 60 bytes, so this is about 2 GB
_COMMA = re.compile(DECIMAL_COMMA)


@dataclass(frozen=True)
class SmallTable:
    """A table of text.

    `header` is None if the first row does not look like names. `numbers` says where each row stood
    (its last line in a text file, else its place), and `place` what is counted ("line" or "row").
    `doubtful_commas` counts the numbers such as 1,234 that were read as 1.234, if all commas are such.
    """

    header: list[str] | None
    rows: list[list[str]]
    numbers: list[int]
    place: str = "line"
    doubtful_commas: int = 0

    @property
    def names(self) -> list[str]:
        """The names of the columns in small letters with single underscores: `From ID` is `from_id`."""
        words = (re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name) for name in self.header or ())
        return [re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in words]

    def column(self, position: int | None) -> list[str]:
        """Return the stripped cells of a column; all are empty if it is not there."""
        return ["" if position is None else row[position].strip() for row in self.rows]


def read_small_table(table: Path | str | Source | pd.DataFrame) -> SmallTable:
    """Return a CSV or Parquet file or a data frame as text; a first row without numbers is its header.

    Where commas do not divide cells, numbers may have them in place of a decimal point. An index of a data frame that
    does not merely count is its first column.
    """
    if isinstance(table, pd.DataFrame):
        return _frame_table(table)
    source = table if isinstance(table, Source) else find_source(table)
    return _parquet_table(source) if source.kind in {"parquet", "pq"} else _text_table(source)


@contextmanager
def plain_words(where: Path | str, hint: str = "") -> Iterator[None]:
    """Turn whatever a library raises over damaged or hostile content into an InputError.

    The libraries that parse binary files promise no short list of exceptions, hence all of them.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise unreadable(where, error, hint) from None


def read_bytes(source: Source) -> bytes:
    """Return the unpacked content of a file of at most 512 MB."""
    with source.open() as stream:
        content = bytearray()
        while piece := stream.read(1 << 24):
            content += piece
            _refuse_too_large(str(source.path), size=len(content))
    return bytes(content)


def _text_table(source: Source) -> SmallTable:
    where, layout = str(source.path), sniff_layout(source)
    on_top = layout.lines_on_top - 1
    text = io.TextIOWrapper(io.BytesIO(read_bytes(source)), encoding="utf-8-sig", newline="")
    rows: list[list[str]] = []
    numbers: list[int] = []
    cells = 0
    with plain_words(where):
        if names := _names_in_remark(list(islice(text, on_top)), layout):
            rows, numbers = [names], [on_top]
        for number, row in _split_rows(text, layout):
            if rows and len(row) != len(rows[0]):
                what = f"line {number} has {len(row)} cells, line {numbers[0]} has {len(rows[0])}"
                hint = "give every line the same number of cells; quote cells that hold commas"
                raise InputError(what, where=where, hint=hint)
            rows.append(row)
            numbers.append(number)
            cells += len(row)
            _refuse_too_large(where, cells=cells)
    if not rows:
        raise InputError("the file holds no table", where=where, hint="export it as CSV")
    doubtful = 0
    if layout.delimiter != ",":
        commas = [cell.strip() for row in rows for cell in row if _COMMA.match(cell.strip())]
        doubtful = len(commas) if all(re.match(LIKE_THOUSANDS, cell) for cell in commas) else 0
        rows = [[_with_point(cell) for cell in row] for row in rows]
    if any(map(is_number, rows[0])):
        return SmallTable(None, rows, numbers, doubtful_commas=doubtful)
    return SmallTable([cell.strip() for cell in rows[0]], rows[1:], numbers[1:], doubtful_commas=doubtful)


def _names_in_remark(lines: Sequence[str], layout: TextLayout) -> list[str]:
    """Return the names that the last remark above a table holds (# from,to,weight), if it begins with numbers."""
    remark = next((line for line in reversed(lines) if line.startswith("#")), "")
    names = next(csv.reader([remark.lstrip("# ")], delimiter=layout.delimiter), [])
    is_header = len(names) == len(layout.names) > 1 and not any(map(is_number, names))
    return names if is_header and any(is_number(_with_point(cell)) for cell in layout.names) else []


def _with_point(cell: str) -> str:
    """Return a number that has a decimal comma with a point, and everything else as it is."""
    return cell.replace(",", ".") if _COMMA.match(cell.strip()) else cell


def _split_rows(text: io.TextIOWrapper, layout: TextLayout) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, from the first of the table on, with their line numbers.

    Spaces may divide numbers.
    """
    reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
    on_top, may_be_spaced = layout.lines_on_top - 1, len(layout.names) == 1
    try:
        for row in reader:
            if may_be_spaced and len(row) == 1 and all(map(is_number, row[0].split())):
                row = row[0].split()
            if row and (len(row) > 1 or row[0].strip()):
                yield on_top + reader.line_num, row
    except csv.Error as error:
        raise csv.Error(f"line {on_top + reader.line_num}: {error}") from None


def _parquet_table(source: Source) -> SmallTable:
    where = str(source.path)
    if source.packing is not None:
        raise InputError("a Parquet file is packed inside already", where=where, hint="unpack it first")
    with plain_words(where), pq.ParquetFile(source.path) as file:
        facts = file.metadata
        size = sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))
        _refuse_too_large(where, size=size, cells=facts.num_rows * len(file.schema_arrow))
        return _frame_table(file.read().to_pandas())


def _frame_table(frame: pd.DataFrame) -> SmallTable:
    has_header = not isinstance(frame.columns, pd.RangeIndex)
    names = [id_text(name) for name in frame.columns]
    columns = [frame.iloc[:, position] for position in range(frame.shape[1])]
    if not isinstance(frame.index, pd.RangeIndex):
        levels = range(frame.index.nlevels)
        columns = [frame.index.get_level_values(level).to_series() for level in levels] + columns
        names = [id_text(name) for name in frame.index.names] + names
    _refuse_too_large("the table", cells=len(frame) * len(columns))
    with plain_words("the table"):
        rows = [list(row) for row in zip(*map(_column_text, columns), strict=True)]
    return SmallTable(names if has_header else None, rows, list(range(1, len(rows) + 1)), "row")


def _column_text(column: "pd.Series[Any]") -> list[str]:
    try:
        cells = pa.array(column, from_pandas=True)
        if pa.types.is_boolean(cells.type):
            cells = cells.cast(pa.int8())
        return [text or "" for text in cells.cast(pa.string()).to_pylist()]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # texts and numbers mixed
        return ["" if pd.isna(value) else id_text(value) for value in column]


def _refuse_too_large(where: str, size: int = 0, cells: int = 0) -> None:
    if size > MOST_BYTES or cells > MOST_CELLS:
        raise InputError(
            f"the file is too large to be a list of edges, a matrix or a list of sensors "
            f"(more than {MOST_BYTES >> 20} MB unpacked, or than {MOST_CELLS:,} cells)",
            where=where,
            hint="check that this is the right file; a large matrix can be given as .npy",
        )
