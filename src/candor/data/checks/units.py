"""Sensors that change their unit on the way: one sudden, lasting jump by a factor that units are known for.

A level is the median over a week of daily medians, so that neither days nor weekends show. The jump between the week
before and the week after a moment must be (1) at least twice as large as any other in the record, which rules out
seasons, (2) there at once, in the few readings on either side, which rules out every slow change, (3) still there in
all that came before and after, which rules out floods, and (4) as large as a known conversion asks for.
"""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from candor.data.checks.series import Series, quantile
from candor.data.times import DAY

Levels = NDArray[np.float64]

# Levels are taken over a week of days; of daily and slower readings, over four weeks of readings.
BLOCKS_PER_WINDOW = 7
SLOW_WINDOW = 28
# Short records get shorter windows: several must fit in, to know which jumps are usual.
WINDOWS_PER_RECORD = 8
LEAST_STEP, MOST_STEP = 0.5, 2.0
# A level needs readings in a good part of its time.
LEAST_OBSERVED = 0.25
# The jump must be this many times the next largest, at least a window away.
TIMES_OTHER_JUMPS = 2.0
# How far the jump may be from what a change of unit asks for, as a share of it: levels drift within a week.
TOLERANCE = 0.2
# The readings right at the jump, and the share of the jump that must be seen in them.
NEXT_READINGS = 6
LEAST_SUDDEN, MOST_SUDDEN = 0.6, 1.5
# The share of the jump that must be left between all that came before and all that came after: the sudden end of a
# flood is no change of unit. Seasons may take away some of it.
LEAST_LASTING = 0.5
# Temperatures of air and water; other numbers are not taken for deg C.
CELSIUS = (-50.0, 60.0)
QUARTERS = (0.25, 0.5, 0.75, 0.9)


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
    Conversion(
        1.8, 32, "times 1.8 plus 32, as from deg C to deg F", "minus 32 and divided by 1.8, as from deg F to deg C"
    ),
)


@dataclass(frozen=True)
class UnitChange:
    """A suspected change of unit: the first row in the new unit, and the change in words."""

    row: int
    words: str


def find_unit_change(series: Series, rows: int, interval: timedelta) -> UnitChange | None:
    """Returns the suspected change of unit of a sensor, or None.

    Args:
        series: its readings.
        rows: how many rows the panel has.
        interval: the distance between two rows.
    """
    block, blocks = _window(rows, interval)
    window = block * blocks
    if window == 0 or len(series) < LEAST_OBSERVED * WINDOWS_PER_RECORD * window:
        return None
    grid = np.full(rows, np.nan)
    grid[series.rows] = series.values
    daily = _medians(grid[: rows // block * block].reshape(-1, block), 1)
    levels = _medians(sliding_window_view(daily, blocks), LEAST_OBSERVED * blocks)
    before, after = levels[:-blocks], levels[blocks:]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(np.where(before * after > 0, after / before, np.nan))
    # Most units differ by a factor, which shows best in ratios; deg C and deg F differ by an offset too.
    for jumps, in_ratios in ((ratios, True), (after - before, False)):
        place = _single_jump(jumps, blocks)
        if place is None:
            continue
        row = _row_of_change(_logarithms(series) if in_ratios else series, (place + blocks) * block, window)
        words = "" if row is None else _conversion_in_words(series, row, window)
        if row is not None and words:
            return UnitChange(row, words)
    return None


def _window(rows: int, interval: timedelta) -> tuple[int, int]:
    """Returns the rows of a block and the blocks of a window; none if the record is too short for windows."""
    block, blocks = max(1, int(DAY / interval)), BLOCKS_PER_WINDOW
    if block == 1:
        blocks = SLOW_WINDOW
    return (block, blocks) if rows >= WINDOWS_PER_RECORD * block * blocks else (0, 0)


def _medians(table: NDArray[np.float64], least: float) -> Levels:
    """Returns the median of each line of a table, NaN where a line holds fewer than `least` numbers."""
    ordered = np.sort(table, axis=1)  # NaN last
    counts = np.count_nonzero(~np.isnan(ordered), axis=1)
    middle = np.take_along_axis(ordered, np.maximum(counts - 1, 0)[:, None] // 2, axis=1)[:, 0]
    return np.where(counts >= least, middle, np.nan)


def _single_jump(jumps: Levels, blocks: int) -> int | None:
    """Returns the place of the largest jump if no other comes near it, else None."""
    sizes = np.nan_to_num(np.abs(jumps), nan=0.0)
    if len(sizes) == 0 or sizes.max() == 0:
        return None
    place = int(np.argmax(sizes))
    # With gaps, the same jump can be seen from places up to two windows apart.
    elsewhere = np.abs(np.arange(len(sizes)) - place) >= 2 * blocks
    if np.count_nonzero(elsewhere & ~np.isnan(jumps)) < blocks:
        return None
    return place if sizes[place] >= TIMES_OTHER_JUMPS * sizes[elsewhere].max() else None


def _logarithms(series: Series) -> Series:
    """Returns the logarithms of the sizes of all readings but zeros."""
    kept = series.without(series.values == 0)
    return Series(kept.rows, np.log(np.abs(kept.values)))


def _row_of_change(series: Series, row: int, window: int) -> int | None:
    """Returns the first row after the jump, or None if the level does not change at once and for good.

    Args:
        series: the readings, or their logarithms.
        row: where the jump is, to within half a window.
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
    earlier, later = series.values[:place], series.values[place:]
    sudden = np.median(later[:NEXT_READINGS]) - np.median(earlier[-NEXT_READINGS:])
    lasting = np.median(later) - np.median(earlier)
    step = later[0] - earlier[-1]
    if series.rows[place] - series.rows[place - 1] > max(window // 7, 6): return None
    if old == new or not LEAST_STEP < step / (new - old) < MOST_STEP or not LEAST_SUDDEN < sudden / (new - old) < MOST_SUDDEN or lasting / (new - old) < LEAST_LASTING:
        return None
    return int(series.rows[place])


def _conversion_in_words(series: Series, row: int, window: int) -> str:
    """Returns the conversion that explains the levels before and after a row best, in words, or nothing."""
    begin, middle, end = np.searchsorted(series.rows, [row - window, row, row + window])
    if min(middle - begin, end - middle) < NEXT_READINGS:
        return ""
    before, after = (
        np.array([quantile(np.sort(part), share) for share in QUARTERS])
        for part in (series.values[begin:middle], series.values[middle:end])
    )
    best, least = "", np.inf
    for conversion in CONVERSIONS:
        for smaller, larger, words in ((before, after, conversion.up), (after, before, conversion.down)):
            if all(_explains(conversion, low, high) for low, high in zip(smaller, larger, strict=True)):
                misfit = float(np.abs(conversion.factor * smaller + conversion.offset - larger).sum())
                misfit /= abs(larger[1] - smaller[1])
                best, least = (words, misfit) if misfit < least else (best, least)
    return best


def _explains(conversion: Conversion, smaller: float, larger: float) -> bool:
    """Returns whether a conversion makes the larger level of the smaller one."""
    if conversion.offset:
        expected = (conversion.factor - 1) * smaller + conversion.offset
        return CELSIUS[0] < smaller < CELSIUS[1] and abs(larger - smaller - expected) <= TOLERANCE * abs(expected)
    if smaller * larger <= 0 or abs(larger) <= abs(smaller):
        return False
    expected = np.log(conversion.factor)
    return bool(abs(np.log(larger / smaller) - expected) <= TOLERANCE * expected)
