"""Delay and attenuation of edges are read from forecasts: planted ones are found, in oracles and in regressions."""

import numpy as np
import pytest

from candor.data.panel import Edges
from candor.data.synthetic import generate_road
from candor.research.truth.pulses import Curve, Readings, curves_by_delay, peaks_of, pulse_responses
from candor.research.truth.rules import regression_responses, residuals_of

EDGES = Edges(np.array([0, 1, 0, 3], np.int32), np.array([1, 2, 3, 2], np.int32))
DELAYS = np.array([3, 1, 5, 2])
ARRIVES = np.array([0.6, 0.9, 0.3, 0.5])
HISTORY, HORIZON, SENSORS, LONGEST = 8, 6, 4, 6


def transport(histories: Readings) -> Readings:
    """Returns forecasts of one who knows delays and shares, and nothing of what has not been read yet."""
    found = np.zeros((len(histories), HORIZON, SENSORS))
    for source, target, delay, share in zip(EDGES.source, EDGES.target, DELAYS, ARRIVES, strict=True):
        for step in range(min(delay, HORIZON)):
            found[:, step, target] += share * histories[:, HISTORY + step - delay, source]
    return found


def some_histories(windows: int = 3) -> Readings:
    return np.random.default_rng(0).standard_normal((windows, HISTORY, SENSORS))


def test_one_who_knows_the_transport_shows_every_delay_and_share() -> None:
    responses = pulse_responses(transport, some_histories(), EDGES, LONGEST)
    lags, heights = peaks_of(responses)
    np.testing.assert_array_equal(lags, DELAYS)
    np.testing.assert_allclose(heights, ARRIVES)
    np.testing.assert_allclose(responses.sum(axis=1), ARRIVES)  # nothing at any other lag


def test_a_response_is_the_mean_of_the_gradients_of_equal_lag() -> None:
    generator = np.random.default_rng(1)
    weights = generator.standard_normal((HISTORY, SENSORS, HORIZON, SENSORS))
    responses = pulse_responses(
        lambda histories: np.einsum("wts,tshr->whr", histories, weights), some_histories(), EDGES, LONGEST, size=0.3
    )
    for edge, (source, target) in enumerate(zip(EDGES.source, EDGES.target, strict=True)):
        for lag in range(1, LONGEST + 1):
            cells = [weights[HISTORY - 1 - age, source, lag - 1 - age, target] for age in range(lag)]
            assert responses[edge, lag - 1] == pytest.approx(np.mean(cells))


def test_neither_size_nor_level_matter_to_a_linear_forecaster_and_bends_that_are_even_cancel() -> None:
    expected = pulse_responses(transport, some_histories(), EDGES, LONGEST)
    for size in (0.1, 5.0):
        np.testing.assert_allclose(pulse_responses(transport, some_histories() + 9, EDGES, LONGEST, size), expected)
    quiet = np.zeros((1, HISTORY, SENSORS))
    bent = pulse_responses(lambda histories: transport(histories) + transport(histories**2), quiet, EDGES, LONGEST)
    np.testing.assert_allclose(bent, expected, atol=1e-12)


def test_curves_are_means_over_edges_of_the_same_delay() -> None:
    responses = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 7.0]])
    assert curves_by_delay("one", responses, np.array([2, 2, 1]), is_ours=True) == [
        Curve("one", True, 1, 1, (0.0, 7.0)),
        Curve("one", True, 2, 2, (2.0, 2.0)),
    ]


def test_a_forecaster_deaf_to_its_neighbours_responds_to_none() -> None:
    def stubborn(histories: Readings) -> Readings:
        return np.repeat(histories[:, -1:], HORIZON, axis=1)

    assert not pulse_responses(stubborn, some_histories(), EDGES, LONGEST).any()


def test_histories_are_left_as_they_were() -> None:
    histories = some_histories()
    pulse_responses(transport, histories, EDGES, LONGEST)
    np.testing.assert_array_equal(histories, some_histories())


def test_pulses_that_fit_nowhere_are_refused() -> None:
    for longest, size in ((HISTORY + 1, 1.0), (0, 1.0), (LONGEST, 0.0)):
        with pytest.raises(ValueError, match="pulse"):
            pulse_responses(transport, some_histories(), EDGES, longest, size)
    with pytest.raises(ValueError, match="horizon"):
        pulse_responses(transport, some_histories(), EDGES, HORIZON + 1)


def test_a_regression_on_a_road_has_learned_the_planted_delays() -> None:
    panel, truth = generate_road(sensors=16, steps=4_000, seed=2)
    residuals, spread = residuals_of(panel, train_end=4_000)
    responses = regression_responses(residuals, spread, panel.edges, history=12, horizon=12, longest=12)
    assert np.mean(peaks_of(responses)[0] == truth.delays) > 0.9


def test_a_regression_finds_the_transport_of_plain_noise_exactly() -> None:
    generator = np.random.default_rng(3)
    own = generator.standard_normal((4_000, SENSORS)) * np.linspace(2, 1, SENSORS)
    total = own.copy()
    for step in range(5, len(total)):
        for source, target, delay, share in zip(EDGES.source, EDGES.target, DELAYS, ARRIVES, strict=True):
            total[step, target] += share * total[step - delay, source]
    spread = total.std(axis=0)
    responses = regression_responses(total / spread, spread, EDGES, HISTORY, HORIZON, LONGEST)
    lags, heights = peaks_of(responses)
    np.testing.assert_array_equal(lags, DELAYS)
    np.testing.assert_allclose(heights, ARRIVES, atol=0.05)
