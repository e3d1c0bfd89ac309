"""The streamed scores equal other routes to them and do not depend on how they were streamed."""

import json
from itertools import pairwise, permutations

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from candor.metrics import ScoreAccumulator, as_json, skill

VIEWS = ("overall", "step", "sensor")
ERRORS = ("mae", "mse", "rmse", "mape")
ORACLES = {
    "mae": sklearn.metrics.mean_absolute_error,
    "mse": sklearn.metrics.mean_squared_error,
    "rmse": sklearn.metrics.root_mean_squared_error,
    "mape": lambda y, f, sample_weight: (
        100 * sklearn.metrics.mean_absolute_percentage_error(y, f, sample_weight=sample_weight)
    ),
}


def is_constant(series):
    return len(series) == 0 or series.min() == series.max()


def nash_sutcliffe(observed, forecast):
    """The efficiency of one series as the formula says, NaN where it is undefined."""
    observed, forecast = (series[~np.isnan(observed)].astype(np.float64) for series in (observed, forecast))
    return np.nan if is_constant(observed) else 1 - ((forecast - observed) ** 2).mean() / observed.var()


def kling_gupta(observed, forecast):
    """The efficiency of one series as the formula says, NaN where it is undefined."""
    observed, forecast = (series[~np.isnan(observed)].astype(np.float64) for series in (observed, forecast))
    if is_constant(observed) or is_constant(forecast) or abs(observed.mean()) <= 1e-12 * observed.std():
        return np.nan
    correlation = np.corrcoef(observed, forecast)[0, 1]
    ratios = forecast.std() / observed.std(), forecast.mean() / observed.mean()
    return 1 - np.linalg.norm([correlation - 1, *(ratio - 1 for ratio in ratios)])


@st.composite
def batches(draw, least=-40):
    """Draws forecast, target and mask; whole and half numbers make zeros, ties and constants."""
    shape = (draw(st.integers(1, 8)), draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    numbers = st.integers(least, 40).map(lambda whole: whole / 2)
    forecast, target = (draw(hnp.arrays(np.float32, shape, elements=numbers)) for _ in range(2))
    return forecast, target, draw(hnp.arrays(np.bool_, shape))


def scored(forecast, target, mask):
    accumulator = ScoreAccumulator(*mask.shape[1:])
    accumulator.update(forecast, target, mask)
    return accumulator


def assert_same_scores(first, second):
    for view in VIEWS:
        assert_close(first.scores(view), second.scores(view))


def assert_close(scores, others):
    assert scores.keys() == others.keys()
    for name, score in scores.items():
        np.testing.assert_allclose(score, others[name], rtol=1e-9, atol=1e-9, err_msg=name)


def random_batch(windows=60, horizon=3, sensors=5, seed=0):
    random = np.random.default_rng(seed)
    shape = (windows, horizon, sensors)
    target = random.normal(50, 12, shape).astype(np.float32)
    target[random.random(shape) < 0.1] = 0.0
    forecast = (target + random.normal(1, 4, shape)).astype(np.float32)
    return forecast, target, random.random(shape) < 0.8


def parts_of(view, *arrays):
    """Yields the pairs behind each entry of a view, as flat series."""
    if view == "overall":
        yield tuple(array.ravel() for array in arrays)
        return
    axis = {"step": 1, "sensor": 2}[view]
    for position in range(arrays[0].shape[axis]):
        yield tuple(array.take(position, axis).ravel() for array in arrays)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ERRORS)
def test_errors_equal_those_of_scikit_learn_weighted_by_the_mask(name, view):
    batch = random_batch()
    expected = []
    for forecast, target, mask in parts_of(view, *batch):
        weight = mask & (target != 0) if name == "mape" else mask
        target, forecast = target.astype(np.float64), forecast.astype(np.float64)
        expected.append(ORACLES[name](target, forecast, sample_weight=weight))
    found = np.atleast_1d(scored(*batch).scores(view)[name])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_nash_sutcliffe_equals_the_coefficient_of_determination_of_scikit_learn():
    batch = random_batch()
    expected = [
        sklearn.metrics.r2_score(target.astype(float), forecast.astype(float), sample_weight=mask)
        for forecast, target, mask in parts_of("sensor", *batch)
    ]
    np.testing.assert_allclose(scored(*batch).scores("sensor")["nse"], expected, rtol=1e-12)


@given(batches())
def test_streamed_efficiencies_equal_those_of_plain_series(batch):
    scores = scored(*batch).scores("sensor")
    for position, (forecast, target, mask) in enumerate(parts_of("sensor", *batch)):
        observed = np.where(mask, target, np.nan)
        nse, kge = nash_sutcliffe(observed, forecast), kling_gupta(observed, forecast)
        np.testing.assert_allclose(scores["nse"][position], nse, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(scores["kge"][position], kge, rtol=1e-9, atol=1e-9)


@given(batches())
def test_efficiencies_overall_are_the_mean_and_median_of_the_sensors_that_have_one(batch):
    overall, by_sensor = scored(*batch).scores(), scored(*batch).scores("sensor")
    for name, source, summary in [
        ("nse", "nse", np.mean),
        ("nse_median", "nse", np.median),
        ("kge", "kge", np.mean),
    ]:
        defined = [value for value in by_sensor[source] if not np.isnan(value)]
        np.testing.assert_allclose(overall[name], summary(defined) if defined else np.nan)


@given(batches())
def test_efficiencies_of_a_step_are_the_mean_of_the_sensors_that_have_one(batch):
    by_step = scored(*batch).scores("step")
    for step in range(batch[0].shape[1]):
        alone = scored(*(array[:, [step]] for array in batch)).scores()
        for name in ("nse", "kge"):
            np.testing.assert_allclose(by_step[name][step], alone[name], rtol=1e-9, atol=1e-9)


def test_sensors_that_lie_far_from_each_other_do_not_pass_for_well_forecast():
    _, target, mask = random_batch()
    levels = 1e4 * np.arange(5)
    mean = np.mean(target.astype(np.float64), axis=(0, 1), where=mask)  # of each sensor, which explains nothing of it
    scores = scored(np.broadcast_to(mean + levels, target.shape), target + levels, mask)
    assert (scores.scores("step")["nse"] <= 0).all() and scores.scores()["nse"] <= 1e-9


@given(batches(), st.data())
def test_splitting_into_batches_and_the_order_of_merging_change_nothing(batch, data):
    windows = len(batch[0])
    cuts = sorted(data.draw(st.lists(st.integers(0, windows), max_size=4)))
    bounds = list(pairwise([0, *cuts, windows]))
    streamed = ScoreAccumulator(*batch[0].shape[1:])
    for first, stop in bounds:
        streamed.update(*(array[first:stop] for array in batch))
    pool = [scored(*(array[first:stop] for array in batch)) for first, stop in bounds]
    while len(pool) > 1:
        left = pool.pop(data.draw(st.integers(0, len(pool) - 1)))
        right = pool.pop(data.draw(st.integers(0, len(pool) - 1)))
        pool.append(left.merge(right))
    assert_same_scores(scored(*batch), streamed)
    assert_same_scores(scored(*batch), pool[0])


def test_a_batch_too_large_for_one_piece_scores_like_its_small_parts(monkeypatch):
    batch = random_batch()
    whole = scored(*batch)
    monkeypatch.setattr("candor.metrics.scores._NUMBERS_AT_A_TIME", 7 * 3 * 5)
    assert_same_scores(whole, scored(*batch))


def test_merging_leaves_both_accumulators_as_they_were():
    first, second = scored(*random_batch(seed=1)), scored(*random_batch(seed=2))
    before = first.scores(), second.scores()
    first.merge(second).update(*random_batch(seed=3))
    assert (first.scores(), second.scores()) == before


@given(batches(), st.sampled_from([np.nan, np.inf, -np.inf, 3e38, 0.0]))
def test_values_behind_the_mask_never_matter(batch, junk):
    forecast, target, mask = batch
    polluted = [np.where(mask, values, np.float32(junk)) for values in (forecast, target)]
    for view in VIEWS:
        clean, dirty = scored(*batch).scores(view), scored(*polluted, mask).scores(view)
        for name in clean:
            np.testing.assert_array_equal(clean[name], dirty[name])


@given(batches(), st.randoms(use_true_random=False))
def test_permuting_sensors_permutes_their_scores_and_no_others(batch, random):
    order = list(range(batch[0].shape[2]))
    random.shuffle(order)
    plain, permuted = scored(*batch), scored(*(array[:, :, order] for array in batch))
    by_sensor = plain.scores("sensor")
    assert_close({name: by_sensor[name][order] for name in by_sensor}, permuted.scores("sensor"))
    for view in ("overall", "step"):
        assert_close(plain.scores(view), permuted.scores(view))


def test_a_large_offset_leaves_the_errors_and_the_efficiency_accurate():
    random = np.random.default_rng(0)
    # Around a million, float32 resolves sixteenths: sums and offsets below are all exact.
    target, noise = random.integers(-16, 17, (2, 400, 2, 3)) / 16
    mask = random.random(target.shape) < 0.9
    plain, lifted = ScoreAccumulator(2, 3), ScoreAccumulator(2, 3)
    for part in np.split(np.arange(400), 20):
        near = (target + noise)[part].astype(np.float32), target[part].astype(np.float32)
        far = [(series.astype(np.float64) + 1e6).astype(np.float32) for series in near]
        plain.update(*near, mask[part])
        lifted.update(*far, mask[part])
    for view in VIEWS:
        for name in ("mae", "mse", "rmse", "nse"):
            expected, found = plain.scores(view)[name], lifted.scores(view)[name]
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    observed, forecast = np.where(mask, target, np.nan) + 1e6, target + noise + 1e6
    pairs = parts_of("sensor", observed, forecast)
    expected = [kling_gupta(*series) for series in pairs]
    np.testing.assert_allclose(lifted.scores("sensor")["kge"], expected, rtol=1e-9)


def test_sums_are_kept_in_double_precision():
    target = np.zeros((3000, 1, 1), np.float32)
    forecast = np.full_like(target, 0.1)
    accumulator = ScoreAccumulator(1, 1)
    for _ in range(20):
        accumulator.update(forecast, target, np.ones(target.shape, np.bool_))
    assert accumulator.scores()["mae"] == pytest.approx(float(np.float32(0.1)), rel=1e-12)


@given(batches(least=1))
def test_a_perfect_forecast_has_no_error_and_full_efficiency_where_it_is_defined(batch):
    _, target, mask = batch
    for view in VIEWS:
        scores = scored(target, target, mask).scores(view)
        is_scored = np.asarray(scores["count"]) > 0
        for name in ERRORS:
            np.testing.assert_array_equal(scores[name], np.where(is_scored, 0.0, np.nan))
        for name in ("nse", "kge"):
            efficiency = np.atleast_1d(scores[name])
            np.testing.assert_allclose(efficiency[~np.isnan(efficiency)], 1.0, rtol=1e-9)


def test_forecasting_the_mean_of_the_observations_has_an_efficiency_of_zero():
    _, target, mask = random_batch(horizon=1)
    mean = np.mean(target.astype(np.float64), axis=(0, 1), where=mask)
    forecast = np.broadcast_to(mean, target.shape)
    np.testing.assert_allclose(scored(forecast, target, mask).scores("sensor")["nse"], 0, atol=1e-9)


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, -3.3])
def test_a_constant_target_has_no_efficiency_however_it_was_batched(value):
    random = np.random.default_rng(0)
    target = np.full((30, 3, 2), value)  # in float64, where even a mean of equals is rounded
    forecast, mask = target + random.normal(0, 2, target.shape), random.random(target.shape) < 0.7
    accumulator = ScoreAccumulator(3, 2)
    for first, stop in pairwise([0, 1, 8, 30]):
        accumulator.update(forecast[first:stop], target[first:stop], mask[first:stop])
    for view in VIEWS:
        scores = accumulator.scores(view)
        assert np.all(np.isnan(scores["nse"])) and np.all(np.isnan(scores["kge"]))
        assert np.all(np.asarray(scores["mae"]) > 0)


@pytest.mark.parametrize("order", list(permutations([0.1, 0.2, -0.3])))
def test_a_mean_target_of_zero_has_no_kling_gupta_efficiency_in_whatever_order_it_came(order):
    accumulator = ScoreAccumulator(1, 1)
    for number, value in enumerate(order):
        accumulator.update(
            np.full((1, 1, 1), float(number)),
            np.full((1, 1, 1), value),
            np.ones((1, 1, 1), np.bool_),
        )
    assert np.isnan(accumulator.scores("sensor")["kge"][0])


def test_a_constant_forecast_has_no_correlation_and_so_no_kling_gupta_efficiency():
    _, target, mask = random_batch()
    scores = scored(np.full_like(target, 0.1), target, mask).scores("sensor")
    assert np.isnan(scores["kge"]).all() and np.isfinite(scores["nse"]).all()


def test_targets_of_zero_are_left_out_of_the_percentage_error_only():
    target = np.array([0.0, 2.0, 4.0], np.float32).reshape(3, 1, 1)
    scores = scored(target + 1, target, np.ones(target.shape, np.bool_)).scores()
    assert scores["mape"] == pytest.approx(100 * (1 / 2 + 1 / 4) / 2)
    assert (scores["mae"], scores["count"]) == (1.0, 3)


@pytest.mark.parametrize("view", VIEWS)
def test_without_observations_every_score_is_undefined_and_becomes_null_in_json(view):
    empty = ScoreAccumulator(2, 3)
    empty.update(*np.empty((2, 0, 2, 3), np.float32), np.empty((0, 2, 3), np.bool_))
    content = json.loads(json.dumps(as_json(empty.scores(view)), allow_nan=False))
    length = {"overall": None, "step": 2, "sensor": 3}[view]
    assert content.pop("count") == (0 if length is None else [0] * length)
    assert all(value == (None if length is None else [None] * length) for value in content.values())


def test_json_keeps_every_score_that_is_defined():
    forecast, target, mask = random_batch()
    mask[:, :, 1] = False
    scores = scored(forecast, target, mask).scores("sensor")
    content = json.loads(json.dumps(as_json(scores), allow_nan=False))
    assert list(content) == list(scores)
    for name, values in content.items():
        expected = [None if np.isnan(value) else value for value in scores[name]]
        assert values == expected and (values[1] is None or name == "count")


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("which", ["forecast", "target"])
def test_an_unusable_number_at_an_observed_target_is_refused_and_changes_nothing(number, which):
    forecast, target, mask = random_batch()
    accumulator = scored(forecast, target, mask)
    before = accumulator.scores()
    spoiled = {"forecast": forecast, "target": target}[which]
    observed = np.argwhere(mask)[[3, -1]]
    spoiled[tuple(observed.T)] = number
    with pytest.raises(ValueError, match=f"^2 numbers of the {which} "):
        accumulator.update(forecast, target, mask)
    assert accumulator.scores() == before


def test_shapes_and_masks_that_do_not_fit_are_refused():
    forecast, target, mask = random_batch()
    accumulator = ScoreAccumulator(3, 5)
    for wrong in (forecast[:, :, :4], forecast[:, :2], forecast[0], forecast[:, :, :1]):
        with pytest.raises(ValueError, match="the forecast has shape"):
            accumulator.update(wrong, target, mask)
    with pytest.raises(ValueError, match="1 windows of the forecast and 60 of the mask"):
        accumulator.update(forecast[:1], target, mask)
    with pytest.raises(ValueError, match="must be boolean"):
        accumulator.update(forecast, target, mask.astype(np.float32))
    with pytest.raises(ValueError, match="cannot be merged"):
        accumulator.merge(ScoreAccumulator(5, 3))
    with pytest.raises(ValueError, match="not 'node'"):
        accumulator.scores("node")
    for horizon, sensors in ((0, 5), (3, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            ScoreAccumulator(horizon, sensors)


def test_inputs_are_not_changed():
    batch = random_batch()
    copies = [array.copy() for array in batch]
    scored(*batch)
    for array, copy in zip(batch, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@given(st.floats(0, 1e6), st.floats(1e-3, 1e6))
def test_skill_is_the_share_of_the_error_of_the_reference_that_is_avoided(score, reference):
    kept = (1 - skill(score, reference)) * reference
    assert kept == pytest.approx(score, rel=1e-9, abs=1e-9 * reference)


def test_skill_is_undefined_where_the_reference_is_zero_or_either_is_undefined():
    found = skill(np.array([1.0, 0.0, 1.0, np.nan, 1.0]), np.array([2.0, 4.0, 0.0, 1.0, np.nan]))
    np.testing.assert_array_equal(found, [0.5, 1.0, np.nan, np.nan, np.nan])
    assert np.isnan(skill(0.0, 0.0)) and isinstance(skill(1.0, 2.0), float)
