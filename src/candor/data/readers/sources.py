"""Opening a file: whether it is there, how it is packed, what divides its columns."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from candor.core.errors import InputError

_PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_DELIMITERS = "\t;|,"  # where two fit alike: commas also stand in names and numbers
_HEAD_BYTES = 4 << 20
_LINES_COMPARED = 20
_NOT_IN_TEXT = re.compile("[\x00\udc80-\udcff]")  # the latter stand for bytes that are not UTF-8
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_NOT_TEXT = {
    b"PAR1\x15": "a Parquet file",
    b"\x1f\x8b": "a file packed with gzip",
    b"\x28\xb5\x2f\xfd": "a file packed with zstd",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"\x89PNG": "a picture",
    b"\x89HDF": "an HDF5 or NetCDF file",
    b"CDF\x01": "a NetCDF file",
    b"CDF\x02": "a NetCDF file",
    b"%PDF": "a PDF file",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}


@dataclass(frozen=True)
class Source:
    """A file and how to open it: `kind` is its ending without the packing (csv, parquet, h5, ...)."""

    path: Path
    kind: str
    packing: str | None

    @contextmanager
    def open(self) -> Iterator[pa.NativeFile]:
        """Yield the unpacked bytes as a stream; what goes wrong while reading is said in plain words."""
        try:
            with pa.OSFile(str(self.path), "rb") as stream:
                yield stream if self.packing is None else pa.CompressedInputStream(stream, self.packing)
        except (pa.ArrowException, OSError, UnicodeError, EOFError) as error:
            raise unreadable(self.path, error) from None

    def head(self) -> bytes:
        """Return the first four megabytes at most, unpacked."""
        with self.open() as stream:
            return bytes(stream.read(_HEAD_BYTES))


def find_source(path: Path | str) -> Source:
    """Return the source at `path`, which must be a file that is there and not empty."""
    path = Path(path)
    try:
        size = path.stat().st_size if path.is_file() else None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if size is None:
        what = "this is a folder, not a file" if path.is_dir() else "there is no such file"
        raise InputError(what, where=str(path), hint="check the spelling of the path")
    if size == 0:
        raise InputError("the file is empty", where=str(path), hint="export the readings again")
    *_, before, last = "", "", *(suffix.lower() for suffix in path.suffixes)
    packing = _PACKED.get(last)
    return Source(path, (last if packing is None else before).lstrip("."), packing)


def unreadable(path: Path | str, error: Exception, hint: str = "") -> InputError:
    """Return the plain-words form of an exception met while reading `path`."""
    reason = (str(error) or type(error).__name__).strip().splitlines()[0][:200]
    return InputError(
        f"the file cannot be read ({reason})",
        where=str(path),
        hint=hint or "check that it is whole and of the type its name says; text must be UTF-8",
    )


@dataclass(frozen=True)
class TextLayout:
    """How a table of text is laid out.

    Attributes:
        delimiter, names: what divides its cells, and its first row.
        lines_on_top: how many lines come before the second row, blank lines and remarks (#) included.
        has_decimal_comma: whether 1,5 may mean one and a half: commas divide no cells and no number has a point.
        has_rows: whether anything comes after the first row.
        cells_below: how many cells most of the next lines have, if that is more than the first row has; else 0.
    """

    delimiter: str
    names: list[str]
    lines_on_top: int
    has_decimal_comma: bool
    has_rows: bool
    cells_below: int


def sniff_layout(source: Source) -> TextLayout:
    """Return the layout of a table of text by its first megabytes.

    The delimiter is the one by which most of the first lines have as many cells as the very first; of several, the one
    that makes the most cells.
    """
    head = source.head()
    for start, kind in _NOT_TEXT.items():
        if head.startswith(start):
            hint = "give the file the ending of its type, or export it as CSV in UTF-8"
            raise InputError(f"this is {kind}, not a table of text", where=str(source.path), hint=hint)
    lines = _LINE_BREAK.split(head.decode("utf-8-sig", errors="surrogateescape"))
    top = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if top is None or _NOT_IN_TEXT.search(lines[top]):
        what = "the file holds no table of text, or its first row is not written in UTF-8"
        raise InputError(what, where=str(source.path), hint="export it as CSV in UTF-8")
    rows = [line for line in lines[top : top + _LINES_COMPARED] if line.strip()]
    try:
        divided = {mark: [next(csv.reader([row], delimiter=mark)) for row in rows] for mark in _DELIMITERS}
    except csv.Error as error:
        raise unreadable(source.path, error) from None
    delimiter = max(divided, key=lambda mark: _likeliness(divided[mark]))
    names = [cell.strip() for cell in divided[delimiter][0]]
    mark = re.escape(delimiter)
    with_point = re.compile(rf'(?:^|{mark})[\s"]*[+-]?\d*\.\d+[\s"]*(?:{mark}|$)')
    return TextLayout(
        delimiter,
        names,
        lines_on_top=top + 1,
        has_decimal_comma=delimiter != "," and not any(map(with_point.search, lines[top + 1 :])),
        has_rows=any(line.strip() for line in lines[top + 1 :]) or len(head) == _HEAD_BYTES,
        cells_below=_count_below([divided[delimiter]] if len(names) > 1 else list(divided.values()), len(names)),
    )


def _likeliness(rows: list[list[str]]) -> tuple[bool, int, int]:
    """Return how much rows look as if divided by what divides them: does anything, how many rows agree, how finely."""
    cells = len(rows[0])
    return cells > 1, sum(len(row) == cells for row in rows), cells


def _count_below(divisions: list[list[list[str]]], first: int) -> int:
    """Return how many cells most rows below the first have, if that is more than the first has; else 0."""
    for rows in divisions:
        (cells, lines), *_ = Counter(map(len, rows[1:])).most_common(1) or [(0, 0)]
        if cells > first and 2 * lines >= len(rows):
            return cells
    return 0
