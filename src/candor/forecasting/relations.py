"""Who is averaged for whom in the shared network: senders, receivers and likes of each sensor, as arrays of a state."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from candor.account.likeness import most_alike
from candor.data.panel import Panel, adjacency_of
from candor.graph import row_normalised
from candor.nets.additive.shared import Relations

Arrays = dict[str, NDArray[Any]]


def relations_of(panel: Panel, filled: NDArray[np.float32], alike: int) -> Arrays:
    """Return the relations of a panel as named arrays, entries ascending by kind, receiver and sender.

    Args:
        panel: its edges.
        filled: deviations of the training part without gaps, time x sensor.
        alike: how many of the sensors that behave alike are averaged.
    """
    row, column, weight = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    kinds = 0
    for kinds, matrix in enumerate(_matrices(panel, filled, alike), 1):
        entries = matrix.tocoo()
        order = np.lexsort((entries.col, entries.row))
        row.append((kinds - 1) * len(panel.sensors) + entries.row[order].astype(np.int64))
        column.append(entries.col[order].astype(np.int64))
        weight.append(entries.data[order].astype(np.float32))
    parts: Arrays = {"row": np.concatenate(row), "column": np.concatenate(column), "weight": np.concatenate(weight)}
    return parts | {"kinds": np.array([kinds])}


def relations_in(arrays: Arrays, nodes: int) -> Relations:
    """Return the relations that `relations_of` wrote down."""
    row, column, weight = (torch.from_numpy(arrays[name]) for name in ("row", "column", "weight"))
    return Relations.of(row, column, weight, int(arrays["kinds"][0]), nodes)


def _matrices(panel: Panel, filled: NDArray[np.float32], alike: int) -> Iterator[csr_array]:
    """Yield receiver x sender for each kind: along edges, against them, and alike; rows sum to one."""
    adjacency = adjacency_of(panel).tolil()
    adjacency.setdiag(0)
    forward = csr_array(adjacency)
    if forward.count_nonzero():
        yield row_normalised(forward.T.tocsr())
        yield row_normalised(forward)
    found, _ = most_alike(filled, alike)
    if found.shape[1]:
        sensors = len(found)
        rows = np.repeat(np.arange(sensors), found.shape[1])
        shares = np.full(rows.size, 1 / found.shape[1])
        yield csr_array((shares, (rows, found.ravel())), shape=(sensors, sensors))
