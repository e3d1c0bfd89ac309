"""Which moments a model learns from, is chosen by, and is judged by.

A forecast is named by its origin: the row of its first target. Origin o reads the rows o - history .. o - 1 and
forecasts the rows o .. o + horizon - 1.
"""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError

Origins = NDArray[np.int64]
SplitKind = Literal["windows", "time"]


@dataclass(frozen=True, eq=False)
class Split:
    """The origins of the three parts, each in order of time, and the row at which the training period ends."""

    train: Origins
    validation: Origins
    test: Origins
    train_end: int


def split_origins(
    length: int, history: int, horizon: int, kind: SplitKind, shares: tuple[float, float, float]
) -> Split:
    """Returns the split of a record of `length` rows.

    windows
        All windows are listed and the list is cut: training and test get their rounded shares, validation the rest.
        Targets next to a cut are shared by both sides (horizon - 1 rows): the standard protocol of the traffic sets.
    time
        The rows are cut: training and test get their shares rounded down, validation the rest. Targets lie wholly in
        their period, so no target row is shared; histories may reach back into the period before.
    """
    if not (abs(sum(shares) - 1.0) <= 1e-6 and min(shares) >= 0):  # so that NaN is refused as well
        raise InputError(
            f"the shares of a split must be positive and sum to 1, not {shares}",
            hint="give those of training, validation and test, e.g. shares=[0.6,0.2,0.2]",
        )
    if kind == "windows":
        split = _split_windows(length, history, horizon, shares)
    else:
        split = _split_time(length, history, horizon, shares)
    for name in ("train", "validation", "test"):
        share = shares[("train", "validation", "test").index(name)]
        if share > 0 and len(getattr(split, name)) == 0:
            raise InputError(
                f"the record has {length} rows: too few for a {name} part with a history of {history} and a "
                f"horizon of {horizon} steps",
                hint="give a longer record, or a shorter history or horizon",
            )
    return split


def _split_windows(length: int, history: int, horizon: int, shares: tuple[float, float, float]) -> Split:
    origins = np.arange(history, length - horizon + 1, dtype=np.int64)
    train, test = round(len(origins) * shares[0]), round(len(origins) * shares[2])
    cut = max(train, len(origins) - test)  # without a validation part both may have been rounded up
    return Split(origins[:train], origins[train:cut], origins[cut:], history + train + horizon - 1)


def _split_time(length: int, history: int, horizon: int, shares: tuple[float, float, float]) -> Split:
    # The small addition keeps 0.29 x 100 from being 28.
    train, test = int(length * shares[0] + 1e-9), int(length * shares[2] + 1e-9)
    cuts = [0, train, length - test, length]
    parts = [
        np.arange(max(first, history), last - horizon + 1, dtype=np.int64) for first, last in itertools.pairwise(cuts)
    ]
    return Split(parts[0], parts[1], parts[2], train)
