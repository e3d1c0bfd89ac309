"""Products of series with others so many steps earlier, summed over blocks of time: what every closed form here needs.

    products[p, b, k] = sum over t in block b of first[t, i(p)] x second[t - k, j(p)],   k = 0 .. longest

A missing reading (NaN) counts as zero, and so does what lies before the first row. All lags of a pair come from one
product of transforms (by FFT), or from one sum each (direct), which is faster for few lags; both give the same numbers
but for rounding. Series are transformed in segments and pairs are taken in groups, so that memory does not grow with
either; sums are doubles whatever the series are.
"""

from itertools import pairwise

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from candor.core.arrays import Doubles, Floats, Integers

_SEGMENT = 2048  # rows that are transformed at once, unless the lags ask for more
_PAIRS_AT_ONCE = 512
_FEW_LAGS = 12  # up to here the direct sums are faster


def lagged_products(
    first: Floats,
    second: Floats,
    pairs: tuple[Integers, Integers],
    longest: int,
    blocks: int = 1,
    *,
    by_fft: bool | None = None,
) -> Doubles:
    """Return the sums of products of pairs of series by block of time and lag, pair x block x lag.

    Args:
        first: time x series, NaN where missing.
        second: time x series of the same length; it is read 0 to `longest` rows earlier.
        pairs: for each pair its column of `first` and its column of `second`.
        longest: the longest lag, in steps.
        blocks: into how many stretches of (nearly) equal length the rows are cut; a product belongs to the block of
            its row of `first`.
        by_fft: by transforms or directly; by default what is faster.
    """
    if len(first) != len(second):
        raise ValueError(f"series of {len(first)} and of {len(second)} rows have no products")
    ends = block_ends(len(first), blocks)
    add = _add_by_fft if (longest > _FEW_LAGS if by_fft is None else by_fft) else _add_directly
    products = np.zeros((len(pairs[0]), blocks, longest + 1))
    if not products.size:
        return products
    length = max(_SEGMENT, 4 * longest)
    for block, (start, stop) in enumerate(pairwise(ends)):
        for begin in range(start, stop, length):
            end, past = min(begin + length, stop), max(begin - longest, 0)
            add(products[:, block], first[begin:end], second[past:end], pairs, begin - past)
    return products


def block_ends(rows: int, blocks: int) -> list[int]:
    """Return where each of some blocks of rows begins, and the end of the last."""
    return [rows * block // blocks for block in range(blocks + 1)]


def _add_by_fft(into: Doubles, first: Floats, second: Floats, pairs: tuple[Integers, Integers], ahead: int) -> None:
    """Add the products of a segment; `second` begins `ahead` rows before `first`."""
    lags = into.shape[1]
    length = next_fast_len(len(first) + lags + ahead, real=True)
    padded = np.zeros((len(second), first.shape[1]))
    padded[ahead:] = np.nan_to_num(first)  # so that both begin at the same row
    spectra = [rfft(series.T, n=length) for series in (padded, np.nan_to_num(second.astype(np.float64)))]
    for begin in range(0, len(into), _PAIRS_AT_ONCE):
        some = slice(begin, begin + _PAIRS_AT_ONCE)
        product = spectra[0][pairs[0][some]]
        product *= spectra[1][pairs[1][some]].conj()
        into[some] += irfft(product, n=length)[:, :lags]


def _add_directly(into: Doubles, first: Floats, second: Floats, pairs: tuple[Integers, Integers], ahead: int) -> None:
    """Add the products of a segment; `second` begins `ahead` rows before `first`."""
    rows, lags = len(first), into.shape[1]
    one, other = (np.ascontiguousarray(np.nan_to_num(series.T), np.float64) for series in (first, second))
    for begin in range(0, len(into), _PAIRS_AT_ONCE):
        some = slice(begin, begin + _PAIRS_AT_ONCE)
        ours, theirs = one[pairs[0][some]], other[pairs[1][some]]
        for lag in range(lags):
            skipped = max(lag - ahead, 0)  # rows whose partner lies before the first of all
            if skipped < rows:
                partners = theirs[:, ahead + skipped - lag : ahead + rows - lag]
                into[some, lag] += np.einsum("pt,pt->p", ours[:, skipped:], partners)
