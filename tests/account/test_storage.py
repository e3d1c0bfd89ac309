"""The filter of storage and shocks against the same model solved with full matrices, and its laws."""

from dataclasses import replace

import numpy as np
import pytest

from candor.account.storage import Laws, States, fit_laws, read_states


def laws(sensors: int = 1, **changed: float) -> Laws:
    chosen = {
        "store_retention": 0.95, "inflow_retention": 0.8, "shock_retention": 0.9, "inflow_variance": 0.02,
        "noise_variance": 0.5, "jump_variance": 0.0,
    } | changed  # fmt: skip
    return Laws(**{name: np.full(sensors, value) for name, value in chosen.items()})


def made(rows: int, seed: int = 0, sensors: int = 1, jumps: float = 0.01) -> tuple[np.ndarray, States]:
    """Return deviations of the laws above with jumps of size 6, and their true states."""
    generator = np.random.default_rng(seed)
    inflow, store, shock = np.zeros(sensors), np.zeros(sensors), np.zeros(sensors)
    storage, shocks, jumped = np.zeros((3, rows, sensors))
    for row in range(rows):
        inflow = 0.8 * inflow + generator.normal(0, np.sqrt(0.02), sensors)
        store = 0.95 * store + inflow
        jumped[row] = 6.0 * (generator.random(sensors) < jumps)
        shock = 0.9 * shock + jumped[row]
        storage[row], shocks[row] = store, shock
    return storage + shocks + generator.normal(0, np.sqrt(0.5), (rows, sensors)), States(storage, shocks, jumped)


def covariance_of_storage(law: Laws, rows: int) -> np.ndarray:
    """Return the covariance of a store at rest with itself, row x row, summed from its response to one inflow."""
    s, i = law.store_retention[0], law.inflow_retention[0]
    response, inflow, store = [], 1.0, 1.0
    for _ in range(3_000):
        response.append(store)
        inflow *= i
        store = s * store + inflow
    lags = [float(np.dot(response[: 3_000 - lag], response[lag:])) for lag in range(rows)]
    apart = np.abs(np.subtract.outer(np.arange(rows), np.arange(rows)))
    return law.inflow_variance[0] * np.array(lags)[apart]


def test_without_jumps_the_smoother_is_gaussian_regression_with_full_matrices() -> None:
    law, rows = laws(), 80
    deviations, _ = made(rows, jumps=0)
    deviations[[3, 20, 21, 22, 60]] = np.nan
    known = np.flatnonzero(np.isfinite(deviations[:, 0]))
    storage = covariance_of_storage(law, rows)
    inverse = np.linalg.inv(storage[np.ix_(known, known)] + 0.5 * np.eye(len(known)))
    expected = storage[:, known] @ inverse @ deviations[known, 0]
    smoothed = read_states(deviations, law)
    np.testing.assert_allclose(smoothed.storage[:, 0], expected, atol=1e-9)
    assert not smoothed.shock.any()
    for row in (5, 20, 79):  # what is known at a row needs no row after it
        past = known[known <= row]
        inverse_past = np.linalg.inv(storage[np.ix_(past, past)] + 0.5 * np.eye(len(past)))
        causal = read_states(deviations, law, causal=True).storage[row, 0]
        assert causal == pytest.approx(float(storage[row, past] @ inverse_past @ deviations[past, 0]), abs=1e-9)


def test_the_score_of_a_jump_is_its_t_value_in_a_regression() -> None:
    law, rows = laws(), 60
    deviations, _ = made(rows, jumps=0)
    precision = np.linalg.inv(covariance_of_storage(law, rows) + 0.5 * np.eye(rows))
    score = read_states(deviations, law).jump_score[:, 0]
    for row in (0, 10, 59):
        shape = np.where(np.arange(rows) >= row, 0.9 ** (np.arange(rows) - row), 0.0)
        expected = shape @ precision @ deviations[:, 0] / np.sqrt(shape @ precision @ shape)
        assert score[row] == pytest.approx(expected, abs=1e-8)


def test_what_is_known_at_a_row_does_not_change_with_the_future() -> None:
    law = laws(3, jump_variance=30.0)
    deviations, _ = made(200, sensors=3)
    changed = deviations.copy()
    changed[120:] = 7.0
    before, after = (read_states(series, law, causal=True) for series in (deviations, changed))
    for name in ("storage", "shock", "jump_score"):
        np.testing.assert_array_equal(getattr(before, name)[:120], getattr(after, name)[:120])


def test_sensors_do_not_know_of_one_another() -> None:
    deviations, _ = made(300, sensors=3)
    one = read_states(deviations[:, 1:2], fit_laws(deviations[:, 1:2]))
    every = read_states(deviations, fit_laws(deviations))
    np.testing.assert_allclose(every.shock[:, 1], one.shock[:, 0], atol=1e-12)


def test_storage_shocks_and_jumps_are_found() -> None:
    deviations, truth = made(3_000, sensors=4)
    found = read_states(deviations, fit_laws(deviations))
    for sensor in range(4):
        for name in ("storage", "shock"):
            assert np.corrcoef(getattr(found, name)[:, sensor], getattr(truth, name)[:, sensor])[0, 1] > 0.9
        jumped = np.flatnonzero(truth.jump_score[:, sensor])
        assert (np.abs(found.jump_score[jumped, sensor]) > 4).mean() > 0.9


def test_laws_are_fitted_near_those_that_made_the_data_in_any_unit() -> None:
    deviations, _ = made(4_000, sensors=2)
    fitted = fit_laws(deviations)
    assert np.all(np.abs(fitted.shock_retention - 0.9) < 0.04)
    assert np.all(np.abs(fitted.noise_variance - 0.5) < 0.15)
    scaled = fit_laws(1_000 * deviations)
    np.testing.assert_allclose(scaled.noise_variance, 1e6 * fitted.noise_variance)
    np.testing.assert_array_equal(scaled.store_retention, fitted.store_retention)


@pytest.mark.parametrize("series", [np.nan, 0.0, 3.0])
def test_dead_and_constant_sensors_have_finite_states(series: float) -> None:
    deviations = np.full((100, 2), series)
    deviations[:50, 1] = np.random.default_rng(0).standard_normal(50)
    fitted = fit_laws(deviations)
    for causal in (True, False):
        states = read_states(deviations, fitted, causal=causal)
        assert all(np.isfinite(part).all() for part in (states.storage, states.shock, states.jump_score))


def test_no_rows_and_no_sensors_have_states_of_that_shape() -> None:
    for shape in ((0, 3), (5, 0), (1, 1)):
        empty = np.zeros(shape)
        assert read_states(empty, fit_laws(empty)).storage.shape == shape


def test_the_precision_of_the_deviations_is_kept() -> None:
    deviations, _ = made(200)
    single = read_states(deviations.astype(np.float32), laws(jump_variance=30.0))
    assert single.storage.dtype == np.float32
    double = read_states(deviations, replace(laws(jump_variance=30.0)))
    np.testing.assert_allclose(single.storage, double.storage, atol=1e-4)
