"""Numbers, durations, times and lists as people read them: the one place that turns values into words."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

NOTHING = "–"  # stands where there is no number
_MOST_DIGITS = 12  # after the point
_DAY, _HOUR, _MINUTE, _SECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
_UNITS = (("days", _DAY), ("hours", _HOUR), ("minutes", _MINUTE), ("seconds", _SECOND))


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with so many digits after the point, more if it is small, and a dash where there is none."""
    if value is None or value != value:
        return NOTHING
    if digits and 0 < abs(value) < 10.0 ** (1 - digits):  # little would be left of it
        digits = min(digits - 1 - math.floor(math.log10(abs(value))), _MOST_DIGITS)
    return f"{value:,.{digits}f}"


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits, and a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    places = min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), _MOST_DIGITS)
    return f"{value:,.{places}f}"


def amount(value: float | None, unit: str, digits: int = 3) -> str:
    """Return a number with so many significant digits and its unit, if that is known."""
    return f"{significant(value, digits)} {unit}".rstrip()


def percent(share: float | None) -> str:
    """Return a share as a percentage with one decimal, for tables; a dash where there is none."""
    return NOTHING if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def rounded_percent(share: float, digits: int = 2) -> str:
    """Return a share as a percentage with so many significant digits, for sentences; little is not called nothing."""
    return "under 0.1 %" if 0 < share < 0.001 else f"{float(f'{100 * share:.{digits}g}'):g} %"


def counted(count: int, thing: str) -> str:
    """Return how many things there are, such as `1 edge` and `1,722 edges`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def listed(names: Iterable[object], most: int = 5) -> str:
    """Return the first few names joined by commas, and how many more there are."""
    everything = [str(name) for name in names]
    more = f" and {len(everything) - most} more" if len(everything) > most else ""
    return ", ".join(everything[:most]) + more


def first_line(error: Exception) -> str:
    """Return the first line of the message of an exception, or its class if it has none."""
    return (str(error) or type(error).__name__).splitlines()[0]


def sensor_label(sensor: str, name: str, longest: int = 60) -> str:
    """Return the name of a sensor, cut where it is too long, and its id."""
    whole = f"{name} ({sensor})" if name else f"sensor {sensor}"
    return whole if len(whole) <= longest else f"{name[: max(longest - len(sensor) - 4, 0)]}… ({sensor})"


def time_unit(span: timedelta) -> tuple[str, timedelta]:
    """Return the largest unit of time that fits into a span: its name and its length."""
    return next((unit for unit in _UNITS if abs(span) >= unit[1]), _UNITS[-1])


def duration(span: timedelta) -> str:
    """Return a duration for sentences: 5 min, 1.5 h, 14 d."""
    for size, word in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if abs(span) >= size:
            return f"{round(span / size, 2):g} {word}"
    return f"{span.total_seconds():g} s"


def duration_option(span: timedelta) -> str:
    """Return a duration as it is typed for an option, to the microsecond: 100min, 36h, 1d, 0.5s."""
    for size, word in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if span % size == timedelta(0):
            return f"{span // size}{word}"
    return f"{span.total_seconds():.6f}".rstrip("0").rstrip(".") + "s"


def timestamp(moment: datetime | None) -> str:
    """Return the date and the minute of a moment on its own clock, for tables; a dash where there is none."""
    return NOTHING if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def time_format(interval: timedelta) -> str:
    """Return the `strftime` format for the time of day of moments so far apart; empty for whole days."""
    return "" if interval % _DAY == timedelta(0) else _finest_format(interval)


def shared_time_format(moments: Sequence[datetime]) -> str:
    """Return the `strftime` format for the time of day of these moments; empty where all of them share it."""
    times = {moment.time() for moment in moments}
    if len(times) == 1:
        return ""
    parts = (timedelta(seconds=time.second, microseconds=time.microsecond) for time in times)
    return max((_finest_format(part) for part in parts), key=len)


def _finest_format(span: timedelta) -> str:
    if span % _SECOND:
        return "%H:%M:%S.%f"
    return "%H:%M:%S" if span % _MINUTE else "%H:%M"


def is_repeated(moment: datetime) -> bool:
    """Return whether the clock of its zone shows this time twice, as in autumn."""
    first, second = (moment.replace(fold=fold).utcoffset() for fold in (0, 1))
    return first is not None and second is not None and first > second  # less where it shows a time not at all


def format_time(moment: datetime, form: str) -> str:
    """Return a local time as `strftime` writes it, with its UTC offset where the clock shows that time twice."""
    words = moment.strftime(form).strip()
    return f"{words} {utc_offset(moment)}" if "%H" in form and is_repeated(moment) else words


def date_time(moment: datetime, interval: timedelta) -> str:
    """Return a local time with its date, and with the clock unless moments are whole days apart."""
    return format_time(moment, f"%d %b %Y {time_format(interval)}")


def distinct_times(moments: Sequence[datetime], form: str) -> list[str]:
    """Return several local times as `strftime` writes them, with UTC offsets where two would look alike."""
    names: dict[str, None] = {}
    for moment in moments:
        name = format_time(moment, form)
        if name in names:  # days of 24 hours each: where the clock changes, two of them begin on one date
            name = f"{name} {utc_offset(moment)}"
        names[name] = None
    return list(names)


def utc_offset(moment: datetime) -> str:
    """Return the UTC offset of a local time, such as UTC−07:00."""
    offset = moment.utcoffset() or timedelta(0)
    hours, minutes = divmod(round(abs(offset) / _MINUTE), 60)
    sign = "\N{MINUS SIGN}" if offset < timedelta(0) else "+"
    return f"UTC{sign}{hours:02}:{minutes:02}"
