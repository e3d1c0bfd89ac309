"""Laws of row normalisation and of the directional supports."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from candor.graph import directional_supports, row_normalised

without_deadline = settings(deadline=None)


@st.composite
def adjacencies(draw: st.DrawFn) -> NDArray[np.float32]:
    """Dense adjacencies of 1 to 8 sensors: self-loops, empty rows and no edges at all included."""
    sensors = draw(st.integers(1, 8))
    entry = st.one_of(st.just(0.0), st.floats(2.0**-20, 2.0**20, width=32))
    size = sensors * sensors
    dense = np.array(draw(st.lists(entry, min_size=size, max_size=size)), np.float32)
    dense = dense.reshape(sensors, sensors)
    for silent in draw(st.sets(st.integers(0, sensors - 1))):
        dense[silent] = 0
    return dense


def literal_row_norm(dense: NDArray[np.float32]) -> NDArray[np.float64]:
    """RowNorm written out: one row after the other."""
    result = np.zeros(dense.shape)
    for i, row in enumerate(dense.astype(np.float64)):
        if row.sum() > 0:
            result[i] = row / row.sum()
    return result


@without_deadline
@given(adjacencies())
def test_supports_are_the_equation_written_out(dense: NDArray[np.float32]) -> None:
    forward, reverse = directional_supports(csr_array(dense))
    for support in (forward, reverse):
        assert isinstance(support, csr_array)
        assert support.dtype == np.float32
        assert support.has_canonical_format
    np.testing.assert_allclose(forward.toarray(), literal_row_norm(dense).T, rtol=1e-6)
    np.testing.assert_allclose(reverse.toarray(), literal_row_norm(dense.T).T, rtol=1e-6)


@without_deadline
@given(adjacencies())
def test_columns_of_supports_sum_to_one_or_to_zero(dense: NDArray[np.float32]) -> None:
    forward, reverse = directional_supports(csr_array(dense))
    np.testing.assert_allclose(forward.sum(axis=0), dense.any(axis=1), rtol=1e-5)
    np.testing.assert_allclose(reverse.sum(axis=0), dense.any(axis=0), rtol=1e-5)


@without_deadline
@given(adjacencies())
def test_reversing_every_edge_exchanges_the_supports(dense: NDArray[np.float32]) -> None:
    forward, reverse = directional_supports(csr_array(dense))
    forward_back, reverse_back = directional_supports(csr_array(dense.T))
    np.testing.assert_array_equal(forward_back.toarray(), reverse.toarray())
    np.testing.assert_array_equal(reverse_back.toarray(), forward.toarray())


@without_deadline
@given(adjacencies(), st.randoms(use_true_random=False))
def test_relabelled_sensors_have_relabelled_supports(dense: NDArray[np.float32], random) -> None:
    order = random.sample(range(len(dense)), len(dense))
    there = np.ix_(order, order)
    for original, relabelled in zip(
        directional_supports(csr_array(dense)),
        directional_supports(csr_array(dense[there])),
        strict=True,
    ):
        np.testing.assert_allclose(relabelled.toarray(), original.toarray()[there], rtol=1e-6)


def test_an_edge_from_0_to_1_is_received_by_1_forward_and_by_0_in_reverse() -> None:
    forward, reverse = directional_supports(csr_array(np.array([[0.0, 3.0], [0.0, 0.0]])))
    assert forward.toarray().tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert reverse.toarray().tolist() == [[0.0, 1.0], [0.0, 0.0]]


@without_deadline
@given(adjacencies())
def test_every_way_to_store_a_matrix_gives_the_same_and_stays_as_it_was(
    dense: NDArray[np.float32],
) -> None:
    expected = row_normalised(csr_array(dense)).toarray()
    # Halves of an entry stored twice, and a stored zero at every place, as in a raw edge list.
    row, column = np.indices(dense.shape).reshape(2, -1)
    twice = np.concatenate([dense.ravel() / 2, dense.ravel() / 2])
    places = (np.concatenate([row, row]), np.concatenate([column, column]))
    for stored in (coo_array((twice, places), dense.shape), csc_array(dense), dense.copy()):
        result = row_normalised(stored)
        np.testing.assert_array_equal(result.toarray(), expected)
        assert result.nnz == np.count_nonzero(dense)
        after = stored if isinstance(stored, np.ndarray) else stored.toarray()
        np.testing.assert_array_equal(after, dense)


def test_an_untidy_matrix_is_tidied_in_the_result_and_left_alone_itself() -> None:
    # The first row holds (0, 1) twice and a stored zero, out of order, already as float64.
    values, columns = [1.0, 0.0, 2.0, 1.0], [1, 2, 0, 1]
    matrix = csr_array((np.array(values), np.array(columns), np.array([0, 4, 4, 4])), shape=(3, 3))
    result = row_normalised(matrix)
    assert result.data.tolist() == [0.5, 0.5]
    assert result.indices.tolist() == [0, 1]
    directional_supports(matrix)
    assert matrix.data.tolist() == values
    assert matrix.indices.tolist() == columns


def test_the_smallest_share_of_a_row_stays_an_edge() -> None:
    tiny = np.finfo(np.float32).tiny
    shares = row_normalised(csr_array(np.array([[tiny, 1e30]], np.float32)))
    assert shares.nnz == 2
    assert np.isfinite(np.log(shares.data)).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_networks_without_edges_or_sensors_have_empty_supports() -> None:
    for sensors in (0, 1, 3):
        for support in directional_supports(csr_array((sensors, sensors), dtype=np.float32)):
            assert support.shape == (sensors, sensors)
            assert support.nnz == 0


@pytest.mark.parametrize("entry", [-1.0, np.nan, np.inf])
def test_entries_that_cannot_be_weights_are_refused(entry: float) -> None:
    with pytest.raises(ValueError, match="row-normalised"):
        row_normalised(np.array([[2.0, entry]]))


def test_an_adjacency_that_is_not_square_is_refused() -> None:
    with pytest.raises(ValueError, match="square"):
        directional_supports(csr_array((2, 3)))
