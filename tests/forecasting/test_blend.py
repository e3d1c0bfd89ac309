"""A blend lies among its members and is never worse than the best of them where its weights were found."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from candor.forecasting.blend import blended, error_of, fit_blend

WINDOWS, STEPS, SENSORS = 40, 6, 3


def made(seed: int, members: int, missing: float = 0.2) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns forecasts that are off in ways of their own, and what was measured."""
    generator = np.random.default_rng(seed)
    truth = generator.standard_normal((WINDOWS, STEPS, SENSORS)).cumsum(axis=1).astype(np.float32)
    sizes = generator.uniform(0.1, 2.0, members)
    forecasts = [truth + size * generator.standard_normal(truth.shape).astype(np.float32) for size in sizes]
    truth[generator.random(truth.shape) < missing] = np.nan
    return forecasts, truth


@given(st.integers(0, 999), st.integers(1, 6), st.floats(0.5, 200))
def test_it_is_never_worse_than_its_best_member_where_it_was_chosen(seed: int, members: int, horizons: float) -> None:
    forecasts, truth = made(seed, members)
    weights = fit_blend(forecasts, truth, horizons)
    assert weights.shape == (STEPS, members) and (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-9)
    best = min(error_of(np.tile(one, (STEPS, 1)), forecasts, truth) for one in np.eye(members))
    assert error_of(weights, forecasts, truth) <= best + 1e-9


@given(st.integers(0, 99))
def test_it_lies_between_its_members(seed: int) -> None:
    forecasts, truth = made(seed, 4)
    blend = blended(fit_blend(forecasts, truth, 20), forecasts)
    together = np.stack(forecasts)
    assert (blend >= together.min(axis=0) - 1e-4).all() and (blend <= together.max(axis=0) + 1e-4).all()


def test_two_that_are_off_independently_are_better_together() -> None:
    generator = np.random.default_rng(0)
    truth = np.zeros((400, STEPS, SENSORS), np.float32)
    forecasts = [truth + generator.standard_normal(truth.shape).astype(np.float32) for _ in range(2)]
    weights = fit_blend(forecasts, truth, 100)
    np.testing.assert_allclose(weights, 0.5, atol=0.05)
    assert error_of(weights, forecasts, truth) < 0.75 * np.abs(forecasts[0]).mean()


def test_the_fewer_windows_the_more_alike_are_the_weights_of_all_steps() -> None:
    generator = np.random.default_rng(0)
    truth = np.zeros((200, STEPS, SENSORS), np.float32)
    noise = [generator.standard_normal(truth.shape).astype(np.float32) for _ in range(2)]
    rising = np.linspace(0.2, 2.0, STEPS, dtype=np.float32)[:, None]
    forecasts = [noise[0] * rising, noise[1] * rising[::-1]]
    few, many = (fit_blend(forecasts, truth, horizons) for horizons in (1, 1000))
    assert np.ptp(few[:, 0]) < 0.3 * np.ptp(many[:, 0])


def test_nothing_measured_leaves_the_first_member() -> None:
    forecasts, truth = made(0, 3)
    np.testing.assert_array_equal(fit_blend(forecasts, np.full_like(truth, np.nan), 5), np.tile([1.0, 0, 0], (STEPS, 1)))
