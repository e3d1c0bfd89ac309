"""Windows are slices of the record: they see no future, lose no mask, and copy nothing before they must."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.data.panel import Panel, Sensor
from candor.data.preprocessing import fill
from candor.data.protocol import split_origins
from candor.data.times import TimeAxis, calendar_of
from candor.data.windows import Batch, Windows, count_inputs
from candor.nets.trainable import tensors_of

Case = tuple[Panel, int, int, np.ndarray]
PARTS = ("inputs", "input_mask", "targets", "target_mask", "time_of_day", "day_of_week", "week_of_year")


def panel_of(values: np.ndarray) -> Panel:
    # Around the night in which Los Angeles puts its clocks forward.
    times = TimeAxis(datetime(2020, 3, 8, 4, tzinfo=UTC), timedelta(minutes=30), len(values), "America/Los_Angeles")
    return Panel(values, times, tuple(Sensor(f"s{i}") for i in range(values.shape[1])))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draws a panel with gaps, a history, a horizon, and some of the legal origins."""
    history, horizon = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    shape = (draw(st.integers(history + horizon, 16)), draw(st.integers(1, 3)))
    values = draw(arrays(np.float32, shape, elements=st.floats(-9, 9, width=32) | st.just(np.nan)))
    legal = st.integers(history, shape[0] - horizon)
    return panel_of(values), history, horizon, np.array(draw(st.lists(legal, max_size=6)), np.int64)


def windows_of(panel: Panel, history: int, horizon: int, origins: np.ndarray) -> Windows:
    return Windows(panel, fill(panel.values, "last"), origins, history, horizon)


@given(cases())
def test_a_batch_is_what_slicing_row_by_row_gives(case: Case) -> None:
    panel, history, horizon, origins = case
    batch = windows_of(*case).batch(slice(None))
    inputs, calendar = fill(panel.values, "last"), calendar_of(panel.times)
    assert batch.inputs.shape == (len(origins), history, len(panel.sensors))
    assert batch.targets.shape == (len(origins), horizon, len(panel.sensors))
    for place, origin in enumerate(origins):
        past, future = slice(origin - history, origin), slice(origin, origin + horizon)
        both = slice(origin - history, origin + horizon)
        np.testing.assert_array_equal(batch.inputs[place], inputs[past])
        np.testing.assert_array_equal(batch.input_mask[place], panel.mask[past])
        np.testing.assert_array_equal(batch.targets[place], panel.values[future])
        np.testing.assert_array_equal(batch.target_mask[place], panel.mask[future])
        np.testing.assert_array_equal(batch.time_of_day[place], calendar.time_of_day[both])
        np.testing.assert_array_equal(batch.day_of_week[place], calendar.day_of_week[both])
        np.testing.assert_array_equal(batch.week_of_year[place], calendar.week_of_year[both])


@given(cases())
def test_masks_say_which_targets_are_numbers(case: Case) -> None:
    batch = windows_of(*case).batch(slice(None))
    np.testing.assert_array_equal(batch.target_mask, ~np.isnan(batch.targets))
    assert not np.isnan(batch.inputs).any()


@given(cases(), st.data())
def test_no_window_sees_its_future(case: Case, data: st.DataObject) -> None:
    panel, history, horizon, _ = case
    origin = data.draw(st.integers(history, panel.times.length - horizon))
    changed = panel.values.copy()
    rows = st.sampled_from(range(origin, len(changed)))
    changed[data.draw(rows)] = data.draw(st.sampled_from([np.nan, 77.0]))
    changed[data.draw(rows) :] = data.draw(st.sampled_from([np.nan, -77.0]))
    one, other = (
        windows_of(made, history, horizon, np.array([origin])).batch(slice(None)) for made in (panel, panel_of(changed))
    )
    np.testing.assert_array_equal(one.inputs, other.inputs)
    np.testing.assert_array_equal(one.input_mask, other.input_mask)
    # Nor does it matter whether there is a future at all: the calendar goes on by itself.
    known = panel.slice(0, origin)
    np.testing.assert_array_equal(one.inputs[0], fill(known.values, "last")[origin - history :])
    calendar = calendar_of(known.times.slice(origin - history, origin + horizon))
    np.testing.assert_array_equal(one.time_of_day[0], calendar.time_of_day)
    np.testing.assert_array_equal(one.day_of_week[0], calendar.day_of_week)
    np.testing.assert_array_equal(one.week_of_year[0], calendar.week_of_year)


@given(cases(), st.data())
def test_shuffling_sensors_shuffles_every_batch(case: Case, data: st.DataObject) -> None:
    panel, history, horizon, origins = case
    order = data.draw(st.permutations(range(len(panel.sensors))))
    shuffled = panel.select([panel.sensor_ids[i] for i in order])
    one = windows_of(*case).batch(slice(None))
    other = windows_of(shuffled, history, horizon, origins).batch(slice(None))
    for part in PARTS[:4]:
        np.testing.assert_array_equal(getattr(other, part), getattr(one, part)[..., order])
    for part in PARTS[4:]:
        np.testing.assert_array_equal(getattr(other, part), getattr(one, part))


@given(cases(), st.data())
def test_batches_follow_their_indices(case: Case, data: st.DataObject) -> None:
    *_, origins = case
    windows = windows_of(*case)
    assert len(windows) == len(origins)
    whole = windows.batch(slice(None))
    chosen = data.draw(st.lists(st.integers(-len(origins), len(origins) - 1), max_size=5)) if len(origins) else []
    indices = np.array(chosen, np.int64)
    first, last = sorted((data.draw(st.integers(0, 6)), data.draw(st.integers(0, 6))))
    for part in PARTS:
        np.testing.assert_array_equal(getattr(windows.batch(indices), part), getattr(whole, part)[indices])
        cut = slice(first, last)
        np.testing.assert_array_equal(getattr(windows.batch(cut), part), getattr(whole, part)[cut])


@given(cases())
def test_rows_are_counted_as_often_as_windows_read_them(case: Case) -> None:
    panel, history, _, origins = case
    literally = [sum(origin - history <= row < origin for origin in origins) for row in range(panel.times.length)]
    assert count_inputs(origins, history, panel.times.length).tolist() == literally


def test_a_record_shorter_than_a_window_has_rows_that_nobody_reads() -> None:
    panel = panel_of(np.ones((3, 2), np.float32))
    windows = windows_of(panel, 12, 12, np.empty(0, np.int64))
    assert len(windows) == len(windows.batch(slice(None)).inputs) == 0
    assert count_inputs(windows.origins, 12, 3).tolist() == [0, 0, 0]


def test_making_windows_copies_nothing_and_a_batch_is_its_own() -> None:
    panel = panel_of(np.random.default_rng(0).random((200, 3), np.float32))
    inputs = fill(panel.values, "zero")
    origins = split_origins(200, 12, 12, "windows", (0.7, 0.1, 0.2)).train
    windows = Windows(panel, inputs, origins, 12, 12)
    views = [view for view in (windows._past | windows._future).values() if view.ndim == 3]
    assert len(views) == 4
    for whole in (inputs, panel.mask, panel.values):
        assert any(np.shares_memory(view[0], whole) and np.shares_memory(view[-1], whole) for view in views)
    before = windows.batch(slice(0, 5)).targets.copy()
    batch = windows.batch(slice(0, 5))
    for part in PARTS:
        getattr(batch, part)[...] = 1
    np.testing.assert_array_equal(windows.batch(slice(0, 5)).targets, before)
    assert windows.origins is origins


@pytest.mark.parametrize("origin", [-1, 0, 3, 17, 20, 200])
def test_an_origin_without_its_history_or_horizon_is_a_programming_mistake(origin: int) -> None:
    panel = panel_of(np.ones((20, 2), np.float32))
    for legal in (4, 16):
        windows_of(panel, 4, 4, np.array([legal]))
    with pytest.raises(ValueError, match="history or its horizon"):
        windows_of(panel, 4, 4, np.array([8, origin]))


def test_inputs_of_another_shape_are_a_programming_mistake() -> None:
    panel = panel_of(np.ones((20, 2), np.float32))
    with pytest.raises(ValueError, match="shape"):
        Windows(panel, np.ones((20, 3), np.float32), np.array([8]), 4, 4)


def test_tensors_are_the_arrays_with_calendars_for_embedding_tables() -> None:
    torch = pytest.importorskip("torch")
    panel = panel_of(np.arange(40, dtype=np.float32).reshape(20, 2))
    batch: Batch = windows_of(panel, 4, 4, np.array([8, 9])).batch(slice(None))
    tensors = tensors_of(batch)
    assert set(tensors) == set(PARTS)
    for part in PARTS:
        np.testing.assert_array_equal(tensors[part].numpy(), getattr(batch, part))
    assert tensors["time_of_day"].dtype == tensors["day_of_week"].dtype == torch.int64
    assert tensors["target_mask"].dtype == torch.bool
