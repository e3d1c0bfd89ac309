"""A moment written in any of the ways people write it is read as that moment, or as no moment at all."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.readers.readings import Stamps
from candor.data.readers.stamps import StampReader, count_times, looks_like_time

MOMENTS = st.datetimes(datetime(1901, 1, 1), datetime(2099, 12, 31))


def reader_of(cells: Sequence[object], size: int = 10_000, **options: Any) -> StampReader:
    column = pa.array(cells)

    def batches() -> Iterator[pa.Array]:
        return (column.slice(first, size) for first in range(0, len(column), size))

    return StampReader(batches, "the file", **options)


def read(cells: Sequence[object], **options: Any) -> Stamps:
    return reader_of(cells, **options).read(pa.array(cells))


def as_stamps(moments: Sequence[datetime | date | None]) -> Stamps:
    return np.array(moments, "datetime64[us]")


def on_twelve_hours(moment: datetime) -> str:
    half = "PM" if moment.hour >= 12 else "AM"
    return f"{moment:%m/%d/%Y} {(moment.hour - 1) % 12 + 1}:{moment:%M:%S} {half}"


# Each way of writing, and how finely it tells the time.
NAIVE = {
    "iso": (lambda m: m.isoformat(), "us"),
    "iso with a blank": (lambda m: m.isoformat(" ", "seconds"), "s"),
    "milliseconds": (lambda m: m.isoformat(" ", "milliseconds"), "ms"),
    "comma before the fraction": (lambda m: m.isoformat(" ", "milliseconds").replace(".", ","), "ms"),
    "minutes": (lambda m: f"{m:%Y-%m-%d %H:%M}", "m"),
    "hours": (lambda m: f"{m:%Y-%m-%dT%H}", "h"),
    "date": (lambda m: f"{m:%Y-%m-%d}", "D"),
    "slashes without zeros": (lambda m: f"{m.year}/{m.month}/{m.day} {m.hour}:{m:%M}", "m"),
    "points": (lambda m: f"{m:%Y.%m.%d %H:%M:%S}", "s"),
    "day first": (lambda m: f"{m:%d.%m.%Y %H:%M}", "m"),
    "blanks around": (lambda m: f"  {m:%Y-%m-%d   %H:%M:%S} ", "s"),
    "digits to the day": (lambda m: f"{m:%Y%m%d}", "D"),
    "digits to the hour": (lambda m: f"{m:%Y%m%d%H}", "h"),
    "digits to the minute": (lambda m: f"{m:%Y%m%d%H%M}", "m"),
    "digits to the second": (lambda m: f"{m:%Y%m%d%H%M%S}", "s"),
    "digits with a T": (lambda m: f"{m:%Y%m%dT%H%M%S}", "s"),
    "whole numbers": (lambda m: int(f"{m:%Y%m%d%H%M}"), "m"),
}


@pytest.mark.parametrize("way", NAIVE)
@settings(max_examples=12)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=20))
def test_a_moment_without_zone_comes_back_as_finely_as_it_was_written(moments: list[datetime], way: str) -> None:
    write, unit = NAIVE[way]
    reader = reader_of([write(moment) for moment in moments])
    stamps = reader.read(pa.array([write(moment) for moment in moments]))
    assert not reader.has_zone
    np.testing.assert_array_equal(stamps, as_stamps(moments).astype(f"datetime64[{unit}]"))


@pytest.mark.parametrize("is_day_first", [True, False])
@settings(max_examples=50)
@given(moments=st.lists(MOMENTS, min_size=1, max_size=20))
def test_the_option_settles_what_slashes_mean(moments: list[datetime], is_day_first: bool) -> None:
    texts = [f"{m:%d/%m/%Y %H:%M:%S}" if is_day_first else on_twelve_hours(m) for m in moments]
    stamps = read(texts, day_first=is_day_first)
    np.testing.assert_array_equal(stamps, as_stamps(moments).astype("datetime64[s]"))


@settings(max_examples=50)
@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=20),
    minutes=st.lists(st.integers(-12 * 60, 14 * 60), min_size=1, max_size=3),
    style=st.sampled_from(["{0:%z}", "{1}", " {0:%z}"]),
)
def test_offsets_lead_to_utc_even_when_they_differ(moments: list[datetime], minutes: list[int], style: str) -> None:
    zones = [timezone(timedelta(minutes=offset)) for offset in minutes]
    local = [moment.replace(tzinfo=zones[i % len(zones)]) for i, moment in enumerate(moments)]
    texts = [f"{m:%Y-%m-%dT%H:%M:%S}" + style.format(m, m.isoformat()[-6:]) for m in local]
    reader = reader_of(texts)
    assert reader.has_zone
    expected = as_stamps([m.astimezone(UTC).replace(tzinfo=None) for m in local]).astype("datetime64[s]")
    np.testing.assert_array_equal(reader.read(pa.array(texts)), expected)
    assert set(reader.zones) == {str(moment.tzinfo) for moment in local}


@pytest.mark.parametrize("end", ["Z", "z", "+00", "+0000", " UTC", " GMT", "+00:00"])
def test_utc_has_many_names(end: str) -> None:
    reader = reader_of([f"2020-03-04 05:06:07{end}"])
    assert reader.has_zone
    assert reader.read(pa.array([f"2020-03-04 05:06:07{end}"]))[0] == np.datetime64("2020-03-04T05:06:07")
    assert reader.zones == ("UTC",)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("kind", [int, str])
@settings(max_examples=12)
@given(seconds=st.lists(st.integers(10**8, 4 * 10**9), min_size=1, max_size=10), extra=st.integers(0, 999))
def test_counts_since_1970_are_exact_in_every_unit(
    unit: str, factor: int, kind: Any, seconds: list[int], extra: int
) -> None:
    numbers = [second * factor + (extra if factor > 1 else 0) for second in seconds]
    stamps = read([kind(number) for number in numbers])
    microseconds = [second * 10**6 + (extra * 10**6 // factor if factor > 1 else 0) for second in seconds]
    np.testing.assert_array_equal(stamps, np.array(microseconds).astype("datetime64[us]"))


def test_one_impossible_date_does_not_make_counts_of_the_others() -> None:
    texts = [f"20200301{hour:02}" for hour in range(24)]
    stamps = read([*texts, "2020023006"])
    np.testing.assert_array_equal(stamps[:24], np.datetime64("2020-03-01T00", "us") + np.arange(24) * 3_600_000_000)
    assert np.isnat(stamps[24])


def test_one_word_among_counts_costs_the_others_no_precision() -> None:
    stamps = read(["1583020800123456789", "none", "1583020801123456789"])
    np.testing.assert_array_equal(stamps, np.array([1583020800123456, "NaT", 1583020801123456], "datetime64[us]"))


def test_seconds_with_a_fraction_are_read_to_the_microsecond() -> None:
    expected = as_stamps([datetime(2020, 3, 1, 0, 0, 0, 250_000), datetime(2020, 3, 1, 0, 0, 1)])
    np.testing.assert_array_equal(read(["1583020800.25", "1583020801.0"]), expected)
    np.testing.assert_array_equal(read([1583020800.25, 1583020801.0]), expected)


@pytest.mark.parametrize(
    "cell",
    [
        *("2020-02-30", "2020-13-01", "2020-00-10", "2020-01-00", "2020-01-01 25:00", "2020-01-01 12:60"),
        *("2020-01-01 24:01", "2020-01-01 13:00 PM", "2020-01-01 00:30 AM", "2020-01-01 06:00 extra", "2020-01-01T"),
        *("soon", "", "2020", None),
    ],
)
def test_what_is_no_moment_is_not_made_into_one(cell: str | None) -> None:
    good = ["2020-03-04 05:00", "2020-03-04 06:00"]
    stamps = read([good[0], cell, good[1]])
    assert np.isnat(stamps).tolist() == [False, True, False]


def test_midnight_may_be_written_as_the_24th_hour() -> None:
    assert read(["2020-12-31 24:00"])[0] == np.datetime64("2021-01-01")


def test_noon_and_midnight_on_a_clock_of_twelve_hours() -> None:
    texts = ["2020-03-25 12:05 AM", "2020-03-25 12:05 PM", "2020-03-25 1:05 p.m.", "2020-03-25 1:05\u202fam"]
    assert [str(stamp)[11:16] for stamp in read(texts)] == ["00:05", "12:05", "13:05", "01:05"]


@settings(max_examples=50)
@given(start=st.dates(date(1990, 1, 1), date(2030, 1, 1)), hours=st.integers(36, 400), is_day_first=st.booleans())
def test_a_continuous_record_of_slashes_needs_no_option(start: date, hours: int, is_day_first: bool) -> None:
    form = "%d/%m/%Y %H:%M" if is_day_first else "%m/%d/%Y %H:%M"
    moments = [datetime.combine(start, datetime.min.time()) + timedelta(hours=hour) for hour in range(hours)]
    reader = reader_of(texts := [f"{moment:{form}}" for moment in moments])
    np.testing.assert_array_equal(reader.read(pa.array(texts)), as_stamps(moments))
    # A guess is owned up to: it is one if no day of the record could not also be a month.
    assert bool(reader.guess) == all(moment.day <= 12 for moment in moments)


def test_the_whole_file_decides_which_number_is_the_day() -> None:
    early = [f"03/04/2020 {hour:02}:{minute:02}" for hour in range(24) for minute in range(60)]
    for size in (1, 100, 10_000):
        assert reader_of([*early, "25/04/2020 00:00"], size).read(pa.array(early))[0] == np.datetime64("2020-04-03")
        assert reader_of([*early, "04/25/2020 00:00"], size).read(pa.array(early))[0] == np.datetime64("2020-03-04")


@pytest.mark.parametrize(
    "texts",
    [
        ["03/04/2020 05:00", "03/04/2020 06:00"],
        [f"01/{month:02}/2020" for month in range(1, 13)],  # the first of each month, or twelve days of January
        [f"{month}/1/2020 00:00" for month in range(1, 13)],
        ["03/04/2020", "04/03/2020"],
    ],
)
def test_dates_that_may_be_read_both_ways_are_refused(texts: list[str]) -> None:
    with pytest.raises(InputError, match="day/month or month/day") as refusal:
        read(texts)
    assert "--day-first" in refusal.value.hint


def test_a_date_that_is_the_same_both_ways_is_not_refused() -> None:
    assert read(["04/04/2020 05:00"])[0] == np.datetime64("2020-04-04T05:00")


def test_dates_in_both_orders_are_refused() -> None:
    with pytest.raises(InputError, match="day first and others the month"):
        read(["25/03/2020", "03/25/2020", "03/04/2020"])


def test_times_with_and_without_a_zone_are_refused_together() -> None:
    with pytest.raises(InputError, match="some times carry a zone"):
        read(["2020-03-04 05:00", "2020-03-04 05:00Z"])


def test_few_times_of_the_other_kind_are_no_moments() -> None:
    texts = [f"2020-03-04 05:{minute:02}" for minute in range(30)]
    assert np.isnat(read([*texts, "2020-03-04 05:30Z"])).tolist() == [False] * 30 + [True]
    assert np.isnat(read([*(f"{text}Z" for text in texts), "2020-03-04 05:30"])).tolist() == [False] * 30 + [True]


def test_an_offset_of_a_day_or_more_is_none() -> None:
    texts = ["2020-03-04 05:00+23:59", "2020-03-04 05:00+23:60", "2020-03-04 05:00-99:00"]
    assert np.isnat(read(texts)).tolist() == [False, True, True]


@pytest.mark.parametrize("cells", [["soon", "later"], [1, 2, 3], [1.5, 2.5], ["12:00", "13:00"], ["43831.25"]])
def test_a_column_without_any_time_is_refused_with_an_example(cells: list[Any]) -> None:
    with pytest.raises(InputError, match="no known form of time") as refusal:
        read(cells)
    assert str(cells[0]) in refusal.value.what


def test_an_empty_column_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        read([None, None])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Seoul"])
def test_typed_times_keep_their_moments(unit: str, zone: str | None) -> None:
    moments = pd.DatetimeIndex(["2020-03-01", "2020-07-01 06:00:03", pd.NaT]).as_unit(unit)
    column = pa.array(moments.tz_localize("UTC").tz_convert(zone) if zone else moments)
    reader = StampReader(lambda: iter([column]), "the file")
    assert reader.has_zone == (zone is not None) and reader.zones == (() if zone is None else (zone,))
    np.testing.assert_array_equal(reader.read(column), moments.as_unit("us").to_numpy())


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_typed_dates_are_their_midnights(kind: pa.DataType) -> None:
    column = pa.array([date(2020, 2, 29), None], kind)
    stamps = StampReader(lambda: iter([column]), "the file").read(column)
    np.testing.assert_array_equal(stamps, np.array(["2020-02-29", "NaT"], "datetime64[us]"))


def test_what_looks_like_a_time() -> None:
    assert looks_like_time(["2020-03-04 05:00", "3/4/2020", "no"])
    assert not looks_like_time(["1.5", "20200304", "1583020800", "12:00"])
    assert looks_like_time(["20200304", "1583020800", "20200304T0500Z"], or_number=True)
    assert not looks_like_time([])


def test_only_whole_cells_that_are_real_dates_count_as_times() -> None:
    assert count_times(["2020-03-04", "3/25/2020", "25.3.2020 05:00"]) == 3
    assert count_times(["time", "12-34-5678", "2020-03-04 new", "2020-02-30", "7"]) == 0
