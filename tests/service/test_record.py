"""The record of a run and the readings over it are one record, of which no more is read than a forecast needs."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.alignment import KnownPanel
from candor.data.gridding import Grid, lay, to_microseconds
from candor.data.panel import Covariate, Panel, Sensor
from candor.data.preprocessing import Fill, fill
from candor.data.times import TimeAxis
from candor.forecasting import LastValue
from candor.forecasting.contract import sample_panel
from candor.service.answers import align_latest
from candor.service.models import LoadedModel, parse_moment
from candor.service.readings import align_for_client
from candor.service.record import Record
from candor.service.store import Reading, ReadingStore

HOUR = 3_600_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReadingStore]:
    opened = ReadingStore(tmp_path / "store.sqlite")
    yield opened
    opened.close()


def small_panel(values: np.ndarray) -> Panel:
    times = TimeAxis(datetime(2024, 3, 30, tzinfo=UTC), timedelta(hours=1), len(values), "Europe/Berlin")
    sensors = tuple(Sensor(f"s{i}", unit="m") for i in range(values.shape[1]))
    return Panel(values.astype(np.float32), times, sensors)


def record_of(panel: Panel, store: ReadingStore, *, has_own: bool = True) -> Record:
    return Record(KnownPanel.of(panel).panel, panel if has_own else None, store)


def moment(panel: Panel, row: int) -> int:
    return to_microseconds(panel.times.start) + row * HOUR


def test_without_sent_readings_the_record_is_that_of_the_run(store: ReadingStore) -> None:
    panel = sample_panel()
    record = record_of(panel, store)
    assert record.span() == (0, 600) and not record.has_sent_readings
    np.testing.assert_array_equal(record.rows(-3, 605).values[3:-5], panel.values)
    assert np.isnan(record.rows(-3, 0).values).all() and np.isnan(record.rows(600, 605).values).all()
    assert record.rows(10, 20).times == panel.times.slice(10, 20)


@pytest.mark.parametrize("has_own", [True, False])
def test_the_series_of_one_sensor_is_its_column_and_reads_no_other(
    store: ReadingStore, has_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = small_panel(np.arange(30.0).reshape(10, 3))
    record = record_of(panel, store, has_own=has_own)
    sent = [(1, 0, 7.0), (1, 3, None), (0, 4, 8.0), (1, 12, 9.0), (2, 12, 10.0)]
    store.append([Reading(f"s{column}", moment(panel, row), value) for column, row, value in sent])
    for first, stop in ((-2, 14), (3, 4), (5, 5), (11, 13)):
        expected = record.rows(first, stop).values
        for column in range(3):
            np.testing.assert_array_equal(record.series(f"s{column}", first, stop), expected[:, column])
    between, asked = store.between, []
    monkeypatch.setattr(store, "between", lambda *which: (asked.append(which[2:]), between(*which))[1])
    record.series("s1", 0, 14)
    assert asked == [("s1",)]


def test_sent_readings_lie_over_the_record_and_go_on_after_it(store: ReadingStore) -> None:
    panel = small_panel(np.arange(12.0).reshape(6, 2))
    record = record_of(panel, store)
    store.append(
        [
            Reading("s0", moment(panel, 2), 40.0),
            Reading("s1", moment(panel, 3), None),
            Reading("s1", moment(panel, 8), 50.0),
            Reading("stranger", moment(panel, 20), 60.0),
        ]
    )
    expected = np.full((9, 2), np.nan)
    expected[:6] = panel.values
    expected[2, 0], expected[3, 1], expected[8, 1] = 40.0, np.nan, 50.0
    np.testing.assert_array_equal(record.rows(0, 9).values, expected)
    store.append([Reading("s0", moment(panel, 8), None)])
    np.testing.assert_array_equal(record.rows(0, 9).values, expected)


@pytest.mark.parametrize("has_own", [True, False])
def test_sensors_that_the_model_does_not_know_do_not_stretch_the_record(store: ReadingStore, has_own: bool) -> None:
    panel = small_panel(np.zeros((6, 2)))
    record = record_of(panel, store, has_own=has_own)
    before = record.span()
    store.append([Reading("stranger", moment(panel, row), 60.0) for row in (-9, 20)])
    assert record.span() == before and not record.has_sent_readings
    store.append([Reading("s1", moment(panel, row), 1.0) for row in (-2, 7)])
    assert record.span() == (-2, 8) and record.has_sent_readings
    assert len(record.before(8, 100).values) == 10


def test_the_record_ends_before_readings_of_the_run_that_were_withdrawn(store: ReadingStore) -> None:
    panel = small_panel(np.arange(200.0).reshape(100, 2))
    record = record_of(panel, store)

    def withdraw(column: int, *rows: int) -> tuple[int, int]:
        store.append([Reading(f"s{column}", moment(panel, row), None) for row in rows])
        return record.span()

    assert withdraw(0, 99) == (0, 100)
    assert withdraw(1, 99, 97) == (0, 99)
    assert withdraw(0, *range(20, 100)) == (0, 99)
    assert withdraw(1, *range(50, 100)) == (0, 50)
    store.append([Reading("s0", moment(panel, -3), 1.0)])
    assert record.span() == (-3, 50)
    withdraw(0, *range(20))
    assert withdraw(1, *range(50)) == (-3, -2)


def test_a_record_without_the_runs_own_is_what_was_sent(store: ReadingStore) -> None:
    panel = small_panel(np.zeros((6, 2)))
    record = record_of(panel, store, has_own=False)
    assert record.span() == (0, 0)
    store.append([Reading("s0", moment(panel, 700), 1.0), Reading("s1", moment(panel, 704), 2.0)])
    assert record.span() == (700, 705)
    np.testing.assert_array_equal(record.rows(700, 705).values[[0, 4]], [[1.0, np.nan], [np.nan, 2.0]])


@pytest.mark.parametrize("how", ["last", "zero", "forward-backward"])
@pytest.mark.parametrize("has_own", [True, False])
def test_the_rows_before_an_origin_are_filled_as_in_the_whole_record(store, how: Fill, has_own: bool) -> None:
    generator = np.random.default_rng(5)
    values = generator.standard_normal((900, 6)).astype(np.float32)
    values[generator.random((900, 6)) < 0.5] = np.nan
    values[40:, 1] = np.nan  # fell silent long ago
    values[:, 2] = np.nan  # dead
    values[:880, 3] = np.nan  # new
    values[300:890, 4] = np.nan  # long silent, and back
    panel = small_panel(values)
    record = record_of(panel, store, has_own=has_own)
    sent = values.copy()
    if has_own:
        sent[200, 1], sent[39, 1], sent[100:105, 5] = 9.0, np.nan, np.nan
        changes = [(200, 1, 9.0), (39, 1, None), *((row, 5, None) for row in range(100, 105))]
        store.append([Reading(f"s{column}", moment(panel, row), value) for row, column, value in changes])
    else:
        store.append(
            [
                Reading(f"s{column}", moment(panel, int(row)), float(values[row, column]))
                for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True)
            ]
        )
    means = np.arange(6, dtype=np.float32)
    for origin in (20, 105, 300, 885, 900):
        whole = fill(sent[:origin], how, means)
        part = fill(record.before(origin, 24).values, how, means)
        np.testing.assert_array_equal(part[-min(origin, 24) :], whole[-24:])
        assert len(part) <= 25


def test_no_more_is_read_for_a_dead_sensor_than_for_others(store: ReadingStore, monkeypatch) -> None:
    values = np.ones((50_000, 2), np.float32)
    values[:, 1] = np.nan
    record = record_of(small_panel(values), store)
    rows, read = [], record.rows
    monkeypatch.setattr(record, "rows", lambda first, stop: rows.append(stop - first) or read(first, stop))
    record.before(50_000, 24)
    assert sum(rows) == 25


def test_a_sensor_long_silent_is_found_without_holding_the_whole_record(store: ReadingStore, monkeypatch) -> None:
    values = np.full((30_000, 2), np.nan, np.float32)
    values[3], values[-1, 0] = (5.0, 6.0), 7.0
    record = record_of(small_panel(values), store)
    expected = record.before(30_000, 24).values
    monkeypatch.setattr("candor.service.record._MOST_CELLS_AT_A_TIME", 4_000)
    rows, read = [], record._values
    monkeypatch.setattr(record, "_values", lambda first, stop: rows.append(stop - first) or read(first, stop))
    np.testing.assert_array_equal(record.before(30_000, 24).values, expected)
    assert expected[0].tolist() == [5.0, 6.0]
    assert max(rows) == 2_000


def test_covariates_that_the_model_reads_come_along(store: ReadingStore) -> None:
    panel = small_panel(np.zeros((6, 2)))
    rain = np.arange(12, dtype=np.float32).reshape(6, 2)
    wet = replace(panel, covariates={"rain": Covariate(rain, "mm")})
    found = record_of(wet, store).rows(4, 8).covariates["rain"]
    assert found.unit == "mm"
    np.testing.assert_array_equal(found.values, [[8, 9], [10, 11], [np.nan] * 2, [np.nan] * 2])
    unknown = record_of(wet, store, has_own=False).rows(4, 8).covariates["rain"]
    assert unknown.unit == "mm" and np.isnan(unknown.values).all()


def test_rain_that_clients_cannot_send_is_told(store: ReadingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LastValue, "quantities_read", lambda self: ("rain",))
    panel = small_panel(np.ones((20, 2)))
    wet = replace(panel, covariates={"rain": Covariate(np.ones((20, 2), np.float32), "mm")})
    model: Any = LastValue(history=6, horizon=2).fit(wet)
    run: Any = SimpleNamespace(forecaster=model)
    loaded = LoadedModel(run, "version", Record(model.trained_on_.panel, wet, store))
    assert not [finding for finding in align_latest(loaded).findings if "rain" in finding.what]
    store.append([Reading("s0", moment(panel, 21), 1.0)])
    (told,) = [finding for finding in align_latest(loaded).findings if "rain" in finding.what]
    assert (told.level, told.count) == ("warning", 2)
    with pytest.raises(InputError, match="also reads rain") as refused:
        align_for_client(loaded, panel, None)
    assert "/v1/forecast/latest" in refused.value.hint


def test_of_readings_that_meet_the_nearest_wins_then_the_later() -> None:
    panel = small_panel(np.zeros((4, 1)))
    grid, minute = Grid(panel.times), HOUR // 60
    start = moment(panel, 0)
    offsets = [-10, 5, -5, 20, 60 + 29, 60 + 30, 60 + 31, 3 * 60 + 1]
    expected = [[5.0], [90.0], [91.0], [np.nan]]  # half-way goes to the earlier row
    values = np.zeros((4, 1), np.float32)
    readings = np.array([np.nan if offset == 181 else offset for offset in offsets], np.float32)
    readings[offsets.index(89)] = 90.0
    lay(grid, values, 0, np.zeros(8, np.int64), np.array([start + minute * o for o in offsets]), readings)
    np.testing.assert_array_equal(values[[0, 3]], np.array(expected, np.float32)[[0, 3]])
    assert values[1, 0] == 90.0 and values[2, 0] == 91.0


@pytest.mark.parametrize("sent", [[10.5, np.nan], [np.nan, 7.0], [1.0, np.nan, 2.0], [3.0, 4.0, np.nan]])
def test_of_one_moment_the_last_counts_even_where_it_withdraws(sent: list[float]) -> None:
    panel = small_panel(np.zeros((2, 3)))
    values = np.zeros((2, 3), np.float32)
    columns, moments = np.full(len(sent), 1, np.int64), np.full(len(sent), moment(panel, 1), np.int64)
    lay(Grid(panel.times), values, 0, columns, moments, np.array(sent, np.float32))
    np.testing.assert_array_equal(values, np.array([[0, 0, 0], [0, sent[-1], 0]], np.float32))


@given(st.integers(1, 10**10), st.integers(-(10**6), 10**6), st.integers(0, 10**10))
def test_the_edge_of_a_row_is_where_it_begins_to_be_the_nearest(step: int, row: int, beside: int) -> None:
    grid = Grid(TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(microseconds=step), 0))
    assert grid.row(grid.edge(row)) == row
    assert grid.row(grid.edge(row) - 1) == row - 1
    exact = grid.start + row * step
    near = exact + beside % step
    assert grid.row(near) in (row, row + 1)
    assert abs(near - (grid.start + grid.row(near) * step)) * 2 <= step


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-07-01T12:00", "2024-07-01T10:00:00+00:00"),
        ("2024-01-01", "2023-12-31T23:00:00+00:00"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00+00:00"),
        ("2024-10-27T02:30", "2024-10-27T00:30:00+00:00"),  # shown twice: the first
        ("2024-03-31T02:30", "2024-03-31T01:30:00+00:00"),  # never shown
    ],
)
def test_times_without_an_offset_are_on_the_local_clock(text: str, expected: str) -> None:
    assert parse_moment(text, "Europe/Berlin").isoformat() == expected
