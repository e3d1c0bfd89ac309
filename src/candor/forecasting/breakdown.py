"""What one forecast of one sensor is made of: parts in the sensor's unit that sum to it.

forecast = usual + storage + shock + arrived + own + arrivals by link + rest + alike + learned + blend

The account's own part is linear in the sensor's recent deviations, so that each thing these are made of has its share:
storage, shock, what has arrived already, and the rest of its own, told apart by what the past alone knows. What
sensors that behave alike add is what the networks' correction loses where nobody hears them. The blend is what simple
rules change in the last word.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from candor.account.account import Account
from candor.account.flow import decompose
from candor.core.arrays import Doubles, Floats
from candor.data.panel import Panel
from candor.data.times import calendar_of

PartKind = Literal["usual", "storage", "shock", "arrived", "own", "arrivals", "rest", "alike", "learned", "blend"]
_ROWS_FILTERED = 600  # before a forecast; what a store held earlier has drained


@dataclass(frozen=True, eq=False)
class ForecastPart:
    """One part of a forecast."""

    kind: PartKind
    values: Doubles  # by step, in the sensor's unit
    last: float  # the same part of the last reading: of arrivals, rest, networks and rules there is none
    sender: str = ""  # id, of what arrives
    delay: int = 0  # steps that it takes along the edge; 0 where it runs against the edge
    is_told: bool = False  # whether the delay is told apart from none
    is_reverse: bool = False  # whether it comes against the direction of the edge

    @property
    def changes(self) -> Doubles:
        """By how much the part moves the forecast away from the last reading."""
        return self.values - self.last


@dataclass(frozen=True, eq=False)
class Breakdown:
    """One forecast of one sensor and its parts."""

    sensor: str
    unit: str
    times: tuple[datetime, ...]
    forecast: Doubles  # by step
    last: float  # the reading that changes are counted from: the last one, carried forward where it is missing
    parts: tuple[ForecastPart, ...]
    stages: dict[str, float]  # share of all changes that the account, the networks and the blend made


def own_parts(account: Account, panel: Panel, column: int, origin: int, horizon: int) -> Iterator[ForecastPart]:
    """Yield the parts that the account's forecast of one sensor from a row on is made of."""
    history = account.history
    first = max(0, origin - max(_ROWS_FILTERED, history))
    calendar = calendar_of(panel.times.slice(first, origin + horizon))
    seen = account.deviations.filled(panel.values[first:origin], calendar.take(slice(0, origin - first)))
    usual = account.deviations.usual.at(calendar)
    parts = account.parts(seen[None, -history:], usual[None, origin - first :])
    spread = float(account.deviations.spread[column])
    yield ForecastPart("usual", _doubles(parts.usual[0, :, column]), float(usual[origin - first - 1, column]))
    known = account.deviations.of(panel.values[first:origin], calendar.take(slice(0, origin - first)))
    made_of = decompose(known, account.flow, causal=True)
    held: dict[PartKind, Floats] = {
        "storage": made_of.storage[-history:, column],
        "shock": made_of.shock[-history:, column],
        "arrived": made_of.arrivals[-history:, column],
    }
    held["own"] = seen[-history:, column] - sum(held.values())
    for kind, series in held.items():
        values = series[::-1] @ account.own[column].astype(np.float64)
        if account.keeps_last:
            values = values + series[-1]
        yield ForecastPart(kind, spread * _doubles(values), spread * float(series[-1]))
    delays = {
        (int(source), int(target)): place
        for place, (source, target) in enumerate(zip(panel.edges.source, panel.edges.target, strict=True))
    }
    for link in np.flatnonzero(account.links.receiver == column).tolist():
        sender, is_reverse = int(account.links.sender[link]), bool(account.links.is_reverse[link])
        place = None if is_reverse else delays.get((sender, column))
        yield ForecastPart(
            "arrivals",
            _doubles(parts.arrivals[link, 0]),
            0.0,
            sender=panel.sensor_ids[sender],
            delay=0 if place is None else int(account.flow.delays.steps[place]),
            is_told=place is not None and bool(account.flow.delays.is_told[place]),
            is_reverse=is_reverse,
        )
    yield ForecastPart("rest", _doubles(parts.rest[0, :, column]), 0.0)


def break_down(panel: Panel, column: int, origin: int, forecast: Doubles, parts: tuple[ForecastPart, ...]) -> Breakdown:
    """Return the breakdown of a forecast into its parts, without those that are zero throughout."""
    last = sum(part.last for part in parts)
    by_stage = {
        "account": np.zeros(len(forecast)),
        "networks": np.zeros(len(forecast)),
        "blend": np.zeros(len(forecast)),
    }
    for part in parts:
        stage = {"alike": "networks", "learned": "networks", "blend": "blend"}.get(part.kind, "account")
        by_stage[stage] += part.changes
    sizes = {name: float(np.abs(changes).sum()) for name, changes in by_stage.items()}
    total = sum(sizes.values())
    return Breakdown(
        sensor=panel.sensor_ids[column],
        unit=panel.sensors[column].unit,
        times=tuple(panel.times.slice(origin, origin + len(forecast)).local.to_pydatetime()),
        forecast=forecast,
        last=last,
        parts=tuple(part for part in parts if part.last or np.any(part.values)),
        stages={name: size / total if total else 0.0 for name, size in sizes.items()},
    )


def _doubles(values: Floats) -> Doubles:
    return np.asarray(values, np.float64)
