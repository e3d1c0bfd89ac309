"""Small tables read whole, as text: lists of edges, matrices, descriptions of sensors."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.readers.numbers import EMPTY_CELLS, LIKE_THOUSANDS
from candor.data.readers.sources import Source, TextLayout, sniff_layout, unreadable

MOST_BYTES = 512 * 2**20  # unpacked
MOST_CELLS = 30_000_000  # a Python text takes some 60 bytes, so this is about 2 GB
_EMPTY = frozenset(EMPTY_CELLS)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_WHOLE_NUMBER_WITH_ZEROS = re.compile(r"([+-]?\d+)\.0+")


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


def read_small_table(source: Source) -> SmallTable:
    """Returns a CSV or Parquet file as text with line numbers; a first row without numbers is its header.

    Where commas do not divide cells, numbers may have them in place of a decimal point.
    """
    if source.kind in {"parquet", "pq"}:
        return _parquet_table(source)
    return _text_table(source)


def table_from_frame(frame: pd.DataFrame) -> SmallTable:
    """Returns a data frame as text; an index that does not merely count is its first column."""
    columns = [frame.iloc[:, position] for position in range(frame.shape[1])]
    names = [id_text(name) for name in frame.columns]
    has_header = not isinstance(frame.columns, pd.RangeIndex)
    if not isinstance(frame.index, pd.RangeIndex):
        levels = range(frame.index.nlevels)
        columns = [frame.index.get_level_values(level).to_series() for level in levels] + columns
        names = ["" if name is None else id_text(name) for name in frame.index.names] + names
    _refuse_too_large("the table", cells=len(frame) * len(columns))
    with plain_words("the table"):
        rows = [list(row) for row in zip(*map(_column_text, columns), strict=True)]
    return SmallTable(names if has_header else None, rows, list(range(1, len(rows) + 1)), "row")


@contextmanager
def plain_words(where: Path | str, hint: str = "") -> Iterator[None]:
    """Turns whatever a library raises over damaged or hostile content into an InputError.

    The libraries that parse binary files promise no short list of exceptions, hence all of them.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise unreadable(where, error, hint) from None


def read_bytes(source: Source) -> bytes:
    """Returns the unpacked content of a file of at most 512 MB."""
    pieces: list[bytes] = []
    size = 0
    with source.open() as stream:
        while piece := stream.read(1 << 24):
            pieces.append(piece)
            size += len(piece)
            _refuse_too_large(str(source.path), size=size)
    return b"".join(pieces)


def is_number(cell: str) -> bool:
    """Returns whether a cell is a plain decimal number."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def numbers_of(cells: Sequence[str]) -> tuple[NDArray[np.float64], list[int]]:
    """Returns the cells as numbers, NaN where empty, and the positions of those that are neither."""
    try:
        return np.array(cells, dtype=np.float64), []
    except ValueError:
        pass  # some cell is empty or no number: look at each
    values = np.full(len(cells), np.nan)
    strange = []
    for position, cell in enumerate(cells):
        try:
            if cell.strip() not in _EMPTY:
                values[position] = float(cell)
        except ValueError:
            strange.append(position)
    return values, strange


def id_text(value: object) -> str:
    """Returns a sensor id as text: whole numbers without a point, bytes as the text they spell."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8").strip()
        except UnicodeDecodeError:
            return value.decode("latin1").strip()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def distinct_ids(values: Iterable[object], where: str) -> tuple[str, ...]:
    """Returns the sensor ids as text; empty or repeated ones are refused."""
    ids = tuple(id_text(value) for value in values)
    if not all(ids):
        raise InputError("a sensor has an empty id", where=where, hint="name every sensor")
    repeated = [sensor_id for sensor_id, times in Counter(ids).items() if times > 1]
    if repeated:
        raise InputError(
            f"sensors are named more than once: {listed(repeated)}",
            where=where,
            hint="keep one column for each sensor",
        )
    return ids


def plain_name(name: str) -> str:
    """Returns a column name in small letters with single underscores: `From ID` is `from_id`."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")


class IdLookup:
    """Finds the positions of sensors by their ids, compared as stripped text.

    An id such as 773869.0, as spreadsheets write it, means 773869 if it is not itself an id.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = tuple(ids)
        self._position = {text.strip(): position for position, text in enumerate(ids)}

    def positions(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """Returns the position of each sensor, -1 where the id is not known."""
        return np.array([self._find(text.strip()) for text in texts], np.int64)

    def _find(self, text: str) -> int:
        position = self._position.get(text)
        if position is None and (match := _WHOLE_NUMBER_WITH_ZEROS.fullmatch(text)):
            position = self._position.get(match[1])
        return -1 if position is None else position


def _text_table(source: Source) -> SmallTable:
    where = str(source.path)
    layout = sniff_layout(source)
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
                raise InputError(
                    f"line {number} has {len(row)} cells, line {numbers[0]} has {len(rows[0])}",
                    where=where,
                    hint="give every line the same number of cells; quote cells that hold commas",
                )
            rows.append(row)
            numbers.append(number)
            cells += len(row)
            _refuse_too_large(where, cells=cells)
    if not rows:
        raise InputError("the file holds no table", where=where, hint="export it as CSV")
    doubtful = 0
    if layout.delimiter != ",":
        doubtful = _count_doubtful_commas(rows)
        rows = [[_with_point(cell) for cell in row] for row in rows]
    if any(is_number(cell) for cell in rows[0]):
        return SmallTable(None, rows, numbers, doubtful_commas=doubtful)
    return SmallTable([cell.strip() for cell in rows[0]], rows[1:], numbers[1:], doubtful_commas=doubtful)


def _names_in_remark(lines: Sequence[str], layout: TextLayout) -> list[str]:
    """Returns the names that the last remark above a table holds (# from,to,weight), if it begins with numbers."""
    remark = next((line for line in reversed(lines) if line.startswith("#")), "")
    names = next(csv.reader([remark.lstrip("# ")], delimiter=layout.delimiter), [])
    is_header = len(names) == len(layout.names) > 1 and not any(map(is_number, names))
    return names if is_header and any(is_number(_with_point(cell)) for cell in layout.names) else []


def _count_doubtful_commas(rows: list[list[str]]) -> int:
    """Returns how many commas may divide thousands as well, if that is so of all commas in numbers, else 0."""
    commas = [cell.strip() for row in rows for cell in row if _DECIMAL_COMMA.fullmatch(cell.strip())]
    return len(commas) if all(re.match(LIKE_THOUSANDS, cell) for cell in commas) else 0


def _with_point(cell: str) -> str:
    """Returns a number that has a decimal comma with a point, and everything else as it is."""
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def _split_rows(text: io.TextIOWrapper, layout: TextLayout) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows that are not blank, from the first of the table on, with their line numbers.

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
    with plain_words(where):
        with pq.ParquetFile(source.path) as file:
            facts = file.metadata
            groups = range(facts.num_row_groups)
            _refuse_too_large(
                where,
                size=sum(facts.row_group(group).total_byte_size for group in groups),
                cells=facts.num_rows * len(file.schema_arrow),
            )
            frame = file.read().to_pandas()
        return table_from_frame(frame)


def _column_text(column: "pd.Series[Any]") -> list[str]:
    try:
        cells = pa.array(column, from_pandas=True)
        if pa.types.is_boolean(cells.type):
            cells = cells.cast(pa.int8())
        texts = cells.cast(pa.string()).to_pylist()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # texts and numbers mixed
        texts = [None if pd.isna(value) else id_text(value) for value in column]
    return ["" if text is None else text for text in texts]


def _refuse_too_large(where: str, size: int = 0, cells: int = 0) -> None:
    if size > MOST_BYTES or cells > MOST_CELLS:
        raise InputError(
            f"the file is too large to be a list of edges, a matrix or a list of sensors "
            f"(more than {MOST_BYTES >> 20} MB unpacked, or than {MOST_CELLS:,} cells)",
            where=where,
            hint="check that this is the right file; a large matrix can be given as .npy",
        )
