"""From cells to moments: the many ways in which people write times, and what a clock on the wall showed in UTC."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.readers.cells import id_text
from candor.data.readers.readings import Stamps
from candor.data.times import plain_zone, zone_from_name

_ZONE = r"(?P<zone>[Zz]|UTC|GMT|(?P<sign>[+-])(?P<zone_hours>\d{2})(?::?(?P<zone_minutes>\d{2}))?)?"
_CLOCK = (
    r"(?:[\sTt,]+(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?)?"
    r"[\s\x{a0}\x{202f}]*(?:(?P<half>[AaPp])\.?[Mm]\.?)?\s*" + _ZONE + r")?$"
)
_DIGIT_CLOCK = (
    r"(?:[\sTt]*(?P<hour>\d{2})(?::?(?P<minute>\d{2})(?::?(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?)?"
    r"(?P<half>)" + _ZONE + r")?$"
)
_FORMS = {
    "year first": r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + _CLOCK,
    "day first": r"^(?P<day>\d{1,2})[-/.](?P<month>\d{1,2})[-/.](?P<year>\d{4})" + _CLOCK,
    "month first": r"^(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})[-/.](?P<year>\d{4})" + _CLOCK,
    "digits": r"^(?P<year>19\d\d|20\d\d)(?P<month>\d{2})(?P<day>\d{2})" + _DIGIT_CLOCK,
}
_EPOCH = r"^(?P<whole>\d{9,19})(?:\.(?P<fraction>\d*))?$"
_EPOCH_UNITS = {"s": (9, 10), "ms": (12, 13), "us": (15, 16), "ns": (18, 19)}  # how many digits today's times have
_YEAR = r"(?:1[6-9]|2[01])\d\d"
_DATE = re.compile(rf"^(?:{_YEAR}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]{_YEAR})(?:\D|$)")
_DATE_OF_DIGITS = re.compile(r"^(?:19|20)\d{6}(?:\D|$)")
_NUMBER = re.compile(r"^(\d{8,10}|\d{12,16}|\d{18,19})(?:\.\d*)?$")
_YEAR_LAST = r"^(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})[-/.](?P<year>\d{4})"
_SAMPLE_ROWS, _SAMPLE_TEXTS = 100_000, 2000


class StampReader:
    """Reads one column of times, after a look at how its first rows are written.

    `has_zone` tells whether the stamps carry their zone; they are then given back in UTC. `guess` says how dates were
    read that could be read in two ways; it is empty if there was no doubt.

    Args:
        batches: walks over the column from its start, as often as asked.
        where: what to call the column in messages.
        day_first: whether 03/04/2020 is the third of April; None decides by all dates of the column.
    """

    def __init__(self, batches: Callable[[], Iterator[pa.Array]], where: str, day_first: bool | None = None) -> None:
        self._batches, self._where, self.guess = batches, where, ""
        self._form, self.has_zone = "arrow", False
        self._zone, self._minutes_ahead = "", set[int]()
        kind = next(batches()).type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            self._zone = getattr(kind, "tz", None) or ""
            self.has_zone = self._zone != ""
            return
        texts = self._sample()
        if len(texts) == 0:
            raise InputError("the time column is empty", where=where, hint="fill it, or name another")
        self._form = self._choose_form(texts, day_first)
        moments, has_zone, _ = _read_texts(texts, self._form)
        share = has_zone[~np.isnat(moments)].mean() if not np.isnat(moments).all() else 0.0
        if 0.1 < share < 0.9:
            what = "some times carry a zone and others do not"
            raise InputError(what, where=where, hint="write all of them one way")
        self.has_zone = bool(share > 0.5)

    @property
    def zones(self) -> tuple[str, ...]:
        """The zone of the whole column, or the offsets of the stamps."""
        if self._zone:
            return (plain_zone(self._zone) or self._zone,)
        return tuple(str(timezone(timedelta(minutes=ahead))) for ahead in sorted(self._minutes_ahead))

    def read(self, column: pa.Array) -> Stamps:
        """Return moments in microseconds, in UTC if `has_zone`; NaT where a cell is not a time."""
        if self._form == "arrow":
            return np.asarray(column.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False))
        coded = pc.dictionary_encode(column)  # long files repeat each stamp for every sensor
        moments, has_zone, ahead = _read_texts(_texts_of(coded.dictionary), self._form)
        moments[has_zone != self.has_zone] = np.datetime64("NaT")
        self._minutes_ahead.update(np.unique(ahead[has_zone & ~np.isnat(moments)]).tolist())
        moments = np.append(moments, np.datetime64("NaT"))
        positions = coded.indices.fill_null(len(moments) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(moments[positions])

    def _sample(self) -> pa.Array:
        """Return the different texts of the first rows, whatever batches they come in."""
        texts: dict[str, None] = {}
        rows = 0
        for batch in self._batches():
            part = batch.slice(0, _SAMPLE_ROWS - rows)
            rows += len(part)
            texts.update(dict.fromkeys(_texts_of(pc.unique(part.drop_null())).to_pylist()))
            if rows >= _SAMPLE_ROWS or len(texts) >= _SAMPLE_TEXTS:
                break
        return pa.array(list(texts)[:_SAMPLE_TEXTS], pa.string())

    def _choose_form(self, texts: pa.Array, day_first: bool | None) -> str:
        """Return the form that fits most of the texts."""
        fits = {form: int(np.count_nonzero(~np.isnat(_read_texts(texts, form)[0]))) for form in _FORMS}
        lengths = Counter(len(match[1]) for text in texts.to_pylist() if (match := _NUMBER.match(text)))
        for unit, digits in _EPOCH_UNITS.items():
            fits[unit] = sum(lengths[length] for length in digits)
        # 10, 12 and 14 digits may be a date or a count since 1970: the date, if nearly all would be real dates.
        best = "digits" if fits["digits"] >= 0.9 * len(texts) else max(fits, key=lambda form: fits[form])
        if fits[best] == 0:
            what = f"the time column holds {texts[0].as_py()[:40]!r}, which is no known form of time"
            hint = "write times like 2020-10-08 06:00 or as seconds since 1970, or name their column with --time-column"
            raise InputError(what, where=self._where, hint=hint)
        if best in ("day first", "month first"):
            is_day_first = self._is_day_first(texts) if day_first is None else day_first
            return "day first" if is_day_first else "month first"
        return best

    def _is_day_first(self, texts: pa.Array) -> bool:
        """Return whether the day stands before the month in dates that end with the year, by all dates there are."""
        dates: set[tuple[int, int, int]] = set()
        for batch in self._batches():
            dates |= _year_last_dates(_texts_of(pc.unique(batch.drop_null())))
        first, second, year = np.array(sorted(dates)).T
        days_first = int(np.count_nonzero((first > 12) & (second <= 12)))
        months_first = int(np.count_nonzero((second > 12) & (first <= 12)))
        if min(days_first, months_first) > 0.01 * len(dates):
            what = "some dates have the day first and others the month"
            raise InputError(what, where=self._where, hint="write all of them one way")
        if days_first or months_first:
            return days_first > months_first
        example = next(text for text in texts.to_pylist() if re.match(_YEAR_LAST, text))
        if "." in example[:3] or (first == second).all():
            return True
        # Both may be dates. Days 1 to 12 alone, with several times on each, are one stretch of days and not of months.
        spans = [np.ptp(year * 372 + month * 31 + day) for month, day in ((second, first), (first, second))]
        if len(texts) < 2 * len(_year_last_dates(texts)) or min(spans) > 11 or max(spans) <= 11:
            what = f"dates such as {example[:10]!r} may mean day/month or month/day"
            raise InputError(what, where=self._where, hint="say --day-first or --month-first")
        is_day_first = bool(spans[0] < spans[1])
        self.guess = f"dates such as {example[:10]!r} were read with the {'day' if is_day_first else 'month'} first"
        return is_day_first


def looks_like_time(texts: list[str], or_number: bool = False) -> bool:
    """Return whether most of the texts are written like dates, or like numbers that may be times."""
    hits = sum(bool(_DATE.match(text) or (or_number and _NUMBER.match(text))) for text in texts)
    hits += sum(bool(_DATE_OF_DIGITS.match(text)) for text in texts if or_number and not _NUMBER.match(text))
    return hits > len(texts) / 2


def count_times(texts: list[str]) -> int:
    """Return how many of the texts are dates or times from their beginning to their end."""
    cells = pa.array([text for text in texts if _DATE.match(text)], pa.string())
    moments = [_read_texts(cells, form)[0] for form in ("year first", "day first", "month first")]
    return int(np.count_nonzero(~np.isnat(moments).all(axis=0)))


def _texts_of(column: pa.Array) -> pa.Array:
    """Return the cells as trimmed text, whole numbers without a decimal point."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = pa.array(map(id_text, column.to_pylist()), pa.string())
    return pc.utf8_trim_whitespace(column)


def _read_texts(texts: pa.Array, form: str) -> tuple[Stamps, NDArray[np.bool_], NDArray[np.int64]]:
    """Return the moments (NaT: not of this form), which of them say their zone, and its minutes ahead of UTC.

    Those that say it are in UTC, the others on the local clock.
    """
    if form in _EPOCH_UNITS:
        moments = _read_epoch(texts, form)
        return moments, ~np.isnat(moments), np.zeros(len(moments), np.int64)
    parts = pc.extract_regex(texts, _FORMS[form])
    found = _array(parts.is_valid())
    year, month, day, hour, minute, second = (
        _whole(parts, name) for name in ("year", "month", "day", "hour", "minute", "second")
    )
    month_start = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    date = month_start.astype("datetime64[D]") + (day - 1)
    half = _array(parts.field("half"))
    has_half = half != ""
    hour_of_day = np.where(has_half, hour % 12 + 12 * np.isin(half, ("P", "p")), hour)
    seconds = (hour_of_day * 60 + minute) * 60 + second
    is_date = (month >= 1) & (month <= 12) & (date.astype("datetime64[M]") == month_start)
    is_clock = (minute < 60) & (second < 60) & (seconds <= 86400)  # 24:00 is the end of the day
    is_clock &= ~has_half | ((hour >= 1) & (hour <= 12))
    sign = np.where(_array(parts.field("sign")) == "-", -1, 1)
    ahead = sign * (_whole(parts, "zone_hours") * 60 + _whole(parts, "zone_minutes"))
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(parts.field("fraction"), 6, "0"), 0, 6)
    elapsed = (seconds - 60 * ahead) * 1_000_000 + _array(fraction).astype(np.int64)
    moments = date.astype("datetime64[us]") + elapsed
    moments[~(found & is_date & is_clock & (np.abs(ahead) < 24 * 60))] = np.datetime64("NaT")
    return moments, _array(parts.field("zone")) != "", ahead


def _read_epoch(texts: pa.Array, unit: str) -> Stamps:
    """Return the moments of counts of `unit` since 1970, worked out in whole numbers."""
    parts = pc.extract_regex(texts, _EPOCH)
    whole, fraction = parts.field("whole"), parts.field("fraction")
    fits = _array(parts.is_valid()) & np.isin(_array(pc.utf8_length(whole)), _EPOCH_UNITS[unit])
    digits = {"s": 6, "ms": 3, "us": 0, "ns": -3}[unit]  # by how many the decimal point moves to give microseconds
    if digits < 0:
        moved = pc.utf8_slice_codeunits(whole, 0, digits)
    else:
        moved = pc.binary_join_element_wise(
            whole, pc.utf8_slice_codeunits(pc.utf8_rpad(fraction, 6, "0"), 0, digits), ""
        )
    numbers = np.where(fits, _array(moved), "0").astype(np.int64)
    return np.where(fits, numbers.astype("datetime64[us]"), np.datetime64("NaT", "us"))


def _whole(parts: pa.StructArray, name: str) -> NDArray[np.int64]:
    texts = _array(parts.field(name))
    return np.where(texts == "", "0", texts).astype(np.int64)


def _array(column: pa.Array) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _year_last_dates(texts: pa.Array) -> set[tuple[int, int, int]]:
    parts = pc.extract_regex(texts, _YEAR_LAST).drop_null()
    columns = (parts.field(name).to_pylist() for name in ("first", "second", "year"))
    return {(int(first), int(second), int(year)) for first, second, year in zip(*columns, strict=True)}


_DAY_IN_MICROSECONDS = 86_400_000_000


class LocalClock:
    """Converts local stamps in file order to UTC, with a state of each sensor in the hour that autumn repeats.

    The hour that autumn repeats is summer time at first and standard time from the row on that shows a stamp again or
    turns back; in a file that runs backwards it is the other way round, and in one without order only a stamp shown
    again is standard time. If only one of the two would fall on the grid, that one is meant. Stamps in the hour that
    spring skips are no moments: they become NaT and are counted.

    Args:
        zone: of the clock.
        direction: 1 for a file whose times run forwards, -1 for one that runs backwards, 0 for one without order.
        is_on_grid: which moments fall on the grid of the file.
    """

    def __init__(
        self, zone: str, direction: int = 1, is_on_grid: Callable[[Stamps], NDArray[np.bool_]] = np.isfinite
    ) -> None:
        self._zone, self._direction, self._is_on_grid = zone, direction, is_on_grid
        self._seen: set[tuple[int, int]] = set()
        self._last: dict[int, tuple[int, bool]] = {}
        self.skipped = 0

    def to_utc(self, stamps: Stamps, sensor: NDArray[np.int32] | None = None) -> Stamps:
        """Return the moments of the stamps in UTC."""
        moments = wall_to_utc(stamps, self._zone)
        doubtful = np.flatnonzero(np.isnat(moments) & ~np.isnat(stamps))
        if len(doubtful) == 0:
            return moments
        owners = np.full(len(doubtful), -1) if sensor is None else sensor[doubtful]
        numbers = stamps[doubtful].astype(np.int64)
        is_second = [self._is_second(o, n) for o, n in zip(owners.tolist(), numbers.tolist(), strict=True)]
        is_summer = np.array(is_second) == (self._direction < 0)
        summer, standard = (wall_to_utc(stamps[doubtful], self._zone, way) for way in (True, False))
        on_grid = self._is_on_grid(summer)
        is_summer = np.where(on_grid == self._is_on_grid(standard), is_summer, on_grid)
        moments[doubtful] = np.where(is_summer, summer, standard)
        self.skipped += int(np.isnat(moments[doubtful]).sum())
        return moments

    def _is_second(self, owner: int, stamp: int) -> bool:
        """Return whether this sensor goes through the repeated hour for the second time."""
        last, is_second = self._last.get(owner, (stamp, False))
        step = stamp - last
        turns_back = step * self._direction < 0
        # A day on, another year's hour begins.
        is_second = (is_second or turns_back) and abs(step) < _DAY_IN_MICROSECONDS
        is_again = (owner, stamp) in self._seen
        self._seen.add((owner, stamp))
        self._last[owner] = stamp, is_second
        return is_second or is_again


def possible_moments(stamps: Stamps, zone: str) -> Stamps:
    """Return all moments in UTC that the stamps may mean, in order: two for each in a repeated hour."""
    moments: Stamps = np.unique([wall_to_utc(stamps, zone, is_summer) for is_summer in (True, False)])
    return moments[~np.isnat(moments)]


def wall_to_utc(stamps: Stamps, zone: str, is_summer: bool | None = None) -> Stamps:
    """Return the moments in UTC; NaT for what spring skips, and for what autumn repeats unless it is said which."""
    ambiguous: Any = "NaT" if is_summer is None else np.full(len(stamps), is_summer)
    local = pd.DatetimeIndex(stamps).tz_localize(zone_from_name(zone), ambiguous=ambiguous, nonexistent="NaT")
    return np.array(local.tz_convert("UTC").tz_localize(None), dtype="datetime64[us]")
