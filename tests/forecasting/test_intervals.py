"""Intervals hold what they promise, borrow only when they must, and never look ahead."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mapie.conformity_scores import AbsoluteConformityScore
from mapie.regression import SplitConformalRegressor
from safetensors.numpy import load, save
from sklearn.linear_model import LinearRegression

from candor.core.errors import InputError
from candor.forecasting.intervals import AdaptiveCoverage, Borrowing, Calibration, calibrate

COVERAGES = st.sampled_from([0.05, 0.5, 0.8, 0.9, 0.98, 0.999])


def lopsided(windows, steps, sensors):
    """Returns residuals whose errors upwards are the larger ones, and larger still at later steps."""
    noise = np.random.default_rng(0).gumbel(size=(windows, steps, sensors))
    return noise * np.linspace(1, 2, steps)[:, None] * np.linspace(1, 5, sensors)


@st.composite
def gappy_residuals(draw):
    """Draws residuals in eighths, so that ties are many and sums exact; cells may have few or none, but not all."""
    shape = (draw(st.integers(1, 40)), draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    eighths = st.integers(-80, 80).map(lambda whole: whole / 8)
    residuals = draw(hnp.arrays(np.float64, shape, elements=eighths, fill=st.nothing()))
    shown = draw(hnp.arrays(np.int64, shape[1:], elements=st.integers(0, shape[0])))
    if draw(st.booleans()):
        residuals[np.arange(shape[0])[:, None, None] >= shown] = np.nan
    residuals[0, 0, 0] = 0.5
    return residuals


def ends_of(calibration, forecast=0.0, coverage=0.9):
    """Returns lower and upper ends as one array; one origin with the same forecast everywhere, unless all are given."""
    return np.stack(calibration.interval(everywhere(calibration, forecast), coverage))


def everywhere(calibration, forecast=0.0):
    return forecast if np.ndim(forecast) else np.full((1, *calibration.counts.shape), forecast)


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=60, unique=True), st.integers(1, 39))
def test_of_n_plus_one_residuals_each_left_out_in_turn_just_the_promised_number_is_covered(residuals, fortieths):
    total, miss_rate = len(residuals), Fraction(fortieths, 40)
    values = np.array(residuals, dtype=float)
    # Below and above as many may be missed as fit into half the miss rate; the extremes are as far as anyone can go.
    missed = max(floor(total * miss_rate / 2), 1)
    covered = below = 0
    for left_out, value in enumerate(values):
        calibration = calibrate(np.delete(values, left_out)[:, None, None])
        lower, upper = ends_of(calibration, 7.0, float(1 - miss_rate)).ravel()
        covered += lower <= 7.0 + value <= upper
        below += 7.0 + value < lower
    assert (covered, below) == (total - 2 * missed, missed)


@pytest.mark.parametrize("coverage", ["0.5", "0.8", "0.9", "0.95", "0.98", "0.99"])
@pytest.mark.parametrize("windows", [199, 999])
def test_a_whole_number_of_misses_on_either_side_is_not_lost_to_rounding(windows, coverage):
    residuals = np.arange(1.0, windows + 1)[:, None, None]
    lower, upper = ends_of(calibrate(residuals), 0.0, float(coverage)).ravel()
    missed = (windows + 1) * (1 - Fraction(coverage)) / 2
    assert (lower, upper) == (missed, windows + 1 - missed)


@pytest.mark.parametrize(("windows", "coverage"), [(19, 0.9), (50, 0.9), (99, 0.8), (37, 0.5)])
def test_average_coverage_over_many_draws_is_what_was_asked(windows, coverage):
    draws = 20_000  # each sensor is one: it has its own past and one new observation
    residuals = np.random.default_rng(windows).gumbel(size=(windows + 1, 1, draws))
    lower, upper = ends_of(calibrate(residuals[:-1]), 0.0, coverage)
    below, above = (residuals[-1:] < lower).mean(), (residuals[-1:] > upper).mean()
    sampling = 4 * np.sqrt(coverage * (1 - coverage) / draws)
    assert coverage - sampling <= 1 - below - above <= coverage + 2 / (windows + 1) + sampling
    assert max(below, above) <= (1 - coverage) / 2 + sampling


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.97])
def test_the_ends_are_those_of_mapie_for_each_step_and_sensor_alone(coverage):
    inputs, noise = np.random.default_rng(3).normal(size=(400, 2)), lopsided(400, 2, 3)
    target = (inputs @ [1.0, -2.0])[:, None, None] + noise
    model = LinearRegression().fit(inputs[:100], target[:100, 0, 0])
    forecast = np.broadcast_to(model.predict(inputs)[:, None, None], target.shape)
    found = ends_of(calibrate((target - forecast)[100:310]), forecast[310:], coverage)
    for step, sensor in np.ndindex(2, 3):
        other = SplitConformalRegressor(
            model, confidence_level=coverage, conformity_score=AbsoluteConformityScore(sym=False), prefit=True
        ).conformalize(inputs[100:310], target[100:310, step, sensor])
        _, expected = other.predict_interval(inputs[310:])
        np.testing.assert_allclose(found[..., step, sensor].T, expected[:, :, 0], rtol=1e-12)


@given(gappy_residuals(), st.randoms(use_true_random=False), COVERAGES)
def test_permuting_sensors_permutes_the_answers(residuals, random, coverage):
    order = list(range(residuals.shape[2]))
    random.shuffle(order)
    plain, permuted = calibrate(residuals), calibrate(residuals[:, :, order])
    expected = ends_of(plain, 0.0, coverage)[..., order]
    np.testing.assert_allclose(ends_of(permuted, 0.0, coverage), expected, rtol=1e-9)
    # At a threshold where a borrowed residual lies, rounding of its size would decide on which side it is.
    found, expected = (part.probability_below(everywhere(part), 0.777) for part in (permuted, plain))
    np.testing.assert_allclose(found, expected[..., order], rtol=1e-9)
    assert permuted.borrowing(coverage) == plain.borrowing(coverage)


@given(gappy_residuals())
def test_intervals_are_finite_and_never_narrower_for_more_coverage(residuals):
    calibration = calibrate(residuals)
    asked = np.linspace(0.01, 0.999, 60)
    # An array of coverages, one per origin, asks for all of them at once.
    lower, upper = ends_of(calibration, np.zeros((60, *residuals.shape[1:])), asked[:, None, None])
    assert np.isfinite(lower).all() and np.isfinite(upper).all() and (lower <= upper).all()
    assert (np.diff(lower, axis=0) <= 0).all() and (np.diff(upper, axis=0) >= 0).all()
    for number in (0, 30, 59):
        single = ends_of(calibration, 0.0, float(asked[number]))[:, 0]
        np.testing.assert_array_equal([lower[number], upper[number]], single)


@given(gappy_residuals(), st.sampled_from([0.0, 0.5, -1000.0]))
def test_the_probability_lies_between_0_and_1_and_never_falls_as_the_threshold_rises(residuals, forecast):
    thresholds = np.linspace(-15, 15, 121)[:, None, None] + forecast
    forecasts = np.full((121, *residuals.shape[1:]), forecast)
    probability = calibrate(residuals).probability_below(forecasts, thresholds)
    assert ((probability > 0) & (probability < 1)).all()
    assert (np.diff(probability, axis=0) >= 0).all() and (probability[0] < probability[-1]).all()


@given(gappy_residuals(), COVERAGES)
def test_the_probability_passes_half_the_miss_rate_at_either_end(residuals, coverage):
    calibration = calibrate(residuals)
    lower, upper = ends_of(calibration, 0.0, coverage)
    half, margin, rounding = (1 - coverage) / 2, 1e-6, 1e-9
    if calibration.borrowing(coverage).beyond_reach:
        half = 1 / (np.isfinite(residuals).sum() + 1)  # as much as all residuals together can tell

    def below(threshold):
        return calibration.probability_below(everywhere(calibration), threshold)

    assert (below(lower - margin) <= half + rounding).all()
    assert (below(upper + margin) >= 1 - half - rounding).all()
    resolution = 1 / (calibration.counts + 1)
    assert (below(lower + margin) >= half - resolution - rounding).all()
    assert (below(upper - margin) <= 1 - half + resolution + rounding).all()


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.integers(-20, 20)), st.integers(-25, 25))
def test_the_probability_is_a_rank_among_the_residuals(residuals, threshold):
    calibration = calibrate(residuals[:, None, None])
    found = calibration.probability_below(everywhere(calibration, 3.0), 3.0 + threshold).item()
    below, upto = (residuals < threshold).sum(), (residuals <= threshold).sum()
    assert below <= found * (len(residuals) + 1) <= upto + 1
    if below < upto:
        assert found == pytest.approx((below + upto + 1) / 2 / (len(residuals) + 1))


@given(gappy_residuals(), COVERAGES, st.sampled_from([np.float32, np.float64]))
def test_a_calibration_survives_being_stored_in_the_precision_that_was_given(residuals, coverage, precision):
    calibration = calibrate(residuals.astype(precision))
    restored = Calibration.from_state(load(save(calibration.to_state())))
    ends = [ends_of(part, precision(0.5), coverage) for part in (restored, calibration)]
    np.testing.assert_array_equal(*ends)
    assert ends[0].dtype == precision
    np.testing.assert_array_equal(*(part.probability_below(everywhere(part), 0.7) for part in (restored, calibration)))


def test_of_many_windows_999_evenly_spaced_ones_are_kept_for_every_cell():
    residuals = np.broadcast_to(np.arange(2600.0)[:, None, None], (2600, 2, 3)).copy()
    residuals[::2, 0, 1] = np.nan
    residuals[100:, 1, 2] = np.nan
    calibration = calibrate(residuals)
    assert calibration.counts.tolist() == [[999, 999, 999], [999, 999, 100]]
    assert set(np.diff(calibration.residuals[0, 0])) == {2.0, 3.0}
    assert set(np.diff(calibration.residuals[0, 1])) == {2.0, 4.0}  # 1300 are there: each, or each second of them
    np.testing.assert_array_equal(calibration.residuals[1, 2, :100], np.arange(100))


def test_which_windows_are_kept_does_not_depend_on_the_values():
    number = np.broadcast_to(np.arange(2600.0)[:, None, None], (2600, 1, 2)).copy()
    number[np.random.default_rng(0).random(number.shape) < 0.3] = np.nan
    shuffled = np.random.default_rng(1).permutation(2600)
    plain, other = calibrate(number), calibrate(np.where(np.isnan(number), np.nan, shuffled[:, None, None]))
    np.testing.assert_array_equal(np.sort(shuffled[plain.residuals.astype(int)]), other.residuals)


@pytest.mark.parametrize(("numbers", "kept"), [(6 * 150, 150), (6 * 5, 99), (10**9, 300)])
def test_large_networks_keep_fewer_residuals_each(monkeypatch, numbers, kept):
    monkeypatch.setattr("candor.forecasting.intervals._MOST_NUMBERS", numbers)
    assert (calibrate(lopsided(300, 2, 3)).counts == kept).all()


def test_borrowing_is_counted_by_where_it_is_from():
    residuals = lopsided(40, 2, 3)
    residuals[18:, 0, 0] = np.nan  # one short of the 19 that 90 % need
    residuals[5:, :, 1] = np.nan
    residuals[:, 1, 2] = np.nan
    calibration = calibrate(residuals)
    assert calibration.borrowing(0.9) == Borrowing(cells=6, from_sensor=2, from_network=2, beyond_reach=0)
    assert calibration.borrowing(0.5) == Borrowing(cells=6, from_sensor=1, from_network=0, beyond_reach=0)
    assert calibration.borrowing(0.999) == Borrowing(cells=6, from_sensor=0, from_network=6, beyond_reach=6)


def test_where_errors_differ_by_a_factor_only_borrowed_residuals_are_as_good_as_own_ones():
    common = np.random.default_rng(0).gumbel(size=150)
    # Four windows that are just as bad as all of them on average: who has seen only these still knows the factor.
    common[:4] = np.array([1, -1, 1, 1]) * np.abs(common[4:]).mean()
    factor = np.array([1.0, 2.0, 4.0])[:, None] * np.array([1.0, 30.0, 0.5, 8.0])
    residuals = common[:, None, None] * factor
    residuals[:, 1, 0] = np.nan
    residuals[4:, :, 1] = np.nan
    ends = ends_of(calibrate(residuals))[:, 0]
    for sensor, lenders in ((0, np.tile(common, 2)), (1, np.concatenate([np.tile(common, 8), np.tile(common[:4], 3)]))):
        rank = floor((len(lenders) + 1) / 20)
        expected = np.sort(lenders)[[rank - 1, -rank]] * factor[1, sensor]
        np.testing.assert_allclose(ends[:, 1, sensor], expected, rtol=1e-3)
    np.testing.assert_allclose(ends[1, :, 1] / ends[1, 1, 1], factor[:, 1] / factor[1, 1], rtol=1e-3)


@given(gappy_residuals(), COVERAGES, st.sampled_from([1 / 64, 1024]))
def test_the_unit_of_one_sensor_concerns_no_other(residuals, coverage, factor):
    residuals[0] = 0.25  # every sensor can tell its size
    scale = np.append(np.ones(residuals.shape[2] - 1), factor)
    expected = ends_of(calibrate(residuals), 0.0, coverage) * scale
    np.testing.assert_allclose(ends_of(calibrate(residuals * scale), 0.0, coverage), expected, rtol=1e-9, atol=1e-9)


def test_a_sensor_that_never_spoke_is_taken_for_one_of_middling_size():
    residuals = np.tile(lopsided(60, 2, 1), 4) * [1.0, 3.0, 50.0, np.nan]
    lower, upper = ends_of(calibrate(residuals))
    np.testing.assert_allclose((upper - lower)[..., 3], (upper - lower)[..., 1], rtol=0.2)


@pytest.mark.parametrize("size", [0.0, np.finfo(np.float32).smallest_subnormal])
@pytest.mark.parametrize("coverage", [0.8, 0.99])
def test_residuals_of_zero_or_next_to_it_make_intervals_of_no_width(size, coverage):
    residuals = np.zeros((30, 2, 3), np.float32)
    residuals[0] = size
    residuals[:, 1, 1] = np.nan
    np.testing.assert_allclose(ends_of(calibrate(residuals), 0.0, coverage), 0.0, atol=1e-30)


def test_a_threshold_out_of_all_proportion_is_almost_surely_on_one_side():
    calibration = calibrate(lopsided(30, 2, 2).astype(np.float32))
    probability = calibration.probability_below(np.zeros((2, 2, 2)), np.array([-1e300, 1e300])[:, None, None])
    np.testing.assert_allclose(probability[0], 0.5 / 121)  # the middle of what 120 residuals leave open
    np.testing.assert_allclose(probability[1], 120.5 / 121)


@pytest.mark.parametrize("residuals", [np.full((9, 2, 3), np.nan), np.empty((0, 2, 3))])
def test_without_any_residual_there_is_no_calibration(residuals):
    with pytest.raises(InputError, match="nothing was observed"):
        calibrate(residuals)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 90, np.nan])
@pytest.mark.parametrize(
    "ask", [lambda part, share: ends_of(part, 0.0, share), Calibration.borrowing, AdaptiveCoverage]
)
def test_a_coverage_that_is_no_share_is_refused(ask, coverage):
    with pytest.raises(InputError, match="between 0 and 1"):
        ask(calibrate(lopsided(30, 2, 2)), coverage)


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda part: part.interval(np.zeros((1, 2, 3))), ValueError, "expected are origins x 2 steps x 2 sensors"),
        (lambda part: part.interval(np.zeros((2, 2))), ValueError, "expected are origins x 2 steps x 2 sensors"),
        (lambda part: part.probability_below(np.full((1, 2, 2), np.nan), 1.0), ValueError, "not finite"),
        (lambda part: part.probability_below(np.zeros((1, 2, 2)), np.nan), InputError, "finite number"),
        (lambda part: AdaptiveCoverage(part, rate=0.0), InputError, "rate"),
        (lambda _: calibrate(np.full((3, 2, 2), np.inf)), ValueError, "infinite"),
        (lambda _: calibrate(np.zeros((3, 2))), ValueError, "window x step x sensor"),
    ],
)
def test_input_that_does_not_fit_is_refused(ask, kind, words):
    with pytest.raises(kind, match=words):
        ask(calibrate(lopsided(30, 2, 2)))


def test_damaged_states_are_refused():
    state = calibrate(lopsided(30, 2, 2)).to_state()
    residuals, counts = state["residuals"], state["counts"]
    for damage in (
        {"residuals": residuals[..., ::-1]},
        {"residuals": np.where(residuals > 3, np.nan, residuals)},
        {"residuals": np.insert(residuals, 0, -np.inf, axis=-1)},
        {"residuals": residuals[:, :1]},
        {"counts": counts - 1},
        {"counts": counts.astype(float)},
        {"residuals": np.full_like(residuals, np.inf), "counts": np.zeros_like(counts)},
    ):
        with pytest.raises(InputError, match="damaged"):
            Calibration.from_state(state | damage)
    with pytest.raises(InputError, match="damaged"):
        Calibration.from_state({"counts": counts})


def drifting(origins):
    """Returns a calibration, origins, forecasts of zero (3 steps, 2 sensors) and readings higher than they were."""
    chance = np.random.default_rng(5)
    readings = chance.normal(1.0, 1.0, size=(origins + 3, 2))
    return calibrate(chance.normal(size=(400, 3, 2))), np.arange(origins), np.zeros((origins, 3, 2)), readings


def test_under_drift_the_adaptive_coverage_is_the_wanted_one_where_the_fixed_is_not():
    calibration, origins, forecast, readings = drifting(3000)
    target = readings[origins[:, None] + np.arange(3)]
    adaptive = AdaptiveCoverage(calibration, 0.9, rate=0.01).walk(origins, forecast, readings)
    fixed_share, adaptive_share = (
        ((lower <= target) & (target <= upper)).mean(axis=0) for lower, upper in (ends_of(calibration), adaptive)
    )
    # A level that stays within a band of width 1 cannot have missed more than 1 / rate too many or too few.
    assert np.abs(adaptive_share - 0.9).max() < 1 / (0.01 * 3000)
    assert fixed_share.max() < 0.8


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.sampled_from([0.02, 0.3]), st.integers(0, 2**32 - 1))
def test_walking_equals_the_rule_applied_to_what_was_known_at_each_origin(gaps, rate, seed):
    chance, coverage, origins = np.random.default_rng(seed), 0.8, np.cumsum(gaps)
    calibration = calibrate(chance.normal(size=(50, 3, 2)))
    forecast = chance.normal(size=(len(origins), 3, 2))
    readings = chance.normal(0, 2, size=(origins[-1] + 3, 2))
    readings[chance.random(readings.shape) < 0.2] = np.nan
    ends = np.stack(AdaptiveCoverage(calibration, coverage, rate).walk(origins, forecast, readings))
    for number, origin in enumerate(origins):
        asked = np.full((3, 2), coverage)
        for earlier, step, sensor in np.ndindex(number, 3, 2):
            row = origins[earlier] + step
            if row < origin and not np.isnan(readings[row, sensor]):
                lower, upper = ends[:, earlier, step, sensor]
                is_miss = not lower <= readings[row, sensor] <= upper
                level = asked[step, sensor] + rate * (is_miss - (1 - coverage))
                asked[step, sensor] = min(max(level, coverage / 100), 1 - (1 - coverage) / 100)
        expected = ends_of(calibration, forecast[number : number + 1], asked)
        np.testing.assert_array_equal(ends[:, number], expected[:, 0])


@pytest.mark.parametrize("row", [40, 59])
def test_a_reading_changes_intervals_from_the_moment_it_is_known_and_none_before(row):
    calibration, origins, forecast, readings = drifting(80)
    walked = []
    for reading in (0.0, 50.0):  # a hit becomes a miss
        readings[row] = reading
        walked.append(np.stack(AdaptiveCoverage(calibration, rate=0.05).walk(origins, forecast, readings)))
    # Origin o reads the rows before o: the first forecast that knows the row is the one that starts after it.
    np.testing.assert_array_equal(walked[0][:, : row + 1], walked[1][:, : row + 1])
    assert (walked[0][:, row + 1] != walked[1][:, row + 1]).any(axis=0).all()


def test_missing_readings_leave_the_levels_alone_and_later_ones_need_not_exist():
    calibration, origins, forecast, readings = drifting(60)
    readings[:, 1] = np.nan
    adaptive = AdaptiveCoverage(calibration, rate=0.05)
    adaptive.walk(origins, forecast, readings[: origins[-1]])
    assert (adaptive.asked[:, 1] == 0.9).all() and (adaptive.asked[:, 0] != 0.9).all()


@pytest.mark.parametrize(("reading", "level"), [(1e6, 0.998), (0.0, 0.008)])
def test_levels_stay_within_bounds_however_long_it_only_misses_or_only_hits(reading, level):
    adaptive = AdaptiveCoverage(calibrate(np.zeros((30, 3, 2))), 0.8, rate=0.1)
    assert np.isfinite(adaptive.walk(np.arange(300), np.zeros((300, 3, 2)), np.full((300, 2), reading))).all()
    np.testing.assert_allclose(adaptive.asked, level)


def test_ends_that_were_handed_out_may_be_changed():
    calibration, _, forecast, readings = drifting(10)
    adaptive = AdaptiveCoverage(calibration)
    for end in adaptive.interval(0, forecast[0]):
        end *= 1e6
    adaptive.observe(0, readings[0] + 100)
    assert (adaptive.asked[0] > 0.9).all()  # still a miss


def test_time_that_runs_backwards_is_refused():
    calibration, origins, forecast, readings = drifting(10)
    adaptive = AdaptiveCoverage(calibration)
    adaptive.observe(4, readings[4])
    with pytest.raises(ValueError, match="reading of row 4 comes after that of row 4"):
        adaptive.observe(4, readings[4])
    with pytest.raises(ValueError, match="comes after the reading of row 4"):
        adaptive.interval(4, forecast[0])
    with pytest.raises(ValueError, match="must rise"):
        AdaptiveCoverage(calibration).walk(origins[::-1], forecast, readings)
