"""Descriptions of sensors: names, places and units from a small table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from candor.core.errors import InputError
from candor.core.text import listed
from candor.data.findings import Findings
from candor.data.panel import Sensor
from candor.data.readers.small_tables import (
    IdLookup,
    SmallTable,
    numbers_of,
    plain_name,
    read_small_table,
    table_from_frame,
)
from candor.data.readers.sources import find_source
from candor.data.units import distinct_units

_THINGS = ("sensor", "station", "site", "node", "detector", "gauge", "gage", "location")
_ID = {
    *(f"{thing}_{word}" for thing in _THINGS for word in ("id", "no", "number", "code")),
    *_THINGS,
    "id",
    "sid",
    "stid",
    "siteno",
    "code",
}
_NAME = ("name", *(f"{thing}_{word}" for thing in _THINGS for word in ("name", "nm")))
_LATITUDE = ("latitude", "lat", "dec_lat_va", "latitude_deg", "lat_deg", "y")
_LONGITUDE = ("longitude", "lon", "lng", "long", "dec_long_va", "longitude_deg", "lon_deg", "x")
_UNIT = ("unit", "units")


@dataclass(frozen=True)
class _Columns:
    """Which columns hold what."""

    id: int
    name: int | None = None
    latitude: int | None = None
    longitude: int | None = None
    unit: int | None = None


def read_sensors(
    path_or_frame: Path | str | pd.DataFrame, ids: Sequence[str], unit: str, findings: Findings
) -> tuple[Sensor, ...]:
    """Returns a description of each sensor of `ids`, in that order.

    Args:
        path_or_frame: a CSV or Parquet file or a data frame with an id column, and any of name,
            latitude and longitude (degrees), unit.
        ids: the sensors that have readings.
        unit: the unit of sensors for which the table names none.
        findings: where everything left out is noted.
    """
    if isinstance(path_or_frame, pd.DataFrame):
        where, table = "the table of sensors", table_from_frame(path_or_frame)
    else:
        source = find_source(path_or_frame)
        where, table = str(source.path), read_small_table(source)
    lookup = IdLookup(ids)
    columns = _find_columns(table, lookup, where, findings)
    named = [row[columns.id].strip() for row in table.rows]
    positions = lookup.positions(named)
    places = _read_places(table, columns, where, findings)
    described: dict[int, Sensor] = {}
    contradicted: list[str] = []
    for row, position, place in zip(table.rows, positions.tolist(), places, strict=True):
        if position >= 0:
            sensor = Sensor(
                ids[position],
                name=_cell(row, columns.name),
                latitude=place[0],
                longitude=place[1],
                unit=_cell(row, columns.unit) or unit,
            )
            if described.setdefault(position, sensor) != sensor:
                contradicted.append(sensor.id)
    if contradicted:
        raise InputError(
            f"sensors are described twice, and differently: {listed(dict.fromkeys(contradicted))}",
            where=where,
            hint="keep one row for each sensor",
        )
    unknown = [named[row] for row in np.flatnonzero(positions < 0)]
    if unknown and not described:
        what = f"no row describes a sensor with readings ({listed(ids)}): all are ignored"
        findings.warning(what, f"{where}: {listed(unknown)}", len(unknown), "write the ids in both files alike")
    elif unknown:
        what = "rows describe sensors without readings: ignored"
        findings.note(what, f"{where}: {listed(unknown)}", len(unknown))
    missing = [sensor_id for i, sensor_id in enumerate(ids) if i not in described]
    if missing:
        what = "sensors are not described: only their ids are known"
        hint = "add a row for each, with the id as it stands in the readings"
        findings.note(what, f"{where}: {listed(missing)}", len(missing), hint)
    sensors = tuple(described.get(i, Sensor(ids[i], unit=unit)) for i in range(len(ids)))
    units = distinct_units(sensor.unit for sensor in sensors)
    if len(units) > 1:
        what = "sensors have different units: one scale serves all in training, and errors are pooled over all"
        findings.warning(what, f"{where}: {listed(unit or 'none' for unit in units)}", len(units), "one file per unit")
    return sensors


def _find_columns(table: SmallTable, lookup: IdLookup, where: str, findings: Findings) -> _Columns:
    if table.header is None:
        return _columns_without_header(table, lookup, where, findings)
    names = [plain_name(name) for name in table.header]
    candidates = [column for column, name in enumerate(names) if name in _ID]
    if not candidates:
        raise InputError(
            f"no column holds the sensor ids; there are: {listed(table.header, 20)}",
            where=where,
            hint="call the column sensor_id",
        )
    # A running number may be called id too: the column that names most of our sensors is meant.
    known = {column: int((lookup.positions(row[column] for row in table.rows) >= 0).sum()) for column in candidates}
    return _Columns(
        id=max(candidates, key=lambda column: known[column]),
        name=_first(names, _NAME),
        latitude=_first(names, _LATITUDE),
        longitude=_first(names, _LONGITUDE),
        unit=_first(names, _UNIT),
    )


def _columns_without_header(table: SmallTable, lookup: IdLookup, where: str, findings: Findings) -> _Columns:
    """Returns the columns of a table that begins at once, as the sensor list of PEMS-BAY does."""
    width = len(table.rows[0]) if table.rows else 0
    if width == 3 and (lookup.positions(row[0] for row in table.rows) >= 0).any():
        findings.note("the table has no header: its columns were read as id, latitude, longitude", where)
        return _Columns(id=0, latitude=1, longitude=2)
    raise InputError(
        "the table has no header",
        where=where,
        hint="put names on top, such as sensor_id,name,latitude,longitude,unit",
    )


def _first(names: list[str], wanted: Sequence[str]) -> int | None:
    """Returns the column whose name comes first among the wanted ones."""
    return next((names.index(name) for name in wanted if name in names), None)


def _cell(row: list[str], column: int | None) -> str:
    return "" if column is None else row[column].strip()


def _read_places(
    table: SmallTable, columns: _Columns, where: str, findings: Findings
) -> list[tuple[float | None, float | None]]:
    """Returns latitude and longitude of each row in degrees; both None if either is not right."""
    if columns.latitude is None or columns.longitude is None:
        return [(None, None)] * len(table.rows)
    latitudes, strange_latitudes = numbers_of([row[columns.latitude] for row in table.rows])
    longitudes, strange_longitudes = numbers_of([row[columns.longitude] for row in table.rows])
    strange = set(strange_latitudes) | set(strange_longitudes)
    places: list[tuple[float | None, float | None]] = []
    wrong: list[str] = []
    for row, (latitude, longitude) in enumerate(zip(latitudes, longitudes, strict=True)):
        is_right = abs(latitude) <= 90 and abs(longitude) <= 180
        is_empty = latitude != latitude and longitude != longitude and row not in strange
        if not is_right and not is_empty:
            wrong.append(table.rows[row][columns.id].strip())
        places.append((float(latitude), float(longitude)) if is_right else (None, None))
    if wrong:
        findings.warning(
            "latitude or longitude is missing, no number, or outside -90..90 and -180..180: "
            "the place counts as unknown",
            f"{where}: {listed(wrong)}",
            len(wrong),
            "give both in degrees, and check that latitude and longitude are not swapped",
        )
    return places
