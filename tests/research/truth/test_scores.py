"""Scores of orderings: known answers, agreement with scikit-learn and SciPy, and what must not change them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from candor.research.truth.scores import (
    area_under_curve,
    average_precision,
    mean_rank_correlation,
    rank_correlation,
    share_found,
    share_in_order,
)

# Few different numbers, so that many are equal.
CASES = st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=4, max_size=40).filter(
    lambda cases: len({label for label, _ in cases}) == 2
)


@given(CASES)
def test_areas_and_precisions_are_those_of_scikit_learn(cases: list[tuple[bool, int]]) -> None:
    labels, scores = np.array([label for label, _ in cases]), np.array([float(score) for _, score in cases])
    assert area_under_curve(labels, scores) == pytest.approx(roc_auc_score(labels, scores))
    assert average_precision(labels, scores) == pytest.approx(average_precision_score(labels, scores))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30))
def test_rank_correlations_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    truth, scores = np.array(pairs, float).T
    found = rank_correlation(truth, scores)
    if np.ptp(truth) == 0:
        assert found is None
    elif np.ptp(scores) == 0:
        assert found == 0
    else:
        assert found == pytest.approx(spearmanr(truth, scores).statistic)


@given(CASES)
def test_only_the_order_of_scores_counts_and_turning_it_turns_the_score(cases: list[tuple[bool, int]]) -> None:
    labels, scores = np.array([label for label, _ in cases]), np.array([float(score) for _, score in cases])
    area = area_under_curve(labels, scores)
    assert area is not None
    assert area_under_curve(labels, np.exp(3 * scores) - 7) == area
    assert average_precision(labels, np.exp(3 * scores) - 7) == average_precision(labels, scores)
    assert area_under_curve(labels, -scores) == pytest.approx(1 - area)
    assert area_under_curve(~labels, scores) == pytest.approx(1 - area)


def test_a_perfect_answer_scores_one_and_its_opposite_the_least() -> None:
    labels, truth = np.array([False, True, False, True, False]), np.array([3.0, 9.0, 1.0, 7.0, 2.0])
    assert area_under_curve(labels, truth) == average_precision(labels, truth) == 1
    assert rank_correlation(truth, truth) == pytest.approx(1)
    assert area_under_curve(labels, -truth) == 0
    assert rank_correlation(truth, -truth) == pytest.approx(-1)
    assert average_precision(labels, -truth) == pytest.approx((1 / 4 + 2 / 5) / 2)  # the last two are the positives


def test_random_gates_are_worth_a_half_within_the_bounds_of_chance() -> None:
    generator = np.random.default_rng(0)
    labels = generator.random(600) < 0.1
    positives, trials = int(labels.sum()), 400
    areas = np.array([area_under_curve(labels, generator.random(600)) for _ in range(trials)])
    deviation = np.sqrt(601 / (12 * positives * (600 - positives)))  # of the rank-sum statistic
    assert abs(areas.mean() - 0.5) < 4 * deviation / np.sqrt(trials)
    assert areas.std() == pytest.approx(deviation, rel=0.15)
    precisions = [average_precision(labels, generator.random(600)) for _ in range(trials)]
    assert np.mean(precisions) == pytest.approx(labels.mean(), rel=0.15)


def test_what_has_no_order_has_no_score() -> None:
    numbers = np.arange(4.0)
    assert area_under_curve(np.zeros(4, bool), numbers) is None
    assert area_under_curve(np.ones(4, bool), numbers) is None
    assert average_precision(np.zeros(4, bool), numbers) is None
    assert rank_correlation(np.ones(4), numbers) is None
    assert rank_correlation(numbers[:2], numbers[:2]) is None
    assert share_found((), 1, np.eye(4)) is None
    assert share_in_order(numbers[:3], np.zeros(3, int), numbers[:3]) is None  # three pairs are too few
    assert mean_rank_correlation(np.ones((4, 2)), np.ones((4, 2))) is None


def test_a_constant_answer_is_worth_what_chance_is() -> None:
    assert rank_correlation(np.arange(4.0), np.ones(4)) == 0
    assert area_under_curve(np.array([True, False, False]), np.ones(3)) == 0.5
    assert share_in_order(np.arange(5.0), np.zeros(5, int), np.ones(5)) == 0.5
    assert share_found(((0, 1),), 1, np.ones((5, 5))) == pytest.approx(1 / 4)
    assert share_found(((0, 1),), 3, np.ones((5, 5))) == pytest.approx(3 / 4)


def test_columns_without_an_order_are_left_out_of_the_mean() -> None:
    truth = np.array([[1.0, 5.0, 1.0], [2.0, 5.0, 2.0], [3.0, 5.0, 3.0]])
    scores = np.array([[1.0, 3.0, 3.0], [2.0, 1.0, 2.0], [3.0, 2.0, 1.0]])
    assert mean_rank_correlation(truth, scores) == pytest.approx((1 - 1) / 2)
    assert mean_rank_correlation(truth[:, :2], scores[:, :2]) == pytest.approx(1)


@pytest.mark.parametrize("first", [1, 2, 3])
def test_partners_among_equals_are_found_as_often_as_in_all_orders(first: int) -> None:
    likeness = np.array([[9, 2, 2, 1, 2], [0, 9, 3, 3, 1], [1, 1, 9, 1, 1], [4, 3, 2, 9, 1], [0, 0, 1, 0, 9]], float)
    pairs = ((0, 4), (1, 3))
    found = []
    for asked, partner in [(0, 4), (4, 0), (1, 3), (3, 1)]:
        others = [other for other in range(5) if other != asked]
        orders = [sorted(order, key=lambda o: -likeness[asked, o]) for order in itertools.permutations(others)]
        found.append(np.mean([partner in order[:first] for order in orders]))  # sorting keeps equals as they came
    assert share_found(pairs, first, likeness) == pytest.approx(np.mean(found))


def test_order_is_asked_for_within_groups_only() -> None:
    truth = np.array([1.0, 2.0, 3.0, 4.0, 10.0, 11.0])
    group = np.array([0, 0, 0, 0, 1, 1])
    scores = np.array([1.0, 2.0, 4.0, 3.0, -5.0, -6.0])  # one pair turned in each group; the groups are far apart
    assert share_in_order(truth, group, scores) == pytest.approx(5 / 7)
    assert share_in_order(truth, group, truth) == 1
    assert share_in_order(truth, group, -truth) == 0
