"""Which sensors are downstream of which, which ones hang together, and which stand alone."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from candor.core.errors import InputError
from candor.graph.weights import EdgeList, edge_lengths, edge_positions

_NUMBERS_PER_BLOCK = 4_000_000  # 32 MB of distances in memory at a time

# 0.1 + 0.2 is a little more than 0.3 in floating point, and must still lie within 0.3.
_ROUNDING = 1e-9


def downstream_pairs(
    source: ArrayLike, target: ArrayLike, length: ArrayLike, sensors: int, limit: float | None = None
) -> EdgeList:
    """Return all ordered pairs (i, j), i != j, where j is downstream of i, and how far it is.

    Downstream means along the segments, in their direction; the distance is that of the shortest way, in the unit of
    `length`. Cycles, self-loops, segments of length zero and several segments between the same two sensors (the
    shortest counts) are legal.

    Args:
        source: position of the sensor each segment starts from.
        target: position of the sensor each segment leads to.
        length: length of each segment, zero or more.
        sensors: how many sensors there are.
        limit: pairs farther apart than this are left out, a pair exactly as far is kept (a billionth is allowed for
            rounding). None means no limit, which can give up to sensors x (sensors - 1) pairs.
    """
    source, target = edge_positions(source, target, sensors)
    lengths = edge_lengths(length)
    if len(lengths) != len(source):
        raise ValueError(f"there are {len(source)} segments and {len(lengths)} lengths")
    if limit is not None and not limit >= 0:
        raise InputError(
            f"the limit of downstream distances is {limit}; expected zero or more",
            hint="give it in the unit of the segment lengths, or leave it out for no limit",
        )
    # Of parallel segments the shortest: the sparse constructor would add them up. A segment of length zero is a stored
    # zero, which csgraph takes for an edge as long as the matrix is neither made dense nor cleaned of zeros.
    order = np.lexsort((lengths, target, source))
    (source, target), first = np.unique(np.stack([source, target])[:, order], axis=1, return_index=True)
    segments = csr_array((lengths[order][first], (source, target)), shape=(sensors, sensors))
    reach = np.inf if limit is None else limit * (1 + _ROUNDING)
    starts = np.unique(source)  # nothing is downstream of the others
    per_block = max(1, _NUMBERS_PER_BLOCK // max(sensors, 1))
    found: list[EdgeList] = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))]
    for begin in range(0, len(starts), per_block):
        block = starts[begin : begin + per_block]
        distance = dijkstra(segments, directed=True, indices=block, limit=reach)
        distance[np.arange(len(block)), block] = np.inf
        row, end = np.nonzero(np.isfinite(distance))
        found.append((block[row], end.astype(np.int32), distance[row, end]))
    begins, ends, distances = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return begins, ends, distances


def components(source: ArrayLike, target: ArrayLike, sensors: int) -> NDArray[np.int32]:
    """Return for every sensor the number of the weakly connected component it belongs to.

    Components are numbered from 0 in the order of their first sensor; directions do not matter.
    """
    ends = edge_positions(source, target, sensors)
    linked = csr_array((np.ones(len(ends[0])), ends), shape=(sensors, sensors))
    _, labels = connected_components(linked, directed=True, connection="weak")
    return np.asarray(labels, dtype=np.int32)


def isolated(source: ArrayLike, target: ArrayLike, sensors: int) -> NDArray[np.int32]:
    """Return the positions, ascending, of the sensors that have no edge besides self-loops."""
    groups = components(source, target, sensors)
    return np.flatnonzero(np.bincount(groups, minlength=1)[groups] == 1).astype(np.int32)
