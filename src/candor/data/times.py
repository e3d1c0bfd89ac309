"""The regular time axis of a panel: UTC inside, a local zone beside it for calendars and for people."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.errors import InputError

_FIXED_OFFSET = re.compile(r"^(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?$")
DAY = timedelta(days=1)


def zone_from_name(name: str) -> tzinfo:
    """Returns the zone called `name`: an IANA name, `UTC`, or a fixed offset such as `UTC-08:00`."""
    if name.upper() in {"UTC", "GMT", "Z"}:
        return UTC
    if match := _FIXED_OFFSET.match(name):
        sign, hours, minutes = match[1], int(match[2]), int(match[3] or 0)
        if hours < 24 and minutes < 60:
            offset = timedelta(hours=hours, minutes=minutes)
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"there is no time zone called {name!r}",
            mend="give an IANA name such as America/Los_Angeles, or an offset such as UTC-08:00",
        ) from None


def standard_offset(name: str, year: int) -> str:
    """Returns the fixed offset that the zone `name` keeps outside daylight saving time in `year`."""
    zone = zone_from_name(name)
    january, july = (datetime(year, month, 1, tzinfo=zone).utcoffset() for month in (1, 7))
    assert january is not None and july is not None  # every zone answers for a full datetime
    total = int(min(january, july).total_seconds()) // 60
    sign, minutes = ("-" if total < 0 else "+"), abs(total)
    return f"UTC{sign}{minutes // 60:02d}:{minutes % 60:02d}"


@dataclass(frozen=True)
class TimeAxis:
    """Equally spaced moments.

    Args:
        start: the first moment, in UTC.
        interval: the distance between two moments.
        length: how many moments there are.
        zone: where the sensors live: an IANA name or a fixed offset. Calendars and printed times use it.
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
        zone_from_name(self.zone)

    @cached_property
    def utc(self) -> NDArray[np.datetime64]:
        """All moments in UTC, without a zone attached."""
        start = np.datetime64(self.start.replace(tzinfo=None), "us")
        return start + np.arange(self.length) * np.timedelta64(self.interval)

    @cached_property
    def local(self) -> pd.DatetimeIndex:
        """All moments on the local clock, with the zone attached."""
        return pd.DatetimeIndex(self.utc, name="time").tz_localize("UTC").tz_convert(zone_from_name(self.zone))

    @property
    def end(self) -> datetime:
        """The moment after the last one."""
        return self.start + self.length * self.interval

    def slice(self, start: int, stop: int) -> "TimeAxis":
        """Returns the axis of the moments `start` to `stop - 1`; `stop` may lie beyond the end."""
        return replace(self, start=self.start + start * self.interval, length=max(stop - start, 0))

    def index_of(self, moment: str | datetime) -> int:
        """Returns the index of the first axis moment at or after `moment`, which may lie outside the axis.

        A text or a moment without a zone is read on the local clock.
        """
        try:
            stamp = pd.Timestamp(moment)
            if pd.isna(stamp):
                raise ValueError("no time")
            if stamp.tzinfo is None:
                stamp = stamp.tz_localize(zone_from_name(self.zone), ambiguous=True, nonexistent="shift_forward")
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{moment!r} is not a time ({error})",
                mend="write it like 2020-10-08 or 2020-10-08T06:00",
            ) from None
        elapsed = stamp.tz_convert("UTC").to_pydatetime() - self.start
        return -(-elapsed // self.interval)


def in_words(span: timedelta) -> str:
    """Returns a span of time as people say it: 5 min, 1.5 h, 14 d."""
    seconds = span.total_seconds()
    for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= size:
            return f"{round(seconds / size, 2):g} {word}"
    return f"{seconds:g} s"
