"""Times as they are written: no two moments of a clock that changes look alike, and seconds stand where they count."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from candor.data.clock import clock_form, clock_of, is_repeated, written, written_apart
from candor.data.times import TimeAxis

ZONES = ("America/Los_Angeles", "Europe/Dublin", "Australia/Lord_Howe", "Atlantic/Azores", "Asia/Kolkata", "UTC-08:00")


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
    names = [written(moment, "%d %b %H:%M") for moment in times]
    assert names == ["03 Nov 00:30", "03 Nov 01:30 UTC−07:00", "03 Nov 01:30 UTC−08:00", "03 Nov 02:30"]
    assert written(times[1], "%d %b ") == "03 Nov"  # a date does not need it


@pytest.mark.parametrize("interval", [timedelta(days=1), timedelta(hours=1), timedelta(seconds=10)])
def test_no_two_moments_share_a_name(interval: timedelta) -> None:
    count = min(40, int(timedelta(days=40) / interval))
    times = moments(datetime(2024, 11, 3, 7, 0, tzinfo=UTC), interval, count, "America/Los_Angeles")
    names = written_apart(times, f"%d %b %Y {clock_form(interval)}")
    assert len(set(names)) == len(names) == count
    assert all(earlier.timestamp() < later.timestamp() for earlier, later in pairwise(times))


def test_the_clock_is_written_as_far_as_it_differs() -> None:
    forms = {172800: "", 3600: "%H:%M", 300: "%H:%M", 10: "%H:%M:%S", 0.5: "%H:%M:%S.%f"}
    start = datetime(2024, 3, 1, 8, tzinfo=UTC)
    for seconds, form in forms.items():
        interval = timedelta(seconds=seconds)
        assert clock_form(interval) == form
        assert clock_of([start + step * interval for step in range(4)]) == form
