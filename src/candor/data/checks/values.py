"""Readings of one sensor that look wrong: codes for missing, false zeros and negatives, outliers, and stuck values."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# With fewer readings nothing can be said about what is usual at a sensor.
LEAST_READINGS = 50


@dataclass(frozen=True, eq=False)
class Series:
    """The readings of one sensor in order of time."""

    rows: NDArray[np.int64]  # the rows of the panel at which there is a reading
    # the readings in the sensor's unit; float64, so that differences of float32 extremes stay finite
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def ordered(self) -> NDArray[np.float64]:
        """The readings from the smallest to the largest."""
        return np.sort(self.values)

    @cached_property
    def steps(self) -> NDArray[np.float64]:
        """How far each reading is from the one before it, without sign."""
        return np.abs(np.diff(self.values))

    def without(self, is_wrong: NDArray[np.bool_]) -> "Series":
        """Return the series without some of its readings, so that each wrong reading is reported once."""
        return Series(self.rows[~is_wrong], self.values[~is_wrong]) if is_wrong.any() else self


def series_of(column: NDArray[np.float32]) -> Series:
    """Return the series in a column of a panel."""
    rows = np.flatnonzero(~np.isnan(column))
    return Series(rows, column[rows].astype(np.float64))


def quantile(ordered: NDArray[np.float64], share: float) -> float:
    """Return the reading below which a share of the ordered readings lies."""
    return float(ordered[int(share * (len(ordered) - 1))])


# A code for missing turns up again and again; an extreme of the weather does not repeat to the last digit.
LEAST_REPEATS = 5
# Numbers that loggers and databases are known to write for "no reading".
KNOWN_CODES = {
    *(-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, -99.9, -999.9, -9999.9, -999.99, -9999.99, -7777.0, -8888.0),
    *(999.0, 9999.0, 99999.0, 999.9, 9999.9, 999.99, 9999.99, 65535.0, 32767.0, -32767.0, -32768.0),
}
# How far outside a code lies, in widths of the rest. A known code needs less to be believed; any other number must be
# so far away that a device that is simply on or off is not mistaken for one.
KNOWN_CODE_DISTANCE = 0.25
OTHER_CODE_DISTANCE = 10.0
# Coarse gauges (rain in tipping buckets, levels in whole centimetres) go from one reading to another in a few steps.
DISTANCE_IN_STEPS = 5
# The width of the rest leaves out its rarest thousandth on both sides: there may be other wrong readings in it.
REST = (0.001, 0.999)

# Fewer zeros than this are a matter of single readings; more than that, and zero is the usual state (rain, pumps).
LEAST_ZEROS = 10
LEAST_ZERO_SHARE = 0.001
MOST_ZERO_SHARE = 0.9
# Zero is far from the bulk if 99 of 100 other readings exceed a tenth of the median: speeds do, rain and oxygen do not.
ZERO_DISTANCE = 0.1
# A true zero is reached through small readings; the readings before and after a false one are as large as any.
ZERO_FROM = 0.5

# More negatives than this belong to the quantity: levels below a gauge's zero, temperatures.
MOST_NEGATIVE_SHARE = 0.01
# A temperature crosses zero in steps of its usual size; a false reading drops there at once.
ABRUPT = 3.0

# 50 quartile distances are some 70 standard deviations of a bell curve: no weather does that for one single reading.
ABSURD = 50.0


@dataclass(frozen=True)
class Oddities:
    """The readings of one sensor that look wrong one by one."""

    codes: tuple[tuple[float, int], ...]  # numbers that look like codes for missing, each with its count
    zeros: int  # exact zeros far from all other readings
    negatives: int  # the few readings below zero
    is_abrupt: bool  # whether the negative readings come out of nowhere
    outliers: tuple[int, ...]  # rows of single readings absurdly far from both their neighbours


def find_oddities(series: Series) -> tuple[Oddities, Series]:
    """Return the odd readings, and the series without them; each check sees what the earlier ones left."""
    codes: list[tuple[float, int]] = []
    while (code := find_code(series)) is not None:
        is_code = series.values == code
        codes.append((code, int(is_code.sum())))
        series = series.without(is_code)
    zeros = count_suspicious_zeros(series)
    if zeros:
        series = series.without(series.values == 0)
    negatives, is_abrupt = count_few_negatives(series)
    if negatives and is_abrupt:
        series = series.without(series.values < 0)
    is_outlier = find_outliers(series)
    outliers = tuple(series.rows[is_outlier].tolist())
    return Oddities(tuple(codes), zeros, negatives, is_abrupt, outliers), series.without(is_outlier)


def find_code(series: Series) -> float | None:
    """Return the smallest or largest reading if it is repeated and far outside all others; zero has its own check."""
    ordered = series.ordered
    if len(ordered) < LEAST_READINGS:
        return None
    for rest, number in (
        (ordered[np.searchsorted(ordered, ordered[0], side="right") :], float(ordered[0])),
        (ordered[: np.searchsorted(ordered, ordered[-1], side="left")], float(ordered[-1])),
    ):
        repeats = len(ordered) - len(rest)
        if number == 0 or repeats < LEAST_REPEATS or len(rest) < LEAST_READINGS:
            continue
        low, high = quantile(rest, REST[0]), quantile(rest, REST[1])
        distance = max(low - number, number - high)
        is_known = round(number, 2) in KNOWN_CODES  # a float32 reading of a code that may have decimals
        needed = KNOWN_CODE_DISTANCE if is_known else OTHER_CODE_DISTANCE
        if high > low and distance > max(needed * (high - low), DISTANCE_IN_STEPS * _step(rest)):
            return number
    return None


def count_suspicious_zeros(series: Series) -> int:
    """Return the number of exact zeros if the sensor otherwise keeps far away from zero, else 0."""
    ordered = series.ordered
    first, last = np.searchsorted(ordered, 0, side="left"), np.searchsorted(ordered, 0, side="right")
    zeros = int(last - first)
    if zeros < max(LEAST_ZEROS, LEAST_ZERO_SHARE * len(series)) or zeros > MOST_ZERO_SHARE * len(series):
        return 0
    others = ordered[last:] if first == 0 else -ordered[:first][::-1]
    if len(others) < LEAST_READINGS or len(others) + zeros < len(series):
        return 0
    low, middle = quantile(others, 0.01), quantile(others, 0.5)
    is_far = low >= max(ZERO_DISTANCE * middle, DISTANCE_IN_STEPS * _step(others))
    is_zero = series.values == 0
    is_next = np.concatenate([is_zero[1:], [False]]) | np.concatenate([[False], is_zero[:-1]])
    beside = np.sort(np.abs(series.values[is_next & ~is_zero]))
    return zeros if is_far and quantile(beside, 0.5) >= ZERO_FROM * middle else 0


def _step(ordered: NDArray[np.float64]) -> float:
    """Return the usual distance between neighbours among the different readings; 0 if there is but one."""
    distances = np.diff(ordered)
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 0.0


def count_few_negatives(series: Series) -> tuple[int, bool]:
    """Return the number of negative readings if they are few, and whether they come out of nowhere."""
    negatives = int(np.searchsorted(series.ordered, 0, side="left"))
    if not 0 < negatives < MOST_NEGATIVE_SHARE * len(series) or len(series) < LEAST_READINGS:
        return 0, False
    is_entry = (series.values[1:] < 0) & (series.values[:-1] >= 0)
    if not is_entry.any():  # the record begins with them
        return negatives, False
    usual = quantile(np.sort(series.steps), 0.95)
    return negatives, bool(np.median(series.steps[is_entry]) > ABRUPT * usual)


def find_outliers(series: Series) -> NDArray[np.bool_]:
    """Return where a reading is absurdly far away, also from the one before it and the one after it."""
    nowhere = np.zeros(len(series), np.bool_)
    if len(series) < LEAST_READINGS:
        return nowhere
    low, middle, high = (quantile(series.ordered, share) for share in (0.25, 0.5, 0.75))
    spread = high - low
    if spread == 0 or low == series.ordered[0]:  # a state and bursts, like rain: every burst is far away
        return nowhere
    is_far: NDArray[np.bool_] = np.abs(series.values - middle) > ABSURD * spread
    is_jump = series.steps > ABSURD * spread / 2  # the peak of a flood is far away, but not from its neighbours
    is_far[1:] &= is_jump
    is_far[:-1] &= is_jump
    return is_far


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
    """How a sensor sticks."""

    is_constant: bool = False  # whether every reading is the same
    readings: int = 0  # how many readings lie in suspiciously long runs
    longest: int = 0  # the length of the longest such run, in readings; 0 if there is none
    row: int = 0  # the row at which it begins
    value: float = 0.0  # the reading it repeats, in the sensor's unit
    runs: int = 0  # how many runs of equal readings there are in all; a lively sensor has nearly as many as readings


def find_flat_stretches(series: Series) -> Flatness:
    """Return how a sensor sticks; zeros are left to the check of zeros, for snow and pumps rest there for months."""
    if len(series) == 0:
        return Flatness()
    values = series.values
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    lengths, repeated, runs = np.diff(np.append(starts, len(values))), values[starts], len(starts)
    is_constant = runs == 1 and len(values) > LEAST_RUN
    if runs == 1:
        is_long = np.array([is_constant])
    else:
        is_long = (lengths > max(LEAST_RUN, TIMES_USUAL * _usual_length(lengths))) & (repeated != 0)
        for place in np.flatnonzero(is_long):
            same = np.count_nonzero(repeated == repeated[place])
            is_long[place] = same < max(RESTING_RUNS, RESTING_SHARE * runs)
    if not is_long.any():
        return Flatness(runs=runs)
    longest = int(np.argmax(np.where(is_long, lengths, 0)))
    row, value = int(series.rows[starts[longest]]), float(repeated[longest])
    return Flatness(is_constant, int(lengths[is_long].sum()), int(lengths[longest]), row, value, runs)


def _usual_length(lengths: NDArray[np.int64]) -> int:
    """Return the length of the long runs that are usual among the given ones."""
    ordered = np.sort(lengths)[::-1]
    rank = min(len(ordered), max(USUAL_RANK, int(USUAL_SHARE * len(ordered))))
    above = ordered[: int(MOST_ABOVE_GAP * len(ordered))]
    gaps = np.flatnonzero((above > LEAST_RUN) & (above > TIMES_USUAL * ordered[1 : len(above) + 1]))
    after_gap = ordered[gaps[-1] + 1] if len(gaps) else ordered[0]
    return int(min(ordered[rank - 1], after_gap))
