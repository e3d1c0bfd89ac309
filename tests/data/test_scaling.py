"""The scaler is the mean and the population deviation of what training reads, and can be undone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.data.panel import Panel
from candor.data.preprocessing import Scaler, fill, fit_scaler
from candor.data.protocol import split_origins
from candor.data.windows import count_inputs

# As sensors report: in steps, so that two readings are either the same or clearly different.
READINGS = st.integers(-64_000, 64_000).map(lambda steps: steps / 64)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    shape = (draw(st.integers(4, 30)), draw(st.integers(1, 4)))
    return draw(arrays(np.float32, shape, elements=READINGS | st.just(np.nan)))


@given(tables(), st.integers(1, 3), st.data())
def test_weights_give_what_stacking_the_windows_gives(values: np.ndarray, history: int, data: st.DataObject) -> None:
    origins = np.array(data.draw(st.lists(st.integers(history, len(values)), min_size=1)), np.int64)
    stacked = np.stack([values[origin - history : origin] for origin in origins]).astype(np.float64)
    scaler = fit_scaler(values, count_inputs(origins, history, len(values)))
    if np.isnan(stacked).all():
        assert scaler == Scaler(0.0, 1.0)
        return
    assert scaler.mean == pytest.approx(np.nanmean(stacked), rel=1e-9, abs=1e-9)
    deviation = np.nanstd(stacked)
    assert scaler.deviation == pytest.approx(deviation if deviation > 1e-9 else 1.0, rel=1e-6)


@given(tables())
def test_without_weights_every_reading_counts_once(values: np.ndarray) -> None:
    assert fit_scaler(values) == fit_scaler(values, np.ones(len(values), np.int64))
    assert fit_scaler(values).mean == pytest.approx(fit_scaler(np.vstack([values, values])).mean, abs=1e-9)


@given(tables(), st.data())
def test_shuffling_sensors_leaves_the_scaler(values: np.ndarray, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(values.shape[1])))
    one, other = fit_scaler(values), fit_scaler(values[:, order])
    assert other.mean == pytest.approx(one.mean, rel=1e-9, abs=1e-9)
    assert other.deviation == pytest.approx(one.deviation, rel=1e-6)


@given(tables(), st.data())
def test_rows_that_training_does_not_read_have_no_say(values: np.ndarray, data: st.DataObject) -> None:
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))))
    other = np.where(weights[:, None] > 0, values, np.float32(4321))
    assert fit_scaler(other, weights) == fit_scaler(values, weights)


@given(
    st.floats(-1e6, 1e6, width=32).filter(bool),
    st.integers(1, 3000),
    st.sampled_from(["at once", "after a silence", "after rows that do not count"]),
)
def test_readings_that_are_all_the_same_are_not_blown_up(reading: float, rows: int, when: str) -> None:
    values = np.full((1000 + rows, 6), reading, np.float32)
    weights = np.ones(len(values), np.int64)
    if when == "after a silence":
        values[:1000] = np.nan
    elif when == "after rows that do not count":
        values[:1000], weights[:1000] = 17.3, 0
    assert fit_scaler(values, weights) == Scaler(float(np.float32(reading)), 1.0)


def test_digits_are_kept_far_from_zero_even_after_a_long_silence() -> None:
    values = (np.random.default_rng(0).normal(0, 1, (5000, 3)) + 1e6).astype(np.float32)
    values[:1000] = np.nan
    exact = values[1000:].astype(np.float64)
    scaler = fit_scaler(values)
    assert scaler.mean == pytest.approx(exact.mean(), rel=1e-12)
    assert scaler.deviation == pytest.approx(exact.std(), rel=1e-9)


def test_nothing_at_all_is_scaled_by_one() -> None:
    for values in (np.full((5, 2), np.nan, np.float32), np.empty((0, 2), np.float32), np.empty((3, 0), np.float32)):
        assert fit_scaler(values) == Scaler(0.0, 1.0)


@given(arrays(np.float32, (5, 2), elements=READINGS), st.floats(-500, 500), st.floats(0.1, 100))
def test_unscaling_undoes_scaling(values: np.ndarray, mean: float, deviation: float) -> None:
    scaler = Scaler(mean, deviation)
    scores = scaler.scale(values)
    assert scores.dtype == scaler.unscale(scores).dtype == np.float32
    np.testing.assert_allclose(scores, (values.astype(np.float64) - mean) / deviation, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(scaler.unscale(scores), values, rtol=1e-5, atol=1e-3)


def test_metr_la_has_the_scaler_of_the_benchmark(metr_la: Panel) -> None:
    values = fill(metr_la.values, "zero")
    split = split_origins(len(values), 12, 12, "windows", (0.7, 0.1, 0.2))
    scaler = fit_scaler(values, count_inputs(split.train, 12, len(values)))
    assert (round(scaler.mean, 5), round(scaler.deviation, 5)) == (54.40593, 19.49374)
