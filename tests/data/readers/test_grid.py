"""Readings fall on the grid moments nearest to them, once each, and nothing is invented between."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.findings import Finding, Findings, Level
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel

START = datetime(2020, 5, 1)
MINUTE = timedelta(minutes=1)


def read(frame: pd.DataFrame, **options: Any) -> tuple[Panel, Findings]:
    findings = Findings()
    return read_panel(frame, options=ReadOptions(**options), findings=findings), findings


def wide(times: Any, *columns: Any) -> pd.DataFrame:
    frame = pd.DataFrame(dict(zip("abcdefgh", columns, strict=False)), dtype=float)
    return frame.set_axis(pd.DatetimeIndex(times), axis=0)


def long(*readings: tuple[str, str, float]) -> pd.DataFrame:
    return pd.DataFrame(readings, columns=["time", "sensor", "value"])


def only(findings: Findings, level: Level = Level.WARNING) -> Finding:
    (finding,) = (finding for finding in findings if finding.level is level)
    return finding


def steps(count: int, interval: str = "15min", start: str = "2020-05-01") -> pd.DatetimeIndex:
    return pd.date_range(start, periods=count, freq=interval)


@settings(max_examples=60)
@given(
    interval=st.sampled_from([1, 5, 15, 60, 1440]),
    phase=st.sampled_from([0.0, 0.25, 0.5]),
    count=st.integers(20, 60),
    seed=st.integers(0, 10_000),
    form=st.sampled_from(["wide", "long"]),
    zone=st.sampled_from(["UTC", "UTC-08:00", "Asia/Kolkata"]),
)
def test_clocks_that_are_a_little_off_do_not_move_readings_to_other_cells(
    interval: int, phase: float, count: int, seed: int, form: str, zone: str
) -> None:
    generator = np.random.default_rng(seed)
    grid = steps(count, f"{interval}min") + phase * interval * MINUTE
    jitter = pd.to_timedelta(generator.uniform(-0.04, 0.04, count) * interval * 60, unit="s").round("ms")
    frame = wide(grid + jitter, np.arange(count)).tz_localize("UTC")
    frame = frame.set_axis(frame.index.tz_convert(None if zone == "UTC" else "Asia/Kolkata"))
    if form == "long":
        frame = frame.rename_axis("time").reset_index().melt("time", var_name="sensor")
    panel, _ = read(frame, zone=zone)
    np.testing.assert_array_equal(panel.values[:, 0], np.arange(count))
    assert panel.times.interval == interval * MINUTE
    off = np.abs(panel.times.utc - grid.to_numpy())
    assert (off <= np.timedelta64(round(0.1 * interval * 60e6), "us")).all()
    assert off.max() == np.timedelta64(0) or phase or zone != "UTC"  # round moments are found again exactly


def test_the_nearest_reading_wins_whatever_the_order() -> None:
    near, exact, far = "2020-05-01 00:15:10", "2020-05-01 00:30:00", "2020-05-01 00:16:00"
    frame = wide(["2020-05-01", near, far, exact, "2020-05-01 00:45"], [1, 2, 99, 3, 4])
    for order in ([0, 1, 2, 3, 4], [4, 2, 1, 3, 0], [2, 0, 1, 4, 3]):
        panel, findings = read(frame.iloc[order], interval=15 * MINUTE)
        np.testing.assert_array_equal(panel.values[:, 0], [1, 2, 3, 4])
        assert "nearest" in only(findings).what and only(findings).count == 1


def test_half_way_goes_to_the_earlier_moment() -> None:
    frame = wide(["2020-05-01 00:00", "2020-05-01 00:22:30", "2020-05-01 00:45"], [1, 2, 3])
    panel, _ = read(frame, interval=15 * MINUTE)
    np.testing.assert_array_equal(panel.values[:, 0], [1, 2, np.nan, 3])


def test_of_repeated_rows_the_later_counts_where_it_holds_a_reading() -> None:
    index = steps(3).repeat([1, 3, 1])
    panel, findings = read(wide(index, [1, 2, 3, np.nan, 5], [1, 2, np.nan, np.nan, 5]))
    np.testing.assert_array_equal(panel.values, [[1, 1], [3, 2], [5, 5]])
    assert "repeat a time" in only(findings).what and only(findings).count == 2


def test_of_repeated_long_readings_the_later_counts() -> None:
    rows = [("2020-05-01 00:00", "a", 1.0), ("2020-05-01 00:15", "a", 2.0), ("2020-05-01 00:15", "a", 3.0)]
    panel, findings = read(long(*rows, ("2020-05-01 00:15", "b", 9.0), ("2020-05-01 00:15", "a", np.nan)))
    np.testing.assert_array_equal(panel.values, [[1, np.nan], [3, 9]])
    assert only(findings).count == 1


@settings(max_examples=60)
@given(data=st.data(), count=st.integers(3, 20), form=st.sampled_from(["wide", "long"]))
def test_writing_in_any_blocks_gives_what_a_plain_loop_gives(data: st.DataObject, count: int, form: str) -> None:
    minutes = data.draw(st.lists(st.integers(0, 40), min_size=count, max_size=count))
    minutes[:2] = [0, 40]
    values = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, np.nan]), min_size=count, max_size=count))
    values[0] = 7.0
    times = pd.DatetimeIndex([START + minute * MINUTE for minute in minutes])
    frame = wide(times, values)
    if form == "long":
        frame = frame.rename_axis("time").reset_index().melt("time", var_name="sensor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("candor.data.readers.columns._NUMBERS_PER_BATCH", data.draw(st.integers(1, 9)))
        try:
            panel, _ = read(frame, interval=10 * MINUTE)
        except InputError as error:
            assert "rows on average" in str(error) and len(minutes) > 2 * len(set(minutes))
            return
    expected, best = np.full(panel.times.length, np.nan), [(timedelta(1), timedelta(0))] * panel.times.length
    for time, value in zip(times, values, strict=True):
        moments = [panel.times.start.replace(tzinfo=None) + row * 10 * MINUTE for row in range(panel.times.length)]
        distances = [abs(time - moment) for moment in moments]
        row = distances.index(min(distances))  # half-way, the earlier is found first
        rank = distances[row], moments[row] - time  # the nearest, then the later in time, then the later in the file
        if not np.isnan(value) and rank <= best[row]:
            expected[row], best[row] = value, rank
    np.testing.assert_array_equal(panel.values[:, 0], expected.astype(np.float32))


def test_sensors_with_different_intervals_share_one_grid() -> None:
    quarter = pd.DataFrame({"time": steps(9), "sensor": "quick", "value": np.arange(9.0)})
    half = pd.DataFrame({"time": steps(5, "30min"), "sensor": "slow", "value": np.arange(5.0)})
    panel, findings = read(pd.concat([quarter, half]))
    assert panel.times.interval == 15 * MINUTE
    np.testing.assert_array_equal(panel.values[:, 0], np.arange(9))
    np.testing.assert_array_equal(panel.values[::2, 1], np.arange(5))
    assert np.isnan(panel.values[1::2, 1]).all()  # nothing is filled
    assert any("1 every 15 min, 1 every 30 min" in finding.what for finding in findings)


@settings(max_examples=30)
@given(data=st.data())
def test_the_grid_of_long_readings_does_not_depend_on_the_order_of_rows(data: st.DataObject) -> None:
    # Two sensors of half an hour that report in turn: together there is a reading every quarter.
    parts = [
        pd.DataFrame({"time": steps(6, "30min", start), "sensor": name, "value": np.arange(6.0)})
        for name, start in (("a", "2020-05-01 00:00"), ("b", "2020-05-01 00:15"))
    ]
    frame = pd.concat(parts, ignore_index=True)
    shuffled = frame.iloc[data.draw(st.permutations(range(12)))]
    assert read(frame)[0].times.interval == 30 * MINUTE
    assert read(shuffled)[0].fingerprint == read(frame)[0].fingerprint


def test_a_coarser_interval_takes_the_readings_at_its_moments() -> None:
    frame = wide(steps(97), np.arange(97))
    hourly, findings = read(frame, interval=60 * MINUTE)
    np.testing.assert_array_equal(hourly.values[:, 0], np.arange(0, 97, 4))
    assert only(findings).count == 72  # as many readings as there was no room for
    daily, _ = read(frame, interval=timedelta(days=1), zone="UTC")
    assert daily.times.start == START.replace(tzinfo=UTC) and daily.values[:, 0].tolist() == [0.0, 96.0]


def test_days_taken_from_hours_begin_at_local_midnight() -> None:
    hours = steps(72, "1h", "2020-05-01 05:00")
    panel, _ = read(wide(hours, hours.hour + 100 * hours.day), zone="America/Los_Angeles", interval=timedelta(days=1))
    assert panel.values[:, 0].tolist()[1:] == [200.0, 300.0, 400.0]
    assert [str(day.date()) for day in panel.times.local][1:] == ["2020-05-02", "2020-05-03", "2020-05-04"]


def test_a_finer_interval_leaves_the_moments_between_empty() -> None:
    panel, _ = read(wide(steps(4), [1, 2, 3, 4]), interval=5 * MINUTE)
    assert panel.times.length == 10
    np.testing.assert_array_equal(panel.values[::3, 0], [1, 2, 3, 4])
    assert int(panel.mask.sum()) == 4


def test_a_missing_row_becomes_a_row_of_missing_readings() -> None:
    panel, findings = read(wide(steps(6).delete([2, 3]), [1, 2, 5, 6]), zone="UTC")
    np.testing.assert_array_equal(panel.values[:, 0], [1, 2, np.nan, np.nan, 5, 6])
    assert findings == []


@pytest.mark.parametrize("stray", ["1970-01-01", "2999-01-01", "1900-05-01", "0001-01-01", "9999-12-31 23:59:59"])
@pytest.mark.parametrize(("interval", "count"), [("5min", 300), ("1h", 20_000), ("1D", 60), ("1D", 2000)])
def test_one_time_far_off_is_refused_before_memory_is_taken(stray: str, interval: str, count: int) -> None:
    times = steps(count, interval).astype(str).tolist()
    for texts in ([*times, stray], [stray, *times]):
        frame = pd.DataFrame({"time": texts, "a": 1.0})
        with pytest.raises(InputError) as refusal:
            read(frame)
        assert stray[:4] in refusal.value.what and "correct" in refusal.value.hint


@pytest.mark.parametrize("year", [5, 9999, 20_000, -300])
def test_years_that_no_sensor_has_seen_are_refused(year: int) -> None:
    times = np.array([(year - 1970) * 366 * 86400 + hour * 3600 for hour in range(48)]).astype("datetime64[s]")
    for zone in ("UTC", "Europe/Berlin"):
        with pytest.raises(InputError, match="cannot be true"):
            read(wide(pd.DatetimeIndex(times), np.ones(48)), zone=zone)


def test_a_few_stamps_that_claim_a_huge_grid_are_refused() -> None:
    frame = wide([*steps(5, "1s"), *steps(4, "365D", "2021-05-01")], np.ones(9))
    with pytest.raises(InputError, match="steps of 1 s"):
        read(frame)


def test_a_long_table_whose_sensors_are_row_numbers_is_refused() -> None:
    for rows_of_each, words in ((1, "5,000 readings would belong to 5,000 sensors"), (3, "less than a thousandth")):
        frame = pd.DataFrame({"time": steps(5000), "id": np.arange(5000) // rows_of_each, "value": 1.0})
        with pytest.raises(InputError, match=words) as refusal:
            read(frame)
        assert "names sensors" in refusal.value.hint


def test_a_long_outage_is_no_reason_to_refuse() -> None:
    times = steps(2000, "1h").append(steps(2000, "1h", "2023-01-01"))
    panel, _ = read(wide(times, np.ones(4000)))
    assert int(panel.mask.sum()) == 4000


@pytest.mark.parametrize("seconds", [0, -60])
def test_an_interval_that_is_none_is_refused(seconds: int) -> None:
    with pytest.raises(InputError, match="interval"):
        ReadOptions(interval=timedelta(seconds=seconds))


@settings(max_examples=30)
@given(
    unit=st.sampled_from([("months", 1), ("quarters", 3), ("years", 12)]),
    first=st.dates(date(1990, 1, 1), date(2015, 12, 31)),
    count=st.integers(12, 24),
    absent=st.lists(st.integers(2, 9), max_size=2),
    zone=st.sampled_from([None, "Europe/Berlin"]),
    form=st.sampled_from(["wide", "long"]),
)
def test_months_quarters_and_years_are_no_interval(
    unit: tuple[str, int], first: date, count: int, absent: list[int], zone: str | None, form: str
) -> None:
    name, months = unit
    times = pd.DatetimeIndex([pd.Timestamp(first) + pd.DateOffset(months=months * step) for step in range(count)])
    times = times.delete(absent).tz_localize(zone)
    frame = wide(times, np.ones(len(times)))
    if form == "long":  # whose sensors are read on different days
        parts = [
            frame.set_axis(frame.index + timedelta(days=day)).rename_axis("time").reset_index().assign(sensor=f"s{day}")
            for day in range(0, 27, 5)
        ]
        frame = pd.concat(parts).rename(columns={"a": "value"})
    with pytest.raises(InputError, match=f"are {name} apart, which is no regular interval") as refusal:
        read(frame, zone=zone)
    assert "--interval" in refusal.value.hint
    assert read(frame, zone=zone, interval=timedelta(days=30))[0].times.interval == timedelta(days=30)


@settings(max_examples=30)
@given(days=st.sampled_from([7, 28, 29, 30, 31, 91, 365]), count=st.integers(4, 60), absent=st.integers(1, 2))
def test_as_many_days_as_a_month_may_have_are_an_interval_if_they_always_are(
    days: int, count: int, absent: int
) -> None:
    times = steps(count, f"{days}D").delete(absent)
    panel, _ = read(wide(times, np.arange(count - 1)))
    assert panel.times.interval == timedelta(days=days) and int(panel.mask.sum()) == count - 1


def test_every_fourth_week_or_so_is_no_month() -> None:
    late = pd.to_timedelta(np.random.default_rng(3).integers(-1, 2, 60), unit="D")
    panel, _ = read(wide(steps(60, "28D") + late, np.ones(60)))
    assert panel.times.interval.days in (27, 28, 29)


@pytest.mark.parametrize("zone", ["UTC-08:00", "America/Los_Angeles"])
def test_daily_stamps_on_standard_time_stay_where_they_are(zone: str) -> None:
    days = pd.date_range("2023-01-01", periods=365, tz="Etc/GMT+8")
    panel, findings = read(wide(days, np.arange(365.0)), zone=zone)
    assert panel.times.zone == "UTC-08:00"
    assert panel.times.local[0].isoformat() == "2023-01-01T00:00:00-08:00"
    np.testing.assert_array_equal(panel.values[:, 0], np.arange(365))
    assert not [finding for finding in findings if "grid" in finding.what]


@pytest.mark.parametrize(("start", "count"), [("2023-06-01", 60), ("2023-01-01", 60), ("2023-01-01", 365)])
def test_daily_stamps_at_local_midnight_keep_their_dates_in_any_season(start: str, count: int) -> None:
    days = pd.date_range(start, periods=count, tz="Europe/Berlin")
    panel, findings = read(wide(days, np.arange(count)), zone="Europe/Berlin")
    assert panel.times.local.date.tolist() == days.date.tolist()
    assert not [finding for finding in findings if "grid" in finding.what]


@pytest.mark.parametrize(
    "name", ["time_utc", "UTC", "Timestamp_UTC", "Timestamp (UTC)", "DateTime UTC", "utc-time", "DateUTC", "UTC 2020"]
)
def test_a_column_that_is_called_utc_is_that_whatever_zone_the_sensors_live_in(name: str) -> None:
    frame = pd.DataFrame({name: steps(50, "1h").astype(str), "a": np.arange(50.0)})
    panel, _ = read(frame, zone="Asia/Seoul")
    assert panel.times.start == datetime(2020, 5, 1, tzinfo=UTC) and panel.times.zone == "Asia/Seoul"


@pytest.mark.parametrize("name", ["time (UTC+9)", "Time UTC-07:00", "Time (UTC \u2212 7)", "UTC offset", "time"])
def test_a_column_that_is_called_something_else_is_on_the_local_clock(name: str) -> None:
    frame = pd.DataFrame({name: steps(50, "1h").astype(str), "a": np.arange(50.0)})
    panel, _ = read(frame, zone="Asia/Seoul")
    assert panel.times.local[0].isoformat() == "2020-05-01T00:00:00+09:00"


def test_rows_of_several_sensors_under_an_unknown_name_are_refused_though_some_are_missing() -> None:
    times = steps(1000, "1h")
    frame = pd.DataFrame({"time": times.repeat(2), "pond": ["a", "b"] * 1000, "level": np.arange(2000.0)})
    with pytest.raises(InputError, match="belong to different sensors"):
        read(frame.drop(index=[7]))
