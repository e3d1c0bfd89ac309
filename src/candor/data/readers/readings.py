"""The common form of all sources of readings: blocks of stamped values that can be walked more than once.

Walking twice, once for the stamps and once for the values, lets a file larger than memory's patience be laid on a time
grid without ever standing in memory as text or as a second table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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


class Readings(Protocol):
    """A source of readings."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The sensors, in column order."""
        ...

    @property
    def has_zone(self) -> bool:
        """Whether stamps are moments in UTC; if not, they are what a local clock showed."""
        ...

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones and offsets that the stamps carry, known after a walk over them."""
        ...

    @property
    def is_long(self) -> bool:
        """Whether blocks are long."""
        ...

    def stamps(self) -> Iterator[tuple[Stamps, NDArray[np.int32] | None]]:
        """Yields the stamps (microseconds) in file order, and for long readings the sensors they belong to."""
        ...

    def blocks(self) -> Iterator[Block]:
        """Yields all readings in file order."""
        ...


@dataclass(frozen=True)
class WideReadings:
    """Readings that already stand in memory: a row per stamp, a column per sensor."""

    row_stamps: Stamps
    values: NDArray[np.float32]
    ids: tuple[str, ...]
    has_zone: bool
    zones: tuple[str, ...] = ()
    is_long: bool = False

    def stamps(self) -> Iterator[tuple[Stamps, NDArray[np.int32] | None]]:
        """Yields all stamps at once."""
        yield self.row_stamps, None

    def blocks(self) -> Iterator[Block]:
        """Yields all readings at once."""
        yield Block(self.row_stamps, self.values)
