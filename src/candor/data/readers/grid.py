"""The time grid of a file, found by a first walk over its stamps, and its readings laid on it (`data.gridding`)."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import duration, listed
from candor.data.findings import Findings
from candor.data.gridding import EPOCH, Grid, precedence, to_microseconds, winners
from candor.data.readers.options import ReadOptions
from candor.data.readers.readings import Block, Readings, Stamps
from candor.data.readers.stamps import LocalClock, possible_moments, wall_to_utc
from candor.data.times import DAY, TimeAxis, plain_zone, standard_offset, zone_from_name

_HOUR = timedelta(hours=1)
_MERGE_AT = 4_000_000
_SENSORS_LOOKED_AT = 25
_ROUND_SECONDS = [
    *(1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30),
    *(60 * m for m in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
    *(3600 * h for h in (1, 2, 3, 4, 6, 8, 12, 24)),
    7 * 86400,
]
_CALENDAR_DAYS = {"months": (28, 31), "quarters": (89, 92), "years": (365, 366)}
_FIRST_YEAR, _LAST_YEAR = np.datetime64("1000", "us"), np.datetime64("9000", "us")


@dataclass(frozen=True)
class StampSurvey:
    """The result of one walk over the stamps.

    Attributes:
        distinct: the different stamps, in order.
        unreadable: how many of the `rows` have no stamp that can be read.
        direction: 1 if the file runs forwards in time, -1 if backwards, 0 if it has no order.
        sensor_intervals: for long readings, how many of the sensors looked at have each interval as their usual one.
        calendar_steps: what most series go by instead of an interval: months, quarters or years; empty if by none.
        rows_per_stamp: for long readings, in how many rows a stamp stands on average, for each sensor looked at.
    """

    distinct: Stamps
    unreadable: int
    rows: int
    direction: int
    sensor_intervals: Counter[timedelta]
    calendar_steps: str
    rows_per_stamp: float


def survey_stamps(readings: Readings, where: str) -> StampSurvey:
    """Return the survey of all stamps, in memory bounded by the number of distinct ones."""
    pieces: list[Stamps] = []
    looked_at = np.unique(np.linspace(0, len(readings.ids) - 1, _SENSORS_LOOKED_AT).astype(int))
    of_sensor: dict[int, list[Stamps]] = {int(place): [] for place in looked_at} if readings.is_long else {}
    unreadable = rows = forwards = backwards = 0
    last = np.empty(0, "datetime64[us]")
    for stamps, sensor in readings.stamps():
        rows += len(stamps)
        known = ~np.isnat(stamps)
        unreadable += int((~known).sum())
        if sensor is not None:
            known &= sensor >= 0
            for place, parts in of_sensor.items():
                parts.append(stamps[known & (sensor == place)])
        steps = np.diff(np.concatenate([last, stamps[known]])).astype(np.int64)
        forwards += int((steps > 0).sum())
        backwards += int((steps < 0).sum())
        last = stamps[known][-1:] if known.any() else last
        pieces.append(np.unique(stamps[known]))
        if sum(map(len, pieces)) > _MERGE_AT:
            pieces = [np.unique(np.concatenate(pieces))]
    distinct = np.unique(np.concatenate(pieces)) if pieces else np.empty(0, "datetime64[us]")
    if len(distinct) < 2:
        what = "no time could be read" if len(distinct) == 0 else "all readings have the same time"
        hint = "readings need at least two different times, written like 2020-10-08 06:00"
        raise InputError(what, where=where, hint=hint)
    if distinct[0] < _FIRST_YEAR or distinct[-1] > _LAST_YEAR:
        wrong = distinct[0] if distinct[0] < _FIRST_YEAR else distinct[-1]
        raise InputError(f"the time {wrong} cannot be true", where=where, hint="correct it, or remove the row")
    series = [np.unique(np.concatenate(parts)) for parts in of_sensor.values() if parts]
    stamps_there, rows_there = sum(map(len, series)), sum(len(part) for parts in of_sensor.values() for part in parts)
    series = [own for own in series if len(own) > 1]
    calendar = Counter(calendar_steps(own) for own in series or [distinct])
    is_ordered = min(forwards, backwards) <= 0.2 * max(forwards, backwards)
    return StampSurvey(
        distinct=distinct,
        unreadable=unreadable,
        rows=rows,
        direction=0 if not is_ordered else 1 if forwards > backwards else -1,
        sensor_intervals=Counter(usual_interval(own) for own in series),
        calendar_steps=max(calendar, key=lambda unit: (calendar[unit], unit == "")),
        rows_per_stamp=rows_there / max(stamps_there, 1),
    )


def choose_interval(survey: StampSurvey, where: str) -> timedelta:
    """Return the interval of the grid: the one most sensors have, the shorter one if it is a draw."""
    if survey.calendar_steps:
        what = f"readings are {survey.calendar_steps} apart, which is no regular interval"
        hint = "give daily or weekly values, or name a grid to move them to: --interval 30d"
        raise InputError(what, where=where, hint=hint)
    if not survey.sensor_intervals:
        return usual_interval(survey.distinct)
    most = max(survey.sensor_intervals.values())
    return min(step for step, count in survey.sensor_intervals.items() if count == most)


def usual_interval(stamps: Stamps) -> timedelta:
    """Return the most common distance of ordered stamps, or where none stands out, a round one near the median."""
    steps, counts = np.unique(np.diff(stamps).astype(np.int64), return_counts=True)
    if counts.max() * 2 >= counts.sum():
        return timedelta(microseconds=int(steps[counts.argmax()]))
    median = float(np.median(np.repeat(steps, counts))) / 1e6
    nearest = min(_ROUND_SECONDS, key=lambda seconds: abs(seconds - median))
    if abs(nearest - median) <= 0.1 * nearest:
        return timedelta(seconds=nearest)
    return timedelta(seconds=round(median) if median > 1 else median)


def calendar_steps(stamps: Stamps) -> str:
    """Return what ordered stamps go by if they go by months, quarters or years, whose lengths differ; else nothing."""
    days = np.diff(stamps).astype(np.int64) / 86_400e6
    for unit, (shortest, longest) in _CALENDAR_DAYS.items():
        fitting = np.round(days[(days > shortest - 0.1) & (days < longest + 0.1)])  # summer time takes or gives an hour
        if len(fitting) * 2 < len(days) or (days <= shortest - 0.1).mean() > 0.05:
            continue
        if np.unique(fitting, return_counts=True)[1].max() < 0.95 * len(fitting):
            return unit
    return ""


class FileGrid:
    """The time grid of a file, with the rows that its stamps belong to."""

    def __init__(
        self, readings: Readings, survey: StampSurvey, options: ReadOptions, findings: Findings, where: str
    ) -> None:
        self._has_zone = readings.has_zone
        self.interval = options.interval or choose_interval(survey, where)
        zone = chosen_zone(readings, options)
        if zone is None:
            _report_no_zone(readings, findings, where)
            zone = "UTC"
        wall_zone = options.wall_zone or zone
        standard = standard_offset(zone, pd.Timestamp(survey.distinct[0]).year)
        is_daily = self.interval % DAY == timedelta(0)
        self._step = self.interval // timedelta(microseconds=1)
        midnight = to_microseconds(datetime(1970, 1, 1, tzinfo=zone_from_name(standard)))
        is_every_few_hours = self.interval > _HOUR and not (is_daily or self._has_zone)
        keeps_hours = is_every_few_hours and _fits_the_wall(survey.distinct, self._step, zone, midnight)
        # Days of 23 and 25 hours would break a regular axis: dates live on the zone's standard time, and so do readings
        # every few hours if they come at the same hours of the wall in summer and winter.
        self.zone = standard if is_daily or keeps_hours else zone
        by_wall = self._has_zone and is_daily and _days_begin_by_wall(survey.distinct, self._step, wall_zone)
        self._wall_zone = wall_zone if by_wall else None
        self._clock = LocalClock(self.zone, survey.direction, self._is_on_grid)
        moments = self.to_utc(survey.distinct) if self._has_zone else possible_moments(survey.distinct, self.zone)
        if len(moments) == 0:
            what = f"all times fall in an hour that the clock of {zone} skips"
            raise InputError(what, where=where, hint="give the true --zone")
        moments = np.sort(moments)
        numbers = moments.astype(np.int64)
        phase = timedelta(microseconds=_shared_phase(numbers, self._step, midnight))
        endless = Grid(TimeAxis(EPOCH + phase, self.interval, 0, self.zone))
        first, last = endless.row(int(numbers[0])), endless.row(int(numbers[-1]))
        self.grid = Grid(endless.axis.slice(first, last + 1))
        self.length = self.grid.axis.length
        _refuse_far_off(moments, self.length, self.interval, where)
        self.off_grid = self.skipped = 0
        if self.zone != zone:
            what = "daily readings are dated" if is_daily else "readings keep their hours, summer and winter,"
            findings.note(f"{what} on standard time all year ({self.zone})", where)

    def to_utc(self, stamps: Stamps, sensor: NDArray[np.int32] | None = None) -> Stamps:
        """Return the moments of stamps, which must come in file order."""
        if not self._has_zone:
            return self._clock.to_utc(stamps, sensor)
        if self._wall_zone is None:
            return stamps
        return LocalClock(self.zone).to_utc(_on_the_wall(stamps, self._wall_zone))

    def _is_on_grid(self, moments: Stamps) -> NDArray[np.bool_]:
        return np.asarray((moments.astype(np.int64) - self.grid.start) % self._step == 0)

    def locate(self, stamps: Stamps, sensor: NDArray[np.int32] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the row of each stamp (-1: none) and its offset from that row in microseconds."""
        moments = self.to_utc(stamps, sensor)
        lost = np.isnat(moments)
        numbers = np.where(lost, self.grid.start, moments.astype(np.int64))
        rows, offsets = self.grid.rows(numbers), self.grid.offsets(numbers)
        rows[lost] = -1
        self.off_grid += int(np.count_nonzero(offsets))
        self.skipped = self._clock.skipped
        return rows, offsets


def _on_the_wall(moments: Stamps, zone: str) -> Stamps:
    wall = pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone_from_name(zone))
    return np.array(wall.tz_localize(None), dtype="datetime64[us]")


def _days_begin_by_wall(moments: Stamps, step: int, zone: str) -> bool:
    """Return whether days begin at one time on the wall, rather than at one time of UTC in summer and winter."""
    by_wall, by_utc = (np.unique(part.astype(np.int64) % step) for part in (_on_the_wall(moments, zone), moments))
    return len(by_wall) <= len(by_utc)


def _fits_the_wall(stamps: Stamps, step: int, zone: str, midnight: int) -> bool:
    """Return whether stamps without a zone lie on one grid by what they show, but not as moments of the zone.

    So do those of loggers that never change their clock, and of people who read at the same hours all year.
    """
    moments = wall_to_utc(stamps, zone)
    known = ~np.isnat(moments)
    by_wall = _beside_grid(stamps[known].astype(np.int64), step, 0)
    return 2 * by_wall < _beside_grid(moments[known].astype(np.int64), step, midnight)


def _beside_grid(moments: NDArray[np.int64], step: int, midnight: int) -> int:
    """Return how far moments lie beside their own grid of `step`, all together."""
    if len(moments) == 0:
        return 0
    late = (moments - _shared_phase(moments, step, midnight)) % step
    return int(np.minimum(late, step - late).sum())


def _shared_phase(moments: NDArray[np.int64], step: int, midnight: int) -> int:
    """Return where in the interval of `step` most moments lie; without any such place, where local midnight does.

    Clocks that are a little off scatter around that place: then it is their median, or midnight's if that is near.
    """
    phases, counts = np.unique(moments % step, return_counts=True)
    if counts.max() * 2 >= counts.sum():
        return int(phases[counts.argmax()])
    after_midnight = np.sort((moments - midnight) % step)
    gaps = np.diff(after_midnight, append=after_midnight[0] + step)
    widest = int(gaps.argmax())
    scattered = np.concatenate([after_midnight[widest + 1 :] - step, after_midnight[: widest + 1]])
    median = float(np.median(scattered))
    if gaps[widest] < step / 2 or abs(median) <= step / 10:
        return midnight % step
    rounding = 1_000_000 if step > 60_000_000 else 1
    return (midnight + round(median / rounding) * rounding) % step


def _refuse_far_off(moments: Stamps, length: int, interval: timedelta, where: str) -> None:
    """Refuse times of which a few lie so far off that nearly all of the grid would be empty."""
    few = max(1, len(moments) // 100)
    whole = (moments[-1] - moments[0]).astype(np.int64)
    core = min((moments[-1 - few] - moments[0]).astype(np.int64), (moments[-1] - moments[few]).astype(np.int64))
    if length > 50 * len(moments) + 10_000 or (length > 1000 and whole > 2 * core):
        what = f"times run from {moments[0]} to {moments[-1]}, {length:,} steps of {duration(interval)}"
        hint = "correct or remove the times that lie far off, or give the true --interval"
        raise InputError(f"{what}, but only {len(moments):,} different ones occur", where=where, hint=hint)


def chosen_zone(readings: Readings, options: ReadOptions) -> str | None:
    """Return the zone of the options, else the one known zone that all stamps carry; stamps were walked before."""
    return options.zone or (plain_zone(readings.zones[0]) if len(readings.zones) == 1 else None)


def _report_no_zone(readings: Readings, findings: Findings, where: str) -> None:
    carried, hint = readings.zones, "say --zone, e.g. --zone America/Los_Angeles, so that hours of the day are right"
    if carried:
        what = "times carry different offsets" if len(carried) > 1 else "times carry an unknown zone"
        findings.warning(f"{what} ({listed(carried)}): hours and weekdays are those of UTC", where, hint=hint)
    elif not readings.has_zone:
        findings.note("times carry no zone: read as UTC", where, hint=hint)


class GridWriter:
    """The panel's values as they fill up, block by block."""

    def __init__(self, grid: FileGrid, sensors: int) -> None:
        self._grid = grid
        self.values = np.full((grid.length, sensors), np.nan, np.float32)
        self._row_seen = np.zeros(grid.length, bool)
        # The precedence of the reading in each cell; None while all readings lie exactly on the grid.
        self._ranks: NDArray[np.unsignedinteger] | None = None
        self.readings = self.repeated_rows = 0

    def write(self, block: Block) -> None:
        """Lay the readings of a block on the grid."""
        rows, offsets = self._grid.locate(block.stamps, block.sensor)
        on_grid = rows >= 0
        if block.sensor is None:
            self._write_wide(rows[on_grid], offsets[on_grid], block.values[on_grid])
        else:
            known = on_grid & ~np.isnan(block.values)
            self._row_seen[rows[on_grid]] = True
            cells = rows[known] * self.values.shape[1] + block.sensor[known]
            self._write_cells(cells, block.values[known], offsets[known])

    def _write_wide(self, rows: NDArray[np.int64], offsets: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        repeated = len(rows) - len(np.unique(rows[~self._row_seen[rows]]))
        self.repeated_rows += repeated
        self._row_seen[rows] = True
        if repeated == 0 and not offsets.any():
            self.readings += int(np.count_nonzero(~np.isnan(values)))
            self.values[rows] = values
            return
        row, column = np.nonzero(~np.isnan(values))
        cells = rows[row] * self.values.shape[1] + column
        self._write_cells(cells, values[row, column], offsets[row])

    def _write_cells(self, cells: NDArray[np.int64], values: NDArray[np.float32], offsets: NDArray[np.int64]) -> None:
        self.readings += len(cells)
        if self._ranks is None and offsets.any():
            is_short = self._grid.interval < timedelta(microseconds=2**32)  # no rank exceeds the interval
            self._ranks = np.zeros(self.values.shape, np.uint32 if is_short else np.uint64)
        ranks = precedence(offsets)
        kept = winners(cells, ranks)
        cells, values, ranks = cells[kept], values[kept], ranks[kept]
        flat = self.values.reshape(-1)
        if self._ranks is not None:
            before = self._ranks.reshape(-1)
            wins = np.isnan(flat[cells]) | (ranks <= before[cells].astype(np.int64))
            cells, values = cells[wins], values[wins]
            before[cells] = ranks[wins]
        flat[cells] = values

    def finish(self) -> tuple[NDArray[np.float32], TimeAxis]:
        """Return the values and their time axis, from the first row to the last that the file mentions."""
        seen = np.flatnonzero(self._row_seen)
        if len(seen) == 0:
            raise InputError("no reading lies on the time grid", hint="give the true --interval")
        first, stop = int(seen[0]), int(seen[-1]) + 1
        self.values.flags.writeable = False  # a panel copies what can still be written to
        return self.values[first:stop], self._grid.grid.axis.slice(first, stop)
