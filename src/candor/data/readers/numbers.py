"""From cells to float32 readings, and the record of every cell that held something else."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candor.data.findings import Findings, listed
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
_DECIMAL_COMMA = r"^\s*([+-]?\d+),(\d+)\s*$"


@dataclass
class NumberReader:
    """Turns columns into float32 with NaN for everything that is not a reading, and counts why.

    What counts as missing is decided here and nowhere else.
    """

    options: ReadOptions
    allows_decimal_comma: bool = False
    text: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    infinite: Counter[str] = field(default_factory=Counter)
    sentinel: Counter[str] = field(default_factory=Counter)
    impossible: Counter[str] = field(default_factory=Counter)

    def read(self, column: pa.Array, label: str) -> NDArray[np.float32]:
        """Returns the numbers of one column, NaN for cells that hold none; `label` names it in the findings."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_float32(column.type):
            numbers = column.to_numpy(zero_copy_only=False)
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            numbers = self._from_text(column, label)
        else:
            try:
                numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            except pa.ArrowException:
                self._count_text(label, np.ones(len(column), bool), column)
                numbers = np.full(len(column), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(numbers, dtype=np.float32)

    def clean(self, values: NDArray[np.float32], labels: Sequence[str]) -> NDArray[np.float32]:
        """Returns rows x labels with infinite, impossible and sentinel numbers as NaN, all of them counted."""
        values = np.array(values, dtype=np.float32)
        tests: list[tuple[Counter[str], Callable[[NDArray[np.float32]], NDArray[np.bool_]]]]
        tests = [(self.infinite, np.isinf)]
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
        trimmed = pc.utf8_trim_whitespace(column)
        if self.allows_decimal_comma:
            trimmed = pc.replace_substring_regex(trimmed, _DECIMAL_COMMA, r"\1.\2")
        cells = trimmed.to_pandas()
        numbers = np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=np.float64)
        is_text = np.isnan(numbers) & ~cells.isin(EMPTY_CELLS).to_numpy() & cells.notna().to_numpy()
        if is_text.any():
            self._count_text(label, is_text, column)
        return numbers

    def _count_text(self, label: str, is_text: NDArray[np.bool_], column: pa.Array) -> None:
        self.text[label] += int(is_text.sum())
        self.examples.setdefault(label, str(column[int(np.argmax(is_text))].as_py())[:30])

    def report(self, findings: Findings, where: str) -> None:
        """Adds what was met to the findings."""
        mend = "correct or empty them"
        if self.text:
            example = next((f", e.g. {self.examples[label]!r}" for label in self.text if label in self.examples), "")
            place = f"{where}: {listed(self.text)}{example}"
            findings.warning("cells hold text, not numbers: read as missing", place, self.text.total(), mend)
        if self.infinite:
            place = f"{where}: {listed(self.infinite)}"
            findings.warning("infinite numbers: read as missing", place, self.infinite.total(), mend)
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
