"""Readings that are no readings: zeros and codes for missing, impossible negatives, and single absurd values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.data.checks.series import LEAST_READINGS, Series, quantile

# A code for missing turns up again and again; an extreme of the weather does not repeat to the last digit.
LEAST_REPEATS = 5
# Numbers that loggers and databases are known to write for "no reading".
KNOWN_CODES = frozenset(
    [-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, -99.9, -999.9, -9999.9, -999.99, -9999.99, -7777.0, -8888.0]
) | frozenset([999.0, 9999.0, 99999.0, 999.9, 9999.9, 999.99, 9999.99, 65535.0, 32767.0, -32767.0, -32768.0])
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
    """The readings of one sensor that look wrong one by one.

    Args:
        codes: numbers that look like codes for missing, each with its count.
        zeros: exact zeros far from all other readings.
        negatives: the few readings below zero.
        is_abrupt: whether the negative readings come out of nowhere.
        outliers: rows of single readings absurdly far from both their neighbours.
    """

    codes: tuple[tuple[float, int], ...]
    zeros: int
    negatives: int
    is_abrupt: bool
    outliers: tuple[int, ...]


def find_oddities(series: Series) -> tuple[Oddities, Series]:
    """Returns the odd readings, and the series without them; each check sees what the earlier ones left."""
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
    """Returns the smallest or largest reading if it is repeated and far outside all others; zero has its own check."""
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
        needed = KNOWN_CODE_DISTANCE if _is_known(number) else OTHER_CODE_DISTANCE
        if high > low and distance > max(needed * (high - low), DISTANCE_IN_STEPS * _step(rest)):
            return number
    return None


def _is_known(number: float) -> bool:
    """Returns whether a float32 reading is one of the known codes, which may have decimals."""
    return round(number, 2) in KNOWN_CODES


def count_suspicious_zeros(series: Series) -> int:
    """Returns the number of exact zeros if the sensor otherwise keeps far away from zero, else 0."""
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
    """Returns the usual distance between neighbours among the different readings; 0 if there is but one."""
    distances = np.diff(ordered)
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 0.0


def count_few_negatives(series: Series) -> tuple[int, bool]:
    """Returns the number of negative readings if they are few, and whether they come out of nowhere."""
    negatives = int(np.searchsorted(series.ordered, 0, side="left"))
    if not 0 < negatives < MOST_NEGATIVE_SHARE * len(series) or len(series) < LEAST_READINGS:
        return 0, False
    is_entry = (series.values[1:] < 0) & (series.values[:-1] >= 0)
    if not is_entry.any():  # the record begins with them
        return negatives, False
    usual = quantile(np.sort(series.steps), 0.95)
    return negatives, bool(np.median(series.steps[is_entry]) > ABRUPT * usual)


def find_outliers(series: Series) -> NDArray[np.bool_]:
    """Returns where a reading is absurdly far away, also from the one before it and the one after it."""
    nowhere = np.zeros(len(series), np.bool_)
    if len(series) < LEAST_READINGS:
        return nowhere
    low, high = quantile(series.ordered, 0.25), quantile(series.ordered, 0.75)
    spread = high - low
    if spread == 0 or low == series.ordered[0]:  # a state and bursts, like rain: every burst is far away
        return nowhere
    is_far: NDArray[np.bool_] = np.abs(series.values - quantile(series.ordered, 0.5)) > ABSURD * spread
    is_jump = series.steps > ABSURD * spread / 2  # the peak of a flood is far away, but not from its neighbours
    is_far[1:] &= is_jump
    is_far[:-1] &= is_jump
    return is_far
