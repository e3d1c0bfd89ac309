"""What is usual for a sensor: a mean by time of the day or the week, and a slow wave over the year.

    usual(t) = profile[day, bin of t] + year[week of t]

    profile[day, bin] = alike + w (own - alike)     sums and counts smoothed around the clock
    year[week]        = harmonics of the year, fitted to what the profile leaves, pulled to zero

`own` is the mean of the slot, `alike` that over all working days, or over both days of the weekend. With a handful of
weeks the mean of one slot holds much of what merely happened; w, from 0 to 1, is the share of the variance of
own - alike that comes back from even to odd weeks. Nothing is pulled to the overall mean: a profile that is too flat
leaves its own shape in the deviations, which storage and arrivals would then have to explain.

Slots are those of the calendar (five minutes at the finest), so that whoever has the calendar of a row has its slot.
"""

from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.sparse import csr_array

from candor.core.arrays import Booleans, Doubles, Integers
from candor.data.times import BINS_PER_DAY, DAY, DAYS_PER_WEEK, WEEKS_PER_YEAR, Calendar

Values = NDArray[np.float32]
Cycle = Literal["none", "day", "week"]

_BANDWIDTH = timedelta(minutes=30)
_ALIKE = (slice(0, 5), slice(5, 7))  # Monday to Friday, Saturday and Sunday
_HARMONICS = 3
_DAYS_OF_NO_YEAR = 30  # days' worth of readings, by which the harmonics of the year are pulled to zero
_OUTLYING = 8.0  # robust spreads from the usual beyond which a reading counts as one there
_SPREAD_OF_MEDIAN = 1.4826  # standard deviations in a median absolute deviation of normal numbers
_ROUNDING = 1e-6  # share of its size by which a reading of single precision may be off after some steps
_FEWEST_CYCLES = 2  # of which one is to be told from what merely happened


@dataclass(frozen=True)
class Season:
    """Which cycles are told apart."""

    cycle: Cycle = "week"
    year: bool = False


@dataclass(frozen=True, eq=False)
class Usual:
    """What is usual for each sensor, in the sensors' units.

    Args:
        profile: day x bin of the day x sensor; one day or seven, one bin or those of a day.
        year: week of the year x sensor; of one row, zero, if the year is not told apart.
    """

    profile: Values
    year: Values

    def at(self, calendar: Calendar) -> Values:
        """Return the usual readings at the rows of a calendar, time x sensor."""
        day, bin_of_day = slots_of(calendar, *self.profile.shape[:2])
        found: Values = self.profile[day, bin_of_day] + self.year[calendar.week_of_year % len(self.year)]
        return found


def slots_of(calendar: Calendar, days: int, bins: int) -> tuple[Integers, Integers]:
    """Return the day and the bin of the day of each row, for a profile of so many of them."""
    return calendar.day_of_week % days, calendar.time_of_day.astype(np.int64) * bins // BINS_PER_DAY


def seasons_of(interval: timedelta, rows: int) -> list[Season]:
    """Return which cycles a record of so many rows can tell apart, the simplest first."""
    cycles: list[Cycle] = ["none"]
    if interval < DAY and rows * interval >= _FEWEST_CYCLES * DAY:
        cycles.append("day")
    if interval <= DAY and rows * interval >= _FEWEST_CYCLES * DAYS_PER_WEEK * DAY:
        cycles.append("week")
    years = [False, True] if rows * interval >= _FEWEST_CYCLES * 365 * DAY else [False]
    return [Season(cycle, year) for year, cycle in product(years, cycles)]


def fit_usual(values: Values, calendar: Calendar, interval: timedelta, season: Season) -> Usual:
    """Return what is usual in some readings, time x sensor; readings far off count as those at the edge of the usual.

    A sensor without a reading has the mean of all sensors.
    """
    middle, spread = _nanmedian(values), spread_of(values, values)
    first = _fit(np.clip(values, middle - _OUTLYING * spread, middle + _OUTLYING * spread), calendar, interval, season)
    usual = first.at(calendar)
    spread = spread_of(values - usual, values)
    return _fit(np.clip(values, usual - _OUTLYING * spread, usual + _OUTLYING * spread), calendar, interval, season)


def spread_of(deviations: Values, readings: Values) -> Values:
    """Return the robust standard deviation of each series, NaN left out; the plain one where more than half are equal.

    It is positive: 1 for a series that never changes or is not known. The readings that deviations were taken from tell
    what is no more than rounding.
    """
    with np.errstate(invalid="ignore"):
        middle = _nanmedian(deviations)
        spread = _SPREAD_OF_MEDIAN * _nanmedian(np.abs(deviations - middle))
        known = ~np.isnan(deviations)
        count = np.maximum(known.sum(axis=0), 1)
        centred = np.where(known, deviations - middle, 0.0)
        plain = np.sqrt((centred.astype(np.float64) ** 2).sum(axis=0) / count)
    least = _ROUNDING * np.maximum(_nanmedian(np.abs(readings)), 1e-30)
    found = np.where(spread > least, spread, np.where(plain > least, plain, 1.0))
    return np.asarray(found, np.float32)


def _nanmedian(values: Values) -> Values:
    """Return the median of each column, NaN left out; zero where nothing is known."""
    ordered = np.sort(values, axis=0)  # NaN at the end
    count = (~np.isnan(values)).sum(axis=0)
    columns = np.arange(values.shape[1])
    low, high = (
        ordered[np.maximum(count - 1, 0) // 2, columns],
        ordered[np.minimum(count // 2, len(values) - 1), columns],
    )
    return np.where(count > 0, (low + high) / 2, 0.0).astype(np.float32)


def _fit(values: Values, calendar: Calendar, interval: timedelta, season: Season) -> Usual:
    known = ~np.isnan(values)
    count, total = known.sum(axis=0), np.where(known, values, 0.0).sum(axis=0, dtype=np.float64)
    overall = total.sum() / max(count.sum(), 1)
    mean = np.where(count > 0, total / np.maximum(count, 1), overall)
    # Around the mean, so that sums keep their digits and slots that nobody has seen are in the middle.
    centred = np.where(known, values - mean, 0.0)
    bins = 1 if season.cycle == "none" else max(1, min(BINS_PER_DAY, DAY // interval))
    day, bin_of_day = slots_of(calendar, DAYS_PER_WEEK, bins)
    if season.cycle == "week":
        shape = _week(centred, known, day * bins + bin_of_day, bins, interval)
    else:
        shape = _ratio(*_slot_sums(centred, known, bin_of_day, bins))[None]
    flat = Usual((mean + shape).astype(np.float32), np.zeros((1, len(mean)), np.float32))
    if not season.year:
        return flat
    return Usual(flat.profile, _year(values - flat.at(calendar), calendar, max(1.0, DAY / interval)))


def _week(centred: Doubles, known: Booleans, slot: Integers, bins: int, interval: timedelta) -> Doubles:
    """Return the means of the slots of a week, day x bin x sensor, as far as they come back; see above."""
    week = np.arange(len(slot)) // max(1, round(DAYS_PER_WEEK * DAY / interval))
    alike, own = _split(centred, known, slot, bins)
    halves = [week % 2 == half for half in (0, 1)]
    (_, even), (_, odd) = (_split(centred[some], known[some], slot[some], bins) for some in halves)
    size = (own**2).mean(axis=(0, 1))
    returning = np.where(size > 0, (even * odd).mean(axis=(0, 1)) / np.where(size > 0, size, 1.0), 0.0)
    return alike + returning.clip(0, 1) * own


def _split(centred: Doubles, known: Booleans, slot: Integers, bins: int) -> tuple[Doubles, Doubles]:
    """Return the mean of days that are alike, and by how much each day differs from it, day x bin x sensor."""
    sums, counts = (part.reshape(DAYS_PER_WEEK, bins, -1) for part in _slot_sums(centred, known, slot, bins, 7))
    alike = np.empty_like(sums)
    for days in _ALIKE:
        alike[days] = _ratio(sums[days].sum(axis=0), counts[days].sum(axis=0))
    return alike, np.where(counts > 0, _ratio(sums, counts) - alike, 0.0)


def _slot_sums(centred: Doubles, known: Booleans, slot: Integers, bins: int, days: int = 1) -> tuple[Doubles, Doubles]:
    """Return sums and counts of the readings of each slot, smoothed around the clock, slot x sensor."""
    sums, counts = (_summed(part, slot, days * bins) for part in (centred, known))
    width = _BANDWIDTH / DAY * bins
    if width >= 1:  # nothing is smoothed where readings are further apart
        sums, counts = (gaussian_filter1d(part, width, axis=0, mode="wrap") for part in (sums, counts))
    return sums, counts


def _ratio(sums: Doubles, counts: Doubles) -> Doubles:
    return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), 0.0)


def _year(left: Values, calendar: Calendar, readings_per_day: float) -> Values:
    """Return the wave of the year in what the profile leaves, week of the year x sensor."""
    known = ~np.isnan(left)
    week = calendar.week_of_year.astype(np.int64)
    sums, counts = (_summed(part, week, WEEKS_PER_YEAR) for part in (np.where(known, left, 0.0), known))
    angles = 2 * np.pi * (np.arange(WEEKS_PER_YEAR)[:, None] + 0.5) * 7 / 365.25 * np.arange(1, _HARMONICS + 1)
    waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)  # week x wave
    gram = np.einsum("wk,ws,wl->skl", waves, counts, waves)
    gram += _DAYS_OF_NO_YEAR * readings_per_day * np.eye(waves.shape[1])
    weights = np.linalg.solve(gram, (waves.T @ sums).T[..., None])[..., 0]  # sensor x wave
    return (waves @ weights.T).astype(np.float32)


def _summed(values: NDArray[np.generic], place: Integers, places: int) -> Doubles:
    """Return the sums of the rows that belong to each place, place x column."""
    rows = len(place)
    gathering = csr_array((np.ones(rows), (place, np.arange(rows))), shape=(places, rows))
    return np.asarray(gathering @ values.astype(np.float64))
