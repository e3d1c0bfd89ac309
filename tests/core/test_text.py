"""Numbers, durations and times as text: small numbers keep their significant digits, no two moments look alike."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from candor.core.text import (
    distinct_times,
    duration,
    format_time,
    is_repeated,
    number,
    rounded_percent,
    shared_time_format,
    significant,
    time_format,
    time_unit,
    timestamp,
)
from candor.data.times import TimeAxis

ZONES = ("America/Los_Angeles", "Europe/Dublin", "Australia/Lord_Howe", "Atlantic/Azores", "Asia/Kolkata", "UTC-08:00")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.918, 3, "0.918"), (0.05, 3, "0.050"), (-0.00012345, 3, "-0.000123"), (0.0042, 2, "0.0042"),
        (0.0, 3, "0.000"), (1e-30, 3, "0.000000000000"), (12345.678, 1, "12,345.7"), (5.4, 0, "5"), (0.04, 1, "0.04"),
        (None, 3, "–"), (float("nan"), 3, "–"),
    ],
)  # fmt: skip
def test_small_numbers_keep_the_digits_that_count(value: float | None, digits: int, text: str) -> None:
    assert number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (12345.678, 3, "12,346"), (-4139.52, 6, "-4,139.52"), (0.918, 3, "0.918"), (2.53e-9, 3, "0.00000000253"),
        (0.0, 3, "0"), (1e-30, 3, "0.000000000000"),
    ],
)  # fmt: skip
def test_numbers_are_written_with_the_digits_that_count(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


def test_a_little_is_not_called_nothing() -> None:
    shares = {0.0: "0 %", 0.0004: "under 0.1 %", 0.0123: "1.2 %", 0.174: "17 %", 0.996: "100 %", 1.0: "100 %"}
    assert {share: rounded_percent(share) for share in shares} == shares
    assert rounded_percent(0.1237, 3) == "12.4 %"


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(minutes=5), "5 min"),
        (timedelta(minutes=90), "1.5 h"),
        (timedelta(days=14), "14 d"),
        (timedelta(seconds=30), "30 s"),
        (timedelta(milliseconds=250), "0.25 s"),
        (-timedelta(hours=2), "-2 h"),
    ],
)
def test_spans_in_words(span: timedelta, words: str) -> None:
    assert duration(span) == words


def moments(start: datetime, interval: timedelta, length: int, zone: str) -> list[datetime]:
    return list(TimeAxis(start, interval, length, zone).local.to_pydatetime())


@pytest.mark.parametrize("zone", ZONES)
def test_a_time_is_repeated_where_a_year_shows_it_twice(zone: str) -> None:
    times = moments(datetime(2024, 1, 1, tzinfo=UTC), timedelta(minutes=15), 366 * 96, zone)
    shown = Counter(moment.replace(tzinfo=None) for moment in times)
    repeated = [moment for moment in times if is_repeated(moment)]
    assert repeated == [moment for moment in times if shown[moment.replace(tzinfo=None)] == 2]
    assert len(repeated) == {"Asia/Kolkata": 0, "UTC-08:00": 0, "Australia/Lord_Howe": 4}.get(zone, 8)


def test_the_two_hours_of_autumn_differ_by_their_offsets() -> None:
    times = moments(datetime(2024, 11, 3, 7, 30, tzinfo=UTC), timedelta(hours=1), 4, "America/Los_Angeles")
    names = [format_time(moment, "%d %b %H:%M") for moment in times]
    assert names == ["03 Nov 00:30", "03 Nov 01:30 UTC−07:00", "03 Nov 01:30 UTC−08:00", "03 Nov 02:30"]
    assert format_time(times[1], "%d %b ") == "03 Nov"  # a date does not need it


@pytest.mark.parametrize("interval", [timedelta(days=1), timedelta(hours=1), timedelta(seconds=10)])
def test_no_two_moments_share_a_name(interval: timedelta) -> None:
    count = min(40, int(timedelta(days=40) / interval))
    times = moments(datetime(2024, 11, 3, 7, 0, tzinfo=UTC), interval, count, "America/Los_Angeles")
    names = distinct_times(times, f"%d %b %Y {time_format(interval)}")
    assert len(set(names)) == len(names) == count
    assert all(earlier.timestamp() < later.timestamp() for earlier, later in pairwise(times))


def test_the_clock_is_written_as_far_as_it_differs() -> None:
    forms = {172800: "", 3600: "%H:%M", 300: "%H:%M", 10: "%H:%M:%S", 0.5: "%H:%M:%S.%f"}
    start = datetime(2024, 3, 1, 8, tzinfo=UTC)
    for seconds, form in forms.items():
        interval = timedelta(seconds=seconds)
        assert time_format(interval) == form
        assert shared_time_format([start + step * interval for step in range(4)]) == form


def test_a_span_is_counted_in_the_largest_unit_that_fits_into_it() -> None:
    minute = timedelta(minutes=1)
    for span, name, length in (
        (1440 * minute, "days", timedelta(days=1)), (1439 * minute, "hours", 60 * minute), (minute, "minutes", minute),
        (minute / 100, "seconds", minute / 60), (2e6 * minute, "days", timedelta(days=1)),
    ):  # fmt: skip
        assert time_unit(span) == (name, length)


def test_a_moment_that_is_unknown_is_a_dash_in_tables() -> None:
    assert (timestamp(datetime(2024, 5, 3, 7, 5, 59, tzinfo=UTC)), timestamp(None)) == ("2024-05-03 07:05", "–")
