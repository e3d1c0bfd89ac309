r"""The directional supports of a network (equation app_directional_support of the paper).

    T_forward = RowNorm(J)^T        T_reverse = RowNorm(J^T)^T

J[i, j] > 0 is an edge from i to j. In a support, entry (i, j) is what sensor i receives from
sensor j: along the edges in T_forward, against them in T_reverse.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from candor.graph.weights import SMALLEST_WEIGHT


def row_normalised(matrix: Any) -> csr_array:
    """Returns the matrix with every row divided by its sum, float32; zero rows stay zero.

    Entries that are stored but zero are not stored in the result. A positive entry stays positive
    however small its share is (at least `SMALLEST_WEIGHT`), so its logarithm is finite.

    Args:
        matrix: sparse or dense, of finite numbers of zero or more; it is not changed.

    Raises:
        ValueError: if an entry is negative, infinite or NaN.
    """
    rows = csr_array(matrix, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    if not np.all((rows.data >= 0) & np.isfinite(rows.data)):
        raise ValueError("only finite entries of zero or more can be row-normalised")
    rows.eliminate_zeros()
    # Rows without entries are repeated zero times: nothing is ever divided by zero.
    sum_at_entry = np.repeat(rows.sum(axis=1), np.diff(rows.indptr))
    rows.data = np.maximum(rows.data / sum_at_entry, SMALLEST_WEIGHT)
    return rows.astype(np.float32)


def directional_supports(adjacency: Any) -> tuple[csr_array, csr_array]:
    """Returns T_forward and T_reverse of the adjacency J, both sensors x sensors, float32.

    Every column of a support sums to one, or to zero for a sensor that no edge leaves (forward) or
    reaches (reverse). Self-loops are kept, none are added, and a network without edges is legal.

    Args:
        adjacency: J, sparse or dense, with J[i, j] > 0 for an edge from i to j.

    Raises:
        ValueError: if J is not square, or an entry is negative, infinite or NaN.
    """
    matrix = csr_array(adjacency)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency must be square, not {matrix.shape}")
    return row_normalised(matrix).T.tocsr(), row_normalised(matrix.T).T.tocsr()
