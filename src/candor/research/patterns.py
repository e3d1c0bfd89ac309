"""What is usual for each sensor at a time of the calendar, how far readings are from it, and correlations with gaps.

Entry k of `correlations` is Pearson's correlation of the pairs first[t], second[(t - k) mod N] of which both are there.
It needs six sums over those pairs (how many, both values, both squares, the product), and each of them is a circular
cross-correlation of series in which a gap is zero: one inverse FFT gives it for all N rotations, but for rounding.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from candor.core.arrays import Doubles
from candor.core.progress import Report, silent
from candor.data.panel import Panel
from candor.data.times import BINS_PER_DAY, DAY, TimeAxis, calendar_of

FEWEST_PAIRS = 24
LEAST_VARIANCE = 1e-6
"""Share of the variance of the whole series below which the variance of the pairs counts as none."""
_EDGES_AT_A_TIME = 16


def slots_of(times: TimeAxis) -> NDArray[np.int64]:
    """Return the slot of each moment: its time of the week on the local clock, or for days its week of the year."""
    calendar = calendar_of(times)
    if times.interval >= DAY:
        return calendar.week_of_year.astype(np.int64)
    return calendar.day_of_week.astype(np.int64) * BINS_PER_DAY + calendar.time_of_day


def profiles_of(panel: Panel) -> tuple[Doubles, NDArray[np.int64]]:
    """Return the mean reading of each slot, slot x sensor, NaN where there is none, and the slot of each row."""
    _, place = np.unique(slots_of(panel.times), return_inverse=True)
    return pd.DataFrame(panel.values, dtype=np.float64).groupby(place).mean().to_numpy(), place


def deviations_of(panel: Panel) -> Doubles:
    """Return the readings minus what is usual for their slot, time x sensor, in the sensors' units."""
    profiles, place = profiles_of(panel)
    deviations: Doubles = panel.values - profiles[place]
    return deviations


def standardise(series: NDArray[np.floating[Any]]) -> Doubles:
    """Return each series with mean 0 and variance 1 over what is known of it; one that never changes becomes 0."""
    values = series.astype(np.float64)
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    values = values - np.where(known, values, 0.0).sum(axis=0) / count
    deviation = np.sqrt((np.where(known, values, 0.0) ** 2).sum(axis=0) / count)
    # Equal values leave a remainder of rounding, which must not be blown up.
    is_flat = deviation <= 1e-9 * np.maximum(np.abs(np.nan_to_num(series)).max(axis=0, initial=0.0), 1e-300)
    scaled: Doubles = np.where(is_flat, values * 0.0, values / np.where(is_flat, 1.0, deviation))
    return scaled


@dataclass(frozen=True, eq=False)
class Spectra:
    """The transforms of series, frequency x series: of where there are values, of the values, of their squares."""

    length: int
    known: NDArray[np.complex128]
    values: NDArray[np.complex128]
    squares: NDArray[np.complex128]


def spectra_of(series: NDArray[np.floating[Any]]) -> Spectra:
    """Return the transforms of standardised series (time x series, NaN where missing)."""
    known = ~np.isnan(series)
    scaled = np.where(known, standardise(series), 0.0)
    parts = (known.astype(np.float64), scaled, scaled**2)
    return Spectra(len(series), *(rfft(part, axis=0) for part in parts))


def correlations(first: Spectra, second: Spectra) -> Doubles:
    """Return the correlations, rotation x series; NaN where too few pairs are known, or one side hardly changes."""

    def summed(one: NDArray[np.complex128], other: NDArray[np.complex128]) -> Doubles:
        result: Doubles = irfft(one * other.conj(), n=first.length, axis=0)
        return result

    return _correlation(
        np.rint(summed(first.known, second.known)),
        (summed(first.values, second.known), summed(first.known, second.values)),
        (summed(first.squares, second.known), summed(first.known, second.squares)),
        summed(first.values, second.values),
    )


def pair_correlations(series: Doubles) -> Doubles:
    """Return the correlation of every two series over what both know, series x series; NaN as for `correlations`."""
    known = (~np.isnan(series)).astype(np.float64)
    values = np.nan_to_num(standardise(series))
    sums, squares = values.T @ known, (values**2).T @ known  # of the first; transposed those of the second
    return _correlation(known.T @ known, (sums, sums.T), (squares, squares.T), values.T @ values)


def _correlation(
    pairs: Doubles, sums: tuple[Doubles, Doubles], squares: tuple[Doubles, Doubles], products: Doubles
) -> Doubles:
    """Return Pearson's correlations from sums over pairs: their number, both sides, both squares, the products."""
    count = np.maximum(pairs, 1)
    means = [total / count for total in sums]
    variances = [total / count - mean**2 for total, mean in zip(squares, means, strict=True)]
    is_known = (pairs >= FEWEST_PAIRS) & (np.minimum(*variances) >= LEAST_VARIANCE)
    scale = np.sqrt(np.where(is_known, variances[0] * variances[1], 1.0))
    covariance = products / count - means[0] * means[1]
    return np.where(is_known, (covariance / scale).clip(-1, 1), np.nan)


def lagged_correlations(
    deviations: Doubles,
    source: NDArray[np.integer],
    target: NDArray[np.integer],
    longest: int,
    report: Report = silent,
) -> Doubles:
    """Return the correlation along each edge, edge x lag from -longest to longest; positive: the target follows.

    Pairs overlap plainly: nothing comes round from the other end of the record.
    """
    length = next_fast_len(len(deviations) + longest, real=True)
    padded = np.pad(deviations, ((0, length - len(deviations)), (0, 0)), constant_values=np.nan)
    found = np.full((len(source), 2 * longest + 1), np.nan)
    lags = np.arange(-longest, longest + 1)  # negative ones count from the end, as rotations do
    for first in range(0, len(source), _EDGES_AT_A_TIME):
        edges = slice(first, first + _EDGES_AT_A_TIME)
        whole = correlations(spectra_of(padded[:, target[edges]]), spectra_of(padded[:, source[edges]]))
        found[edges] = whole[lags].T
        report("comparing the ends of edges", min(first + _EDGES_AT_A_TIME, len(source)) / len(source))
    return found
