"""Who lies downstream of whom, which sensors hang together, and which stand alone."""

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
    source: ArrayLike,
    target: ArrayLike,
    length: ArrayLike,
    sensors: int,
    limit: float | None = None,
) -> EdgeList:
    """Returns all ordered pairs (i, j), i != j, where j is downstream of i, and how far it is.

    Downstream means along the segments, in their direction; the distance is that of the shortest
    way, in the unit of `length`. Cycles, self-loops, segments of length zero and several segments
    between the same two sensors (the shortest counts) are legal.

    Args:
        source: position of the sensor each segment starts from.
        target: position of the sensor each segment leads to.
        length: length of each segment, zero or more.
        sensors: how many sensors there are.
        limit: pairs farther apart than this are left out, a pair exactly as far is kept (a
            billionth is allowed for rounding). None means no limit, which can give up to
            sensors x (sensors - 1) pairs.

    Returns:
        The positions i and j (int32) and the distances (float64), sorted by (i, j).

    Raises:
        InputError: if the limit is negative or NaN.
        ValueError: if a position is not that of a sensor, or a length is negative or not finite.
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
    reach = np.inf if limit is None else limit * (1 + _ROUNDING)
    segments = _shortest_segments(source, target, lengths, sensors)
    starts = np.unique(source)  # nothing is downstream of the others
    starts_per_block = max(1, _NUMBERS_PER_BLOCK // max(sensors, 1))
    found: list[EdgeList] = []
    for first in range(0, len(starts), starts_per_block):
        block = starts[first : first + starts_per_block]
        found.append(_pairs_from(block, segments, reach))
    if not found:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64)
    begin, end, distance = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return begin, end, distance


def components(source: ArrayLike, target: ArrayLike, sensors: int) -> NDArray[np.int32]:
    """Returns for every sensor the number of the weakly connected component it belongs to.

    Components are numbered from 0 in the order of their first sensor; directions do not matter.
    """
    source, target = edge_positions(source, target, sensors)
    linked = csr_array((np.ones(len(source)), (source, target)), shape=(sensors, sensors))
    _, labels = connected_components(linked, directed=True, connection="weak")
    return np.asarray(labels, dtype=np.int32)


def isolated(source: ArrayLike, target: ArrayLike, sensors: int) -> NDArray[np.int32]:
    """Returns the positions, ascending, of the sensors that have no edge besides self-loops."""
    source, target = edge_positions(source, target, sensors)
    is_linked = np.zeros(sensors, np.bool_)
    between_two = source != target
    is_linked[source[between_two]] = True
    is_linked[target[between_two]] = True
    return np.flatnonzero(~is_linked).astype(np.int32)


def _shortest_segments(
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    lengths: NDArray[np.float64],
    sensors: int,
) -> csr_array:
    """Returns the lengths as a sparse matrix with the shortest of parallel segments.

    A segment of length zero is a stored zero. csgraph takes stored zeros for edges as long as the
    matrix is neither made dense nor cleaned of them; adding parallel segments up, as the sparse
    constructor does, would be wrong too, so each pair appears once here.
    """
    order = np.lexsort((lengths, target, source))
    source, target, lengths = source[order], target[order], lengths[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    entries = (lengths[is_first], (source[is_first], target[is_first]))
    return csr_array(entries, shape=(sensors, sensors))


def _pairs_from(starts: NDArray[np.int32], segments: csr_array, reach: float) -> EdgeList:
    """Returns the downstream pairs that begin at `starts`, which ascend."""
    distance = dijkstra(segments, directed=True, indices=starts, limit=reach)
    is_found = np.isfinite(distance)
    is_found[np.arange(len(starts)), starts] = False
    row, end = np.nonzero(is_found)
    return starts[row], end.astype(np.int32), distance[row, end]
