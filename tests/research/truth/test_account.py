"""The account's answers on a small network: better than chance, and about the same patches as CANDOR's."""

from dataclasses import replace

import numpy as np
import pytest

from candor.data.protocol import make_task
from candor.data.synthetic import Truth, generate_river
from candor.forecasting.own_data import choose_protocol, choose_recipe
from candor.research.truth.account import account_of, patch_starts, question_account
from candor.research.truth.results import goals_of
from candor.research.truth.scores import Score, mean_correlation

SEED = 11


@pytest.fixture(scope="module")
def scores() -> tuple[tuple[Score, ...], Truth]:
    panel, truth = generate_river(sensors=8, steps=2_500, seed=SEED)
    protocol, _ = choose_protocol(panel, "synthetic-river", {})
    task = make_task(panel, protocol)
    recipe, _ = choose_recipe(task, "synthetic-river", {})
    found, curves = question_account(task, truth, recipe.model_settings(8, protocol.history, protocol.horizon))
    assert {curve.answer for curve in curves} == {"regression"}
    return found, truth


def test_every_goal_has_a_score_and_every_answer_beats_chance(scores: tuple[tuple[Score, ...], Truth]) -> None:
    found, _ = scores
    assert set(goals_of("account", "synthetic-river")) <= {(score.question, score.measure) for score in found}
    by_chance = {(one.question, one.measure): one.value for one in found if one.answer == "random numbers"}
    for score in found:
        if score.is_ours and score.value is not None:
            assert score.value > (by_chance[score.question, score.measure] or 0.0)


def test_the_parts_of_a_panel_do_not_know_the_test_part_when_they_are_fitted() -> None:
    panel, _ = generate_river(sensors=6, steps=1_500, seed=SEED)
    later = panel.values.copy()
    later[1_200:] += 3
    fits = [account_of(one, 1_200) for one in (panel, replace(panel, values=later))]
    for name in ("delays", "own"):
        one, other = (vars(getattr(parts.flow, name)) for parts, _, _ in fits)
        for key, value in one.items():
            np.testing.assert_array_equal(value, other[key])
    np.testing.assert_array_equal(fits[0][1], fits[1][1])


def test_patches_are_those_of_the_windows() -> None:
    panel, _ = generate_river(sensors=2, steps=400, seed=SEED)
    protocol, _ = choose_protocol(panel, "synthetic-river", {})
    recipe, _ = choose_recipe(make_task(panel, protocol), "synthetic-river", {})
    settings = recipe.model_settings(2, protocol.history, protocol.horizon)
    starts = patch_starts(np.array([100, 101]), settings, protocol.history)
    assert starts[0] == 100 - protocol.history and starts[-1] == 101 - settings.patch_length


def test_mean_correlation_leaves_constant_truths_out_and_counts_constant_answers_as_nothing() -> None:
    truth = np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 2.0], [4.0, 1.0, 4.0]])
    assert mean_correlation(truth, np.array([[2.0, 1.0, 5.0], [4.0, 2.0, 5.0], [8.0, 3.0, 5.0]])) == pytest.approx(0.5)
    assert mean_correlation(np.ones((3, 1)), np.ones((3, 1))) is None
