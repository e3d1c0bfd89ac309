"""How moments are written for people: on the local clock, with seconds where they matter.

In autumn the clock shows an hour twice. A time of that hour is written with its offset, so that both are told apart.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from candor.data.times import DAY

_MINUTE, _SECOND = timedelta(minutes=1), timedelta(seconds=1)


def clock_form(interval: timedelta) -> str:
    """Returns how `strftime` writes the time of day of moments so far apart; nothing for whole days."""
    return "" if interval % DAY == timedelta(0) else _finest(interval)


def clock_of(moments: Sequence[datetime]) -> str:
    """Returns how `strftime` writes the time of day of these moments; nothing where all of them share it."""
    times = {moment.time() for moment in moments}
    if len(times) == 1:
        return ""
    parts = (timedelta(seconds=time.second, microseconds=time.microsecond) for time in times)
    return max((_finest(part) for part in parts), key=len)


def _finest(span: timedelta) -> str:
    if span % _SECOND:
        return "%H:%M:%S.%f"
    return "%H:%M:%S" if span % _MINUTE else "%H:%M"


def is_repeated(moment: datetime) -> bool:
    """Returns whether the clock of its zone shows this time twice."""
    first, second = (moment.replace(fold=fold).utcoffset() for fold in (0, 1))
    return first is not None and second is not None and first > second  # less where it shows a time not at all


def written(moment: datetime, form: str) -> str:
    """Returns a moment as `strftime` writes it, with its offset where that could mean two moments."""
    words = moment.strftime(form).strip()
    return f"{words} {offset_in_words(moment)}" if "%H" in form and is_repeated(moment) else words


def written_apart(moments: Sequence[datetime], form: str) -> list[str]:
    """Returns what each of several moments is called; no two share a name."""
    names: dict[str, None] = {}
    for moment in moments:
        name = written(moment, form)
        if name in names:  # days of 24 hours each: where the clock changes, two of them begin on one date
            name = f"{name} {offset_in_words(moment)}"
        names[name] = None
    return list(names)


def offset_in_words(moment: datetime) -> str:
    """Returns how far the clock of a moment is from UTC, such as UTC−07:00."""
    offset = moment.utcoffset() or timedelta(0)
    hours, minutes = divmod(round(abs(offset) / _MINUTE), 60)
    sign = "\N{MINUS SIGN}" if offset < timedelta(0) else "+"
    return f"UTC{sign}{hours:02}:{minutes:02}"
