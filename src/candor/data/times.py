"""The regular time axis of a panel, UTC inside with a local zone beside it, and the calendar positions of its rows."""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cached_property
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import format_time, time_format

_FIXED_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
DAY = timedelta(days=1)


def zone_from_name(name: str) -> tzinfo:
    """Return the zone called `name`: an IANA name, `UTC`, or a fixed offset such as `UTC-08:00`."""
    if name.upper() in {"UTC", "GMT", "Z"}:
        return UTC
    if match := _FIXED_OFFSET.fullmatch(name):
        sign, hours, minutes = match[1], int(match[2]), int(match[3] or 0)
        if hours < 24 and minutes < 60:
            offset = timedelta(hours=hours, minutes=minutes)
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"there is no time zone called {name!r}",
            hint="give an IANA name such as America/Los_Angeles, or an offset such as UTC-08:00",
        ) from None


def plain_zone(name: str) -> str | None:
    """Return the zone called `name` as it is spelled here, None if there is no such zone."""
    with suppress(InputError):
        return str(zone_from_name(name))
    return None


def standard_offset(name: str, year: int) -> str:
    """Return the fixed offset that the zone `name` keeps in the winter of `year`, the smaller one of the two.

    Not what zoneinfo calls standard: in Dublin that is summer time.
    """
    zone = zone_from_name(name)
    january, july = (datetime(year, month, 1, tzinfo=zone).utcoffset() for month in (1, 7))
    assert january is not None and july is not None  # every zone answers for a full datetime
    minute = timedelta(minutes=1)
    return str(timezone(min(january, july) // minute * minute))


@dataclass(frozen=True)
class TimeAxis:
    """Equally spaced moments.

    `start` is in UTC; `zone` is where the sensors live, an IANA name or a fixed offset: calendars and texts use it.
    """

    start: datetime
    interval: timedelta
    length: int
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.start.utcoffset() != timedelta(0):
            raise ValueError(f"the start of a time axis must be in UTC, not {self.start!r}")
        if self.interval <= timedelta(0):
            raise ValueError(f"the interval of a time axis must be positive, not {self.interval}")
        if self.length < 0:
            raise ValueError(f"a time axis cannot have {self.length} moments")
        object.__setattr__(self, "start", self.start.replace(tzinfo=UTC))
        object.__setattr__(self, "length", int(self.length))  # it may have been counted by numpy
        zone_from_name(self.zone)

    @cached_property
    def utc(self) -> NDArray[np.datetime64]:
        """All moments in UTC, without a zone attached."""
        start = np.datetime64(self.start.replace(tzinfo=None), "us")
        moments = start + np.arange(self.length) * np.timedelta64(self.interval)
        moments.flags.writeable = False
        return moments

    @cached_property
    def local(self) -> pd.DatetimeIndex:
        """All moments on the local clock, with the zone attached."""
        return pd.DatetimeIndex(self.utc, name="time").tz_localize("UTC").tz_convert(zone_from_name(self.zone))

    @property
    def end(self) -> datetime:
        """The moment after the last one."""
        return self.start + self.length * self.interval

    def at(self, row: int) -> datetime:
        """Return the local time of a row, which may lie outside the axis."""
        return (self.start + row * self.interval).astimezone(zone_from_name(self.zone))

    def iso(self, row: int) -> str:
        """Return the local time of a row as ISO text with its offset."""
        return self.at(row).isoformat()

    def short(self, row: int) -> str:
        """Return the local time of a row for sentences, to the minute, or to what a finer interval needs."""
        return format_time(self.at(row), f"%Y-%m-%d {time_format(self.interval) or '%H:%M'}")

    def slice(self, start: int, stop: int) -> "TimeAxis":
        """Return the axis of the moments `start` to `stop - 1`; `stop` may lie beyond the end."""
        return replace(self, start=self.start + start * self.interval, length=max(stop - start, 0))

    def index_of(self, moment: str | datetime) -> int:
        """Return the index of the first axis moment at or after `moment`, which may lie outside the axis.

        A moment without a zone is read on the local clock; where the clock showed it twice, the first time counts.
        """
        return -(-self._elapsed(moment, is_first=True) // self.interval)

    def index_after(self, moment: str | datetime) -> int:
        """Return the index of the first axis moment later than `moment`, which may lie outside the axis.

        A bare date stands for its whole day. A moment without a zone is read on the local clock; where the clock showed
        it twice, the second time counts.
        """
        with suppress(ValueError, TypeError):
            moment = datetime.combine(date.fromisoformat(moment), time.max)  # type: ignore[arg-type]
        return self._elapsed(moment, is_first=False) // self.interval + 1

    def _elapsed(self, moment: str | datetime, *, is_first: bool) -> timedelta:
        """Return the time from the start of the axis to `moment`."""
        skipped: Literal["shift_forward", "shift_backward"] = "shift_forward" if is_first else "shift_backward"
        try:
            stamp = pd.Timestamp(datetime.fromisoformat(moment) if isinstance(moment, str) else moment)
            if pd.isna(stamp):
                raise ValueError("no time")
            if stamp.tzinfo is None:
                stamp = stamp.tz_localize(zone_from_name(self.zone), ambiguous=is_first, nonexistent=skipped)
            return stamp.tz_convert("UTC").to_pydatetime() - self.start
        except (ValueError, OverflowError, NotImplementedError) as error:  # the last two at the ends of the calendar
            raise InputError(
                f"{moment!r} is not a time ({error})", hint="write it like 2020-10-08 or 2020-10-08T06:00"
            ) from None


BINS_PER_DAY = 288
DAYS_PER_WEEK = 7
WEEKS_PER_YEAR = 53


@dataclass(frozen=True)
class Calendar:
    """Where each moment stands: time-of-day bin 0..287 (daily data: 0), day of week 0..6, week of the year 0..52."""

    time_of_day: NDArray[np.int16]
    day_of_week: NDArray[np.int16]
    week_of_year: NDArray[np.int16]

    def take(self, rows: NDArray[np.integer] | slice) -> "Calendar":
        """Return where some of the moments stand."""
        return Calendar(*(part[rows] for part in vars(self).values()))


def calendar_of(times: TimeAxis) -> Calendar:
    """Return the calendar of all moments of the axis."""
    local = times.local
    seconds = local.hour * 3600 + local.minute * 60 + local.second
    if times.interval % DAY == timedelta(0):
        seconds = 0 * seconds  # a day has no time of day, whatever hour it is stamped with
    return Calendar(
        time_of_day=np.asarray(BINS_PER_DAY * seconds // 86400, dtype=np.int16),
        day_of_week=np.asarray(local.day_of_week, dtype=np.int16),
        week_of_year=np.asarray((local.day_of_year - 1) // DAYS_PER_WEEK, dtype=np.int16),
    )
