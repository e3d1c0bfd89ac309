"""Descriptions of sensors: names, places and units from a small table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.findings import Findings, Level
from candor.data.panel import Sensor
from candor.data.readers.cells import IdLookup, numbers_of
from candor.data.readers.small_tables import SmallTable, read_small_table
from candor.data.units import distinct_units

_THINGS = ("sensor", "station", "site", "node", "detector", "gauge", "gage", "location")
_IDS = {
    *(f"{thing}_{word}" for thing in _THINGS for word in ("id", "no", "number", "code")),
    *(*_THINGS, "id", "sid", "stid", "siteno", "code"),
}
_OTHERS = {
    "name": ("name", *(f"{thing}_{word}" for thing in _THINGS for word in ("name", "nm"))),
    "latitude": ("latitude", "lat", "dec_lat_va", "latitude_deg", "lat_deg", "y"),
    "longitude": ("longitude", "lon", "lng", "long", "dec_long_va", "longitude_deg", "lon_deg", "x"),
    "unit": ("unit", "units"),
}


def read_sensors(
    path_or_frame: Path | str | pd.DataFrame, ids: Sequence[str], unit: str, findings: Findings
) -> tuple[Sensor, ...]:
    """Return a description of each sensor of `ids`, in that order.

    Args:
        path_or_frame: a CSV or Parquet file or a data frame with an id column, and any of name,
            latitude and longitude (degrees), unit.
        ids: the sensors that have readings.
        unit: the unit of sensors for which the table names none.
        findings: where everything left out is noted.
    """
    where = "the table of sensors" if isinstance(path_or_frame, pd.DataFrame) else str(path_or_frame)
    table, lookup = read_small_table(path_or_frame), IdLookup(ids)
    columns = _find_columns(table, lookup, where, findings)
    named, names, units = (table.column(columns.get(name)) for name in ("id", "name", "unit"))
    positions = lookup.positions(named)
    described: dict[int, Sensor] = {}
    contradicted: list[str] = []
    rows = zip(positions.tolist(), names, _read_places(table, columns, named, where, findings), units, strict=True)
    for position, name, (latitude, longitude), own_unit in rows:
        if position >= 0:
            sensor = Sensor(ids[position], name, latitude, longitude, own_unit or unit)
            if described.setdefault(position, sensor) != sensor:
                contradicted.append(sensor.id)
    if contradicted:
        what = f"sensors are described twice, and differently: {listed(dict.fromkeys(contradicted))}"
        raise InputError(what, where=where, hint="keep one row for each sensor")
    unknown = [named[row] for row in np.flatnonzero(positions < 0)]
    if described:
        findings.about(unknown, "rows describe sensors without readings: ignored", where=where, level=Level.NOTE)
    else:
        what = f"no row describes a sensor with readings ({listed(ids)}): all are ignored"
        findings.about(unknown, what, "write the ids in both files alike", where=where)
    missing = [sensor_id for i, sensor_id in enumerate(ids) if i not in described]
    hint = "add a row for each, with the id as it stands in the readings"
    findings.about(missing, "sensors are not described: only their ids are known", hint, where=where, level=Level.NOTE)
    sensors = tuple(described.get(i, Sensor(ids[i], unit=unit)) for i in range(len(ids)))
    different = [unit or "none" for unit in distinct_units(sensor.unit for sensor in sensors)]
    if len(different) > 1:
        what = "sensors have different units: one scale serves all in training, and errors are pooled over all"
        findings.about(different, what, "one file per unit", where=where)
    return sensors


def _find_columns(table: SmallTable, lookup: IdLookup, where: str, findings: Findings) -> dict[str, int]:
    """Return which columns hold the id and what else there is of name, latitude, longitude and unit."""
    if table.header is None:
        # The sensor list of PEMS-BAY begins at once.
        if table.rows and len(table.rows[0]) == 3 and (lookup.positions(table.column(0)) >= 0).any():
            findings.note("the table has no header: its columns were read as id, latitude, longitude", where)
            return {"id": 0, "latitude": 1, "longitude": 2}
        hint = "put names on top, such as sensor_id,name,latitude,longitude,unit"
        raise InputError("the table has no header", where=where, hint=hint)
    names = table.names
    candidates = [column for column, name in enumerate(names) if name in _IDS]
    if not candidates:
        what = f"no column holds the sensor ids; there are: {listed(table.header, 20)}"
        raise InputError(what, where=where, hint="call the column sensor_id")
    # A running number may be called id too: the column that names most of our sensors is meant.
    known = [int((lookup.positions(table.column(column)) >= 0).sum()) for column in candidates]
    found = {"id": candidates[int(np.argmax(known))]}
    for quantity, wanted in _OTHERS.items():
        if called := next((name for name in wanted if name in names), None):
            found[quantity] = names.index(called)
    return found


def _read_places(
    table: SmallTable, columns: dict[str, int], named: list[str], where: str, findings: Findings
) -> list[tuple[float | None, float | None]]:
    """Return latitude and longitude of each row in degrees; both None if either is not right."""
    if not {"latitude", "longitude"} <= columns.keys():
        return [(None, None)] * len(table.rows)
    (latitude, is_text), (longitude, is_text_too) = (
        numbers_of(table.column(columns[name])) for name in ("latitude", "longitude")
    )
    is_right = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)
    is_empty = np.isnan(latitude) & np.isnan(longitude) & ~is_text & ~is_text_too
    findings.about(
        [named[row] for row in np.flatnonzero(~is_right & ~is_empty)],
        "latitude or longitude is missing, no number, or outside -90..90 and -180..180: the place counts as unknown",
        "give both in degrees, and check that latitude and longitude are not swapped",
        where=where,
    )
    places = zip(is_right.tolist(), latitude.tolist(), longitude.tolist(), strict=True)
    return [(north, east) if right else (None, None) for right, north, east in places]
