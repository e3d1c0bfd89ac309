"""Calendar positions are those of a clock on the wall beside the sensors."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.data.findings import Findings
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.times import DAY, WEEKS_PER_YEAR, TimeAxis, calendar_of, zone_from_name

ZONES = ("America/Los_Angeles", "Europe/Dublin", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC-08:00", "UTC")
SPANS = st.sampled_from([1, 300, 900, 3600, 5400, 7200, 43_200]) | st.integers(1, 86_399)


@given(
    st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC)),
    SPANS,
    st.sampled_from(ZONES),
)
def test_bins_are_those_of_zoneinfo_arithmetic(start: datetime, seconds: int, zone: str) -> None:
    axis = TimeAxis(start, timedelta(seconds=seconds), 40, zone)
    calendar = calendar_of(axis)
    for row in range(axis.length):
        local = (start + row * axis.interval).astimezone(zone_from_name(zone))
        since_midnight = local.hour * 3600 + local.minute * 60 + local.second
        assert calendar.time_of_day[row] == 288 * since_midnight // 86400
        assert calendar.day_of_week[row] == local.isoweekday() - 1


@given(st.integers(-3000, 3000), st.integers(0, 86_399), st.sampled_from(ZONES), st.sampled_from([1, 2, 7]))
def test_daily_data_are_in_bin_zero_at_whatever_hour_they_are_stamped(
    day: int, seconds: int, zone: str, days: int
) -> None:
    start = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day, seconds=seconds)
    calendar = calendar_of(TimeAxis(start, days * DAY, 20, zone))
    assert (calendar.time_of_day == 0).all()
    first = start.astimezone(zone_from_name(zone)).weekday()
    assert calendar.day_of_week[0] == first


def test_monday_is_zero() -> None:
    axis = TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), DAY, 8)  # a Monday
    assert calendar_of(axis).day_of_week.tolist() == [0, 1, 2, 3, 4, 5, 6, 0]


def test_weeks_are_counted_from_the_first_of_january() -> None:
    leap, common = (calendar_of(TimeAxis(datetime(year, 1, 1, tzinfo=UTC), DAY, 367)) for year in (2024, 2025))
    assert leap.week_of_year[:8].tolist() == [0] * 7 + [1]
    assert leap.week_of_year[363:].tolist() == [51, 52, 52, 0]  # 31 December is day 366
    assert common.week_of_year[363:].tolist() == [51, 52, 0, 0]
    assert leap.week_of_year.max() == WEEKS_PER_YEAR - 1


@pytest.mark.parametrize(("zone", "weeks"), [("Pacific/Kiritimati", [52, 0, 0]), ("America/Los_Angeles", [52, 52, 52])])
def test_the_year_begins_when_the_local_clock_says_so(zone: str, weeks: list[int]) -> None:
    axis = TimeAxis(
        datetime(2024, 12, 31, 9, 59, tzinfo=UTC), timedelta(minutes=1), 3, zone
    )  # 14 hours ahead, 8 behind
    assert calendar_of(axis).week_of_year.tolist() == weeks


@given(
    st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC)),
    st.sampled_from([3600, 86_400, 7 * 86_400]),
    st.sampled_from(ZONES),
)
def test_weeks_are_those_of_the_local_day_of_the_year(start: datetime, seconds: int, zone: str) -> None:
    axis = TimeAxis(start, timedelta(seconds=seconds), 60, zone)
    weeks = calendar_of(axis).week_of_year
    for row in range(axis.length):
        day = (start + row * axis.interval).astimezone(zone_from_name(zone)).date()
        assert weeks[row] == (day - day.replace(month=1, day=1)).days // 7


def test_the_clock_jumps_in_spring_and_steps_back_in_autumn() -> None:
    zone = "America/Los_Angeles"
    spring = calendar_of(TimeAxis(datetime(2020, 3, 8, 8, tzinfo=UTC), timedelta(hours=1), 24, zone))
    assert (spring.time_of_day // 12).tolist() == [0, 1, *range(3, 24), 0]
    autumn = calendar_of(TimeAxis(datetime(2020, 11, 1, 7, tzinfo=UTC), timedelta(hours=1), 25, zone))
    assert (autumn.time_of_day // 12).tolist() == [0, 1, *range(1, 24)]
    assert (autumn.day_of_week == 6).all()


def test_an_empty_axis_has_an_empty_calendar() -> None:
    calendar = calendar_of(TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(hours=1), 0))
    assert len(calendar.time_of_day) == len(calendar.day_of_week) == 0


def test_metr_la_holds_the_hour_that_los_angeles_skipped(real_data: Path) -> None:
    stamps = pd.read_parquet(real_data / "metr-la.parquet").index
    assert pd.Timestamp("2012-03-11 02:00") in stamps
    with pytest.raises(ValueError, match="2012-03-11 02:00"):
        stamps.tz_localize(ZoneInfo("America/Los_Angeles"))
    axis = TimeAxis(datetime(2012, 3, 1, 8, tzinfo=UTC), timedelta(minutes=5), len(stamps), "UTC-08:00")
    assert (axis.local.tz_localize(None) == stamps).all()
    calendar = calendar_of(axis)
    np.testing.assert_array_equal(calendar.time_of_day, np.arange(len(stamps)) % 288)
    assert calendar.day_of_week[0] == 3  # 2012-03-01 was a Thursday


def test_pems_bay_lacks_the_hour_that_the_bay_skipped(real_data: Path) -> None:
    findings = Findings()
    options = ReadOptions(missing=(0.0,), zone="America/Los_Angeles")
    panel = read_panel(real_data / "pems-bay-16.parquet", options=options, findings=findings)
    assert panel.values.shape == (52_116, 16)  # 181 days of 288 less the twelve that no clock showed
    assert not [finding for finding in findings if "skips" in finding.what]
    wall = panel.times.local.tz_localize(None)
    stamps = pd.read_parquet(real_data / "pems-bay-16.parquet").index
    assert (wall == stamps).all()
    gap = (stamps >= "2017-03-12 02:00") & (stamps < "2017-03-12 03:00")
    assert not gap.any()
    bins = calendar_of(panel.times).time_of_day
    before = int(panel.times.index_of("2017-03-12 01:55"))
    assert bins[before : before + 2].tolist() == [23, 36]
