"""Correlations of two series, with gaps, at all rotations at once.

Entry k is Pearson's correlation of the pairs first[t], second[(t - k) mod N] of which both are there. It needs six sums
over those pairs (how many, both values, both squares, the product), and each of them is a circular cross-correlation of
series in which a gap is zero: one inverse FFT gives it for all N rotations. A sum by FFT is the plain sum but for
rounding, whatever the gaps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

FEWEST_PAIRS = 24
LEAST_VARIANCE = 1e-6
"""Share of the variance of the whole series below which the variance of the pairs counts as none."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectra:
    """The transforms of series, frequency x series: of where there are values, of the values, of their squares."""

    length: int
    known: NDArray[np.complex128]
    values: NDArray[np.complex128]
    squares: NDArray[np.complex128]


def spectra_of(series: NDArray[np.floating[Any]]) -> Spectra:
    """Returns the transforms of series (time x series, NaN where missing), each with mean 0 and variance 1."""
    known = ~np.isnan(series)
    scaled = standardise(series)
    scaled[~known] = 0.0
    parts = (known.astype(np.float64), scaled, scaled**2)
    return Spectra(len(series), *(rfft(part, axis=0) for part in parts))


def standardise(series: NDArray[np.floating[Any]]) -> Numbers:
    """Returns each series with mean 0 and variance 1 over what is known of it; one that never changes becomes 0."""
    values = series.astype(np.float64)
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    values = values - np.where(known, values, 0.0).sum(axis=0) / count
    deviation = np.sqrt((np.where(known, values, 0.0) ** 2).sum(axis=0) / count)
    # Equal values leave a remainder of rounding, which must not be blown up.
    is_flat = deviation <= 1e-9 * np.maximum(np.abs(np.nan_to_num(series)).max(axis=0, initial=0.0), 1e-300)
    scaled: Numbers = np.where(is_flat, values * 0.0, values / np.where(is_flat, 1.0, deviation))
    return scaled


def correlations(first: Spectra, second: Spectra) -> Numbers:
    """Returns the correlations, rotation x series.

    NaN where fewer than `FEWEST_PAIRS` pairs are known, or where one side hardly changes over them (`LEAST_VARIANCE`).
    """

    def summed(one: NDArray[np.complex128], other: NDArray[np.complex128]) -> Numbers:
        result: Numbers = irfft(one * other.conj(), n=first.length, axis=0)
        return result

    pairs = np.rint(summed(first.known, second.known))
    count = np.maximum(pairs, 1)
    mean_first, mean_second = summed(first.values, second.known) / count, summed(first.known, second.values) / count
    variance_first = summed(first.squares, second.known) / count - mean_first**2
    variance_second = summed(first.known, second.squares) / count - mean_second**2
    covariance = summed(first.values, second.values) / count - mean_first * mean_second
    is_known = (pairs >= FEWEST_PAIRS) & (np.minimum(variance_first, variance_second) >= LEAST_VARIANCE)
    scale = np.sqrt(np.where(is_known, variance_first * variance_second, 1.0))
    return np.where(is_known, (covariance / scale).clip(-1, 1), np.nan)
