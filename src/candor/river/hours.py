"""Readings of any interval on an hourly grid.

An hour takes the readings from half an interval before it to just under half an interval after it, so that every
reading serves one hour at most. Of two readings equally near, the earlier one counts: it was there before the hour.
"""

import numpy as np
from numpy.typing import NDArray

from candor.data.times import TimeAxis
from candor.river.settings import Hourly


def on_grid(
    times: NDArray[np.datetime64], values: NDArray[np.float64], axis: TimeAxis, how: Hourly
) -> NDArray[np.float32]:
    """Returns a value for every moment of the axis, NaN where no reading is near enough.

    Args:
        times: when the readings were taken, UTC, in order.
        values: the readings, all finite.
        axis: the grid.
        how: `nearest`, the reading nearest the moment; `mean`, the mean of all readings of the moment.
    """
    start = np.datetime64(axis.start.replace(tzinfo=None), "us")
    interval = np.timedelta64(axis.interval).astype("timedelta64[us]").astype(np.int64)
    since_start = (times.astype("datetime64[us]") - start).astype(np.int64)
    moment = (since_start + interval // 2) // interval
    is_inside = (moment >= 0) & (moment < axis.length)
    moment, since_start, values = moment[is_inside], since_start[is_inside], values[is_inside]
    result = np.full(axis.length, np.nan, np.float32)
    if how == "mean":
        count = np.bincount(moment, minlength=axis.length)
        total = np.bincount(moment, weights=values, minlength=axis.length)
        result[count > 0] = total[count > 0] / count[count > 0]
    else:
        distance = np.abs(since_start - moment * interval)
        order = np.lexsort((since_start, distance, moment))  # by moment, then nearest, then earliest
        moments, first = np.unique(moment[order], return_index=True)
        result[moments] = values[order][first]
    return result
