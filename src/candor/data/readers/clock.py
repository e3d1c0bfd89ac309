"""From what a clock on the wall showed to moments in UTC: daylight saving's repeated and missing hours."""

from collections.abc import Callable
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.readers.readings import Stamps
from candor.data.times import zone_from_name

_DAY = 86_400_000_000  # microseconds


class LocalClock:
    """Converts stamps without a zone, in file order, remembering where in a repeated hour each sensor stands.

    The hour that autumn repeats is summer time at first and standard time from the row on that shows a stamp again or
    turns back; in a file that runs backwards it is the other way round, and in one without order only a stamp shown
    again is standard time. If only one of the two would fall on the grid, that one is meant. Stamps in the hour that
    spring skips are no moments: they become NaT and are counted.

    Args:
        zone: where the clock hangs.
        direction: 1 for a file whose times run forwards, -1 for one that runs backwards, 0 for one without order.
        is_on_grid: tells which moments fall on the grid of the file.
    """

    def __init__(
        self, zone: str, direction: int = 1, is_on_grid: Callable[[Stamps], NDArray[np.bool_]] = np.isfinite
    ) -> None:
        self._zone = zone_from_name(zone)
        self._direction = direction
        self._is_on_grid = is_on_grid
        self._seen: set[tuple[int, int]] = set()
        self._last: dict[int, tuple[int, bool]] = {}
        self.skipped = 0

    def to_utc(self, stamps: Stamps, sensor: NDArray[np.int32] | None = None) -> Stamps:
        """Returns the moments of the stamps in UTC."""
        wall = pd.DatetimeIndex(stamps)
        moments = _read(wall, self._zone, is_summer=None)
        doubtful = np.flatnonzero(np.isnat(moments) & ~np.isnat(stamps))
        if len(doubtful) == 0:
            return moments
        owners = np.full(len(doubtful), -1) if sensor is None else sensor[doubtful]
        numbers = stamps[doubtful].astype(np.int64)
        is_second = [self._is_second(o, n) for o, n in zip(owners.tolist(), numbers.tolist(), strict=True)]
        is_summer = np.array(is_second) == (self._direction < 0)
        summer, standard = (_read(wall[doubtful], self._zone, way) for way in (True, False))
        on_grid = self._is_on_grid(summer)
        is_summer = np.where(on_grid == self._is_on_grid(standard), is_summer, on_grid)
        moments[doubtful] = np.where(is_summer, summer, standard)
        self.skipped += int(np.isnat(moments[doubtful]).sum())
        return moments

    def _is_second(self, owner: int, stamp: int) -> bool:
        """Returns whether this sensor goes through the repeated hour for the second time."""
        last, is_second = self._last.get(owner, (stamp, False))
        step = stamp - last
        turns_back = step * self._direction < 0
        is_second = (is_second or turns_back) and abs(step) < _DAY  # a day on, another year's hour begins
        is_again = (owner, stamp) in self._seen
        self._seen.add((owner, stamp))
        self._last[owner] = stamp, is_second
        return is_second or is_again


def certain_moments(stamps: Stamps, zone: str) -> Stamps:
    """Returns the moments in UTC; NaT for stamps in an hour that the clock skips or repeats."""
    return _read(pd.DatetimeIndex(stamps), zone_from_name(zone), is_summer=None)


def possible_moments(stamps: Stamps, zone: str) -> Stamps:
    """Returns all moments in UTC that the stamps may mean, in order: two for each in a repeated hour."""
    wall = pd.DatetimeIndex(stamps)
    moments: Stamps = np.unique([_read(wall, zone_from_name(zone), is_summer) for is_summer in (True, False)])
    return moments[~np.isnat(moments)]


def _read(wall: pd.DatetimeIndex, zone: tzinfo, is_summer: bool | None) -> Stamps:
    """Returns the moments in UTC; NaT for what spring skips, and for what autumn repeats unless it is said which."""
    ambiguous: Any = "NaT" if is_summer is None else np.full(len(wall), is_summer)
    local = wall.tz_localize(zone, ambiguous=ambiguous, nonexistent="NaT")
    return np.array(local.tz_convert("UTC").tz_localize(None), dtype="datetime64[us]")
