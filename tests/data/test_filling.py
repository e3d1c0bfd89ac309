"""Gaps are filled as a patient person would, going through the record row by row."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from candor.data.panel import Panel, Sensor
from candor.data.preprocessing import Fill, fill, last_reading
from candor.data.times import TimeAxis

RULES: tuple[Fill, ...] = ("zero", "last", "forward-backward")
TABLES = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=8),
    elements=st.floats(-100, 100, width=32) | st.just(np.nan),
)


def literally_filled(values: np.ndarray, how: Fill, start: np.ndarray) -> np.ndarray:
    result = values.copy()
    for sensor in range(values.shape[1]):
        readings = [value for value in values[:, sensor] if value == value]
        held = readings[0] if how == "forward-backward" and readings else start[sensor]
        for row in range(len(values)):
            if values[row, sensor] == values[row, sensor]:
                held = values[row, sensor]
            else:
                result[row, sensor] = 0 if how == "zero" else held
    return result


@given(TABLES, st.sampled_from(RULES), st.data())
def test_every_rule_does_what_it_says(values: np.ndarray, how: Fill, data: st.DataObject) -> None:
    start = data.draw(arrays(np.float32, values.shape[1], elements=st.floats(-9, 9, width=32)))
    filled = fill(values, how, start)
    assert filled.dtype == np.float32
    np.testing.assert_array_equal(filled, literally_filled(values, how, start))
    zeros = np.zeros(values.shape[1], np.float32)
    np.testing.assert_array_equal(fill(values, how), literally_filled(values, how, zeros))


@given(TABLES)
def test_forward_backward_is_that_of_pandas(values: np.ndarray) -> None:
    by_pandas = pd.DataFrame(values).ffill().bfill().fillna(0.0)
    np.testing.assert_array_equal(fill(values, "forward-backward"), by_pandas.to_numpy(np.float32))


@given(TABLES, st.sampled_from(RULES), st.data())
def test_no_gap_is_left_and_no_reading_touched(values: np.ndarray, how: Fill, data: st.DataObject) -> None:
    start = data.draw(
        st.none() | arrays(np.float32, values.shape[1], elements=st.floats(-9, 9, width=32) | st.just(np.nan))
    )
    before = values.copy()
    filled = fill(values, how, start)
    assert not np.isnan(filled).any()
    observed = ~np.isnan(values)
    np.testing.assert_array_equal(filled[observed], values[observed])
    np.testing.assert_array_equal(values, before)
    assert not np.shares_memory(filled, values)


@given(TABLES, st.sampled_from(["zero", "last"]), st.data())
def test_zero_and_last_never_look_ahead(values: np.ndarray, how: Fill, data: st.DataObject) -> None:
    origin = data.draw(st.integers(0, len(values)))
    other = values.copy()
    other[origin:] = data.draw(arrays(np.float32, other[origin:].shape, elements=st.sampled_from([5.0, np.nan])))
    start = np.arange(values.shape[1], dtype=np.float32)
    np.testing.assert_array_equal(fill(values, how, start)[:origin], fill(other, how, start)[:origin])
    np.testing.assert_array_equal(fill(values, how, start)[:origin], fill(values[:origin], how, start))


@given(TABLES, st.sampled_from(RULES), st.data())
def test_shuffling_sensors_shuffles_what_is_filled(values: np.ndarray, how: Fill, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(values.shape[1]))), int)
    start = np.arange(values.shape[1], dtype=np.float32)
    np.testing.assert_array_equal(fill(values[:, order], how, start[order]), fill(values, how, start)[:, order])


@given(TABLES)
def test_the_last_reading_is_the_nearest_one_behind(values: np.ndarray) -> None:
    rows = last_reading(values)
    for row, sensor in np.ndindex(values.shape):
        known = [r for r in range(row + 1) if values[r, sensor] == values[r, sensor]]
        assert rows[row, sensor] == (known[-1] if known else 0)


@pytest.mark.parametrize("how", RULES)
def test_a_panel_knows_nothing_of_the_filling_of_its_readings(how: Fill) -> None:
    values = np.array([[np.nan, 1], [2, np.nan], [np.nan, np.nan]], np.float32)
    times = TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(hours=1), 3)
    panel = Panel(values, times, (Sensor("a"), Sensor("b")))
    mask, before = panel.mask.copy(), panel.fingerprint
    fill(panel.values, how)[...] = 9  # what is filled may be written to: it is nobody else's
    np.testing.assert_array_equal(panel.values, values)
    np.testing.assert_array_equal(panel.mask, mask)
    assert Panel(panel.values, times, panel.sensors).fingerprint == before
