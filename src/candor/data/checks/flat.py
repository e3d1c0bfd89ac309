"""Sensors that stick: the same number again and again, for longer than is usual at that sensor."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.data.checks.series import Series

# Two dozen equal readings (a day by the hour, two hours by five minutes) happen in calm weather and coarse sensors.
LEAST_RUN = 24
# A run is suspicious if it is many times as long as the long runs that are usual at this sensor: the run of rank four,
# or of the top thousandth if that is more. A detector capped at 70 mph reports 70 for an hour on many nights, a coarse
# gauge keeps its value for days in every dry spell, and neither is stuck.
USUAL_RANK = 4
USUAL_SHARE = 0.001
TIMES_USUAL = 8
# A sensor that sticks more often gives itself away by a gap: some runs are that many times as long as all the others.
# If they are more than a tenth of the runs, this is how the sensor is.
MOST_ABOVE_GAP = 0.1
# A value that makes up so many of the runs is a state to which the sensor returns, such as an idle current of 4 mA.
RESTING_SHARE = 0.25
RESTING_RUNS = 3


@dataclass(frozen=True)
class Flatness:
    """How a sensor sticks.

    Args:
        is_constant: whether every reading is the same.
        readings: how many readings lie in suspiciously long runs.
        longest: the length of the longest such run, in readings; 0 if there is none.
        row: the row at which it begins.
        value: the reading it repeats, in the sensor's unit.
        runs: how many runs of equal readings there are in all; a lively sensor has nearly as many as readings.
    """

    is_constant: bool
    readings: int
    longest: int
    row: int
    value: float
    runs: int


def find_flat_stretches(series: Series) -> Flatness:
    """Returns how a sensor sticks; zeros are left to the check of zeros, for snow and pumps rest there for months."""
    if len(series) == 0:
        return Flatness(False, 0, 0, 0, 0.0, 0)
    values = series.values
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    lengths = np.diff(np.append(starts, len(values)))
    if len(starts) == 1:
        is_constant = len(values) > LEAST_RUN
        readings = len(values) if is_constant else 0
        return Flatness(is_constant, readings, readings, int(series.rows[0]), float(values[0]), 1)
    is_long = (lengths > max(LEAST_RUN, TIMES_USUAL * _usual_length(lengths))) & (values[starts] != 0)
    for place in np.flatnonzero(is_long):
        same = int(np.count_nonzero(values[starts] == values[starts[place]]))
        is_long[place] = same < max(RESTING_RUNS, RESTING_SHARE * len(starts))
    if not is_long.any():
        return Flatness(False, 0, 0, 0, 0.0, len(starts))
    longest = int(np.argmax(np.where(is_long, lengths, 0)))
    first = starts[longest]
    return Flatness(
        False, int(lengths[is_long].sum()), int(lengths[longest]), int(series.rows[first]), float(values[first]),
        len(starts),
    )  # fmt: skip


def _usual_length(lengths: NDArray[np.int64]) -> int:
    """Returns the length of the long runs that are usual among the given ones."""
    ordered = np.sort(lengths)[::-1]
    rank = min(len(ordered), max(USUAL_RANK, int(USUAL_SHARE * len(ordered))))
    above = ordered[: int(MOST_ABOVE_GAP * len(ordered))]
    gaps = np.flatnonzero((above > LEAST_RUN) & (above > TIMES_USUAL * ordered[1 : len(above) + 1]))
    after_gap = ordered[gaps[-1] + 1] if len(gaps) else ordered[0]
    return int(min(ordered[rank - 1], after_gap))
