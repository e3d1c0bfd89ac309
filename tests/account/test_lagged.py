"""Lagged products: by transforms, directly, and by definition; blocks sum to the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.account import lagged
from candor.account.lagged import block_ends, lagged_products


def by_definition(first: np.ndarray, second: np.ndarray, pairs: tuple, longest: int, blocks: int) -> np.ndarray:
    one, other = np.nan_to_num(first), np.nan_to_num(second)
    found = np.zeros((len(pairs[0]), blocks, longest + 1))
    ends = block_ends(len(first), blocks)
    for pair, (i, j) in enumerate(zip(*pairs, strict=True)):
        for block in range(blocks):
            for lag in range(longest + 1):
                rows = range(max(ends[block], lag), ends[block + 1])
                found[pair, block, lag] = sum(one[row, i] * other[row - lag, j] for row in rows)
    return found


@given(
    rows=st.integers(0, 60),
    longest=st.integers(0, 20),
    blocks=st.integers(1, 4),
    pairs=st.integers(0, 5),
    segment=st.integers(1, 70),
    seed=st.integers(0, 2**20),
)
def test_both_routes_are_the_definition(
    rows: int, longest: int, blocks: int, pairs: int, segment: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    first, second = generator.standard_normal((2, rows, 3))
    first[generator.random(first.shape) < 0.2] = np.nan
    second[generator.random(second.shape) < 0.2] = np.nan
    ends = generator.integers(0, 3, (2, pairs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lagged, "_SEGMENT", segment)
        patch.setattr(lagged, "_PAIRS_AT_ONCE", 2)
        both = [lagged_products(first, second, (*ends,), longest, blocks, by_fft=by_fft) for by_fft in (True, False)]
    expected = by_definition(first, second, (*ends,), longest, blocks)
    for found in both:
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_blocks_sum_to_the_whole_and_single_precision_is_summed_in_doubles() -> None:
    series = np.random.default_rng(0).standard_normal((5_000, 4)).astype(np.float32) + 100
    pairs = np.array([0, 1, 3]), np.array([2, 2, 3])
    whole = lagged_products(series, series, pairs, 30)
    assert whole.dtype == np.float64
    np.testing.assert_allclose(lagged_products(series, series, pairs, 30, 7).sum(axis=1), whole[:, 0], rtol=1e-12)
    exact = float((series[30:, 0].astype(float) * series[:-30, 2]).sum())
    assert whole[0, 0, 30] == pytest.approx(exact, rel=1e-12)


def test_series_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="no products"):
        lagged_products(np.zeros((5, 1)), np.zeros((4, 1)), (np.array([0]), np.array([0])), 1)
