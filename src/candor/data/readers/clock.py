"""From what a clock on the wall showed to moments in UTC: daylight saving's repeated and missing hours."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.readers.readings import Stamps
from candor.data.times import zone_from_name


class LocalClock:
    """Converts stamps without a zone, in file order, remembering which repeated hours it has seen.

    In the hour that autumn repeats, the first row with a stamp is summer time and the next row with the same stamp (of
    the same sensor) is standard time; in a file that runs backwards it is the other way round. Stamps in the hour that
    spring skips are no moments: they become NaT and are counted.
    """

    def __init__(self, zone: str, runs_backwards: bool = False) -> None:
        self._zone = zone_from_name(zone)
        self._first_is_summer = not runs_backwards
        self._seen: set[tuple[int, int]] = set()
        self.skipped = 0
        self.repeated = 0

    def to_utc(self, stamps: Stamps, sensor: NDArray[np.int32] | None = None) -> Stamps:
        """Returns the moments of the stamps in UTC."""
        wall = pd.DatetimeIndex(stamps)
        moments = _localized(wall, self._zone, ambiguous="NaT")
        doubtful = np.flatnonzero(np.isnat(moments) & ~np.isnat(stamps))
        if len(doubtful) == 0:
            return moments
        is_summer = np.ones(len(doubtful), bool)
        for place, row in enumerate(doubtful):
            key = (int(stamps[row].astype(np.int64)), -1 if sensor is None else int(sensor[row]))
            is_summer[place] = (key not in self._seen) == self._first_is_summer
            self._seen.add(key)
        resolved = _localized(wall[doubtful], self._zone, ambiguous=is_summer)
        self.skipped += int(np.isnat(resolved).sum())
        self.repeated += int((~np.isnat(resolved)).sum())
        moments[doubtful] = resolved
        return moments


def _localized(wall: pd.DatetimeIndex, zone: object, ambiguous: object) -> Stamps:
    local = wall.tz_localize(zone, ambiguous=ambiguous, nonexistent="NaT")  # type: ignore[arg-type]
    return np.array(local.tz_convert("UTC").tz_localize(None), dtype="datetime64[us]")
