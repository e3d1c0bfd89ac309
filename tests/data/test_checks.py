"""Laws of the data check: planted defects are found, each alone, and numbers agree with plain counting."""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.signal import lfilter

from candor.data.checks import check_panel, sensors
from candor.data.findings import Level
from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis

Values = NDArray[np.float32]
IDS = ("north", "east", "south", "west", "upper", "lower")
SOUTH = IDS.index("south")
ROWS = 2_400  # a hundred days by the hour
START = datetime(2021, 3, 1, tzinfo=UTC)


def noise(rows: int, seed: int, memory: float = 0.9) -> NDArray[np.float64]:
    """Noise of unit spread that remembers the reading before."""
    shocks = np.random.default_rng(seed).normal(0, np.sqrt(1 - memory**2), rows)
    return np.asarray(lfilter([1], [1, -memory], shocks))


def good_values(rows: int = ROWS, columns: int = len(IDS)) -> Values:
    """Hourly readings between 8 and 25 with a day, a season and noise."""
    hours = np.arange(rows)[:, None]
    phase = np.arange(columns)[None, :] / 3
    wave = 15 + 2 * np.sin(2 * np.pi * hours / 24 + phase) + 2 * np.sin(2 * np.pi * hours / 8760 + phase)
    return np.asarray(wave + np.stack([noise(rows, seed) for seed in range(columns)], axis=1), np.float32)


def panel_of(values: Values, interval: timedelta = timedelta(hours=1), edges: Edges | None = None) -> Panel:
    """A panel of the columns, connected in a chain unless told otherwise."""
    columns = values.shape[1]
    ids = IDS if columns == len(IDS) else tuple(f"sensor-{i}" for i in range(columns))
    along = np.arange(columns, dtype=np.int32)
    chain = Edges(along[:-1], along[1:])
    times = TimeAxis(START, interval, len(values), "Europe/Rome")
    return Panel(values, times, tuple(Sensor(i) for i in ids), chain if edges is None else edges, name="plant")


def test_nothing_at_all_is_found_in_good_data() -> None:
    report = check_panel(panel_of(good_values()))
    assert report.findings == []
    assert (report.times, report.interval, report.components, report.missing_share) == (ROWS, "1 h", 1, 0)
    assert report.first == "2021-03-01T01:00:00+01:00"
    assert report.last == "2021-06-09T01:00:00+02:00"


# Each defect changes the column of one sensor; what it must lead to is one finding and nothing else.


def dead(column: Values) -> None:
    column[:] = np.nan


def stopped(column: Values) -> None:
    column[2_000:] = np.nan


def a_fifth_missing(column: Values) -> None:
    column[np.random.default_rng(1).random(ROWS) < 0.2] = np.nan


def most_missing(column: Values) -> None:
    column[np.random.default_rng(1).random(ROWS) < 0.7] = np.nan


def one_long_gap(column: Values) -> None:
    column[300:480] = np.nan


def every_fourth_row(column: Values) -> None:
    column[np.arange(ROWS) % 4 != 1] = np.nan


def constant(column: Values) -> None:
    column[:] = 12.5


def stuck_once(column: Values) -> None:
    column[700:800] = column[700]


def stuck_often(column: Values) -> None:
    for first in range(0, ROWS, 200):
        column[first : first + 60] = column[first]


def stuck_on_whole_numbers(column: Values) -> None:
    column[:] = np.round(column)
    column[700:1_000] = 15


def zeros_for_missing(column: Values) -> None:
    column[np.random.default_rng(2).choice(ROWS, 190, replace=False)] = 0


def dropped_to_zero_for_weeks(column: Values) -> None:
    column[500:1_000] = 0


def repeated(number: float) -> Callable[[Values], None]:
    def plant(column: Values) -> None:
        column[100:1_300:100] = number

    return plant


def impossible_negatives(column: Values) -> None:
    column[50:2_000:200] = -np.linspace(2, 3, 10)


def one_absurd_reading(column: Values) -> None:
    column[1_234] = 54_321.0


@pytest.mark.parametrize(
    ("defect", "level", "what", "where", "count", "hint"),
    [
        (dead, Level.WARNING, "no reading at all", "south", 1, "leave them out"),
        (stopped, Level.WARNING, "stopped", "south since 2021-05-23 10:00", 1, "leave them out"),
        (a_fifth_missing, Level.NOTE, "more than 10 %", "south (19.6 %)", 1, "poorer"),
        (most_missing, Level.WARNING, "more than half", "south (", 1, "poorer"),
        (one_long_gap, Level.NOTE, "gap longer than 5 %", "south from 2021-03-13 13:00 (180 rows)", 1, "part"),
        (every_fourth_row, Level.NOTE, "one row in 4: every 4 h", "south", 1, "--interval 4h"),
        (constant, Level.WARNING, "same number throughout", "south (12.5)", 1, "check"),
        (stuck_once, Level.WARNING, "stick", "south from 2021-03-30 06:00 (100 times", 1, "empty"),
        (stuck_often, Level.WARNING, "stick", "south from", 1, "empty"),
        (stuck_on_whole_numbers, Level.WARNING, "stick", "(30", 1, "empty"),
        (zeros_for_missing, Level.WARNING, "zero may stand for missing", "south (7.92 %", 190, "--missing 0"),
        (dropped_to_zero_for_weeks, Level.WARNING, "zero may stand for missing", "south (20.8 %", 500, "--missing 0"),
        (repeated(-1), Level.WARNING, "-1 is repeated", "south (12 times)", 12, "--missing -1"),
        (repeated(-99), Level.WARNING, "-99 is repeated", "south (12 times)", 12, "--missing -99"),
        (repeated(999.9), Level.WARNING, "999.9 is repeated", "south (12 times)", 12, "--missing 999.9"),
        (repeated(65_535), Level.WARNING, "65535 is repeated", "south (12 times)", 12, "--missing 65535"),
        (repeated(-12_345), Level.WARNING, "-12345 is repeated", "south (12 times)", 12, "--missing -12345"),
        (impossible_negatives, Level.WARNING, "below zero all at once", "south (10, down to -3)", 10, "--minimum 0"),
        (one_absurd_reading, Level.NOTE, "absurdly far", "south (1, first 2021-04-21 12:00)", 1, "empty"),
    ],
)
def test_a_planted_defect_is_the_only_thing_found(
    defect: Callable[[Values], None], level: Level, what: str, where: str, count: int, hint: str
) -> None:
    values = good_values()
    defect(values[:, SOUTH])
    (finding,) = check_panel(panel_of(values)).findings
    assert finding.level is level
    assert what in finding.what
    assert where in finding.where
    assert not any(sensor in finding.where for sensor in IDS if sensor != "south")
    assert finding.count == count
    assert hint in finding.hint


@pytest.mark.parametrize(
    ("interval", "own"),
    [(timedelta(minutes=25), "100min"), (timedelta(hours=9), "36h"), (timedelta(seconds=1.5), "6s")],
)
def test_the_interval_that_is_suggested_is_exactly_that_of_the_sensor(interval: timedelta, own: str) -> None:
    values = good_values()
    every_fourth_row(values[:, SOUTH])
    findings = check_panel(panel_of(values, interval)).findings
    assert any(finding.hint.endswith(f"--interval {own}") for finding in findings)


@pytest.mark.parametrize(("defect", "share"), [(None, 0.0), (stuck_once, 100 / ROWS), (constant, 1.0)])
def test_the_flat_share_is_that_of_the_readings_that_stick(
    defect: Callable[[Values], None] | None, share: float
) -> None:
    values = good_values()
    if defect is not None:
        defect(values[:, SOUTH])
    assert check_panel(panel_of(values)).sensors[SOUTH].flat_share == pytest.approx(share, abs=1.5 / ROWS)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_flood_that_comes_or_goes_at_once_is_no_outlier(direction: int) -> None:
    values = good_values()
    flood = 800 * np.exp(-np.arange(1_000) / 30)
    values[1_000:2_000, SOUTH] += flood[::direction]
    assert check_panel(panel_of(values)).findings == []


def test_silence_of_a_few_rows_is_no_news_even_in_a_short_record() -> None:
    values = good_values(150)
    values[-20:, SOUTH] = np.nan
    findings = check_panel(panel_of(values)).findings
    assert ["short" in finding.what or "miss more than 10 %" in finding.what for finding in findings] == [True, True]


def test_moments_at_which_no_sensor_reports_are_counted() -> None:
    values = good_values()
    values[500:523] = np.nan
    values[900:902] = np.nan
    (finding,) = check_panel(panel_of(values)).findings
    assert finding.level is Level.NOTE
    assert "2 stretches, the longest of 23 rows" in finding.what
    assert (finding.where, finding.count) == ("longest from 2021-03-21 21:00", 25)


def test_a_copied_sensor_is_named_with_its_original() -> None:
    values = good_values()
    values[40:50, SOUTH] = np.nan
    values[:, 4] = values[:, SOUTH]
    (finding,) = check_panel(panel_of(values)).findings
    assert finding.level is Level.WARNING
    assert "identical" in finding.what
    assert (finding.where, finding.count) == ("south = upper", 2)


def test_a_record_of_few_rows_is_called_short() -> None:
    (finding,) = check_panel(panel_of(good_values(150))).findings
    assert finding.level is Level.WARNING
    assert "short, 150 rows" in finding.what


def test_a_panel_without_any_reading_is_an_error() -> None:
    report = check_panel(panel_of(np.full((ROWS, 3), np.nan, np.float32)))
    (finding,) = report.findings
    assert (finding.level, finding.count) == (Level.ERROR, 3)
    assert {summary.median for summary in report.sensors} == {None}


@pytest.mark.parametrize(
    ("pairs", "what", "where", "count", "components"),
    [
        ([], "no edges", "plant", 6, 6),
        ([(0, 0), (3, 3)], "no edges", "plant", 6, 6),
        ([(0, 1), (1, 2), (3, 2), (5, 4)], "do not touch", "parts of 4, 2 sensors", 2, 2),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (5, 5)], "no edge to any other", "lower", 1, 2),
    ],
)
def test_gaps_in_the_network_are_noted(
    pairs: list[tuple[int, int]], what: str, where: str, count: int, components: int
) -> None:
    source, target = np.array(pairs, np.int32).reshape(-1, 2).T
    report = check_panel(panel_of(good_values(), edges=Edges(source, target)))
    (finding,) = report.findings
    assert finding.level is Level.NOTE
    assert what in finding.what
    assert (finding.where, finding.count, report.components) == (where, count, components)
    assert [summary.edges_in for summary in report.sensors] == [
        sum(j == sensor and i != j for i, j in pairs) for sensor in range(6)
    ]
    assert [summary.edges_out for summary in report.sensors] == [
        sum(i == sensor and i != j for i, j in pairs) for sensor in range(6)
    ]


# Laws.


def broken_values() -> Values:
    """Good readings with a different defect in every column but one."""
    values = good_values()
    for column, defect in enumerate([stopped, stuck_once, zeros_for_missing, repeated(-99), one_absurd_reading]):
        defect(values[:, column])
    values[600:640] = np.nan
    return values


def test_the_order_of_the_sensors_changes_nothing_but_the_order_of_the_summaries() -> None:
    panel = panel_of(broken_values())
    order = [4, 0, 5, 2, 1, 3]
    straight, shuffled = check_panel(panel), check_panel(panel.select([IDS[i] for i in order]))
    assert shuffled.sensors == tuple(straight.sensors[i] for i in order)
    assert shuffled.findings == straight.findings
    assert len(straight.findings) == 6


def test_the_size_of_the_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = panel_of(broken_values())
    whole = check_panel(panel)
    for size in (1, 2 * ROWS, 4 * ROWS + 1):
        monkeypatch.setattr(sensors, "READINGS_PER_BLOCK", size)
        assert check_panel(panel) == whole


def test_memory_does_not_grow_with_the_number_of_sensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "READINGS_PER_BLOCK", 4 * ROWS)
    panel = panel_of(good_values(ROWS, 120))
    check_panel(panel)  # whatever is made once and kept
    tracemalloc.start()
    check_panel(panel)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    two_blocks, temporary, results = 2 * 4 * ROWS * 4, 300 * ROWS, 2_000 * len(panel.sensors)
    assert peak < two_blocks + temporary + results < panel.values.nbytes


@st.composite
def small_panels(draw: st.DrawFn) -> Panel:
    """Panels with anything in them: gaps, runs, constants, extremes, empty columns, no rows, no sensors."""
    rows = draw(st.sampled_from([0, 1, 2, 30, 60, 260]))
    columns = draw(st.integers(0, 4))
    pools = st.lists(st.floats(width=32, allow_infinity=False), min_size=1, max_size=4)
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = np.empty((rows, columns), np.float32)
    for column in range(columns):
        pool = np.array(draw(pools), np.float32)
        run = draw(st.sampled_from([1, 7, 40]))
        values[:, column] = np.repeat(generator.choice(pool, rows // run + 1), run)[:rows]
        if draw(st.booleans()):
            with np.errstate(over="ignore"):
                values[:, column] += generator.normal(size=rows).astype(np.float32)
            values[np.isinf(values)] = np.nan
    ends = st.tuples(st.integers(0, columns - 1), st.integers(0, columns - 1))
    pairs = draw(st.lists(ends, unique=True, max_size=4)) if columns else []
    source, target = np.array(pairs, np.int32).reshape(-1, 2).T
    interval = draw(st.sampled_from([timedelta(seconds=1), timedelta(hours=1), timedelta(days=1), timedelta(days=40)]))
    return panel_of(values, interval, Edges(source, target))


def longest_gap(column: Values) -> int:
    """The longest run of NaN, counted one by one."""
    longest = current = 0
    for number in column:
        current = current + 1 if np.isnan(number) else 0
        longest = max(longest, current)
    return longest


@given(small_panels())
def test_any_panel_gets_a_report_whose_numbers_agree_with_plain_counting(panel: Panel) -> None:
    report = check_panel(panel)
    json.dumps(asdict(report), allow_nan=False)
    assert len(report.sensors) == len(panel.sensors)
    for column, summary in zip(panel.values.T, report.sensors, strict=True):
        readings = pd.Series(column.astype(np.float64)).dropna()
        assert summary.longest_gap == longest_gap(column)
        assert (summary.longest_gap_start is None) == (summary.longest_gap == 0)
        if len(readings) == 0:
            assert (summary.minimum, summary.median, summary.maximum, summary.flat_share) == (None,) * 4
            continue
        assert summary.missing_share == pytest.approx(np.isnan(column).mean(), abs=1e-12)
        for number, expected in zip(
            (summary.minimum, summary.median, summary.maximum),
            (readings.min(), readings.median(), readings.max()),
            strict=True,
        ):
            assert number is not None
            assert np.float32(number) == np.float32(expected)
        assert summary.flat_share is not None
        assert 0 <= summary.flat_share <= 1
    assert all(finding.count > 0 and finding.what for finding in report.findings)
    assert bool(report.findings.errors) == bool(np.isnan(panel.values).all())


@given(small_panels())
def test_a_gap_starts_where_the_summary_says(panel: Panel) -> None:
    for column, summary in zip(panel.values.T, check_panel(panel).sensors, strict=True):
        if summary.longest_gap_start is not None:
            row = panel.times.index_of(summary.longest_gap_start)
            assert np.isnan(column[row : row + summary.longest_gap]).all()
            assert row == 0 or not np.isnan(column[row - 1])


def test_names_of_sensors_reach_the_summaries() -> None:
    panel = panel_of(good_values())
    named = replace(panel, sensors=tuple(replace(sensor, name=sensor.id.title()) for sensor in panel.sensors))
    assert [summary.name for summary in check_panel(named).sensors] == [sensor.title() for sensor in IDS]
