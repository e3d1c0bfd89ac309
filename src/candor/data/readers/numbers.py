"""From cells to float32 readings, and the record of every cell that held something else."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candor.core.text import listed
from candor.data.findings import Findings
from candor.data.readers.options import ReadOptions

EMPTY_CELLS = [
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "NaN",
    "nan",
    "NAN",
    "null",
    "NULL",
    "None",
    "-",
    "--",
    ".",
]
LIKE_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"
DOUBT_ABOUT_COMMAS = "numbers such as 1,234 were read as 1.234, but their commas may divide thousands"
MEND_OF_COMMAS = "if they do, take the commas out; if not, write points"
_DECIMAL_COMMA = r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$"
_NUMBER = r"(?i)^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)$"


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
        """Returns the numbers of one column, NaN for cells that hold none; `label` names it in the findings."""
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            numbers = self._from_text(column, label)
        else:
            try:
                if pa.types.is_boolean(column.type):
                    raise pa.ArrowInvalid("yes and no are not readings")
                numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            except pa.ArrowException:
                self._count_text(label, column.drop_null())
                numbers = np.full(len(column), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(numbers, dtype=np.float32)

    def clean(self, values: NDArray[np.float32], labels: Sequence[str]) -> NDArray[np.float32]:
        """Returns rows x labels with infinite, impossible and sentinel numbers as NaN, all of them counted."""
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

    def _from_text(self, column: pa.Array, label: str) -> NDArray[np.float64]:
        try:  # the quick way, for columns that hold numbers only
            return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            pass
        cells = pc.utf8_trim_whitespace(column)
        if self.has_decimal_comma:
            self.decimal_commas += pc.sum(pc.match_substring_regex(cells, _DECIMAL_COMMA)).as_py() or 0
            self.like_thousands += pc.sum(pc.match_substring_regex(cells, LIKE_THOUSANDS)).as_py() or 0
            cells = pc.replace_substring_regex(cells, _DECIMAL_COMMA, r"\1.\2")
        is_number = pc.match_substring_regex(cells, _NUMBER)
        is_text = pc.invert(pc.or_(is_number, pc.is_in(cells, pa.array(EMPTY_CELLS, cells.type))))
        self._count_text(label, column.filter(is_text))
        numbers = pc.if_else(is_number, cells, pa.scalar(None, cells.type)).cast(pa.float64())
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    def _count_text(self, label: str, cells: pa.Array) -> None:
        if len(cells):
            self.text[label] += len(cells)
            self.examples.setdefault(label, str(cells[0].as_py())[:30])

    def report(self, findings: Findings, where: str) -> None:
        """Adds what was met to the findings."""
        hint = "correct or empty them"
        if self.decimal_commas and self.decimal_commas == self.like_thousands:
            findings.warning(DOUBT_ABOUT_COMMAS, where, self.decimal_commas, MEND_OF_COMMAS)
        elif self.decimal_commas:
            findings.note("numbers are written with a comma: 1,5 was read as 1.5", where, self.decimal_commas)
        if self.text:
            place = f"{where}: {listed(self.text)}, e.g. {next(iter(self.examples.values()))!r}"
            findings.warning("cells hold text, not numbers: read as missing", place, self.text.total(), hint)
        if self.infinite:
            place = f"{where}: {listed(self.infinite)}"
            findings.warning("infinite numbers: read as missing", place, self.infinite.total(), hint)
        if self.impossible:
            what = f"readings below {self.options.minimum:g}: impossible, read as missing"
            place = f"{where}: {listed(self.impossible)}"
            findings.warning(what, place, self.impossible.total(), "check the sensors")
        if self.sentinel:
            numbers = ", ".join(f"{number:g}" for number in self.options.missing)
            findings.note(
                f"cells hold a number that stands for missing ({numbers})",
                f"{where}: {listed(self.sentinel)}",
                self.sentinel.total(),
                "say --missing with other numbers if these are readings",
            )
