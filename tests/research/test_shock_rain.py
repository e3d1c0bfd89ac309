"""Shock against rain: the FFT does what a plain loop does, finds what was planted, and is honest where nothing was."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest, rankdata, spearmanr

from candor.core.errors import InputError
from candor.research.patterns import FEWEST_PAIRS, LEAST_VARIANCE, correlations, spectra_of, standardise
from candor.research.shock_rain import ModelActivity, compare_with_rain, lags_in_steps

Numbers = NDArray[np.float64]
LAGS = range(-12, 13, 2)


def showers(generator: np.random.Generator, steps: int, stations: int) -> Numbers:
    """Returns rain: mostly none, so that most ranks are tied, in spells that stations share in part."""
    begins = generator.random((steps, stations)) < 0.03
    begins |= (generator.random(steps) < 0.02)[:, None]
    rain = np.zeros((steps, stations))
    for hour in range(5):
        rain[hour:] += begins[: steps - hour] * 0.7**hour
    return np.round(rain * 4, 1)


def memory(generator: np.random.Generator, steps: int, stations: int) -> Numbers:
    """Returns activity that remembers: autoregressive noise, squeezed between 0 and 1."""
    noise = generator.standard_normal((steps, stations))
    for step in range(1, steps):
        noise[step] += 0.8 * noise[step - 1]
    return 1 / (1 + np.exp(-noise))


def with_gaps(series: Numbers, generator: np.random.Generator) -> Numbers:
    """Returns the series without a tenth of it and without its first hours."""
    result = np.where(generator.random(series.shape) < 0.1, np.nan, series)
    result[:9] = np.nan
    return result


def loop_correlation(activity: Numbers, rain: Numbers, turn: int) -> float:
    """Returns the correlation of one station's ranks with rain turned by so many steps, pair by pair."""
    length = len(activity)
    pairs = [(activity[t], rain[(t - turn) % length]) for t in range(length)]
    known = np.array([pair for pair in pairs if not np.isnan(pair).any()]).reshape(-1, 2)
    whole = [np.nanvar(series) for series in (activity, rain)]
    if len(known) < FEWEST_PAIRS or (known.var(axis=0) <= LEAST_VARIANCE * np.array(whole)).any():
        return np.nan
    return float(np.corrcoef(known.T)[0, 1])


def loop_statistic(checkpoints: Sequence[ModelActivity], rain: Numbers, lags: Sequence[int], shift: int) -> float:
    """Returns the statistic of one shift by the definition: stations, seeds, lags, horizons, one at a time."""

    def ranked(series: Numbers) -> Numbers:
        ranks = rankdata(series, axis=0, nan_policy="omit")
        return np.concatenate([ranks, np.full((max(map(abs, lags)), series.shape[1]), np.nan)])

    turned = np.roll(ranked(rain), shift, axis=0)
    best = []
    for horizon in sorted({checkpoint.horizon for checkpoint in checkpoints}):
        curve = []
        for lag in lags:
            of_seeds = []
            for checkpoint in checkpoints:
                if checkpoint.horizon == horizon:
                    pairs = zip(ranked(checkpoint.activity).T, turned.T, strict=True)
                    of_stations = [loop_correlation(activity, gauge, lag) for activity, gauge in pairs]
                    of_seeds.append(np.mean([rho for rho in of_stations if not np.isnan(rho)]))
            curve.append(np.mean(of_seeds))
        best.append(max(curve))
    return float(np.mean(best))


def grid(generator: np.random.Generator, steps: int, stations: int) -> list[ModelActivity]:
    return [
        ModelActivity(f"{horizon}-{seed}", horizon, seed, with_gaps(memory(generator, steps, stations), generator))
        for horizon in (24, 48)
        for seed in (0, 1)
    ]


def test_every_shift_gives_what_the_plain_loop_gives_with_ties_and_gaps() -> None:
    generator = np.random.default_rng(0)
    checkpoints, rain = grid(generator, 90, 3), with_gaps(showers(generator, 90, 3), generator)
    rain[:, 2] = 0.0  # a dry station never counts
    lags = range(-6, 7, 3)
    found = compare_with_rain(checkpoints, rain, lags, shifts=20, seed=3)
    drawn = np.random.default_rng(3).choice(np.arange(1, 96), size=20)  # 90 steps and 6 missing ones
    assert found.rho == pytest.approx(loop_statistic(checkpoints, rain, lags, 0), abs=1e-9)
    expected = {shift: loop_statistic(checkpoints, rain, lags, shift) for shift in set(drawn.tolist())}
    null = [expected[shift] for shift in drawn.tolist()]
    np.testing.assert_allclose(found.null, null, rtol=0, atol=1e-9)
    assert found.p == (sum(one >= found.rho - 1e-9 for one in null) + 1) / 21
    assert found.null.mean() == pytest.approx(np.mean(null), abs=1e-9)
    assert np.isnan(found.by_station[2]).all() and not np.isnan(found.by_station[:2]).any()


def test_without_lag_and_gaps_it_is_the_correlation_of_spearman() -> None:
    generator = np.random.default_rng(1)
    activity, rain = memory(generator, 300, 2), showers(generator, 300, 2)
    found = compare_with_rain([ModelActivity("", 1, 0, activity)], rain, [0], shifts=5)
    expected = [spearmanr(activity[:, station], rain[:, station]).statistic for station in range(2)]
    assert found.by_station[:, 0] == pytest.approx(expected, abs=1e-12)
    assert found.rho == pytest.approx(np.mean(expected), abs=1e-12)


def test_a_lag_pairs_only_what_overlaps() -> None:
    generator = np.random.default_rng(2)
    activity, rain = memory(generator, 200, 1), showers(generator, 200, 1)
    found = compare_with_rain([ModelActivity("", 1, 0, activity)], rain, [-30, 30], shifts=5)
    ranks, gauge = rankdata(activity[:, 0]), rankdata(rain[:, 0])
    before, after = np.corrcoef(ranks[:-30], gauge[30:])[0, 1], np.corrcoef(ranks[30:], gauge[:-30])[0, 1]
    assert found.curves[0] == pytest.approx([before, after], abs=1e-10)


@pytest.mark.parametrize("lag", [-8, 0, 6])
def test_a_planted_association_is_found_at_its_lag(lag: int) -> None:
    generator = np.random.default_rng(5)
    rain = showers(generator, 1_000, 4)
    activity = memory(generator, 1_000, 4) + 0.4 * np.roll(rain, lag, axis=0)
    found = compare_with_rain([ModelActivity("", 24, 0, activity)], rain, LAGS, shifts=999)
    assert found.selected.tolist() == [lag]
    assert found.p < 0.02 and found.rho - found.null.mean() > 0.1 and (found.at_selected > 0).all()
    apart = compare_with_rain([ModelActivity("", 24, 0, activity)], rain, LAGS, shifts=999, least_shift=25)
    assert apart.p == 1 / 1_000 and apart.rho == found.rho  # no shift reaches the real lag


@pytest.mark.parametrize("least", [1, 6, 12, 17])
def test_the_floor_of_p_counts_the_shifts_that_bring_every_lag_back(least: int) -> None:
    generator = np.random.default_rng(4)
    checkpoints, rain = grid(generator, 60, 2), showers(generator, 60, 2)
    found = compare_with_rain(checkpoints, rain, range(-8, 9, 2), shifts=9, least_shift=least)
    lags, ring = found.lags.tolist(), 60 + 8
    allowed = range(least, ring - least + 1)
    back = [
        shift
        for shift in allowed
        if all(any((lag + shift - own) % ring == 0 for lag in lags) for own in found.selected)
    ]
    assert found.p_floor == len(back) / len(allowed)
    assert (found.p_floor == 0) == (least > 16 or not back)


def test_every_checkpoint_has_the_sign_of_its_own_association() -> None:
    generator = np.random.default_rng(6)
    rain = showers(generator, 800, 3)
    signs = (1, 1, -1)
    checkpoints = [
        ModelActivity("", 24, seed, memory(generator, 800, 3) + sign * 0.5 * np.roll(rain, 4, axis=0))
        for seed, sign in enumerate(signs)
    ]
    found = compare_with_rain(checkpoints, rain, LAGS, shifts=99)
    assert found.selected.tolist() == [4] and np.sign(found.at_selected).tolist() == list(signs)


def chance_values(is_selection_repeated: bool) -> Numbers:
    """Returns p of many pairs of unrelated series; a null that selects no lag is broken."""
    generator = np.random.default_rng(7)
    found = []
    for _ in range(250):
        checkpoint = ModelActivity("", 1, 0, memory(generator, 240, 2))
        comparison = compare_with_rain([checkpoint], showers(generator, 240, 2), LAGS, shifts=199, curves_kept=199)
        null = comparison.null if is_selection_repeated else comparison.null_curves[:, len(LAGS) // 2]
        found.append((np.count_nonzero(null >= comparison.rho) + 1) / 200)
        assert not is_selection_repeated or found[-1] == comparison.p
    return np.array(found)


def test_without_an_association_p_is_uniform_and_the_bound_can_tell() -> None:
    assert kstest(chance_values(is_selection_repeated=True), "uniform").pvalue > 0.05
    assert kstest(chance_values(is_selection_repeated=False), "uniform").pvalue < 1e-6


def test_turning_the_ring_of_both_changes_nothing_and_that_of_one_moves_the_curve() -> None:
    generator = np.random.default_rng(8)
    activity, rain = with_gaps(memory(generator, 211, 3), generator), with_gaps(showers(generator, 211, 3), generator)
    base = correlations(spectra_of(activity), spectra_of(rain))
    for steps in (1, 17, 200):
        turned = spectra_of(np.roll(activity, steps, axis=0))
        together = correlations(turned, spectra_of(np.roll(rain, steps, axis=0)))
        np.testing.assert_allclose(together, base, atol=1e-12)
        np.testing.assert_allclose(correlations(turned, spectra_of(rain)), np.roll(base, steps, axis=0), atol=1e-12)


def test_hours_without_readings_before_and_after_change_no_curve() -> None:
    generator = np.random.default_rng(8)
    activity, rain = memory(generator, 300, 3), showers(generator, 300, 3)
    base = compare_with_rain([ModelActivity("", 1, 0, activity)], rain, LAGS, shifts=50)
    activity, rain = (np.pad(part, ((40, 7), (0, 0)), constant_values=np.nan) for part in (activity, rain))
    longer = compare_with_rain([ModelActivity("", 1, 0, activity)], rain, LAGS, shifts=50)
    np.testing.assert_allclose(longer.by_station, base.by_station, atol=1e-12)


def test_only_the_order_of_values_counts() -> None:
    generator = np.random.default_rng(9)
    activity, rain = memory(generator, 200, 2), showers(generator, 200, 2)
    plain = compare_with_rain([ModelActivity("", 1, 0, activity)], rain, LAGS, shifts=50)
    bent = compare_with_rain([ModelActivity("", 1, 0, activity**3)], np.log1p(rain), LAGS, shifts=50)
    np.testing.assert_allclose(bent.curves, plain.curves, atol=1e-12)
    np.testing.assert_allclose(bent.null, plain.null, atol=1e-12)


def test_lags_are_counted_in_steps_of_the_record() -> None:
    assert lags_in_steps(120, 2, 1) == list(range(-120, 121, 2))
    assert lags_in_steps(1, 0.5, 0.25) == [-4, -2, 0, 2, 4]
    with pytest.raises(InputError, match="do not fit"):
        lags_in_steps(120, 2, 24)


def test_what_cannot_be_compared_is_said_in_words() -> None:
    activity = memory(np.random.default_rng(0), 100, 2)
    with pytest.raises(InputError, match="cannot be compared"):
        compare_with_rain([ModelActivity("", 1, 0, activity)], np.zeros((100, 2)), LAGS)
    with pytest.raises(InputError, match="not shorter than the record"):
        compare_with_rain([ModelActivity("", 1, 0, activity)], activity, [100])
    with pytest.raises(ValueError, match="hours and stations"):
        compare_with_rain([ModelActivity("", 1, 0, activity)], activity[1:], LAGS)


def test_a_series_that_never_changes_becomes_zero_and_not_a_remainder_of_rounding() -> None:
    flat = np.full((1_001, 1), 0.1)
    assert not standardise(flat).any()
    assert standardise(flat * np.arange(1_001)[:, None]).std() == pytest.approx(1)
