"""From cells to moments: the many ways in which people write times."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candor.data.readers.readings import Stamps
from candor.errors import InputError

_YEAR_FIRST = re.compile(r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:\D|$)")
_YEAR_LAST = re.compile(r"^(\d{1,2})([-/.])(\d{1,2})[-/.](\d{4})(?:\D|$)")
_WITH_ZONE = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})$")
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_EPOCH_UNITS = {9: "s", 10: "s", 12: "ms", 13: "ms", 16: "us", 19: "ns"}
_SAMPLE = 2000


class StampReader:
    """Reads one column of times, after a look at a sample of it.

    Attributes:
        has_zone: whether the stamps say their zone (then they are given back in UTC).
    """

    def __init__(self, sample: pa.Array, where: str, day_first: bool | None = None) -> None:
        self._where = where
        self._order: str | None = None  # how to put the year first in dates that end with it
        self._way = "text"
        kind = sample.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            self._way, self.has_zone = "arrow", getattr(kind, "tz", None) is not None
            return
        texts = _unique_texts(sample)[:_SAMPLE]
        if not texts:
            raise InputError("the time column is empty", where=where, mend="fill it, or name another")
        if all(text.isdigit() for text in texts):
            self._way = self._way_of_digits(texts)
            self.has_zone = self._way.startswith("epoch")
            return
        with_zone = sum(bool(_WITH_ZONE.search(text)) for text in texts)
        if 0 < with_zone < len(texts) * 0.9:
            raise InputError(
                "some times carry a zone and others do not",
                where=where,
                mend="write all of them one way",
            )
        self.has_zone = with_zone > 0
        self._order = self._order_of(texts, day_first)

    def read(self, column: pa.Array) -> Stamps:
        """Returns moments in microseconds, in UTC if `has_zone`; NaT where a cell is not a time."""
        if self._way == "arrow":
            return np.asarray(column.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False))
        coded = pc.dictionary_encode(column)  # long files repeat each stamp for every sensor
        moments = self._read_texts([_text_of(cell) for cell in coded.dictionary.to_pylist()])
        moments = np.append(moments, np.datetime64("NaT", "us"))
        positions = coded.indices.fill_null(len(moments) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(moments[positions])

    def _read_texts(self, texts: list[str]) -> Stamps:
        cells = pd.Series(texts, dtype="str")
        if self._way.startswith("epoch"):
            unit = self._way.removeprefix("epoch-")
            numbers = pd.to_numeric(cells, errors="coerce")
            parsed = pd.to_datetime(numbers, unit=unit, errors="coerce", utc=True)  # type: ignore[call-overload]
        elif self._way.startswith("%"):
            parsed = pd.to_datetime(cells, format=self._way, errors="coerce")
        else:
            fits = np.array([bool(_WITH_ZONE.search(text)) for text in texts], bool) == self.has_zone
            cells = cells.where(pd.Series(fits), None)
            if self._order is not None:
                cells = cells.str.replace(_YEAR_LAST_SPLIT, self._order, regex=True)
            parsed = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=self.has_zone)
            if (rest := parsed.isna() & cells.notna()).any():
                plausible = cells.where(rest & cells.str.match(r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}"), None)
                again = pd.to_datetime(plausible, format="mixed", errors="coerce", utc=self.has_zone)
                parsed = parsed.fillna(again)
        if self.has_zone:
            parsed = parsed.dt.tz_convert(None)
        return np.asarray(parsed.to_numpy(), dtype="datetime64[us]")

    def _way_of_digits(self, texts: list[str]) -> str:
        lengths = {len(text) for text in texts}
        if len(lengths) == 1 and (form := _COMPACT.get(length := lengths.pop())):
            try:
                pd.to_datetime(pd.Series(texts), format=form)
                return form
            except ValueError:
                lengths = {length}
        units = {_EPOCH_UNITS.get(length) for length in lengths}
        if len(units) == 1 and (unit := units.pop()):
            return f"epoch-{unit}"
        raise InputError(
            f"the time column holds numbers such as {texts[0]!r} that are no known form of time",
            where=self._where,
            mend="write times like 2020-10-08 06:00, or seconds since 1970",
        )

    def _order_of(self, texts: list[str], day_first: bool | None) -> str | None:
        matches = [match for text in texts if (match := _YEAR_LAST.match(text))]
        if len(matches) < len(texts) / 2:
            return None
        is_day_first = self._is_day_first(matches) if day_first is None else day_first
        return r"\3-\2-\1" if is_day_first else r"\3-\1-\2"

    def _is_day_first(self, matches: list[re.Match[str]]) -> bool:
        """Returns whether the day stands before the month in dates that end with the year."""
        first = np.array([int(match[1]) for match in matches])
        second = np.array([int(match[3]) for match in matches])
        if (first > 12).any() or (second > 12).any():
            return bool((first > 12).any())
        if matches[0][2] == ".":
            return True
        # Both readings are possible dates: the true one makes the sample the shorter stretch of time.
        years = np.array([int(match[4]) for match in matches])
        spans = [np.ptp(years * 372 + month * 31 + day) for month, day in ((second, first), (first, second))]
        if spans[0] == spans[1]:
            raise InputError(
                f"dates such as {matches[0][0].strip()!r} may mean day/month or month/day",
                where=self._where,
                mend="say --day-first or --month-first",
            )
        return bool(spans[0] < spans[1])


_YEAR_LAST_SPLIT = re.compile(r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")


def looks_like_time(texts: list[str]) -> bool:
    """Returns whether most of the texts are written like dates."""
    hits = sum(bool(_YEAR_FIRST.match(text) or _YEAR_LAST.match(text)) for text in texts)
    return hits > len(texts) / 2


def _unique_texts(column: pa.Array) -> list[str]:
    return [_text_of(cell) for cell in pc.unique(column.drop_null()).to_pylist()]


def _text_of(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip() if cell is not None else ""


def is_missing(stamps: Stamps) -> NDArray[np.bool_]:
    """Returns where a stamp could not be read."""
    return np.isnat(stamps)
