"""Delays that were planted are found; edges that bring nothing are not told; bad data give finite answers."""

import numpy as np
import pytest

from candor.account.delays import Delays, delayed, find_delays

ROWS = 2_500
SOURCE, TARGET = np.array([0, 1, 2, 3]), np.array([2, 2, 3, 4])
STEPS, SHARES = np.array([3, 7, 2, 11]), np.array([0.5, 0.4, 0.7, 0.6])


def network(seed: int = 0, noise: float = 0.2, rows: int = ROWS) -> np.ndarray:
    """Return deviations of five sensors: bursts of their own that fade, what arrives along the edges, and noise."""
    generator = np.random.default_rng(seed)
    held = np.zeros((rows, 5))
    impulses = generator.standard_normal((rows, 5)) ** 3 * (generator.random((rows, 5)) < 0.1)
    for sensor in range(5):
        own = np.zeros(rows)
        for row in range(1, rows):
            own[row] = 0.8 * own[row - 1] + impulses[row, sensor]
        held[:, sensor] = own
        for edge in np.flatnonzero(sensor == TARGET):
            held[:, sensor] += SHARES[edge] * delayed(held[:, SOURCE[edge]], STEPS[edge])
    return held + noise * generator.standard_normal(held.shape)


def assert_same(one: Delays, other: Delays) -> None:
    for name in ("steps", "earliest", "latest", "is_told"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_allclose(one.share, other.share, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_delays_are_found_and_their_shares_are_low_guesses(seed: int) -> None:
    found = find_delays(network(seed), SOURCE, TARGET)
    np.testing.assert_array_equal(found.steps, STEPS)
    assert np.all((found.share > 0.4 * SHARES) & (found.share < 1.1 * SHARES))  # clipped jumps shrink them
    assert found.is_told.all()
    assert np.all((found.earliest <= STEPS) & (found.latest >= STEPS))
    assert np.all((found.strength > 0) & (found.strength < 1))


def test_without_noise_the_delays_are_exact() -> None:
    deviations = network(noise=0.0)
    found = find_delays(deviations, SOURCE, TARGET, held=deviations)
    np.testing.assert_array_equal(found.steps, STEPS)


def test_gaps_hide_no_delay() -> None:
    deviations = network()
    generator = np.random.default_rng(5)
    for begin in generator.integers(0, ROWS - 20, 40):
        deviations[begin : begin + 20, generator.integers(5)] = np.nan
    found = find_delays(deviations, SOURCE, TARGET)
    np.testing.assert_array_equal(found.steps, STEPS)


def test_senders_with_the_same_jumps_are_told_apart() -> None:
    generator = np.random.default_rng(0)
    jumps = 5 * generator.standard_normal(ROWS) * (generator.random(ROWS) < 0.02)
    held = np.zeros((ROWS, 3))
    for row in range(1, ROWS):
        held[row, :2] = 0.9 * held[row - 1, :2] + jumps[row] * np.array([1.0, 0.9]) + generator.normal(0, 0.2, 2)
    held[:, 2] = 0.4 * delayed(held[:, 0], 6) + 0.35 * delayed(held[:, 1], 3)
    found = find_delays(held + generator.normal(0, 0.1, held.shape), np.array([0, 1]), np.array([2, 2]))
    np.testing.assert_array_equal(found.steps, [6, 3])


def test_the_order_of_edges_and_of_sensors_changes_nothing() -> None:
    deviations = network()
    found = find_delays(deviations, SOURCE, TARGET)
    turned = find_delays(deviations, SOURCE[::-1], TARGET[::-1])
    again = Delays(*(getattr(turned, name)[::-1] for name in vars(found)))
    assert_same(found, again)
    order = np.array([3, 0, 4, 1, 2])
    place = np.argsort(order)
    assert_same(found, find_delays(deviations[:, order], place[SOURCE], place[TARGET]))


def test_the_unit_changes_shares_by_its_factor_and_nothing_else() -> None:
    deviations = network()
    factor = np.array([1.0, 10.0, 0.1, 3.0, 100.0])
    found, scaled = (find_delays(series, SOURCE, TARGET) for series in (deviations, deviations * factor))
    np.testing.assert_array_equal(found.steps, scaled.steps)
    np.testing.assert_allclose(scaled.share, found.share * factor[TARGET] / factor[SOURCE], rtol=1e-6)


def test_edges_that_bring_nothing_are_not_told() -> None:
    generator = np.random.default_rng(3)
    found = find_delays(generator.standard_normal((ROWS, 12)).cumsum(axis=0) * 0.1, np.arange(11), np.arange(1, 12))
    assert found.is_told.mean() <= 0.1


def test_long_delays_are_looked_for_where_delays_are_long() -> None:
    held = network()[:, :1]
    far = np.stack([delayed(held[:, 0], steps) for steps in (0, 11, 20)], axis=1)
    far += 0.1 * np.random.default_rng(0).standard_normal(far.shape)
    ends = np.array([0, 0]), np.array([1, 2])
    np.testing.assert_array_equal(find_delays(far, *ends).steps, [11, 20])
    assert find_delays(far, *ends, longest=12).steps.max() <= 12


def test_what_happens_at_once_has_delay_zero_where_that_is_allowed() -> None:
    deviations = network()[:, :1] * np.ones(2) + 0.1 * np.random.default_rng(0).standard_normal((ROWS, 2))
    ends = np.array([0]), np.array([1])
    assert find_delays(deviations, *ends, shortest=0).steps == [0]
    assert find_delays(deviations, *ends).steps >= [1]


@pytest.mark.parametrize("rows", [0, 1, 30, 60, 200])
@pytest.mark.parametrize("broken", ["dead", "constant", "zero", "gaps"])
def test_bad_data_give_finite_answers(rows: int, broken: str) -> None:
    deviations = network(rows=rows)
    if broken == "gaps":
        deviations[np.random.default_rng(0).random(deviations.shape) < 0.7] = np.nan
    else:
        deviations[:, [0, 3]] = {"dead": np.nan, "constant": 4.0, "zero": 0.0}[broken]
    found = find_delays(deviations, SOURCE, TARGET)
    assert np.isfinite(found.share).all() and np.isfinite(found.strength).all()
    assert np.all((found.earliest <= found.steps) & (found.steps <= found.latest) & (found.earliest >= 1))
    if broken == "dead":
        assert not found.is_told[[0, 3]].any()


def test_no_edges_one_sensor_and_loops_are_answered() -> None:
    none = np.array([], int)
    assert len(find_delays(network(), none, none).steps) == 0
    alone = find_delays(network()[:, :1], np.array([0]), np.array([0]))
    assert not alone.is_told.any() and alone.share == [0.0]


def test_edges_beyond_the_bound_on_pairs_are_searched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("candor.account.delays._MOST_PAIRS", 0)
    np.testing.assert_array_equal(find_delays(network(), SOURCE, TARGET).steps, STEPS)
