"""What is usual at a time of the week, from few weeks: days that are alike lend each other their readings.

    week[day, bin] = alike[day, bin] + w (own[day, bin] - alike[day, bin])        w from 0 to 1, per sensor

`own` is the mean of the slot, `alike` that over all working days, or over both days of the weekend. With a handful of
weeks the mean of one slot holds much of what merely happened; w is the share of the variance of own - alike that comes
back from even to odd weeks. Nothing is pulled to the overall mean: a profile that is too flat leaves its own shape in
the deviations, which storage and arrivals would then have to explain.
"""

from datetime import timedelta

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.sparse import csr_array

from candor.account.usual import Usual, Values, slots_of
from candor.core.arrays import Booleans, Doubles, Integers
from candor.data.times import BINS_PER_DAY, DAY, DAYS_PER_WEEK, Calendar

_BANDWIDTH = timedelta(minutes=30)  # nothing is smoothed where readings are further apart
_ALIKE = (slice(0, 5), slice(5, 7))  # Monday to Friday, Saturday and Sunday


def fit_week(values: Values, calendar: Calendar, interval: timedelta) -> Usual:
    """Return what is usual in some readings (time x sensor, NaN where missing); a sensor without any has 0."""
    bins = max(1, min(BINS_PER_DAY, DAY // interval))
    day, bin_of_day = slots_of(calendar, DAYS_PER_WEEK, bins)
    slot = day * bins + bin_of_day
    week = np.arange(len(values)) // max(1, round(DAYS_PER_WEEK * DAY / interval))
    width = _BANDWIDTH / DAY * bins
    # Around the mean, so that sums keep their digits and slots that nobody has seen are in the middle.
    known = ~np.isnan(values)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0.0).sum(axis=0, dtype=np.float64) / count
    centred = np.where(known, values - mean, 0.0)
    alike, own = _split(centred, known, slot, bins, width)
    (_, even), (_, odd) = (_split(centred[some], known[some], slot[some], bins, width) for some in _halves(week))
    returning = (even * odd).mean(axis=(0, 1)) / np.maximum((own**2).mean(axis=(0, 1)), 1e-300)
    profile = mean + alike + returning.clip(0, 1) * own
    return Usual(profile.astype(np.float32), np.zeros((1, values.shape[1]), np.float32))


def _halves(week: Integers) -> tuple[Booleans, Booleans]:
    return week % 2 == 0, week % 2 == 1


def _split(readings: Doubles, known: Booleans, slot: Integers, bins: int, width: float) -> tuple[Doubles, Doubles]:
    """Return the mean of days that are alike, and by how much each day differs, day x bin x sensor."""
    gathering = csr_array((np.ones(len(slot)), (slot, np.arange(len(slot)))), shape=(DAYS_PER_WEEK * bins, len(slot)))
    sums, counts = (np.asarray(gathering @ part.astype(np.float64)) for part in (readings, known))
    if width >= 1:
        sums, counts = (gaussian_filter1d(part, width, axis=0, mode="wrap") for part in (sums, counts))
    sums, counts = (part.reshape(DAYS_PER_WEEK, bins, -1) for part in (sums, counts))
    alike = np.empty_like(sums)
    for days in _ALIKE:
        alike[days] = _ratio(sums[days].sum(axis=0), counts[days].sum(axis=0))
    own = np.where(counts > 0, _ratio(sums, counts) - alike, 0.0)
    return alike, own


def _ratio(sums: Doubles, counts: Doubles) -> Doubles:
    return np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), 0.0)
