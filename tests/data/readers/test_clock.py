"""Times on a local clock come back as the moments they were, on the days the clock changes too."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from candor.data.findings import Findings, Level
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.readers.stamps import LocalClock, possible_moments

HOUR = timedelta(hours=1)
# Zones whose clocks change by an hour or by half an hour, in the north and in the south, at night and at midnight.
ZONES = ["Europe/Berlin", "America/Los_Angeles", "Australia/Lord_Howe", "America/Sao_Paulo", "Antarctica/Troll"]
STEPS = {HOUR: 366 * 24, timedelta(minutes=15): 366 * 96}
CHANGES = [datetime(2018, month, 1, tzinfo=UTC) for month in (2, 3, 4, 9, 10, 11)]


def moments(start: datetime, interval: timedelta, count: int) -> list[datetime]:
    return [start + step * interval for step in range(count)]


def on_the_wall(times: list[datetime], zone: str) -> list[str]:
    return [f"{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}" for moment in times]


def readings(count: int) -> NDArray[np.float32]:
    return np.arange(1, count + 1, dtype=np.float32)


def read_csv(folder: Path, frame: pd.DataFrame, zone: str | None) -> tuple[Panel, Findings]:
    frame.to_csv(folder / "readings.csv", index=False)
    findings = Findings()
    return read_panel(folder / "readings.csv", options=ReadOptions(zone=zone), findings=findings), findings


def warnings(findings: Findings) -> list[str]:
    return [finding.what for finding in findings if finding.level is not Level.NOTE]


@pytest.mark.parametrize(
    ("zone", "interval", "is_ascending"),
    [*((zone, HOUR, place % 2 == 0) for place, zone in enumerate(ZONES)),
     *((zone, timedelta(minutes=15), True) for zone in ("Europe/Berlin", "Australia/Lord_Howe"))],
)  # fmt: skip
def test_years_on_the_wall_are_the_same_years_in_utc(
    tmp_path: Path, zone: str, interval: timedelta, is_ascending: bool
) -> None:
    utc = pd.date_range("2016-01-01", periods=STEPS[interval], freq=interval, tz="UTC")
    wall = utc.tz_convert(zone).tz_localize(None)
    frame = pd.DataFrame({"time": wall, "a": readings(len(utc)), "b": readings(len(utc)) + 0.5})
    panel, findings = read_csv(tmp_path, frame if is_ascending else frame[::-1], zone)
    assert (panel.times.start, panel.times.interval, panel.times.zone) == (utc[0], interval, zone)
    np.testing.assert_array_equal(panel.values[:, 0], readings(len(utc)))
    np.testing.assert_array_equal(panel.values[:, 1], readings(len(utc)) + 0.5)
    assert warnings(findings) == []


@settings(max_examples=60)
@given(
    zone=st.sampled_from(ZONES),
    month=st.sampled_from(CHANGES),
    first=st.integers(0, 4 * 24 * 31),
    count=st.integers(30, 400),
    interval=st.sampled_from([HOUR, timedelta(minutes=30), timedelta(minutes=15)]),
    direction=st.sampled_from([1, -1]),
    by_sensor=st.booleans(),
)
def test_long_readings_on_the_wall_keep_their_moments_for_every_sensor(
    zone: str, month: datetime, first: int, count: int, interval: timedelta, direction: int, by_sensor: bool
) -> None:
    times = moments(month + first * timedelta(minutes=15), interval, count)[::direction]
    wall = on_the_wall(times, zone)
    parts = {name: pd.DataFrame({"time": wall, "sensor": name, "value": readings(count)}) for name in ("x", "y")}
    frame = pd.concat(parts.values()) if by_sensor else pd.concat(parts.values()).sort_index(kind="stable")
    panel = read_panel(frame.reset_index(drop=True), options=ReadOptions(zone=zone))
    earliest = min(times)
    # A record that begins or ends within a repeated hour does not show in which of the two.
    doubt = timedelta(hours=2) if panel.times.start != earliest or panel.times.length != count else timedelta(0)
    assert abs(panel.times.start - earliest) <= doubt
    if not doubt:
        np.testing.assert_array_equal(panel.values, np.stack([readings(count)[::direction]] * 2, axis=1))


def test_the_skipped_hour_is_no_time_and_is_counted(tmp_path: Path) -> None:
    wall = pd.date_range("2018-03-11 00:00", periods=24, freq="15min")  # 02:00 to 02:45 never came
    frame = pd.DataFrame({"time": wall, "a": readings(24)})
    panel, findings = read_csv(tmp_path, frame, "America/Los_Angeles")
    (warning,) = (finding for finding in findings if finding.level is Level.WARNING)
    assert "skips" in warning.what and warning.count == 4
    kept = np.r_[0:8, 12:24]
    np.testing.assert_array_equal(panel.values[:, 0], readings(24)[kept])


def test_a_clock_that_never_changes_loses_nothing(tmp_path: Path) -> None:
    wall = pd.date_range("2012-03-11 00:00", periods=24 * 12, freq="5min")
    panel, findings = read_csv(tmp_path, pd.DataFrame({"time": wall, "a": readings(288)}), "UTC-08:00")
    np.testing.assert_array_equal(panel.values[:, 0], readings(288))
    assert panel.times.start == datetime(2012, 3, 11, 8, tzinfo=UTC) and warnings(findings) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_repeated_hour_that_is_there_once_is_not_split_or_filled(seed: int) -> None:
    wall = pd.date_range("2018-10-28 00:00", periods=20, freq="15min")  # 02:00 to 02:45 came twice, recorded once
    frame = pd.DataFrame({"a": readings(20)}, index=wall)
    shuffled = frame.sample(frac=1, random_state=seed)
    panels = [read_panel(part, options=ReadOptions(zone="Europe/Berlin")) for part in (frame, shuffled)]
    assert panels[0].fingerprint == panels[1].fingerprint
    expected = np.r_[readings(12), [np.nan] * 4, readings(20)[12:]]
    np.testing.assert_array_equal(panels[0].values[:, 0], expected.astype(np.float32))


def test_a_record_may_begin_or_end_in_a_repeated_hour() -> None:
    for wall in (["01:00", "02:00", "02:00"], ["02:00", "02:00", "03:00"]):
        frame = pd.DataFrame({"a": readings(3)}, index=pd.DatetimeIndex([f"2018-10-28 {text}" for text in wall]))
        for part, values in ((frame, [1, 2, 3]), (frame.iloc[::-1], [1, 2, 3])):
            panel = read_panel(part, options=ReadOptions(zone="Europe/Berlin", interval=HOUR))
            np.testing.assert_array_equal(panel.values[:, 0], values)


def test_a_gap_in_the_first_pass_does_not_pull_the_second_pass_forward() -> None:
    wall = ["01:45", "02:00", "02:15", "02:00", "02:15", "02:30", "02:45", "03:00"]
    frame = pd.DataFrame({"a": readings(8)}, index=pd.DatetimeIndex([f"2018-10-28 {text}" for text in wall]))
    expected = np.array([1, 2, 3, np.nan, np.nan, 4, 5, 6, 7, 8], np.float32)
    for part in (frame, frame.iloc[::-1]):
        panel = read_panel(part, options=ReadOptions(zone="Europe/Berlin"))
        np.testing.assert_array_equal(panel.values[:, 0], expected)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "America/Los_Angeles"])
@pytest.mark.parametrize("is_aware", [True, False])
def test_days_stay_days_when_the_clock_changes(tmp_path: Path, zone: str, is_aware: bool) -> None:
    days = pd.date_range("2017-06-01", periods=500, freq="D")
    midnights = days.tz_localize(zone, nonexistent="shift_forward") if is_aware else days
    panel, findings = read_csv(tmp_path, pd.DataFrame({"date": midnights, "a": readings(500)}), zone)
    assert panel.times.interval == timedelta(days=1)
    assert panel.times.local.date.tolist() == days.date.tolist()
    np.testing.assert_array_equal(panel.values[:, 0], readings(500))
    assert warnings(findings) == []


EVERY_FEW_HOURS = st.sampled_from([timedelta(hours=hours) for hours in (1.5, 2, 3, 4, 6, 8, 12, 36)])


@settings(max_examples=25)
@given(
    zone=st.sampled_from(["Europe/Berlin", "America/Los_Angeles", "Australia/Lord_Howe", "America/Sao_Paulo"]),
    interval=EVERY_FEW_HOURS,
    first=st.datetimes(datetime(2016, 1, 1), datetime(2016, 12, 31)).map(lambda stamp: stamp.replace(microsecond=0)),
    late=st.sampled_from([0, 300]),
    form=st.sampled_from(["wide", "long"]),
)
def test_the_same_hours_of_the_wall_all_year_stay_the_same_hours(
    zone: str, interval: timedelta, first: datetime, late: int, form: str
) -> None:
    wall = pd.DatetimeIndex(moments(first, interval, timedelta(days=400) // interval))
    jitter = np.random.default_rng(7).integers(-late, late + 1, len(wall))
    frame = pd.DataFrame({"time": wall + pd.to_timedelta(jitter, unit="s"), "a": readings(len(wall))})
    if form == "long":
        frame = frame.melt("time", var_name="sensor")
    panel = read_panel(frame, options=ReadOptions(zone=zone, interval=interval))
    np.testing.assert_array_equal(panel.values[:, 0], readings(len(wall)))
    beside = np.abs(panel.times.local.tz_localize(None) - wall)
    assert beside.max() <= timedelta(seconds=late and max(2 * late, 0.1 * interval.total_seconds()))
    assert panel.times.local[0].utcoffset() == panel.times.local[-1].utcoffset()


@settings(max_examples=25)
@given(zone=st.sampled_from(ZONES), interval=EVERY_FEW_HOURS, first=st.integers(0, 366 * 24), days=st.integers(3, 400))
def test_readings_every_few_hours_that_follow_the_clock_keep_their_moments(
    zone: str, interval: timedelta, first: int, days: int
) -> None:
    times = moments(datetime(2016, 1, 1, tzinfo=UTC) + first * HOUR, interval, timedelta(days) // interval)
    wall = on_the_wall(times, zone)
    if len(set(wall)) < 2:
        return
    frame = pd.DataFrame({"time": wall, "a": readings(len(wall))})
    panel = read_panel(frame, options=ReadOptions(zone=zone, interval=interval))
    assert panel.times.zone == zone
    # A record that begins or ends within a repeated hour does not show in which of the two.
    if (panel.times.start, panel.times.length) == (times[0], len(times)):
        np.testing.assert_array_equal(panel.values[:, 0], readings(len(times)))
    else:
        assert abs(panel.times.start - times[0]) <= timedelta(hours=2)


def test_hours_taken_from_finer_readings_stay_moments_of_the_zone() -> None:
    times = moments(datetime(2016, 1, 1, tzinfo=UTC), HOUR, 366 * 24)
    frame = pd.DataFrame({"time": on_the_wall(times, "Europe/Berlin"), "a": readings(len(times))})
    panel = read_panel(frame, options=ReadOptions(zone="Europe/Berlin", interval=6 * HOUR))
    assert panel.times.zone == "Europe/Berlin"


def test_midday_and_midnight_of_a_year_stay_on_their_dates(tmp_path: Path) -> None:
    wall = pd.date_range("2023-01-01", periods=730, freq="12h")
    panel, findings = read_csv(tmp_path, pd.DataFrame({"time": wall, "a": readings(730)}), "America/Los_Angeles")
    assert panel.times.local[0].isoformat() == "2023-01-01T00:00:00-08:00" and panel.times.length == 730
    np.testing.assert_array_equal(panel.times.local.tz_localize(None), wall)
    (note,) = findings
    assert "standard time all year (UTC-08:00)" in note.what and note.level is Level.NOTE


@settings(max_examples=100)
@given(
    zone=st.sampled_from(ZONES),
    stamps=st.lists(st.datetimes(datetime(2017, 1, 1), datetime(2019, 1, 1)), min_size=1, max_size=30),
    direction=st.sampled_from([-1, 0, 1]),
)
def test_every_moment_is_one_that_the_clock_showed_that_time_at(
    zone: str, stamps: list[datetime], direction: int
) -> None:
    clock = LocalClock(zone, direction)
    utc = clock.to_utc(np.array(stamps, "datetime64[us]"))
    for stamp, moment in zip(stamps, utc.tolist(), strict=True):
        folds = [stamp.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (0, 1)]
        shown = [fold.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for fold in folds]
        if moment is None:
            assert stamp not in shown
        else:
            assert moment.replace(tzinfo=UTC) in [
                fold for fold, wall in zip(folds, shown, strict=True) if wall == stamp
            ]
    assert clock.skipped == int(np.isnat(utc).sum())
    assert set(utc[~np.isnat(utc)]) <= set(possible_moments(np.array(stamps, "datetime64[us]"), zone))
