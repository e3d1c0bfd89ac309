"""The streamed scores of intervals equal plain formulas and do not depend on how they were streamed."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mapie.metrics.regression import regression_coverage_score, regression_mean_width_score, regression_mwi_score

from candor.metrics import as_json
from candor.metrics.intervals import IntervalAccumulator

VIEWS = ("overall", "step", "sensor")
COVERAGE = 0.8


@st.composite
def batches(draw):
    """Draws lower and upper ends, targets and a mask; halves make targets that lie just on an end."""
    shape = (draw(st.integers(1, 8)), draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    halves = st.integers(-20, 20).map(lambda whole: whole / 2)
    first, second, target = (draw(hnp.arrays(np.float32, shape, elements=halves)) for _ in range(3))
    return np.minimum(first, second), np.maximum(first, second), target, draw(hnp.arrays(np.bool_, shape))


def random_batch(seed=0):
    random = np.random.default_rng(seed)
    middle, target = random.normal(50, 12, (2, 60, 3, 5))
    width = random.exponential(20, (60, 3, 5))
    return middle - width, middle + width / 2, target, random.random((60, 3, 5)) < 0.8


def scored(*batch):
    accumulator = IntervalAccumulator(*batch[0].shape[1:], COVERAGE)
    accumulator.update(*batch)
    return accumulator


def assert_same_scores(first, second):
    for view in VIEWS:
        scores, others = first.scores(view), second.scores(view)
        assert scores.keys() == others.keys()
        for name, score in scores.items():
            np.testing.assert_allclose(score, others[name], rtol=1e-9, err_msg=name)


def parts_of(view, *arrays):
    """Yields the numbers behind each entry of a view, as flat series."""
    if view == "overall":
        yield tuple(array.ravel() for array in arrays)
        return
    axis = {"step": 1, "sensor": 2}[view]
    for position in range(arrays[0].shape[axis]):
        yield tuple(array.take(position, axis).ravel() for array in arrays)


@given(batches(), st.sampled_from(VIEWS))
def test_scores_equal_the_formulas_written_out_for_one_target_after_the_other(batch, view):
    scores = scored(*batch).scores(view)
    for position, part in enumerate(parts_of(view, *batch)):
        hits, widths, penalised = [], [], []
        for lower, upper, target, is_observed in zip(*(array.tolist() for array in part), strict=True):
            if not is_observed:
                continue
            hits.append(lower <= target <= upper)
            widths.append(upper - lower)
            beside = lower - target if target < lower else target - upper if target > upper else 0.0
            penalised.append(upper - lower + 2 / (1 - COVERAGE) * beside)
        assert np.atleast_1d(scores["count"])[position] == len(hits)
        for name, values in (("coverage", hits), ("width", widths), ("interval_score", penalised)):
            expected = sum(values) / len(values) if values else np.nan
            np.testing.assert_allclose(np.atleast_1d(scores[name])[position], expected, rtol=1e-12)


@pytest.mark.parametrize("view", VIEWS)
def test_scores_equal_those_of_mapie(view):
    batch = random_batch()
    scores = scored(*batch).scores(view)
    for position, (lower, upper, target, mask) in enumerate(parts_of(view, *batch)):
        ends = np.stack([lower, upper], axis=1)[mask][:, :, None]
        for name, expected in (
            ("coverage", regression_coverage_score(target[mask], ends)[0]),
            ("width", regression_mean_width_score(ends)[0]),
            ("interval_score", regression_mwi_score(target[mask], ends, COVERAGE)),
        ):
            np.testing.assert_allclose(np.atleast_1d(scores[name])[position], expected, rtol=1e-12)


def test_the_interval_between_the_true_quantiles_scores_best():
    # A proper score: whoever says what he believes does best, so no hedging of either end may pay.
    target = np.random.default_rng(0).uniform(0, 10, (40_000, 1, 1))
    ends = {shift: (np.full_like(target, 1.0 + shift), np.full_like(target, 9.0 + shift)) for shift in (-0.5, 0.0, 0.5)}
    ends["wide"] = (ends[-0.5][0], ends[0.5][1])
    ends["narrow"] = (ends[0.5][0], ends[-0.5][1])
    scores = {name: scored(*pair, target).scores()["interval_score"] for name, pair in ends.items()}
    assert min(scores, key=scores.get) == 0.0


@given(batches(), st.data())
def test_splitting_into_batches_and_merging_change_nothing(batch, data):
    windows = len(batch[0])
    cuts = sorted(data.draw(st.lists(st.integers(0, windows), max_size=4)))
    streamed = IntervalAccumulator(*batch[0].shape[1:], COVERAGE)
    merged = IntervalAccumulator(*batch[0].shape[1:], COVERAGE)
    for first, stop in pairwise([0, *cuts, windows]):
        part = [array[first:stop] for array in batch]
        streamed.update(*part)
        merged = scored(*part).merge(merged)
    assert_same_scores(scored(*batch), streamed)
    assert_same_scores(scored(*batch), merged)


def test_a_batch_too_large_for_one_piece_scores_like_its_small_parts(monkeypatch):
    batch = random_batch()
    whole = scored(*batch)
    monkeypatch.setattr("candor.metrics.scores._NUMBERS_AT_A_TIME", 7 * 3 * 5)
    assert_same_scores(whole, scored(*batch))


def test_merging_leaves_both_accumulators_as_they_were():
    first, second = scored(*random_batch(1)), scored(*random_batch(2))
    before = first.scores(), second.scores()
    first.merge(second).update(*random_batch(3))
    assert (first.scores(), second.scores()) == before


@given(batches(), st.sampled_from([np.nan, np.inf, -np.inf, 3e38]))
def test_values_behind_the_mask_never_matter(batch, junk):
    *values, mask = batch
    polluted = [np.where(mask, array, np.float32(junk)) for array in values]
    for view in VIEWS:
        clean, dirty = scored(*batch).scores(view), scored(*polluted, mask).scores(view)
        for name in clean:
            np.testing.assert_array_equal(clean[name], dirty[name])


@given(batches())
def test_without_a_mask_a_target_that_is_not_a_number_is_a_missing_one(batch):
    lower, upper, target, mask = batch
    assert_same_scores(scored(*batch), scored(lower, upper, np.where(mask, target, np.nan)))


@given(batches(), st.randoms(use_true_random=False))
def test_permuting_sensors_permutes_their_scores_and_no_others(batch, random):
    order = list(range(batch[0].shape[2]))
    random.shuffle(order)
    plain, permuted = scored(*batch), scored(*(array[:, :, order] for array in batch))
    for view in VIEWS:
        for name, score in plain.scores(view).items():
            expected = score[order] if view == "sensor" else score
            np.testing.assert_allclose(permuted.scores(view)[name], expected, rtol=1e-9)


@pytest.mark.parametrize("view", VIEWS)
def test_without_observations_every_score_is_undefined_and_becomes_null_in_json(view):
    content = json.loads(json.dumps(as_json(IntervalAccumulator(2, 3).scores(view)), allow_nan=False))
    length = {"overall": None, "step": 2, "sensor": 3}[view]
    assert content.pop("count") == (0 if length is None else [0] * length)
    assert all(value == (None if length is None else [None] * length) for value in content.values())


def test_an_unusable_number_at_an_observed_target_is_refused_and_changes_nothing():
    accumulator = scored(*random_batch())
    before = accumulator.scores()
    for which, name in enumerate(("lower end", "upper end", "target")):
        batch = random_batch()
        batch[which][tuple(np.argwhere(batch[3])[[3, -1]].T)] = np.nan
        with pytest.raises(ValueError, match=f"^2 numbers of the {name} are not finite"):
            accumulator.update(*batch)
    lower, upper, target, mask = random_batch()
    with pytest.raises(ValueError, match=f"^{mask.sum()} intervals end below where they begin"):
        accumulator.update(upper, lower, target, mask)
    assert accumulator.scores() == before


def test_shapes_masks_and_coverages_that_do_not_fit_are_refused():
    lower, upper, target, mask = random_batch()
    accumulator = IntervalAccumulator(3, 5)
    for wrong in (lower[:, :, :4], lower[:, :2], lower[0], lower[:, :, :1]):
        with pytest.raises(ValueError, match="the lower end has shape"):
            accumulator.update(wrong, upper, target, mask)
    with pytest.raises(ValueError, match="1 windows of the upper end and 60 of the mask"):
        accumulator.update(lower, upper[:1], target, mask)
    with pytest.raises(ValueError, match="must be boolean"):
        accumulator.update(lower, upper, target, mask.astype(np.float32))
    for other in (IntervalAccumulator(5, 3), IntervalAccumulator(3, 5, 0.5)):
        with pytest.raises(ValueError, match="cannot be merged"):
            accumulator.merge(other)
    with pytest.raises(ValueError, match="not 'node'"):
        accumulator.scores("node")
    for arguments in ((0, 5), (3, 0), (3, 5, 0.0), (3, 5, 1.0), (3, 5, np.nan)):
        with pytest.raises(ValueError, match=r"at least 1|between 0 and 1"):
            IntervalAccumulator(*arguments)


def test_inputs_are_not_changed():
    batch = random_batch()
    copies = [array.copy() for array in batch]
    scored(*batch)
    for array, copy in zip(batch, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
