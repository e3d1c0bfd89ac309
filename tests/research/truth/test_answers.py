"""What is collected over the test windows is what the explanation of each forecast says."""

from dataclasses import replace

import numpy as np
import pytest
from tiny import PROTOCOL, tiny_recipe

from candor.core.errors import InputError
from candor.core.progress import silent
from candor.data.protocol import Task, make_task
from candor.data.synthetic import generate_river
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import ForecastExplanation
from candor.research.encodings import encode_histories
from candor.research.truth.answers import ModelAnswers, collect_answers, refuse_variants
from candor.research.truth.questions import respond

ORIGINS = np.array([330, 331])


@pytest.fixture(scope="module")
def task() -> Task:
    panel, _ = generate_river(sensors=6, steps=400, seed=1)
    return make_task(panel, PROTOCOL)


@pytest.fixture(scope="module", params=["unread", "added"])
def candor(task: Task, request: pytest.FixtureRequest) -> Candor:
    recipe = tiny_recipe(epochs=1, epoch_windows=48, validation_windows=8)
    recipe["model"] = recipe["model"] | {"rain": request.param}
    made = Candor(history=PROTOCOL.history, horizon=PROTOCOL.horizon, recipe=recipe)
    return made.fit(task.panel, task.split)


@pytest.fixture(scope="module")
def answers(candor: Candor, task: Task) -> ModelAnswers:
    return collect_answers(candor, replace(task, split=replace(task.split, test=ORIGINS)))


@pytest.fixture(scope="module")
def explained(candor: Candor, task: Task) -> dict[tuple[int, int], ForecastExplanation]:
    times = task.panel.times.local
    return {
        (origin, column): candor.explain(task.panel, sensor, times[origin].isoformat())
        for origin in ORIGINS.tolist()
        for column, sensor in enumerate(task.panel.sensor_ids)
    }


def test_patches_are_answered_as_the_explanations_of_their_windows_do(candor, task, answers, explained) -> None:
    starts = candor.trained().network.settings.history_starts
    expected: dict[str, dict[tuple[int, int], list[float]]] = {name: {} for name in answers.by_patch}
    for (origin, column), one in explained.items():
        said = {
            "shock": one.components["shock"].raw_strength,
            "shock gates": (one.gates.shock_current + one.gates.shock_following) / 2,
            "accumulation": one.components["accumulation"].raw_strength,
            "release": one.components["release"].raw_strength,
            "accumulation gate": one.gates.accumulation,
            "release gate": one.gates.release,
        }
        for name, by_patch in said.items():
            for start, value in zip(starts, by_patch, strict=True):
                row = origin - PROTOCOL.history + start
                expected[name].setdefault((row, column), []).append(value)
    assert answers.starts.tolist() == sorted({row for row, _ in expected["shock"]})
    for name, by_place in expected.items():
        for (row, column), said in by_place.items():
            place = answers.starts.tolist().index(row)
            assert answers.by_patch[name][place, column] == pytest.approx(np.mean(said), rel=1e-4), name


def test_edges_and_peers_are_those_of_the_explanations(task, answers, explained) -> None:
    ids, edges = task.panel.sensor_ids, task.panel.edges
    likeness = np.zeros_like(answers.likeness)
    weights, arrived = np.zeros_like(answers.weights), np.zeros_like(answers.arrived)
    place = {(ids[s], t): edge for edge, (s, t) in enumerate(zip(edges.source, edges.target, strict=True))}
    for (_, column), one in explained.items():
        for peer in one.peers:
            likeness[column, ids.index(peer.sensor)] += peer.weight / len(ORIGINS)
        for found in one.contributions:
            if found.direction == "forward":
                edge = place[found.sensor, column]
                weights[edge, found.position] += found.weight / len(ORIGINS)
                arrived[edge, found.position] += found.size / len(ORIGINS)
    np.testing.assert_allclose(answers.likeness, likeness, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(answers.weights, weights, rtol=1e-4)
    np.testing.assert_allclose(answers.arrived, arrived, rtol=1e-4, atol=1e-6)


def test_weights_sum_to_one_over_senders_and_over_peers(task, answers) -> None:
    received = np.zeros((len(task.panel.sensors), answers.weights.shape[1]))
    np.add.at(received, task.panel.edges.target, answers.weights)
    np.testing.assert_allclose(received[np.unique(task.panel.edges.target)], 1, rtol=1e-5)
    senders = np.bincount(task.panel.edges.target)[task.panel.edges.target]
    assert (answers.weights[senders == 1] == 1).all() and (senders == 1).any()  # a lone sender's weight tells nothing
    np.testing.assert_allclose(answers.likeness.sum(axis=1), 1, rtol=1e-5)
    assert not answers.likeness.diagonal().any()


def test_sensors_resemble_each_other_as_their_descriptors_do(candor, task, answers) -> None:
    """Window by window and pair by pair."""
    expected = np.zeros_like(answers.resemblance)
    for _, encoding in encode_histories(candor, task.panel, ORIGINS, silent, ""):
        for descriptor in encoding.functional.descriptor.numpy():
            for one, other in np.ndindex(expected.shape):
                lengths = np.linalg.norm(descriptor[one]) * np.linalg.norm(descriptor[other])
                expected[one, other] += descriptor[one] @ descriptor[other] / lengths / len(ORIGINS)
    np.testing.assert_allclose(answers.resemblance, expected, rtol=1e-4, atol=1e-6)


def test_the_response_to_pulses_is_the_change_of_plain_forecasts(candor, task) -> None:
    """One pulse by hand, through the front door: readings in, forecasts out."""
    origins = ORIGINS[:1]
    one = replace(task, split=replace(task.split, test=origins))
    responses = respond(candor, one, longest=1)
    deviation = candor.trained().scaler.deviation
    source, target = task.panel.edges.source[0], task.panel.edges.target[0]
    forecasts = []
    for sign in (1, -1):
        values = task.panel.values.copy()
        values[origins[0] - 1, source] += sign * deviation
        forecasts.append(candor.predict(replace(task.panel, values=values), origins)[0, 0, target])
    assert responses[0, 0] == pytest.approx((forecasts[0] - forecasts[1]) / (2 * deviation), rel=1e-3)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"decomposition": False}, "decomposition"),
        ({"branches": ("forward", "reverse")}, "functional branch"),
        ({"branches": ("functional", "reverse")}, "forward path"),
        ({"relations": 0}, "relations"),
        ({"rain": "alone"}, "shock gates"),
    ],
)
def test_a_variant_without_a_part_is_refused(candor: Candor, change: dict[str, object], part: str) -> None:
    whole = candor.trained().network.settings
    refuse_variants(whole)
    with pytest.raises(InputError, match=f"no {part}:"):
        refuse_variants(whole.model_copy(update=change))
