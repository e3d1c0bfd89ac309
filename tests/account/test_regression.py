"""A planted kernel is recovered, gaps among targets change nothing, and penalties pull to the last deviation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.account.regression import Columns, Moments, Penalties, moves_of, regress
from candor.core.arrays import Doubles

ROWS, LAGS, STEPS = 600, 4, 3


def columns() -> Columns:
    """Returns four own lags of sensor 0 and two lags of sensor 1."""
    return Columns(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 2, 3, 0, 1]), np.array([True] * 4 + [False] * 2))


def made_inputs(seed: int) -> tuple[Doubles, Doubles]:
    """Returns what a regression reads, and the moves that a planted kernel makes of it: window x column, x step."""
    generator = np.random.default_rng(seed)
    series = generator.standard_normal((ROWS, 2))
    read = columns().read(series, np.arange(LAGS, ROWS))
    kernel = generator.standard_normal((read.shape[1], STEPS))
    return read, kernel


@given(st.integers(0, 99))
def test_a_planted_kernel_is_recovered_where_there_is_no_noise(seed: int) -> None:
    read, kernel = made_inputs(seed)
    np.testing.assert_allclose(regress(read, read @ kernel, np.zeros(len(kernel))), kernel, atol=1e-6)


@given(st.integers(0, 99), st.floats(0.05, 0.6))
def test_missing_targets_leave_the_solution_of_the_observed_ones(seed: int, missing: float) -> None:
    read, kernel = made_inputs(seed)
    generator = np.random.default_rng(seed)
    targets = read @ kernel + generator.standard_normal((len(read), STEPS))
    targets[generator.random(targets.shape) < missing] = np.nan
    penalty = np.full(read.shape[1], 5.0)
    found = Moments(read, targets).solve(penalty)
    for step in range(STEPS):
        known = ~np.isnan(targets[:, step])
        some = read[known]
        direct = np.linalg.solve(some.T @ some + np.diag(penalty), some.T @ targets[known, step])
        np.testing.assert_allclose(found[:, step], direct, atol=1e-4)


def test_a_few_wild_windows_matter_less_than_to_least_squares() -> None:
    read, kernel = made_inputs(0)
    targets = read @ kernel + 0.1 * np.random.default_rng(0).standard_normal((len(read), STEPS))
    targets[::20] += 50.0
    robust, plain = (regress(read, targets, np.ones(len(kernel)), rounds) for rounds in (2, 0))
    assert np.abs(robust - kernel).max() < 0.2 * np.abs(plain - kernel).max()


def test_large_penalties_leave_the_last_deviation_and_leave_edges_out_first() -> None:
    read, kernel = made_inputs(0)
    targets = read @ kernel
    still = Moments(read, targets).solve(columns().penalty(Penalties(1e12, 1e12)))
    assert np.abs(still[:-1]).max() < 1e-6
    own = Moments(read, targets).solve(columns().penalty(Penalties(1e-6, 1e12)))
    assert np.abs(own[4:6]).max() < 1e-6 < np.abs(own[:4]).min()


def test_lag_zero_is_the_newest_row_before_the_origin() -> None:
    series = np.arange(20.0).reshape(10, 2)
    np.testing.assert_array_equal(columns().read(series, np.array([6])), [[10, 8, 6, 4, 11, 9, 1]])
    moves = moves_of(series, series, np.array([6]), 2, 0)
    np.testing.assert_array_equal(moves, [[2, 4]])


@pytest.mark.parametrize("known", [0, 3])
def test_hardly_any_window_gives_finite_weights(known: int) -> None:
    read, kernel = made_inputs(0)
    targets = np.full((len(read), STEPS), np.nan)
    targets[:known] = (read @ kernel)[:known]
    assert np.isfinite(regress(read, targets, np.ones(len(kernel)))).all()


def test_constant_inputs_give_finite_weights() -> None:
    read = np.ones((50, 4))
    assert np.isfinite(regress(read, np.zeros((50, 2)), np.zeros(4))).all()
