"""Every question with known answers: the truth itself scores 1, chance what chance does, and rules find the plain."""

from dataclasses import replace

import numpy as np
import pytest

from candor.data.panel import Panel
from candor.data.synthetic import Truth, generate_river, generate_road
from candor.research.truth.answers import ModelAnswers
from candor.research.truth.questions import (
    mean_age,
    score_edges,
    score_shocks,
    score_storage,
    score_twins,
    shocked_patches,
    stored_changes,
)
from candor.research.truth.rules import lagged_peaks, over_patches, residuals_of, usual_readings
from candor.research.truth.scores import RANDOM, Answer, Score, score_answers

LENGTH, LONGEST = 6, 8
TRAINED = 2 * 7 * 288  # steps; every time of the week at least twice, on roads too
Network = tuple[Panel, Truth]


@pytest.fixture(scope="module", params=[generate_river, generate_road])
def network(request: pytest.FixtureRequest) -> Network:
    made: Network = request.param(sensors=16, steps=TRAINED + 1_000, seed=4)
    return made


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def perfect(network: Network) -> ModelAnswers:
    """Returns what a model would say that knows everything."""
    panel, truth = network
    sensors, edges = len(panel.sensors), panel.edges
    starts = np.arange(TRAINED, TRAINED + 1_000 - LENGTH)
    changes = over_patches(
        np.diff(np.abs(truth.components["storage"].astype(float)), axis=0, prepend=0), starts, LENGTH
    )
    filled, emptied = (np.maximum(sign * changes, 0).sum(axis=1) for sign in (1, -1))
    jumps = np.zeros(panel.values.shape)
    jumps[truth.shocks.time, truth.shocks.sensor] = np.abs(truth.shocks.size)
    likeness = generator().random((sensors, sensors))
    for first, second in truth.twins:
        likeness[first, second] = likeness[second, first] = 2.0
    return ModelAnswers(
        starts=starts,
        patch_length=LENGTH,
        by_patch={
            "shock": -over_patches(jumps, starts, LENGTH).max(axis=1),
            "shock gates": over_patches(jumps, starts, LENGTH).max(axis=1),
            "accumulation": filled,
            "release": emptied,
            "accumulation gate": -filled,
            "release gate": -emptied,
        },
        weights=np.stack([truth.attenuation, truth.attenuation], axis=1),
        arrived=np.stack([truth.delays, np.full(len(edges), 10)], axis=1).astype(float),
        likeness=likeness,
        resemblance=-likeness,
    )


def responses_of(truth: Truth) -> np.ndarray:
    responses = np.zeros((len(truth.delays), LONGEST))
    responses[np.arange(len(truth.delays)), truth.delays - 1] = truth.attenuation
    return responses


def values(scores: list[Score], question: str, measure: str) -> dict[str, float | None]:
    return {score.answer: score.value for score in scores if (score.question, score.measure) == (question, measure)}


def test_gates_that_know_all_shocks_score_one_and_changes_beat_levels(network: Network) -> None:
    panel, truth = network
    found = score_shocks(truth, perfect(network), residuals_of(panel, TRAINED)[0], generator())
    for measure in ("AUROC", "average precision"):
        by_answer = values(found, "shocks", measure)
        assert by_answer["shock gates"] == 1 and by_answer["size of shock"] < by_answer[RANDOM]
        assert by_answer["largest change of the residual"] > by_answer["largest residual"] > by_answer[RANDOM]
    assert values(found, "shocks", "AUROC")[RANDOM] == pytest.approx(0.5, abs=0.05)


def test_a_patch_is_shocked_from_the_row_of_a_shock_back_by_its_length(network: Network) -> None:
    _, truth = network
    steps = len(truth.components["shock"])
    starts = np.arange(steps - LENGTH + 1)
    found = shocked_patches(truth, starts, LENGTH)
    expected = np.zeros_like(found)
    for time, sensor in zip(truth.shocks.time, truth.shocks.sensor, strict=True):
        expected[max(time - LENGTH + 1, 0) : time + 1, sensor] = True
    np.testing.assert_array_equal(found, expected)
    assert found.any() and not found.all()


def test_what_passes_by_is_no_shock_of_the_sensor_it_passes(network: Network) -> None:
    _, truth = network
    silent = replace(truth, shocks=replace(truth.shocks, time=truth.shocks.time[:0], sensor=truth.shocks.sensor[:0]))
    assert not shocked_patches(silent, np.arange(10), LENGTH).any()


def test_one_who_knows_the_edges_scores_one_by_weights_positions_and_pulses(network: Network) -> None:
    panel, truth = network
    residuals, _ = residuals_of(panel, TRAINED)
    responses = responses_of(truth)
    found = score_edges(
        truth, perfect(network), responses, responses[:, ::-1], panel.edges, panel.values.astype(float), residuals,
        generator(),
    )  # fmt: skip
    delays = values(found, "delays", "rank correlation")
    assert delays["peak of the pulse response"] == pytest.approx(1)
    assert delays["age of what arrives by position"] == pytest.approx(1)
    assert delays["pulse response of a regression"] == pytest.approx(-1)
    exact = values(found, "delays", "found exactly")
    assert exact["peak of the pulse response"] == 1 and "age of what arrives by position" not in exact
    assert exact[RANDOM] == pytest.approx(1 / LONGEST, abs=0.08)
    attenuation = values(found, "attenuation", "rank correlation")
    assert attenuation["edge weights"] == attenuation["height of the pulse response"] == pytest.approx(1)
    joined = values(found, "attenuation", "in order where edges join")
    if panel.name == "synthetic river":
        assert joined["edge weights"] == 1 and joined["one over the number of senders"] == 0.5
    else:
        assert set(joined.values()) == {None}  # hardly any two roads lead to one sensor


def test_the_age_of_what_arrives_is_weighed_by_its_size() -> None:
    arrived = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 3.0], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(mean_age(arrived), [2, 0, 0.75, 1])  # without anything: the middle


def test_relations_that_know_the_twins_find_them_first(network: Network) -> None:
    panel, truth = network
    usual = usual_readings(panel, TRAINED)
    found = score_twins(truth, perfect(network), panel.values.astype(float), usual, generator())
    for measure in ("precision of the first", "found among three"):
        by_answer = values(found, "twins", measure)
        assert by_answer["functional relations"] == 1 and by_answer["resemblance of backgrounds"] == 0
    assert values(found, "twins", "found among three")[RANDOM] == pytest.approx(3 / 15, abs=0.15)


def test_components_that_follow_the_store_score_one(network: Network) -> None:
    panel, truth = network
    found = score_storage(truth, perfect(network), residuals_of(panel, TRAINED)[0], generator())
    for question in ("accumulation", "release"):
        by_answer = values(found, question, "rank correlation")
        assert by_answer[f"size of {question}"] == pytest.approx(1)
        assert by_answer[f"{question} gate"] == pytest.approx(-1)
        assert by_answer[RANDOM] == pytest.approx(0, abs=0.05)


def test_stores_fill_from_empty_whatever_they_do_to_the_reading(network: Network) -> None:
    _, truth = network
    stored = np.cumsum(stored_changes(truth), axis=0)
    np.testing.assert_allclose(stored, np.abs(truth.components["storage"]), atol=1e-9)


def test_usual_readings_come_from_the_training_part_alone(network: Network) -> None:
    panel, _ = network
    later = panel.values.copy()
    later[TRAINED:] = np.nan
    usual = usual_readings(panel, TRAINED)
    np.testing.assert_array_equal(usual, usual_readings(replace(panel, values=later), TRAINED))
    assert np.isfinite(usual).all()
    missing, _ = residuals_of(replace(panel, values=later), TRAINED)
    assert not missing[TRAINED:].any() and missing[:TRAINED].std(axis=0) == pytest.approx(1)


def test_lags_are_those_of_a_series_that_was_delayed() -> None:
    first = generator().standard_normal(500)
    series = np.stack([first, np.roll(first, 5), np.full(500, 2.0)], axis=1)
    lags, peaks = lagged_peaks(series, np.array([0, 0]), np.array([1, 2]), 8)
    np.testing.assert_array_equal(lags, [5, 1])
    np.testing.assert_allclose(peaks, [1, 0], atol=0.01)


def test_answers_that_cannot_be_scored_are_refused() -> None:
    measures = {"mean": lambda numbers: float(numbers.mean())}
    with pytest.raises(ValueError, match="shape"):
        score_answers("it", measures, [Answer("a", np.zeros(3)), Answer("b", np.zeros(2))], generator())
    with pytest.raises(ValueError, match="not a number"):
        score_answers("it", measures, [Answer("a", np.array([1.0, np.nan]))], generator())
