"""Moments keep their order and their wall clock, whatever zone the sensors live in."""

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.times import TimeAxis, standard_offset, zone_from_name

HOUR = timedelta(hours=1)
# Both hemispheres, a half-hour change, a change at midnight, a zone that calls summer its standard time, and none.
ZONES = (
    "America/Los_Angeles",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Sao_Paulo",
    "Europe/Dublin",
    "Asia/Kolkata",
    "UTC-08:00",
    "UTC",
)
INTERVALS = st.integers(1, 3 * 86_400_000_000).map(lambda micro: timedelta(microseconds=micro))


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


@st.composite
def axes(draw: st.DrawFn) -> TimeAxis:
    start = draw(st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC)))
    return TimeAxis(start, draw(INTERVALS), draw(st.integers(0, 20)), draw(st.sampled_from(ZONES)))


@given(st.text(max_size=20) | st.text("UTCGMZ+-:0123456789", max_size=10))
@example("America")
@example("../../etc/passwd")
@example("tzdata.zi")
@example("a\0b")
@example("x" * 5000)
def test_any_text_is_a_zone_or_refused_in_plain_words(name: str) -> None:
    try:
        assert isinstance(zone_from_name(name), tzinfo)
    except InputError as refusal:
        assert "America/Los_Angeles" in str(refusal)


@pytest.mark.parametrize("name", ["UTC-08:00\n", " UTC", "UTC+24:00", "UTC-00:60", "utc minus 8", ""])
def test_texts_that_are_no_zone_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="no time zone"):
        zone_from_name(name)


@given(st.sampled_from("+-"), st.integers(0, 23), st.integers(0, 59), st.sampled_from(["UTC", "GMT", ""]))
def test_a_fixed_offset_is_what_it_says_in_every_spelling(sign: str, hours: int, minutes: int, word: str) -> None:
    offset = (1 if sign == "+" else -1) * timedelta(hours=hours, minutes=minutes)
    spellings = [f"{word}{sign}{hours:02d}:{minutes:02d}", f"{word}{sign}{hours:02d}{minutes:02d}"]
    if minutes == 0:
        spellings.append(f"{word}{sign}{hours}")
    for name in spellings:
        assert zone_from_name(name).utcoffset(None) == offset


def test_every_zone_of_the_world_is_known() -> None:
    for name in available_timezones():
        assert zone_from_name(name).utcoffset(datetime(2020, 7, 1)) == ZoneInfo(name).utcoffset(datetime(2020, 7, 1))


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("America/Los_Angeles", "UTC-08:00"),
        ("America/St_Johns", "UTC-03:30"),
        ("Australia/Sydney", "UTC+10:00"),  # January is summer there
        ("Australia/Lord_Howe", "UTC+10:30"),
        ("Europe/Dublin", "UTC"),  # zoneinfo calls Irish summer time the standard, and winter a saving of -1 h
        ("Europe/London", "UTC"),
        ("Asia/Kathmandu", "UTC+05:45"),
        ("Asia/Seoul", "UTC+09:00"),
        ("Africa/Casablanca", "UTC+01:00"),  # goes back for Ramadan, in spring
        ("UTC-08:00", "UTC-08:00"),
        ("UTC+0530", "UTC+05:30"),
        ("UTC", "UTC"),
    ],
)
def test_standard_time_is_winter_time(name: str, offset: str) -> None:
    assert standard_offset(name, 2020) == offset
    assert standard_offset(offset, 2020) == offset


@given(st.sampled_from(sorted(available_timezones())), st.integers(1970, 2037))
def test_standard_time_is_kept_in_january_or_july_and_is_no_later_than_either(name: str, year: int) -> None:
    offset = zone_from_name(standard_offset(name, year)).utcoffset(None)
    kept = [datetime(year, month, 1, tzinfo=ZoneInfo(name)).utcoffset() for month in (1, 7)]
    # A fixed offset has whole minutes; a few zones once had seconds.
    assert any(timedelta(0) <= one - offset < timedelta(minutes=1) for one in kept)
    assert all(offset <= one for one in kept)


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": datetime(2020, 1, 1)},
        {"start": datetime(2020, 1, 1, tzinfo=timezone(HOUR))},
        {"interval": timedelta(0)},
        {"interval": -HOUR},
        {"length": -1},
    ],
)
def test_an_axis_that_makes_no_sense_is_a_programming_mistake(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {"start": utc(2020, 1, 1), "interval": HOUR, "length": 3}
    TimeAxis(**right)
    with pytest.raises(ValueError, match="axis"):
        TimeAxis(**right | wrong)


def test_an_unknown_zone_is_the_users_mistake() -> None:
    with pytest.raises(InputError, match="Atlantis"):
        TimeAxis(utc(2020, 1, 1), HOUR, 3, "Europe/Atlantis")


def test_a_start_in_a_zone_that_happens_to_be_at_utc_becomes_utc() -> None:
    london = TimeAxis(datetime(2020, 1, 1, tzinfo=ZoneInfo("Europe/London")), HOUR, 3)
    assert london == TimeAxis(utc(2020, 1, 1), HOUR, 3)
    assert (london.start + timedelta(days=200)).utcoffset() == timedelta(0)


@given(axes())
def test_moments_are_the_start_and_so_many_intervals_in_both_clocks(axis: TimeAxis) -> None:
    moments = [axis.start + row * axis.interval for row in range(axis.length)]
    assert axis.utc.tolist() == [moment.replace(tzinfo=None) for moment in moments]
    zone = zone_from_name(axis.zone)
    assert [stamp.isoformat() for stamp in axis.local] == [moment.astimezone(zone).isoformat() for moment in moments]
    assert axis.end == axis.start + axis.length * axis.interval


@given(axes(), st.integers(-5, 25), st.integers(-5, 25))
def test_a_slice_goes_on_at_the_same_pace(axis: TimeAxis, start: int, stop: int) -> None:
    rows = range(start, stop)
    part = axis.slice(start, stop)
    assert part.utc.tolist() == [(axis.start + row * axis.interval).replace(tzinfo=None) for row in rows]
    assert (part.interval, part.zone) == (axis.interval, axis.zone)


def test_rows_counted_by_numpy_give_the_same_axis() -> None:
    axis = TimeAxis(utc(2020, 1, 1), HOUR, 10)
    part = axis.slice(np.int64(2), np.int64(7))
    assert part == axis.slice(2, 7)
    assert type(part.length) is int  # a numpy integer would not go into JSON, and so into no fingerprint


def test_nobody_can_change_an_axis() -> None:
    axis = TimeAxis(utc(2020, 1, 1), HOUR, 3)
    with pytest.raises(FrozenInstanceError):
        axis.length = 4  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        axis.utc[0] += np.timedelta64(1, "h")


@given(axes(), st.floats(-3, 25), st.booleans())
def test_the_index_of_a_moment_is_the_first_row_at_or_after_it(axis: TimeAxis, rows: float, is_exact: bool) -> None:
    moment = axis.start + (int(rows) if is_exact else rows) * axis.interval
    at_or_after, after = axis.index_of(moment), axis.index_after(moment)
    assert axis.start + (at_or_after - 1) * axis.interval < moment <= axis.start + at_or_after * axis.interval
    assert axis.start + (after - 1) * axis.interval <= moment < axis.start + after * axis.interval
    assert axis.index_of(moment.isoformat()) == at_or_after


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("minutes", [5, 30, 60, 120])
def test_a_wall_clock_time_names_the_rows_that_showed_it(zone: str, minutes: int) -> None:
    # 2018: both changes of every zone of the list lie in this year.
    axis = TimeAxis(utc(2018, 1, 1), timedelta(minutes=minutes), 366 * 1440 // minutes, zone)
    walls = axis.local.tz_localize(None)
    rows = pd.Series(np.arange(len(walls)), walls).groupby(level=0)
    first, last = rows.min(), rows.max()
    repeated = walls[walls.duplicated()]
    change = {"Australia/Lord_Howe": 30, "Asia/Kolkata": 0, "UTC-08:00": 0, "UTC": 0}.get(zone, 60)
    assert (len(repeated) > 0) == (change >= minutes)
    for wall in [*walls[:: max(1, len(walls) // 50)], *repeated]:
        assert axis.index_of(str(wall)) == first[wall]
        assert axis.index_after(str(wall)) == last[wall] + 1


@pytest.mark.parametrize(
    ("zone", "skipped", "next_hour"),
    [
        ("America/Los_Angeles", "2020-03-08T02:30", utc(2020, 3, 8, 10)),
        ("Europe/Dublin", "2020-03-29T01:30", utc(2020, 3, 29, 1)),
        ("Australia/Sydney", "2020-10-04T02:30", utc(2020, 10, 3, 16)),
    ],
)
def test_a_time_that_the_clock_skipped_lies_between_two_rows(zone: str, skipped: str, next_hour: datetime) -> None:
    axis = TimeAxis(next_hour - 50 * HOUR, HOUR, 100, zone)
    assert axis.index_of(skipped) == axis.index_after(skipped) == 50


def test_a_date_begins_at_its_midnight_and_ends_before_the_next() -> None:
    axis = TimeAxis(utc(2020, 3, 7, 8), HOUR, 24 + 23 + 24, "America/Los_Angeles")
    assert [axis.index_of(day) for day in ("2020-03-07", "2020-03-08", "2020-03-09")] == [0, 24, 47]
    assert [axis.index_after(day) for day in ("2020-03-06", "2020-03-07", "2020-03-08", "2020-03-09")] == [
        0,
        24,
        47,
        71,
    ]
    assert axis.index_after(datetime(2020, 3, 8)) == 25  # a moment is a moment, not a day


@pytest.mark.parametrize(
    "text",
    ["", "NaT", "now", "today", "yesterday", "2020-13-01", "2020-02-30", "10/08/2020", "2020-10", "9999-12-31T23:59"],
)
def test_what_is_no_time_is_refused_in_plain_words(text: str) -> None:
    axis = TimeAxis(utc(2020, 1, 1), HOUR, 3, "America/Los_Angeles")
    for find in (axis.index_of, axis.index_after):
        with pytest.raises(InputError, match="is not a time"):
            find(text)
        with pytest.raises(InputError, match="is not a time"):
            find(pd.NaT)


@given(st.text(max_size=12) | st.text("0123456789-:T+Z. ", max_size=24))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    axis = TimeAxis(utc(2020, 1, 1), HOUR, 3, "Europe/Dublin")
    for find in (axis.index_of, axis.index_after):
        try:
            assert type(find(text)) is int
        except InputError as refusal:
            assert "is not a time" in str(refusal)
