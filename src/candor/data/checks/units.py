"""Sensors that change their unit on the way: one sudden, lasting jump by a factor that units are known for.

A level is the median over a week of daily medians, so that neither days nor weekends show. The jump from the week
before a moment to the week after it must be

1. at least twice as large as any other in the record, which rules out seasons;
2. there from one reading to the next, which rules out weather, and seasons that pass during a gap;
3. still there between all that came before and all that came after, which rules out floods;
4. as large as a known conversion asks for, in high readings and in low ones.

Records shorter than eight weeks are not checked: what is usual there is not known. On months of highway speeds four of
five planted changes from mph to km/h are found; where a quantity itself doubles within days, only large factors are.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from candor.data.checks.values import Series, quantile
from candor.data.times import DAY

# Levels are taken over a week of days; of readings slower than every six hours, over 28 readings.
DAYS_PER_WINDOW = 7
READINGS_PER_DAY = 4
SLOW_WINDOW = 28
WINDOWS_PER_RECORD = 8
# A level needs readings in a good part of its window.
LEAST_OBSERVED = 0.25
# The jump must be this many times the next largest, at least two windows away.
TIMES_OTHER_JUMPS = 2.0
# The jump between two neighbouring readings, and between the six on either side, in shares of the jump of the level.
LEAST_STEP, MOST_STEP = 0.5, 2.0
NEXT_READINGS = 6
LEAST_SUDDEN, MOST_SUDDEN = 0.6, 1.5
# The share of the jump that must be left between all readings before and all after; seasons may take some of it.
LEAST_LASTING = 0.5
# How far the jump may be from what a conversion asks for, as a share of it: levels drift within a week.
TOLERANCE = 0.2
# Compared before and after. The lowest tenth is left out: congestion and droughts come and go.
QUANTILES = (0.25, 0.5, 0.75, 0.9)
# Temperatures of air and water; other numbers are not taken for deg C.
CELSIUS = (-50.0, 60.0)


@dataclass(frozen=True)
class Conversion:
    """From a unit with smaller numbers to one with larger numbers: `larger = factor * smaller + offset`."""

    factor: float
    offset: float
    up: str
    down: str


CONVERSIONS = (
    Conversion(1.609, 0, "times 1.609, as from mph to km/h", "divided by 1.609, as from km/h to mph"),
    Conversion(3.281, 0, "times 3.281, as from m to ft", "divided by 3.281, as from ft to m"),
    Conversion(10, 0, "times 10, as from cm to mm", "divided by 10, as from mm to cm"),
    Conversion(35.31, 0, "times 35.31, as from m3/s to ft3/s", "divided by 35.31, as from ft3/s to m3/s"),
    Conversion(100, 0, "times 100, as from m to cm", "divided by 100, as from cm to m"),
    Conversion(1000, 0, "times 1000, as from m to mm", "divided by 1000, as from mm to m"),
    Conversion(1.8, 32, "times 1.8 plus 32, as from deg C to deg F", "minus 32 by 1.8, as from deg F to deg C"),
)


@dataclass(frozen=True)
class UnitChange:
    """A suspected change of unit: the first row in the new unit, and the change in words."""

    row: int
    words: str


def find_unit_change(series: Series, rows: int, interval: timedelta) -> UnitChange | None:
    """Return the suspected change of unit of a sensor in a panel of so many rows, or None."""
    block, blocks = int(DAY / interval), DAYS_PER_WINDOW
    if block < READINGS_PER_DAY:
        block, blocks = 1, SLOW_WINDOW
    window = block * blocks
    if rows < WINDOWS_PER_RECORD * window or len(series) < LEAST_OBSERVED * WINDOWS_PER_RECORD * window:
        return None
    before, after = _levels(series, rows, block, blocks)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(np.where(before * after > 0, after / before, np.nan))
    # Most units differ by a factor, which shows best in ratios; deg C and deg F differ by an offset too.
    for jumps, in_ratios in ((ratios, True), (after - before, False)):
        place = _single_jump(jumps, blocks)
        if place is None:
            continue
        scaled = _logarithms(series) if in_ratios else series
        row = _row_of_change(scaled, (place + blocks) * block, block, window)
        if row is not None and (words := _conversion_in_words(series, row, window)):
            return UnitChange(row, words)
    return None


def _levels(series: Series, rows: int, block: int, blocks: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the levels before and after the start of each block, from the first with a full window before it."""
    grid = np.full(rows, np.nan)
    grid[series.rows] = series.values
    daily = _medians(grid[: rows // block * block].reshape(-1, block), 1)
    levels = _medians(sliding_window_view(daily, blocks), LEAST_OBSERVED * blocks)
    return levels[:-blocks], levels[blocks:]


def _medians(table: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Return the (lower) median of each line of a table, NaN where a line holds fewer than `least` numbers."""
    ordered = np.sort(table, axis=1)  # NaN last
    counts = np.count_nonzero(~np.isnan(ordered), axis=1)
    middle = np.maximum(counts - 1, 0) // 2
    medians = np.take_along_axis(ordered, middle[:, None], axis=1)[:, 0]
    return np.where(counts >= least, medians, np.nan)


def _single_jump(jumps: NDArray[np.float64], blocks: int) -> int | None:
    """Return the place of the largest jump if no other comes near it, else None."""
    sizes = np.nan_to_num(np.abs(jumps), nan=0.0)
    place = int(np.argmax(sizes))
    # With gaps, the same jump can be seen from places up to two windows apart.
    elsewhere = np.abs(np.arange(len(sizes)) - place) >= 2 * blocks
    if sizes[place] == 0 or np.count_nonzero(elsewhere & ~np.isnan(jumps)) < blocks:
        return None
    return place if sizes[place] >= TIMES_OTHER_JUMPS * sizes[elsewhere].max() else None


def _logarithms(series: Series) -> Series:
    """Return the logarithms of the sizes of all readings but zeros."""
    kept = series.without(series.values == 0)
    return Series(kept.rows, np.log(np.abs(kept.values)))


def _row_of_change(series: Series, row: int, block: int, window: int) -> int | None:
    """Return the first row after the jump, or None if the level does not change at once and for good.

    Args:
        series: the readings, or their logarithms.
        row: where the jump is, to within half a window.
        block: how many rows the sensor may be silent at the jump.
        window: how many rows make a level.
    """
    limits = [row - window, row - window // 2, row + window // 2, row + window]
    begin, first, last, end = np.searchsorted(series.rows, limits)
    if begin == first or last == end:
        return None
    old, new = np.median(series.values[begin:first]), np.median(series.values[last:end])
    # The change lies where calling everything before it old, and everything after it new, fits best.
    between = series.values[first:last]
    misfit = np.concatenate([[0.0], np.cumsum(np.abs(between - old) - np.abs(between - new))])
    place = int(first + np.argmin(misfit))
    is_gap = series.rows[place] - series.rows[place - 1] > max(block, NEXT_READINGS)
    if is_gap or old == new:
        return None
    earlier, later = series.values[:place], series.values[place:]
    step = (later[0] - earlier[-1]) / (new - old)
    sudden = (np.median(later[:NEXT_READINGS]) - np.median(earlier[-NEXT_READINGS:])) / (new - old)
    lasting = (np.median(later) - np.median(earlier)) / (new - old)
    is_change = LEAST_STEP < step < MOST_STEP and LEAST_SUDDEN < sudden < MOST_SUDDEN and lasting > LEAST_LASTING
    return int(series.rows[place]) if is_change else None


def _conversion_in_words(series: Series, row: int, window: int) -> str:
    """Return the conversion that explains the levels before and after a row best, in words, or nothing."""
    begin, middle, end = np.searchsorted(series.rows, [row - window, row, row + window])
    before, after = (
        np.array([quantile(np.sort(part), share) for share in QUANTILES])
        for part in (series.values[begin:middle], series.values[middle:end])
    )
    misfits = {}
    for conversion in CONVERSIONS:
        for smaller, larger, words in ((before, after, conversion.up), (after, before, conversion.down)):
            if all(_explains(conversion, low, high) for low, high in zip(smaller, larger, strict=True)):
                expected = conversion.factor * smaller + conversion.offset
                misfits[words] = float(np.abs(larger - expected).sum() / np.abs(larger - smaller).sum())
    return min(misfits, key=misfits.__getitem__, default="")


def _explains(conversion: Conversion, smaller: float, larger: float) -> bool:
    """Return whether a conversion makes the larger number of the smaller one, nearly."""
    if conversion.offset:
        expected = (conversion.factor - 1) * smaller + conversion.offset
        return CELSIUS[0] < smaller < CELSIUS[1] and abs(larger - smaller - expected) <= TOLERANCE * abs(expected)
    if smaller * larger <= 0 or abs(larger) <= abs(smaller):
        return False
    wanted = np.log(conversion.factor)
    return bool(abs(np.log(larger / smaller) - wanted) <= TOLERANCE * wanted)
