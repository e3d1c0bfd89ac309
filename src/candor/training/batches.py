"""Which windows each step of the optimiser sees, and which part of them each process takes.

Everything follows from the seed, the epoch and the number of the batch, so that a resumed training needs no memory of
chance: it draws the same windows and the same dropout masks again.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def epoch_order(windows: int, seed: int, epoch: int) -> Indices:
    """Returns the windows of an epoch in random order, each once."""
    return np.random.default_rng([seed, epoch]).permutation(windows)


def spread_evenly(windows: int, wanted: int | None) -> Indices:
    """Returns at most `wanted` windows, evenly spread from the first to the last; None means all."""
    return np.unique(np.linspace(0, windows - 1, min(windows, wanted or windows)).round().astype(np.int64))


def count_batches(windows: int, size: int) -> int:
    """Returns the steps of an epoch; the last one may be smaller."""
    return -(-windows // size)


def share_of(indices: Indices, rank: int, processes: int) -> Indices:
    """Returns the part of a batch that one of several processes takes; together they take each window once."""
    return np.array_split(indices, processes)[rank]


def micro_batches(indices: Indices, size: int) -> Iterator[Indices]:
    """Yields parts of at most `size` windows."""
    for first in range(0, len(indices), size):
        yield indices[first : first + size]


def batch_seed(seed: int, epoch: int, batch: int, rank: int) -> int:
    """Returns where chance begins for one process in one step."""
    return int(np.random.SeedSequence([seed, epoch, batch, rank]).generate_state(1, np.uint64)[0] >> 1)
