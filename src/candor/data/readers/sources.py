"""Opening a stranger's file: is it there, how is it packed, what divides its columns."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from candor.errors import InputError

_PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_DELIMITERS = ",;\t|"
_HEAD_BYTES = 1 << 20


@dataclass(frozen=True)
class Source:
    """A file and how to open it: `kind` is its ending without the packing (csv, parquet, h5, ...)."""

    path: Path
    kind: str
    packing: str | None

    @contextmanager
    def open(self) -> Iterator[pa.NativeFile]:
        """Yields the unpacked bytes as a stream; what goes wrong while reading is said in plain words."""
        try:
            if self.packing is None:
                with pa.OSFile(str(self.path), "rb") as stream:
                    yield stream
            else:
                with pa.OSFile(str(self.path), "rb") as packed:
                    yield pa.CompressedInputStream(packed, self.packing)
        except (pa.ArrowException, OSError, UnicodeError, EOFError) as error:
            raise unreadable(self.path, error) from None

    def head(self) -> bytes:
        """Returns the first megabyte at most, unpacked."""
        with self.open() as stream:
            return bytes(stream.read(_HEAD_BYTES))


def find_source(path: Path | str) -> Source:
    """Returns the source at `path`, which must be a file that is there and not empty."""
    path = Path(path)
    try:
        is_file, size = path.is_file(), path.stat().st_size if path.is_file() else 0
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if not is_file:
        what = "this is a folder, not a file" if path.is_dir() else "there is no such file"
        raise InputError(what, where=str(path), mend="check the spelling of the path")
    if size == 0:
        raise InputError("the file is empty", where=str(path), mend="export the readings again")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packing = _PACKED.get(suffixes[-1]) if suffixes else None
    if packing is not None:
        suffixes = suffixes[:-1]
    return Source(path, suffixes[-1].lstrip(".") if suffixes else "", packing)


def unreadable(path: Path | str, error: Exception, mend: str = "") -> InputError:
    """Returns the plain-words form of an exception met while reading `path`."""
    reason = (str(error) or type(error).__name__).strip().splitlines()[0][:200]
    return InputError(
        f"the file cannot be read ({reason})",
        where=str(path),
        mend=mend or "check that it is whole and of the type its name says; text must be UTF-8",
    )


def sniff_table(source: Source) -> tuple[str, list[str]]:
    """Returns the delimiter of a text table and its first row.

    The delimiter is the one that divides the first row into the most cells outside quotes.
    """
    text = source.head().decode("utf-8-sig", errors="replace")
    first_line = next((line for line in text.splitlines() if line.strip()), "")
    if not first_line or "\x00" in first_line:
        raise InputError("the file holds no table", where=str(source.path), mend="export it as CSV")
    try:
        rows = {mark: next(csv.reader(io.StringIO(first_line), delimiter=mark)) for mark in _DELIMITERS}
    except csv.Error as error:
        raise unreadable(source.path, error) from None
    delimiter = max(_DELIMITERS, key=lambda mark: len(rows[mark]))
    return delimiter, [cell.strip() for cell in rows[delimiter]]
