"""Calendar positions of the rows of a panel, on the local clock (time of day in 288 bins, Monday is 0)."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from candor.data.times import DAY, TimeAxis

BINS_PER_DAY = 288
DAYS_PER_WEEK = 7
WEEKS_PER_YEAR = 53


@dataclass(frozen=True)
class Calendar:
    """Where each moment stands: time-of-day bin 0..287 (daily data: 0), day of week 0..6, week of the year 0..52."""

    time_of_day: NDArray[np.int16]
    day_of_week: NDArray[np.int16]
    week_of_year: NDArray[np.int16]


def calendar_of(times: TimeAxis) -> Calendar:
    """Returns the calendar of all moments of the axis."""
    local = times.local
    seconds = local.hour * 3600 + local.minute * 60 + local.second
    if times.interval % DAY == timedelta(0):
        seconds = 0 * seconds  # a day has no time of day, whatever hour it is stamped with
    return Calendar(
        time_of_day=np.asarray(BINS_PER_DAY * seconds // 86400, dtype=np.int16),
        day_of_week=np.asarray(local.day_of_week, dtype=np.int16),
        week_of_year=np.asarray((local.day_of_year - 1) // DAYS_PER_WEEK, dtype=np.int16),
    )
