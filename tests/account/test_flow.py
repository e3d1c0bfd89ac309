"""The parts of deviations sum to them, follow what was planted, and know nothing of the future where they must not."""

import numpy as np
import pytest

from candor.account.delays import delayed
from candor.account.flow import Parts, decompose, fit_flow

ROWS = 1_500
SOURCE, TARGET, STEPS = np.array([0, 1]), np.array([1, 2]), np.array([2, 5])
SHARES = np.array([0.6, 0.5])


def planted(rows: int = ROWS, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Return deviations of a chain of three sensors with jumps that fade, and what arrives at each, time x sensor."""
    generator = np.random.default_rng(0)
    jumps = 4 * generator.standard_normal((rows, 3)) * (generator.random((rows, 3)) < 0.03)
    held, arrivals = np.zeros((rows, 3)), np.zeros((rows, 3))
    for row in range(1, rows):
        held[row] = 0.85 * held[row - 1] + jumps[row]
    for edge in range(2):
        arrivals[:, TARGET[edge]] = SHARES[edge] * delayed(held[:, SOURCE[edge]], int(STEPS[edge]))
        held[:, TARGET[edge]] += arrivals[:, TARGET[edge]]
    return held + noise * generator.standard_normal(held.shape), arrivals


def split(deviations: np.ndarray, *, causal: bool = False) -> Parts:
    return decompose(deviations, fit_flow(deviations[:1_000], SOURCE, TARGET), causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_the_parts_sum_to_the_deviations_and_the_edges_to_the_arrivals(causal: bool) -> None:
    deviations, _ = planted()
    deviations[200:230, 1] = np.nan
    parts = split(deviations, causal=causal)
    total = parts.arrivals + parts.storage + parts.shock + parts.rest
    np.testing.assert_allclose(total, deviations, atol=1e-12)
    for part in (parts.arrivals, parts.storage, parts.shock, parts.jump_score):
        assert np.isfinite(part).all()
    np.testing.assert_allclose(parts.arriving(0), parts.arrivals[:, 1], atol=1e-12)


def test_what_was_planted_is_found() -> None:
    deviations, arrivals = planted()
    parts = split(deviations)
    np.testing.assert_array_equal(parts.flow.delays.steps, STEPS)
    np.testing.assert_allclose(parts.flow.shares, SHARES, atol=0.05)
    for sensor in (1, 2):
        assert np.corrcoef(parts.arrivals[:, sensor], arrivals[:, sensor])[0, 1] > 0.97
    assert not parts.arrivals[:, 0].any()


def test_causal_parts_do_not_change_with_the_future() -> None:
    deviations, _ = planted()
    changed = deviations.copy()
    changed[1_200:] += 5.0
    flow = fit_flow(deviations[:1_000], SOURCE, TARGET)
    before, after = (decompose(series, flow, causal=True) for series in (deviations, changed))
    for name in ("arrivals", "storage", "shock", "jump_score"):
        np.testing.assert_array_equal(getattr(before, name)[:1_200], getattr(after, name)[:1_200])


@pytest.mark.parametrize("rows", [1, 20, 300])
@pytest.mark.parametrize("dead", [True, False])
def test_short_records_dead_and_constant_sensors_have_finite_parts(rows: int, dead: bool) -> None:
    deviations, _ = planted(rows)
    deviations[:, 0] = np.nan if dead else 3.0
    parts = decompose(deviations, fit_flow(deviations, SOURCE, TARGET))
    for part in (parts.arrivals, parts.storage, parts.shock, parts.rest[:, 1:]):
        assert np.isfinite(part).all()


def test_no_edges_leave_no_arrivals() -> None:
    deviations, _ = planted()
    none = np.array([], int)
    assert not decompose(deviations, fit_flow(deviations, none, none)).arrivals.any()
