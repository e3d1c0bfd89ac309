"""The two ends of edges as positions of sensors, checked once for everybody."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

# source, target and length of every edge, sorted by (source, target)
EdgeList: TypeAlias = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]


def edge_positions(
    source: ArrayLike,
    target: ArrayLike,
    sensors: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Returns both ends of every edge as positions among `sensors` sensors.

    Raises:
        ValueError: if the ends differ in number or one is not a position from 0 to `sensors` - 1.
    """
    if sensors < 0:
        raise ValueError(f"a network cannot have {sensors} sensors")
    first = _positions(source, sensors, "source")
    second = _positions(target, sensors, "target")
    if len(first) != len(second):
        raise ValueError(f"there are {len(first)} sources and {len(second)} targets")
    return first, second


def edge_lengths(distance: ArrayLike) -> NDArray[np.float64]:
    """Returns the lengths of edges, in the unit they were given in.

    Raises:
        ValueError: if they are not a plain list of finite numbers of zero or more.
    """
    lengths = np.asarray(distance, dtype=np.float64)
    if lengths.ndim != 1:
        raise ValueError(f"edge lengths must be a plain list, not an array of {lengths.ndim} axes")
    refused = np.flatnonzero(~((lengths >= 0) & np.isfinite(lengths)))
    if len(refused):
        edge = refused[0]
        raise ValueError(f"edge {edge} has length {lengths[edge]}; expected zero or more")
    return lengths


def _positions(ends: ArrayLike, sensors: int, name: str) -> NDArray[np.int32]:
    given = np.asarray(ends)
    if given.ndim != 1:
        raise ValueError(f"{name} must be a plain list of positions, not {given.ndim} axes")
    if given.size == 0:
        return np.empty(0, np.int32)  # an empty list has no kind of number to judge
    if given.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers, not {given.dtype}")
    outside = np.flatnonzero((given < 0) | (given >= sensors))
    if len(outside):
        edge = outside[0]
        raise ValueError(f"edge {edge} has {name} {given[edge]}; expected 0 to {sensors - 1}")
    return given.astype(np.int32)
