"""A first walk over the stamps of a file: which there are, in what order, and how far apart they usually are."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from candor.core.errors import InputError
from candor.data.readers.readings import Readings, Stamps

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
    """What one walk over the stamps tells.

    Attributes:
        distinct: the different stamps, in order.
        unreadable: how many rows have no stamp that can be read.
        rows: how many rows there are.
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
    """Returns the survey of all stamps, in memory bounded by the number of distinct ones."""
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
        raise InputError(
            "no time could be read" if len(distinct) == 0 else "all readings have the same time",
            where=where,
            hint="readings need at least two different times, written like 2020-10-08 06:00",
        )
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
    """Returns the interval of the grid: the one most sensors have, the shorter one if it is a draw."""
    if survey.calendar_steps:
        raise InputError(
            f"readings are {survey.calendar_steps} apart, which is no regular interval",
            where=where,
            hint="give daily or weekly values, or name a grid to move them to: --interval 30d",
        )
    if not survey.sensor_intervals:
        return usual_interval(survey.distinct)
    most = max(survey.sensor_intervals.values())
    return min(step for step, count in survey.sensor_intervals.items() if count == most)


def usual_interval(stamps: Stamps) -> timedelta:
    """Returns the most common distance of ordered stamps, or where none stands out, a round one near the median."""
    steps, counts = np.unique(np.diff(stamps).astype(np.int64), return_counts=True)
    if counts.max() * 2 >= counts.sum():
        return timedelta(microseconds=int(steps[counts.argmax()]))
    median = float(np.median(np.repeat(steps, counts))) / 1e6
    nearest = min(_ROUND_SECONDS, key=lambda seconds: abs(seconds - median))
    if abs(nearest - median) <= 0.1 * nearest:
        return timedelta(seconds=nearest)
    return timedelta(seconds=round(median) if median > 1 else median)


def calendar_steps(stamps: Stamps) -> str:
    """Returns what ordered stamps go by if they go by months, quarters or years, whose lengths differ; else nothing."""
    days = np.diff(stamps).astype(np.int64) / 86_400e6
    for unit, (shortest, longest) in _CALENDAR_DAYS.items():
        fitting = np.round(days[(days > shortest - 0.1) & (days < longest + 0.1)])  # summer time takes or gives an hour
        if len(fitting) * 2 < len(days) or (days <= shortest - 0.1).mean() > 0.05:
            continue
        if np.unique(fitting, return_counts=True)[1].max() < 0.95 * len(fitting):
            return unit
    return ""
