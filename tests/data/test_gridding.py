"""The one rule of readings on a grid: the nearest row, half-way the earlier; the nearest reading, then the later."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.data.alignment import KnownPanel, align
from candor.data.gridding import Grid, lay_series
from candor.data.panel import Panel, Sensor
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.times import TimeAxis
from candor.river.readings import valid_readings
from candor.river.settings import BasinSettings
from candor.river.stations import hourly_values
from candor.service.record import Record
from candor.service.store import Reading, ReadingStore

START = datetime(2021, 5, 1, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HOURS = 6
AXIS = TimeAxis(START, HOUR, HOURS)
RULES = BasinSettings(huc="180102", start="2021-05-01", end="2021-05-01")


def hourly(minutes: list[float], values: list[float], hours: int = 4, *, mean: bool = False) -> list[float | None]:
    """Returns the value of each hour for readings at minutes after the start; None where there is none."""
    axis = TimeAxis(START, HOUR, hours)
    moments = Grid(axis).start + np.array([round(60e6 * minute) for minute in minutes], np.int64)
    found = lay_series(Grid(axis), moments, np.array(values, np.float64), takes_mean=mean)
    return [None if np.isnan(value) else float(value) for value in found]


@pytest.mark.parametrize(
    ("minutes", "values", "expected"),
    [
        ([0, 60, 120, 180], [1, 2, 3, 4], [1, 2, 3, 4]),
        ([58, 61, 75], [1, 2, 3], [None, 2, None, None]),  # the nearest, not the first or the last
        ([50, 70], [1, 2], [None, 2, None, None]),  # equally near: the later
        ([70, 50], [1, 2], [None, 1, None, None]),  # in whatever order they come
        ([50, 50], [1, 2], [None, 2, None, None]),  # of one moment the last
        ([30], [1], [1, None, None, None]),  # half-way goes to the earlier row
        ([30.001], [1], [None, 1, None, None]),
        ([-29.999, 210], [1, 2], [1, None, None, 2]),
        ([-30, 210.001], [1, 2], [None, None, None, None]),  # beyond the axis
        ([], [], [None, None, None, None]),
    ],
)
def test_a_row_takes_the_reading_nearest_to_it(minutes, values, expected) -> None:
    assert hourly(minutes, values) == expected


def test_the_mean_takes_all_readings_of_the_row() -> None:
    assert hourly([30.001, 60, 90, 90.001, 150], [1, 2, 6, 8, 4], mean=True) == [None, 3, 6, None]


@given(st.lists(st.tuples(st.integers(-90, 400), st.integers(0, 50)), max_size=40), st.booleans())
def test_the_grid_agrees_with_looking_at_every_reading_for_every_row(pairs, mean) -> None:
    found = hourly([minute for minute, _ in pairs], [float(value) for _, value in pairs], 5, mean=mean)
    for hour in range(5):
        near = [(minute, place, value) for place, (minute, value) in enumerate(pairs) if -30 < minute - 60 * hour <= 30]
        if not near:
            assert found[hour] is None
        elif mean:
            assert found[hour] == pytest.approx(np.mean([value for *_, value in near]))
        else:
            assert found[hour] == min(near, key=lambda one: (abs(one[0] - 60 * hour), -one[0], -one[1]))[2]


def from_file(readings: list[tuple[int, int]]) -> np.ndarray:
    """Returns the hours of a file with one sensor that speaks on every hour beside the one asked about."""
    on_the_hour = [(60 * hour, "clock", 0.0) for hour in range(HOURS)]
    rows = [*on_the_hour, *((minute, "a", float(value)) for minute, value in readings)]
    frame = pd.DataFrame(rows, columns=["time", "sensor", "value"])
    frame["time"] = [(START + minute * MINUTE).isoformat() for minute in frame["time"]]
    panel = read_panel(frame, options=ReadOptions(interval=HOUR, zone="UTC"))
    assert panel.times == AXIS
    return panel.values[:, panel.sensor_ids.index("a")]


def from_builder(readings: list[tuple[int, int]]) -> np.ndarray:
    """Returns the hours that the builder of basins, and `candor data follow`, make of what a service sends."""
    frame = pd.DataFrame({"value": [str(value) for _, value in readings]}, dtype="string")
    frame["time"] = pd.array([(START + minute * MINUTE).isoformat() for minute, _ in readings], dtype="string")
    frame["time_series_id"], frame["unit_of_measure"] = "a", "m"
    frame["approval_status"], frame["qualifier"] = pd.NA, pd.Series([pd.NA] * len(frame), dtype="string")
    return hourly_values(valid_readings(frame, keep_negative=False)["a"], AXIS, RULES)


def from_service(readings: list[tuple[int, int]], store: ReadingStore) -> np.ndarray:
    """Returns the hours of a served model to which the readings were sent."""
    sensors = (Sensor("a", unit="m"),)
    known = Panel(np.empty((0, 1), np.float32), AXIS.slice(0, 0), sensors)
    record = Record(known, None, store)
    start = record.grid.start
    store.append([Reading(sensors[0].id, start + minute * 60_000_000, float(value)) for minute, value in readings])
    return record.rows(0, HOURS).values[:, 0]


def from_finer_readings(readings: list[tuple[int, int]]) -> np.ndarray:
    """Returns the hours that new readings become for a model of hours: a reading a row, every five minutes."""
    steps = TimeAxis(START - HOUR, timedelta(minutes=5), 12 * (HOURS + 1))
    values = np.full((steps.length, 2), np.nan, np.float32)
    values[12::12, 1] = 0.0  # a sensor that speaks on every hour
    for minute, value in readings:
        values[(minute + 60) // 5, 0] = value
    sensors = (Sensor("a"), Sensor("clock"))
    known = KnownPanel.of(Panel(np.zeros((HOURS, 2), np.float32), AXIS, sensors))
    aligned = align(Panel(values, steps, sensors), known, history=1).panel
    first = (aligned.times.start - START) // HOUR
    return aligned.values[-first : HOURS - first, 0]


@settings(max_examples=25)
@given(data=st.data())
def test_all_ways_lay_the_same_readings_on_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    steps = data.draw(st.lists(st.integers(-5, 12 * HOURS - 7), min_size=1, unique=True))  # in any order
    readings = [(5 * step, value) for value, step in enumerate(steps, start=1)]
    store = ReadingStore(tmp_path_factory.mktemp("store") / "store.sqlite")
    try:
        sent = from_service(readings, store)
    finally:
        store.close()
    for found in (from_file(readings), from_builder(readings), from_finer_readings(readings)):
        np.testing.assert_array_equal(found, sent)
