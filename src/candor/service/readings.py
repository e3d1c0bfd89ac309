"""Readings of requests: checked and laid on the time grid of a model, or checked for the store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from candor.core.errors import InputError
from candor.core.text import duration, listed
from candor.data.alignment import Aligned, align
from candor.data.findings import Findings
from candor.data.gridding import Grid, lay, to_microseconds
from candor.data.panel import Panel, Sensor
from candor.service.errors import RefusedError
from candor.service.models import LoadedModel, parse_moment
from candor.service.schemas import SentReading
from candor.service.settings import ServiceSettings
from candor.service.store import Reading

_CLIENT_HINTS = {
    "--missing": "send numbers; null stands for what was not measured",
    "--unit": "send numbers in the units that /v1/sensors names",
    "--coverage": "ask for less coverage, or serve a model of a longer record",
    "--interval": "send readings at the interval that /v1/models names",
    "--zone": "send times with their offset, and only what was measured",
    "give a panel with these": "ask for the forecast after the run's own record (GET /v1/forecast/latest)",
    "allow a short history": "send more steps of readings, or allow_short: true, and what lacks counts as silence",
}


def align_readings(
    loaded: LoadedModel,
    readings: Sequence[SentReading],
    settings: ServiceSettings,
    now: datetime,
    allow_short: bool = False,
) -> Aligned:
    """Return readings of a request in the order and on the grid of the model, with findings."""
    findings = Findings()
    panel = _panel_of(loaded, readings, settings, findings)
    aligned = align_for_client(loaded, panel, now, allow_short=allow_short)
    return Aligned(aligned.panel, Findings([*findings, *aligned.findings]))


def align_for_client(loaded: LoadedModel, panel: Panel, now: datetime | None, *, allow_short: bool = False) -> Aligned:
    """Return readings in the order and on the grid of the model; hints are for clients of a service.

    Without a `now` nothing is said of readings that are outdated or of the future.
    """
    model = loaded.forecaster
    try:
        aligned = align(
            panel, model.trained_on_, model.rows_needed, now=now, horizon=model.horizon, allow_short=allow_short
        )
    except InputError as error:
        raise InputError(error.what, where=error.where, hint=_for_client(error.hint)) from None
    return Aligned(aligned.panel, for_client(aligned.findings))


def for_client(findings: Findings) -> Findings:
    """Return findings with hints for clients of a service."""
    return Findings(replace(finding, hint=_for_client(finding.hint)) for finding in findings)


def _for_client(hint: str) -> str:
    """Return a hint for a client in place of one that names an option of the command line."""
    return next((words for option, words in _CLIENT_HINTS.items() if option in hint), hint)


def storable(
    loaded: LoadedModel, readings: Sequence[SentReading], now: datetime, settings: ServiceSettings
) -> list[Reading]:
    """Return readings of a request for the store.

    Refused are readings of unknown sensors, of the future, and so old that the record would become too long; a
    withdrawal (null) of an old one is accepted.
    """
    known, axis = set(loaded.known.sensor_ids), loaded.known.times
    if unknown := sorted({reading.sensor for reading in readings} - known):
        raise loaded.unknown_sensor(listed(unknown))
    moments = _moments(readings, axis.zone)
    latest, grid = to_microseconds(now + axis.interval), loaded.record.grid
    beginning = 0 if loaded.record.has_own else grid.row(to_microseconds(now))
    earliest = beginning - settings.most_steps_back
    for reading in readings:
        if moments[reading.time] > latest:
            raise InputError(
                f"the reading of {reading.time} is later than now, {now.isoformat(timespec='minutes')}",
                where=f"sensor {reading.sensor}",
                hint="give times with their offset, and only what was measured",
            )
        if reading.value is not None and moments[reading.time] < grid.edge(earliest):
            place = "the run's own record" if loaded.record.has_own else "now"
            raise InputError(
                f"the reading of {reading.time} is too old: more than {settings.most_steps_back:,} steps of "
                f"{duration(axis.interval)} before {place}, {grid.local(beginning)}",
                where=f"sensor {reading.sensor}",
                hint=f"check the year; readings from {grid.local(earliest)} on are kept",
            )
    return [Reading(reading.sensor, moments[reading.time], reading.value) for reading in readings]


def _moments(readings: Sequence[SentReading], zone: str) -> dict[str, int]:
    """Return the distinct times of readings in microseconds since 1970 UTC, by their text: each is parsed once."""
    return {text: to_microseconds(parse_moment(text, zone)) for text in {reading.time for reading in readings}}


def _panel_of(
    loaded: LoadedModel, readings: Sequence[SentReading], settings: ServiceSettings, findings: Findings
) -> Panel:
    """Return the readings on the grid of the model, with the sensors that were sent."""
    units = {sensor.id: sensor.unit for sensor in loaded.known.sensors}
    columns = {sensor: column for column, sensor in enumerate(dict.fromkeys(each.sensor for each in readings))}
    if len(columns) > settings.most_sensors:
        what = f"the readings name {len(columns):,} sensors; at most {settings.most_sensors:,} are taken"
        raise RefusedError(413, "too_large", what, where="readings", hint="send the sensors of the model only")
    grid, texts = Grid(loaded.known.times), _moments(readings, loaded.known.times.zone)
    moments = np.array([texts[each.time] for each in readings], np.int64)
    places = np.array([columns[each.sensor] for each in readings], np.int64)
    rows = grid.rows(moments)
    first, length = int(rows.min()), int(rows.max() - rows.min()) + 1
    if length * len(columns) > settings.most_cells:
        raise InputError(
            f"the readings run from {grid.local(first)} to {grid.local(first + length - 1)}, {length:,} steps of "
            f"{duration(grid.axis.interval)} for {len(columns):,} sensors",
            where="readings",
            hint=f"send recent readings only; the model reads {loaded.forecaster.rows_needed} steps",
        )
    values = np.full((length, len(columns)), np.nan, np.float32)
    lay(grid, values, first, places, moments, np.array([each.value for each in readings], np.float32))
    _report(readings, rows * len(columns) + places, grid, moments, findings)
    sensors = tuple(Sensor(sensor, unit=units.get(sensor, "")) for sensor in columns)
    return Panel(values, grid.axis.slice(first, first + length), sensors, name="readings")


def _report(
    readings: Sequence[SentReading], cells: np.ndarray, grid: Grid, moments: np.ndarray, findings: Findings
) -> None:
    """Add findings about readings that were moved, or that share a cell."""
    interval = duration(grid.axis.interval)
    if moved := int(np.count_nonzero(grid.offsets(moments))):
        findings.note(f"readings lie beside the model's grid of {interval}: the nearest moment counts", count=moved)
    if repeated := len(readings) - len(np.unique(cells)):
        what = "readings share sensor and moment with another: the nearest counts, then the last"
        findings.warning(what, count=repeated, hint="send one reading for each sensor and moment")
