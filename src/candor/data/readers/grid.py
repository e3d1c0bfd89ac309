"""Laying stamped readings on one regular time grid.

The grid's interval is the most common one in the file. A reading goes to the nearest grid moment; where several
readings meet in one cell the nearest wins, and of equally near ones the later in the file.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.findings import Findings
from candor.data.readers.clock import LocalClock
from candor.data.readers.options import ReadOptions
from candor.data.readers.readings import Block, Readings, Stamps
from candor.data.times import DAY, TimeAxis, standard_offset, zone_from_name
from candor.errors import InputError

_MERGE_AT = 4_000_000
_ROUND_SECONDS = [
    *(1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30),
    *(60 * m for m in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
    *(3600 * h for h in (1, 2, 3, 4, 6, 8, 12, 24)),
    7 * 86400,
]


@dataclass
class StampSurvey:
    """What one walk over the stamps tells: the distinct ones, their order, and each sensor's usual interval."""

    distinct: Stamps
    unreadable: int
    rows: int
    runs_backwards: bool
    sensor_intervals: Counter[timedelta]


def survey_stamps(readings: Readings, where: str) -> StampSurvey:
    """Returns the survey of all stamps, in memory bounded by the number of distinct ones."""
    pieces: list[Stamps] = []
    steps: Counter[tuple[int, int]] = Counter()
    last = np.full(len(readings.ids) if readings.is_long else 1, np.datetime64("NaT", "us"))
    unreadable = rows = forwards = backwards = 0
    for stamps, sensor in readings.stamps():
        rows += len(stamps)
        readable = ~np.isnat(stamps)
        unreadable += int((~readable).sum())
        owner = np.zeros(len(stamps), np.int32) if sensor is None else sensor
        known = readable & (owner >= 0)
        step = _steps_per_sensor(stamps[known], owner[known], last)
        forwards += int((step[:, 1] > 0).sum())
        backwards += int((step[:, 1] < 0).sum())
        steps.update(_counted(step[step[:, 1] > 0]))
        pieces.append(np.unique(stamps[known]))
        if sum(map(len, pieces)) > _MERGE_AT:
            pieces = [np.unique(np.concatenate(pieces))]
    distinct = np.unique(np.concatenate(pieces)) if pieces else np.empty(0, "datetime64[us]")
    if len(distinct) < 2:
        raise InputError(
            "no time could be read" if len(distinct) == 0 else "all readings have the same time",
            where=where,
            mend="readings need at least two different times, written like 2020-10-08 06:00",
        )
    # In a shuffled file the distance of neighbouring rows means nothing.
    usual = _usual_steps(steps) if readings.is_long and backwards < 0.1 * forwards else Counter()
    return StampSurvey(distinct, unreadable, rows, backwards > forwards, usual)


def _steps_per_sensor(stamps: Stamps, owner: NDArray[np.int32], last: Stamps) -> NDArray[np.int64]:
    """Returns (sensor, microseconds since that sensor's previous stamp) and updates `last` in place."""
    order = np.argsort(owner, kind="stable")
    owner, stamps = owner[order], stamps[order]
    if len(stamps) == 0:
        return np.empty((0, 2), np.int64)
    is_first = np.r_[True, owner[1:] != owner[:-1]]
    previous = np.r_[stamps[:1], stamps[:-1]]
    previous[is_first] = last[owner[is_first]]
    is_last = np.r_[is_first[1:], True]
    last[owner[is_last]] = stamps[is_last]
    known = ~np.isnat(previous)
    step = (stamps[known] - previous[known]).astype(np.int64)
    return np.stack([owner[known].astype(np.int64), step], axis=1)


def _counted(pairs: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """Returns how often each (sensor, step) occurs; steps are few, so a table of counts beats sorting."""
    different, place = np.unique(pairs[:, 1], return_inverse=True)
    keys, counts = np.unique(pairs[:, 0] * len(different) + place, return_counts=True)
    return {
        (int(key) // len(different), int(different[key % len(different)])): int(count)
        for key, count in zip(keys, counts, strict=True)
    }


def _usual_steps(steps: Counter[tuple[int, int]]) -> Counter[timedelta]:
    """Returns how many sensors have each interval as their most common one."""
    best: dict[int, tuple[int, int]] = {}
    for (sensor, step), count in steps.items():
        best[sensor] = max(best.get(sensor, (0, 0)), (count, -step))
    return Counter(timedelta(microseconds=-negative) for _, negative in best.values())


def choose_interval(survey: StampSurvey) -> timedelta:
    """Returns the interval of the grid: the most common one, or the round one nearest the median."""
    if survey.sensor_intervals:
        most = max(survey.sensor_intervals.values())
        return min(step for step, count in survey.sensor_intervals.items() if count == most)
    steps, counts = np.unique(np.diff(survey.distinct).astype(np.int64), return_counts=True)
    if counts.max() * 2 >= counts.sum():
        return timedelta(microseconds=int(steps[counts.argmax()]))
    median = float(np.median(np.repeat(steps, counts))) / 1e6
    nearest = min(_ROUND_SECONDS, key=lambda seconds: abs(seconds - median))
    if abs(nearest - median) <= 0.1 * nearest:
        return timedelta(seconds=nearest)
    return timedelta(microseconds=int(steps[counts.argmax()]))


class Grid:
    """The time grid of a file and the way from its stamps to rows of it."""

    def __init__(
        self,
        readings: Readings,
        survey: StampSurvey,
        options: ReadOptions,
        findings: Findings,
        where: str,
    ) -> None:
        self._has_zone, self._runs_backwards = readings.has_zone, survey.runs_backwards
        self.interval = options.interval or choose_interval(survey)
        zone = options.zone or "UTC"
        zone_from_name(zone)
        is_daily = self.interval % DAY == timedelta(0)
        self._wall_zone = zone if readings.has_zone and is_daily and options.zone else None
        if is_daily:
            # Days of 23 and 25 hours would break a regular axis: dates live on the zone's standard time.
            zone = standard_offset(zone, pd.Timestamp(survey.distinct[0]).year)
        self.zone = zone
        self._clock = self._new_clock()
        ends = self.to_utc(survey.distinct)
        ends = ends[~np.isnat(ends)]
        if len(ends) == 0:
            raise InputError("no time could be read", where=where)
        step = np.timedelta64(self.interval).astype("timedelta64[us]")
        self._step = step
        self._origin = self._choose_origin(ends)
        length = int(self._rows(ends[-1:] + np.timedelta64(1, "h"))[0]) + 1
        if length > 50 * len(survey.distinct) + 10_000:
            raise InputError(
                f"times run from {ends[0]} to {ends[-1]}, {length:,} steps of {self.interval}, but only "
                f"{len(survey.distinct):,} different ones occur",
                where=where,
                mend="correct the time that lies far off, or give the true --interval",
            )
        self.length = length
        self.off_grid = 0
        self.skipped = 0
        self._clock = self._new_clock()
        _report_zone(readings, options, findings, where, zone, is_daily)

    def _new_clock(self) -> LocalClock:
        return LocalClock(self._wall_zone or self.zone, self._runs_backwards)

    def to_utc(self, stamps: Stamps, sensor: NDArray[np.int32] | None = None) -> Stamps:
        """Returns the moments of stamps, which must come in file order."""
        if not self._has_zone:
            return self._clock.to_utc(stamps, sensor)
        if self._wall_zone is None:
            return stamps
        wall = pd.DatetimeIndex(stamps).tz_localize("UTC").tz_convert(zone_from_name(self._wall_zone))
        dates = np.array(wall.tz_localize(None), dtype="datetime64[us]")
        return LocalClock(self.zone).to_utc(dates)

    def _choose_origin(self, moments: Stamps) -> np.datetime64:
        """Returns the grid moment of the earliest stamp, on the phase that most stamps share."""
        phase = moments.astype(np.int64) % self._step.astype(np.int64)
        phases, counts = np.unique(phase, return_counts=True)
        common = phases[counts.argmax()] if counts.max() * 2 >= counts.sum() else 0
        first = moments.astype(np.int64).min() - common
        row = int(np.ceil(first / self._step.astype(np.int64) - 0.5))
        return np.datetime64(int(common + row * self._step.astype(np.int64)), "us")

    def _rows(self, moments: Stamps) -> NDArray[np.int64]:
        elapsed, step = (moments - self._origin).astype(np.int64), int(self._step.astype(np.int64))
        return -((step // 2 - elapsed) // step)  # the nearest row; half-way goes to the earlier one

    def locate(self, stamps: Stamps, sensor: NDArray[np.int32] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the grid row of each stamp (-1: none) and its distance from that row in microseconds."""
        moments = self.to_utc(stamps, sensor)
        lost = np.isnat(moments)
        rows = self._rows(np.where(lost, self._origin, moments))
        distance = np.abs((moments - self._origin).astype(np.int64) - rows * self._step.astype(np.int64))
        rows[lost | (rows < 0) | (rows >= self.length)] = -1
        self.off_grid += int((distance[rows >= 0] > 0).sum())
        self.skipped = self._clock.skipped
        return rows, np.where(rows >= 0, distance, 0)

    def axis(self, first: int, length: int) -> TimeAxis:
        """Returns the time axis of `length` rows from row `first` on."""
        start = pd.Timestamp(self._origin).to_pydatetime().replace(tzinfo=UTC)
        return TimeAxis(start + first * self.interval, self.interval, length, self.zone)


def _report_zone(
    readings: Readings,
    options: ReadOptions,
    findings: Findings,
    where: str,
    zone: str,
    is_daily: bool,
) -> None:
    if options.zone is None and not readings.has_zone:
        findings.note(
            "times carry no zone: read as UTC", where,
            mend="say --zone, e.g. --zone America/Los_Angeles, so that hours of the day are right",
        )  # fmt: skip
    elif is_daily and options.zone not in (None, zone):
        findings.note(f"daily readings are dated on standard time all year ({zone})", where)


class GridWriter:
    """The panel's values as they fill up, block by block."""

    def __init__(self, grid: Grid, sensors: int) -> None:
        self._grid = grid
        self.values = np.full((grid.length, sensors), np.nan, np.float32)
        self._row_seen = np.zeros(grid.length, bool)
        # How far the reading in each cell lies from the grid moment; None while all lie exactly on it.
        self._distance: NDArray[np.uint32] | None = None
        self.readings = 0
        self.repeated_rows = 0

    def write(self, block: Block) -> None:
        """Lays the readings of a block on the grid."""
        rows, distance = self._grid.locate(block.stamps, block.sensor)
        on_grid = rows >= 0
        if block.sensor is None:
            self._write_wide(rows[on_grid], distance[on_grid], block.values[on_grid])
        else:
            known = on_grid & ~np.isnan(block.values)
            self._row_seen[rows[on_grid]] = True
            cells = rows[known] * self.values.shape[1] + block.sensor[known]
            self._write_cells(cells, block.values[known], distance[known])

    def _write_wide(self, rows: NDArray[np.int64], distance: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        is_new = not self._row_seen[rows].any() and len(np.unique(rows)) == len(rows)
        self.repeated_rows += len(rows) - len(np.unique(rows[~self._row_seen[rows]]))
        self._row_seen[rows] = True
        if is_new and not distance.any():
            self.readings += int(np.count_nonzero(~np.isnan(values)))
            self.values[rows] = values
            return
        row, column = np.nonzero(~np.isnan(values))
        cells = rows[row] * self.values.shape[1] + column
        self._write_cells(cells, values[row, column], distance[row])

    def _write_cells(self, cells: NDArray[np.int64], values: NDArray[np.float32], distance: NDArray[np.int64]) -> None:
        self.readings += len(cells)
        if self._distance is None and distance.any():
            self._distance = np.zeros(self.values.shape, np.uint32)
        scale = max(1, int(self._grid.interval / timedelta(microseconds=1)) // 2**32 + 1)
        near = (distance // scale).astype(np.uint32)
        # Nearest last and latest last, so that keeping the last of each cell keeps the winner.
        order = np.lexsort((np.arange(len(cells)), -near.astype(np.int64)))
        cells, values, near = cells[order], values[order], near[order]
        _, place = np.unique(cells[::-1], return_index=True)
        kept = len(cells) - 1 - place
        cells, values, near = cells[kept], values[kept], near[kept]
        flat = self.values.reshape(-1)
        if self._distance is not None:
            distances = self._distance.reshape(-1)
            wins = np.isnan(flat[cells]) | (near <= distances[cells])
            cells, values = cells[wins], values[wins]
            distances[cells] = near[wins]
        flat[cells] = values

    def finish(self) -> tuple[NDArray[np.float32], TimeAxis]:
        """Returns the values and their time axis, from the first row to the last that the file mentions."""
        seen = np.flatnonzero(self._row_seen)
        if len(seen) == 0:
            raise InputError("no reading lies on the time grid", mend="give the true --interval")
        first, last = int(seen[0]), int(seen[-1])
        values = self.values[first : last + 1]
        values.flags.writeable = False
        return values, self._grid.axis(first, last + 1 - first)
