"""Square matrices of a network: in a table of text, in a NumPy file, and in the classic pickle of the benchmarks.

A pickle is a small program, of which nothing is run. Its steps are first looked through: only those that build lists,
dictionaries, texts and numbers pass. Every name it asks for becomes an inert stand-in that notes what it was called
with; the matrix is then made from those notes, with its size checked.
"""

import io
import math
import pickle
import pickletools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.readers.cells import IdLookup, distinct_ids, id_text, is_number, numbers_of
from candor.data.readers.classic import open_arrays
from candor.data.readers.small_tables import SmallTable, plain_words, read_bytes
from candor.data.readers.sources import Source, find_source


@dataclass(frozen=True)
class TextMatrix:
    """A square matrix of text, with the labels it has at the left and on top."""

    left: list[str] | None
    top: list[str] | None
    cells: list[list[str]]
    lines: list[int]

    @property
    def flat(self) -> list[str]:
        """The cells, row after row."""
        return [cell for row in self.cells for cell in row]

    def holds_numbers(self) -> bool:
        """Return whether every cell is a number or empty."""
        return not numbers_of(self.flat)[1].any()


def find_matrix(grid: SmallTable, sensors: IdLookup) -> TextMatrix | None:
    """Return the matrix in a table, which may have sensor ids on top, at the left, or both."""
    rows, lines = grid.rows, grid.numbers
    height, width = len(rows), len(rows[0])
    top, left = [cell.strip() for cell in rows[0]], [row[0].strip() for row in rows]
    if height == width + 1:
        return TextMatrix(None, top, rows[1:], lines[1:])
    if width == height + 1:
        return TextMatrix(left, None, [row[1:] for row in rows], lines)
    if height != width:
        return None
    labels = set(top[1:])
    is_alike = labels == set(left[1:]) and len(labels) == width - 1
    is_framed = bool(numbers_of(list(labels))[1].any())  # words can only be labels
    if height == len(sensors.ids):  # a bare matrix would look like this too
        is_known = bool((sensors.positions(labels) >= 0).any())
        is_framed |= is_alike and is_known and not is_number(top[0])
    else:
        is_framed |= not is_number(top[0])
        is_framed |= is_alike and height == len(sensors.ids) + 1
    if is_framed:
        return TextMatrix(left[1:], top[1:], [row[1:] for row in rows[1:]], lines[1:])
    return TextMatrix(None, None, rows, lines)


_HINT = "save the matrix as CSV with sensor ids, or as .npy, and give that instead"
_MOST_STEPS = 10_000_000
_MOST_TUPLES = 1_000  # Python's own hashing of tuples inside tuples has no limit of depth
_NUMPY_PARTS = ("multiarray _reconstruct", "numeric _frombuffer")
_NAMES = {"numpy ndarray", "numpy dtype", "_codecs encode"}
_NAMES |= {f"numpy.{core}.{part}" for core in ("core", "_core") for part in _NUMPY_PARTS}
_NUMBER_TYPES = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
_SHAREABLE_STEPS = {
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "GLOBAL", "STACK_GLOBAL", "REDUCE"),
}
_TUPLE_STEPS = {"EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_STORE_STEPS = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_FETCH_STEPS = {"GET", "BINGET", "LONG_BINGET"}
_KNOWN_STEPS = {
    *(*_SHAREABLE_STEPS, *_TUPLE_STEPS, *_STORE_STEPS, *_FETCH_STEPS),
    *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("FLOAT", "BINFLOAT", "PROTO", "FRAME", "STOP", "MARK", "BUILD", "BYTEARRAY8", "EMPTY_LIST", "LIST"),
    *("APPEND", "APPENDS", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
}


def read_pickled_adjacency(path: Path | str) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Return the sensor ids in the order of the matrix, and the matrix (row: from, column: to).

    The file holds [sensor ids, index of each id, matrix], or a bare matrix, for which no ids are
    returned. The numbers are as they stand in the file: they may be NaN or infinite.
    """
    content = read_bytes(find_source(path))
    with plain_words(path, _HINT):
        _look_through(content)
        found = _NotesUnpickler(io.BytesIO(content), fix_imports=False, encoding="latin1").load()
        if isinstance(found, _Call):
            return (), _square(found)
        if not isinstance(found, list | tuple) or len(found) != 3:
            raise ValueError("it is neither a matrix nor a list of ids, index and matrix")
        matrix = _square(found[2])
        return _ordered_ids(found[0], found[1], len(matrix), str(path)), matrix


@dataclass(slots=True, eq=False)
class _Name:
    """Stands for a name the pickle asks for; calling it only makes a note."""

    name: str

    def __call__(self, *arguments: object) -> "_Call":
        return _Call(self.name, arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("it tries to change the meaning of a name")


@dataclass(slots=True, eq=False)
class _Call:
    """The note of a call: what was called, with what, and the state given to the result."""

    name: str
    arguments: tuple[object, ...]
    state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _NotesUnpickler(pickle.Unpickler):
    """An unpickler that knows no name of any other module."""

    def find_class(self, module: str, name: str) -> Any:
        if f"{module} {name}" not in _NAMES:
            wanted = f"{module}.{name}"[:80]
            raise pickle.UnpicklingError(f"it asks for {wanted!r}, which no matrix needs")
        return _Name(name)

    def persistent_load(self, identity: object) -> Any:
        raise pickle.UnpicklingError("it refers to things outside the file")


def _look_through(content: bytes) -> None:
    """Refuse steps that no matrix needs, and those that would take far more memory than the file.

    Only texts and results of calls may be referred to twice: tuples shared within tuples would take
    forever to be hashed. Numbers of references are small in honest files; a large one would make
    Python set aside room for all smaller ones.
    """
    stored: dict[int, bool] = {}
    tuples, is_shareable = 0, False
    argument: Any
    for count, (step, argument, _) in enumerate(pickletools.genops(content)):
        if step.name not in _KNOWN_STEPS or count > _MOST_STEPS:
            raise ValueError(f"it has steps that no matrix needs ({step.name})")
        tuples += step.name in _TUPLE_STEPS
        if tuples > _MOST_TUPLES or (step.name == "FRAME" and argument > len(content)):
            raise ValueError("it has more parts than a matrix needs")
        if step.name in _STORE_STEPS:
            number = len(stored) if step.name == "MEMOIZE" else argument
            if not 0 <= number <= count:
                raise ValueError("its references are damaged")
            stored[number] = is_shareable
        elif step.name in _FETCH_STEPS:
            is_shareable = stored.get(argument, False)
            if not is_shareable:
                raise ValueError("its references are damaged")
        else:
            is_shareable = step.name in _SHAREABLE_STEPS


def _square(found: object) -> NDArray[np.float32]:
    matrix = _array(found)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"its matrix has shape {matrix.shape} and is not square")
    with np.errstate(over="ignore"):
        return matrix.astype(np.float32)


def _array(found: object) -> NDArray[Any]:
    """Return the array that the notes describe."""
    match found:
        case _Call(name="_frombuffer", arguments=(raw, kind, shape, order)):
            is_column_major = order == "F"
        case _Call(name="_reconstruct", state=(_, shape, kind, is_column_major, raw)):
            pass
        case _:
            raise ValueError("what stands in the place of the matrix is not one")
    if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("the shape of its matrix is damaged")
    number_type, content = _number_type(kind), _raw_bytes(raw)
    if math.prod(shape) * number_type.itemsize != len(content):
        raise ValueError(f"its matrix has {len(content)} bytes, which do not fill its shape")
    flat = np.frombuffer(content, number_type)
    return flat.reshape(shape, order="F" if is_column_major else "C")


def _number_type(kind: object) -> np.dtype[Any]:
    match kind:
        case _Call(name="dtype", arguments=(str(name), *_), state=(_, str(order), *_)):
            if name in _NUMBER_TYPES and order in ("<", ">", "|", "="):
                return np.dtype(order + name)
    raise ValueError("its matrix does not hold plain numbers")


def _raw_bytes(raw: object) -> bytes | bytearray:
    match raw:
        case bytes() | bytearray():
            return raw
        case str():  # Python 2 made no difference between texts and bytes
            return raw.encode("latin1")
        case _Call(name="encode", arguments=(str(text), "latin1")):
            return text.encode("latin1")
    raise ValueError("the numbers of its matrix are damaged")


def _ordered_ids(ids: object, index: object, size: int, where: str) -> tuple[str, ...]:
    """Return the ids in the order of their index."""
    if not isinstance(ids, list | tuple) or not isinstance(index, dict):
        raise ValueError("its sensor ids or their index are missing")
    if not all(isinstance(text, str | bytes) or type(text) is int for text in (*ids, *index)):
        raise ValueError("its sensor ids are neither texts nor whole numbers")
    if not all(type(place) is int for place in index.values()):
        raise ValueError("its index of sensors is damaged")
    if sorted(index.values()) != list(range(size)):
        raise ValueError(f"its index of {len(index)} sensors does not number a matrix of {size}")
    ordered = distinct_ids(sorted(index, key=lambda text: index[text]), where)
    if set(ordered) != {id_text(text) for text in ids}:
        raise ValueError("its list of sensors and its index name different sensors")
    return ordered


def read_square_array(source: Source) -> NDArray[Any]:
    """Return the only square array of numbers in an .npy or .npz file."""
    with open_arrays(source) as arrays:
        parts = {name: arrays[name] for name in arrays}
    numeric = [array for array in parts.values() if array.ndim == 2 and array.dtype.kind in "iufb"]
    squares = [array for array in numeric if array.shape[0] == array.shape[1]]
    if len(squares) == 1:
        return squares[0]
    found = listed(f"{name or 'one'} of shape {array.shape}" for name, array in parts.items())
    hint = "keep only the matrix, with a row and a column for each sensor"
    raise InputError(f"expected one square array, found {found}", where=str(source.path), hint=hint)
