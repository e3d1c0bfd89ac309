"""Known shifts of peaks are found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from candor.metrics import PeakTiming, peak_timing

PEAKS = (30, 75, 120, 160)


def flood_series(peaks=PEAKS, length=200):
    """Returns a calm river with floods of different heights that rise and fall over days."""
    steps = np.arange(length)
    heights = range(10, 10 + len(peaks))
    waves = [np.exp(-(((steps - peak) / 3) ** 2)) for peak in peaks]
    return 2 + np.dot(heights, waves)


@settings(deadline=None)
@given(st.integers(-8, 8))
def test_a_shifted_forecast_is_off_by_its_shift(shift):
    observed = flood_series()
    found = peak_timing(observed, np.roll(observed, shift), window=8)
    assert found == PeakTiming(mean_absolute_steps=abs(shift), peaks=len(PEAKS))


def test_the_distance_is_the_mean_over_peaks_that_come_early_or_late():
    shifts = (-4, 0, 1, 3)
    moved = [peak + shift for peak, shift in zip(PEAKS, shifts, strict=True)]
    found = peak_timing(flood_series(), flood_series(moved), window=6)
    assert found == PeakTiming(mean_absolute_steps=np.mean(np.abs(shifts)), peaks=4)


@settings(deadline=None)
@given(
    hnp.arrays(np.float64, st.integers(1, 60), elements=st.integers(0, 4).map(float)),
    st.integers(1, 5),
)
def test_a_perfect_forecast_is_never_off(series, window):
    found = peak_timing(series, series, window, prominence=1.0)
    assert found.mean_absolute_steps == 0 or found.peaks == 0


@settings(deadline=None)
@given(
    hnp.arrays(np.float64, 40, elements=st.integers(0, 9).map(float)),
    hnp.arrays(np.float64, 40, elements=st.integers(0, 9).map(float)),
    st.integers(1, 5),
)
def test_time_reversed_gives_the_same_distance_and_none_beyond_the_window(series, other, window):
    # Distinct neighbours keep peaks from being plateaus, whose middle may fall between two steps.
    observed = series + np.arange(40) % 2 * 0.5
    forward = peak_timing(observed, other, window, prominence=1.0)
    backward = peak_timing(observed[::-1], other[::-1], window, prominence=1.0)
    assert forward.peaks == backward.peaks
    if forward.peaks:
        assert forward.mean_absolute_steps == pytest.approx(backward.mean_absolute_steps)
        assert 0 <= forward.mean_absolute_steps <= window


def test_a_flat_forecast_earns_no_credit_for_timing():
    found = peak_timing(flood_series(), np.full(200, 5.0), window=6)
    assert found == PeakTiming(mean_absolute_steps=6.0, peaks=4)


def test_peaks_near_gaps_or_unusable_forecasts_or_the_ends_are_left_out():
    observed, forecast = flood_series(), np.roll(flood_series(), 2)
    observed[PEAKS[0] + 5] = np.nan
    forecast[PEAKS[1] - 5] = np.inf
    observed[PEAKS[2] - 6] = np.nan
    assert peak_timing(observed, forecast, window=5) == PeakTiming(2.0, 2)
    assert peak_timing(observed, forecast, window=4) == PeakTiming(2.0, 4)
    last = PEAKS[3]
    assert peak_timing(observed[: last + 6], forecast[: last + 6], window=5).peaks == 2
    assert peak_timing(observed[: last + 5], forecast[: last + 5], window=5).peaks == 1
    first = PEAKS[0]
    assert peak_timing(observed[first - 4 :], forecast[first - 4 :], window=4).peaks == 4
    assert peak_timing(observed[first - 3 :], forecast[first - 3 :], window=4).peaks == 3


def test_a_peak_must_rise_by_one_standard_deviation_unless_told_otherwise():
    observed = flood_series()
    deviation = observed.std()
    observed[100] += 0.9 * deviation
    assert peak_timing(observed, observed, window=3).peaks == 4
    assert peak_timing(observed, observed, window=3, prominence=0.8 * deviation).peaks == 5
    observed[100] += 0.5 * deviation
    assert peak_timing(observed, observed, window=3).peaks == 5
    assert peak_timing(observed, observed, window=3, prominence=1e3).peaks == 0


def test_without_peaks_the_distance_is_undefined():
    for series in (np.full(20, 3.0), np.full(20, np.nan), np.arange(20.0), np.empty(0)):
        found = peak_timing(series, series, window=2)
        assert found.peaks == 0 and np.isnan(found.mean_absolute_steps)


def test_series_and_options_that_make_no_sense_are_refused():
    series = flood_series()
    for observed, forecast, words in (
        (series, series[1:], "one length"),
        (series.reshape(2, -1), series.reshape(2, -1), "one length"),
        (np.append(series[1:], np.inf), series, "infinite"),
    ):
        with pytest.raises(ValueError, match=words):
            peak_timing(observed, forecast, window=2)
    with pytest.raises(ValueError, match="at least one step"):
        peak_timing(series, series, window=0)
    for prominence in (-1.0, np.nan):
        with pytest.raises(ValueError, match="prominence"):
            peak_timing(series, series, window=2, prominence=prominence)
