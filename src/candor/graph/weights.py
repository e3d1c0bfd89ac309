"""Lengths and weights of edges, the adjacency J of a network, and its directional supports.

    T_forward = RowNorm(J)^T        T_reverse = RowNorm(J^T)^T        (eq. app_directional_support)

J[i, j] > 0 is an edge from i to j. In a support, entry (i, j) is what sensor i receives from sensor j: along the edges
in T_forward, against them in T_reverse.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from candor.core.errors import InputError

# source, target and length of every edge, sorted by (source, target)
EdgeList: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]

EARTH_RADIUS_KM = 6371.0088  # mean radius of the Earth (IUGG)
# The smallest normal float32, about 1.2e-38: smaller numbers vanish on some processors.
SMALLEST_WEIGHT = float(np.finfo(np.float32).tiny)
# Lengths that differ by less than this share of the longest differ by rounding only.
_ROUNDING = 1e-9


def edge_positions(source: ArrayLike, target: ArrayLike, sensors: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return both ends of every edge as positions from 0 to `sensors` - 1; others raise ValueError."""
    ends = []
    for name, given in (("source", np.asarray(source)), ("target", np.asarray(target))):
        if given.ndim != 1:
            raise ValueError(f"{name} must be a plain list of positions, not {given.ndim} axes")
        if given.size and given.dtype.kind not in "iu":
            raise ValueError(f"{name} must be whole numbers, not {given.dtype}")
        for edge in np.flatnonzero((given < 0) | (given >= sensors)):
            raise ValueError(f"edge {edge} has {name} {given[edge]}; expected 0 to {sensors - 1}")
        ends.append(given.astype(np.int32))
    if len(ends[0]) != len(ends[1]):
        raise ValueError(f"there are {len(ends[0])} sources and {len(ends[1])} targets")
    return ends[0], ends[1]


def edge_lengths(distance: ArrayLike) -> NDArray[np.float64]:
    """Return the lengths of edges; what is not a plain list of finite numbers of zero or more raises ValueError."""
    lengths = np.asarray(distance, dtype=np.float64)
    if lengths.ndim != 1:
        raise ValueError(f"edge lengths must be a plain list, not an array of {lengths.ndim} axes")
    for edge in np.flatnonzero(~((lengths >= 0) & np.isfinite(lengths))):
        raise ValueError(f"edge {edge} has length {lengths[edge]}; expected zero or more")
    return lengths


def great_circle_km(
    latitude: ArrayLike, longitude: ArrayLike, other_latitude: ArrayLike, other_longitude: ArrayLike
) -> NDArray[np.float64]:
    """Return the great-circle distance in km between points given in degrees (haversine), NaN where one is NaN.

    The arguments broadcast against each other. A latitude beyond 90 or a longitude beyond 360 raises InputError.
    """
    north, other_north = (np.radians(_degrees("latitude", given, 90)) for given in (latitude, other_latitude))
    east, other_east = (np.radians(_degrees("longitude", given, 360)) for given in (longitude, other_longitude))
    shrinking = np.cos(north) * np.cos(other_north)  # degrees of longitude shorten poleward
    haversine = np.sin((other_north - north) / 2) ** 2 + shrinking * np.sin((other_east - east) / 2) ** 2
    # Rounding can push antipodes a little over 1, where the arc sine is not defined.
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(haversine, 1.0))))


def _degrees(name: str, given: ArrayLike, largest: int) -> NDArray[np.float64]:
    degrees = np.asarray(given, dtype=np.float64)
    for place in np.flatnonzero(np.abs(degrees) > largest):
        raise InputError(
            f"the {name} is {degrees.flat[place]}; expected -{largest} to {largest}",
            where=f"sensor at position {place}",
            hint="give degrees, and look whether latitude and longitude were swapped",
        )
    return degrees


def gaussian_weights(
    distance: ArrayLike, sigma: float | None = None, threshold: float | None = None
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the weights exp(-(d / sigma)^2) of the edges that are kept, and which ones are kept.

    Every weight is at least `SMALLEST_WEIGHT`, so that a long edge never vanishes unasked:

        weight, kept = gaussian_weights(distance, threshold=0.1)
        matrix = adjacency(source[kept], target[kept], weight, sensors)

    Args:
        distance: length of every edge, zero or more, all in one unit.
        sigma: width of the Gaussian in that unit. Left out, it is the population standard deviation of all given
            lengths, self-loops and edges below the threshold included. Where that says nothing, because there is one
            edge only or all are equally long (up to rounding), every weight is 1.
        threshold: edges with a smaller weight are dropped, an equal one is kept; from 0 to 1. Left out, every edge is
            kept.
    """
    lengths = edge_lengths(distance)
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(
            f"the threshold of the edge weights is {threshold}; expected a number from 0 to 1",
            hint="weights lie between 0 and 1; 0.1 is usual, and none at all keeps every edge",
        )
    exact = np.exp(-(_widths_away(lengths, sigma) ** 2))
    kept = np.ones(len(exact), np.bool_) if threshold is None else exact >= threshold
    return np.maximum(exact[kept], SMALLEST_WEIGHT).astype(np.float32), kept


def _widths_away(lengths: NDArray[np.float64], sigma: float | None) -> NDArray[np.float64]:
    """Return the lengths in units of sigma; zero where the default sigma says nothing."""
    if sigma is None:
        # Equal lengths can have a standard deviation of 1e-17 instead of zero, hence not sd == 0.
        longest = float(lengths.max(initial=0.0))
        if longest - lengths.min(initial=longest) <= _ROUNDING * longest:
            return np.zeros_like(lengths)
        shares = lengths / longest  # the squares of these neither overflow nor vanish
        return shares / float(np.std(shares))
    if not 0 < sigma < np.inf:
        raise InputError(
            f"sigma is {sigma}; expected a positive length",
            hint="give it in the unit of the distances, or leave it out to have it computed",
        )
    with np.errstate(over="ignore"):  # infinitely many widths away is a weight of zero
        # Beyond 1e3 widths every weight is zero; the cap keeps the square from overflowing.
        return np.minimum(lengths / sigma, 1e3)


def adjacency(source: ArrayLike, target: ArrayLike, weight: ArrayLike, sensors: int) -> csr_array:
    """Return the adjacency J, sensors x sensors, float32: J[i, j] is the weight from i to j, larger is closer.

    An edge that is listed twice, a position that is not that of a sensor, and a weight that is not positive and finite
    as a float32 raise ValueError.
    """
    source, target = edge_positions(source, target, sensors)
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, refused below
        weights = np.asarray(weight, dtype=np.float64).astype(np.float32)
    if weights.shape != source.shape:
        raise ValueError(f"there are {len(source)} edges and weights of shape {weights.shape}")
    for edge in np.flatnonzero(~((weights > 0) & np.isfinite(weights))):
        raise ValueError(
            f"the edge from {source[edge]} to {target[edge]} has weight "
            f"{np.asarray(weight)[edge]}; expected a positive number that fits a float32"
        )
    matrix = csr_array((weights, (source, target)), shape=(sensors, sensors))
    if matrix.nnz < len(source):  # entries listed twice were added up
        pairs, counts = np.unique(np.stack([source, target]), axis=1, return_counts=True)
        first, second = pairs[:, np.argmax(counts > 1)]
        raise ValueError(f"the edge from {first} to {second} is listed twice")
    return matrix


def row_normalised(matrix: Any) -> csr_array:
    """Return a matrix, sparse or dense, with every row divided by its sum, float32; zero rows stay zero.

    Entries that are stored but zero are not stored in the result. A positive entry stays positive however small its
    share is (at least `SMALLEST_WEIGHT`), so its logarithm is finite. Negative and infinite entries raise ValueError.
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
    """Return T_forward and T_reverse of the adjacency J, both sensors x sensors, float32.

    Every column of a support sums to one, or to zero for a sensor that no edge leaves (forward) or reaches (reverse).
    Self-loops are kept, none are added, and a network without edges is legal.
    """
    matrix = csr_array(adjacency)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency must be square, not {matrix.shape}")
    return row_normalised(matrix).T.tocsr(), row_normalised(matrix.T).T.tocsr()
