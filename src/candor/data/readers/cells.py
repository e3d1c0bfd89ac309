"""What single cells hold: numbers, with a record of every cell that holds something else, and sensor ids."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.findings import Findings, Level
from candor.data.readers.options import ReadOptions

EMPTY_CELLS = ["", "NA", "N/A", "n/a", "na", "NaN", "nan", "NAN", "null", "NULL", "None", "-", "--", "."]
LIKE_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"
DECIMAL_COMMA = r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$"
_FINITE = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER = rf"^(?:{_FINITE}|(?i:[+-]?(?:inf|infinity|nan)))$"
_IS_NUMBER = re.compile(_FINITE, re.ASCII)
_WHOLE_NUMBER_WITH_ZEROS = re.compile(r"([+-]?\d+)\.0+")


def is_number(cell: str) -> bool:
    """Return whether a cell is a plain decimal number."""
    return _IS_NUMBER.fullmatch(cell.strip()) is not None


def numbers_of(column: pa.Array | list[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of a column of text, NaN where a cell is empty, and which cells are neither."""
    if isinstance(column, list):
        column = pa.array(column, pa.string())
    try:  # the quick way, for columns that hold numbers only
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.zeros(len(column), np.bool_)
    except pa.ArrowInvalid:
        pass
    cells = pc.utf8_trim_whitespace(column)
    is_number = pc.match_substring_regex(cells, _NUMBER)
    is_text = pc.invert(pc.or_(is_number, pc.is_in(cells, pa.array(EMPTY_CELLS, cells.type))))
    numbers = pc.if_else(is_number, cells, pa.scalar(None, cells.type)).cast(pa.float64())
    return numbers.to_numpy(zero_copy_only=False), is_text.fill_null(False).to_numpy(zero_copy_only=False)


def report_doubtful_commas(count: int, findings: Findings, where: str) -> None:
    """Add a warning of commas in numbers that may divide thousands as well."""
    if count:
        what = "numbers such as 1,234 were read as 1.234, but their commas may divide thousands"
        findings.warning(what, where, count, "if they do, take the commas out; if not, write points")


@dataclass
class NumberReader:
    """Turns columns into float32 with NaN for everything that is not a reading, and counts why.

    What counts as missing is decided here and nowhere else.
    """

    options: ReadOptions
    has_decimal_comma: bool = False
    decimal_commas: int = 0
    like_thousands: int = 0
    text: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    infinite: Counter[str] = field(default_factory=Counter)
    sentinel: Counter[str] = field(default_factory=Counter)
    impossible: Counter[str] = field(default_factory=Counter)

    def read(self, column: pa.Array, label: str) -> NDArray[np.float32]:
        """Return the numbers of one column, NaN for cells that hold none; `label` names it in the findings."""
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            numbers, is_text = numbers_of(self._with_points(column))
        else:
            try:
                if pa.types.is_boolean(column.type):
                    raise pa.ArrowInvalid("yes and no are not readings")
                numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
                is_text = np.zeros(len(column), np.bool_)
            except pa.ArrowException:
                numbers, is_text = np.full(len(column), np.nan), column.is_valid().to_numpy(zero_copy_only=False)
        if is_text.any():
            self.text[label] += int(is_text.sum())
            self.examples.setdefault(label, str(column[int(is_text.argmax())].as_py())[:30])
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(numbers, dtype=np.float32)

    def _with_points(self, column: pa.Array) -> pa.Array:
        """Return the cells with points for decimal commas, which are counted."""
        if not self.has_decimal_comma:
            return column
        cells = pc.utf8_trim_whitespace(column)
        self.decimal_commas += pc.sum(pc.match_substring_regex(cells, DECIMAL_COMMA)).as_py() or 0
        self.like_thousands += pc.sum(pc.match_substring_regex(cells, LIKE_THOUSANDS)).as_py() or 0
        return pc.replace_substring_regex(cells, DECIMAL_COMMA, r"\1.\2")

    def clean(self, values: NDArray[np.float32], labels: Sequence[str]) -> NDArray[np.float32]:
        """Return rows x labels with infinite, impossible and sentinel numbers as NaN, all of them counted."""
        values = np.array(values, dtype=np.float32)
        tests: list[tuple[Counter[str], Callable[[NDArray[np.float32]], NDArray[np.bool_]]]]
        tests = [(self.infinite, np.isinf)]
        with np.errstate(over="ignore"):
            tests += [(self.sentinel, partial(np.equal, np.float32(number))) for number in self.options.missing]
            if self.options.minimum is not None:
                tests.append((self.impossible, partial(np.greater, np.float32(self.options.minimum))))
        for counts, test in tests:
            found = test(values)
            if found.any():
                per_label = np.atleast_1d(found.sum(axis=0))
                counts.update({label: int(n) for label, n in zip(labels, per_label, strict=True) if n})
                values[found] = np.nan
        return values

    def report(self, findings: Findings, where: str) -> None:
        """Add what was met to the findings."""
        if self.decimal_commas == self.like_thousands:
            report_doubtful_commas(self.decimal_commas, findings, where)
        else:
            findings.note("numbers are written with a comma: 1,5 was read as 1.5", where, self.decimal_commas)
        hint = "correct or empty them"
        if self.text:
            place = f"{where}: {listed(self.text)}, e.g. {next(iter(self.examples.values()))!r}"
            findings.warning("cells hold text, not numbers: read as missing", place, self.text.total(), hint)

        def add(counts: Counter[str], what: str, hint: str, level: Level = Level.WARNING) -> None:
            findings.about(counts, what, hint, where=where, count=counts.total(), level=level)

        add(self.infinite, "infinite numbers: read as missing", hint)
        lowest = f"{self.options.minimum or 0:g}"
        add(self.impossible, f"readings below {lowest}: impossible, read as missing", "check the sensors")
        numbers = ", ".join(f"{number:g}" for number in self.options.missing)
        what = f"cells hold a number that stands for missing ({numbers})"
        add(self.sentinel, what, "say --missing with other numbers if these are readings", Level.NOTE)


def id_text(cell: object) -> str:
    """Return a sensor id as stripped text, empty if missing; whole numbers come without a point, bytes decoded."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bytes):
        try:
            return cell.decode("utf-8").strip()
        except UnicodeDecodeError:
            return cell.decode("latin1").strip()
    if isinstance(cell, float | np.floating) and cell.is_integer():
        return str(int(cell))
    text = str(cell).strip()
    match = _WHOLE_NUMBER_WITH_ZEROS.fullmatch(text)
    return match[1] if match else text


def distinct_ids(cells: Iterable[object], where: str) -> tuple[str, ...]:
    """Return the sensor ids as text; empty or repeated ones are refused."""
    ids = tuple(map(id_text, cells))
    if not all(ids):
        raise InputError("a sensor has an empty id", where=where, hint="name every sensor")
    if repeated := [sensor_id for sensor_id, times in Counter(ids).items() if times > 1]:
        what = f"sensors are named more than once: {listed(repeated)}"
        raise InputError(what, where=where, hint="keep one column for each sensor, with a name of its own")
    return ids


class IdLookup:
    """Finds the positions of sensors by their ids, compared as stripped text.

    An id such as 773869.0, as spreadsheets write it, means 773869 if it is not itself an id.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = tuple(ids)
        self._position = {text.strip(): position for position, text in enumerate(ids)}

    def positions(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """Return the position of each sensor, -1 where the id is not known."""
        find = self._position.get
        return np.array([find(text.strip(), find(id_text(text), -1)) for text in texts], np.int64)
