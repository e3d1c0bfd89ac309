"""The common form of all sources of readings: blocks of stamped values that can be walked more than once.

Walking twice, once for the stamps and once for the values, lets a file larger than memory be laid on a time grid
without ever standing in memory as text or as a second table.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.data.readers.cells import NumberReader

Stamps = NDArray[np.datetime64]


@dataclass(frozen=True)
class Block:
    """Some readings.

    Wide: `sensor` is None and `values` has a row per stamp and a column per sensor. Long: `sensor` and `values` have an
    entry per stamp. Values are float32, NaN where missing; a stamp that could not be read is NaT.
    """

    stamps: Stamps
    values: NDArray[np.float32]
    sensor: NDArray[np.int32] | None = None


class Readings(ABC):
    """A source of readings.

    Attributes:
        ids: the sensors, in column order.
        has_zone: whether stamps are moments in UTC; if not, they are what a local clock showed.
        zones: the zones and offsets that the stamps carry, known after a walk over them.
        is_long: whether blocks are long.
        has_decimal_comma: whether 1,5 means one and a half.
        remark: what was done to the columns; empty if nothing was.
        guess: how dates were read that could be read in two ways; empty if there was no doubt.
        unused: the columns that are neither time nor sensor nor readings.
        rows_without_sensor: how many rows of a long table name none, known after a walk over the blocks.
        matrix_rows: the sensors in the order of a matrix without ids, empty if that is in doubt; None is that of `ids`.
    """

    ids: tuple[str, ...]
    has_zone: bool
    zones: tuple[str, ...] = ()
    is_long = False
    has_decimal_comma = False
    remark = guess = ""
    unused: Sequence[str] = ()
    rows_without_sensor = 0
    matrix_rows: tuple[str, ...] | None = None

    @abstractmethod
    def stamps(self) -> Iterator[tuple[Stamps, NDArray[np.int32] | None]]:
        """Yield the stamps (microseconds) in file order, and for long readings the sensors they belong to."""

    @abstractmethod
    def blocks(self, numbers: NumberReader) -> Iterator[Block]:
        """Yield all readings in file order, cleaned and counted by `numbers`."""


@dataclass(eq=False)
class WideReadings(Readings):
    """Readings that already stand in memory: a row per stamp, a column per sensor."""

    row_stamps: Stamps
    values: NDArray[np.float32]
    ids: tuple[str, ...]
    has_zone: bool
    zones: tuple[str, ...] = ()

    def stamps(self) -> Iterator[tuple[Stamps, None]]:
        """Yield all stamps at once."""
        yield self.row_stamps, None

    def blocks(self, numbers: NumberReader) -> Iterator[Block]:
        """Yield all readings at once."""
        yield Block(self.row_stamps, numbers.clean(self.values, self.ids))
