"""Which sites of a basin measure a quantity, which of their sensors represents each, and its hourly values."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.gridding import Grid, lay_series
from candor.data.times import TimeAxis
from candor.river.cache import Request
from candor.river.client import ServiceClient, watched_library
from candor.river.readings import SensorReadings, valid_readings
from candor.river.settings import BasinSettings

_PROPERTIES = (
    "id",
    "monitoring_location_id",
    "monitoring_location_name",
    "site_type_code",
    "hydrologic_unit_code",
    "time_zone_abbreviation",
    "uses_daylight_savings",
    "primary",
    "sublocation_identifier",
    "web_description",
    "begin",
    "end",
)
_NOT_WATER_ON_THE_SURFACE = ("GW", "AT")  # wells and the atmosphere
UNKNOWN_ZONE = "UTC"
"""The zone of sites of which the service does not say one that is known here."""
_ZONES = {  # with and without summer time
    "AST": ("America/Halifax", "UTC-04:00"),
    "EST": ("America/New_York", "UTC-05:00"),
    "CST": ("America/Chicago", "UTC-06:00"),
    "MST": ("America/Denver", "UTC-07:00"),
    "PST": ("America/Los_Angeles", "UTC-08:00"),
    "AKST": ("America/Anchorage", "UTC-09:00"),
    "HST": ("Pacific/Honolulu", "UTC-10:00"),
    "ChST": ("Pacific/Guam", "UTC+10:00"),
}


@dataclass(frozen=True)
class TimeSeries:
    """The record of one sensor; `begin` and `end` are None where the service does not say them."""

    id: str
    begin: datetime | None
    end: datetime | None
    description: str
    is_primary: bool


@dataclass(frozen=True)
class Site:
    """A place with sensors for one quantity. Coordinates are WGS 84 degrees."""

    id: str
    name: str
    latitude: float
    longitude: float
    zone: str
    series: tuple[TimeSeries, ...]

    def overlap(self, first: datetime, last: datetime) -> float:
        """Return the largest share of the period from `first` to `last` that one of the sensors can have observed."""
        spans = (min(one.end or last, last) - max(one.begin or first, first) for one in self.series)
        return max(0.0, *(span / (last - first) for span in spans))


@dataclass(frozen=True)
class SiteList:
    """The sites of a basin as the service knew them when it was asked; id and name of those without a place apart."""

    sites: tuple[Site, ...]
    asked: datetime
    unplaced: tuple[tuple[str, str], ...] = ()


def find_sites(client: ServiceClient, huc: str, parameter: str, until: datetime | None = None) -> SiteList:
    """Return the surface-water sites of a hydrologic unit that record a parameter continuously, in the order of ids.

    A list from before `until`, the end of the period, does not know how long the records of sites at work go on, and is
    fetched again.
    """
    arguments: dict[str, Any] = {
        "filter": f"hydrologic_unit_code LIKE '{huc}%'",
        "parameter_code": parameter,
        "data_type": "Continuous values",
    }

    def fetch() -> tuple[bytes, str, *tuple[str, ...]]:
        from dataretrieval import waterdata

        with watched_library() as pages:
            frame, metadata = waterdata.get_combined_metadata(
                **arguments, filter_lang="cql-text", properties=_PROPERTIES, convert_type=False
            )
        rows: list[dict[str, Any]] = json.loads(frame.drop(columns="geometry").to_json(orient="records"))
        for row, point in zip(rows, frame["geometry"], strict=True):
            # A site without a position comes as an empty geometry.
            row["position"] = None if point is None or point.is_empty else [point.x, point.y]
        return json.dumps(rows).encode(), metadata.url, *pages[1:]

    request = Request("waterdata", "get_combined_metadata", arguments | {"properties": list(_PROPERTIES)})
    response = client.get(request, fetch, "looking for sites", since=until)
    by_site: dict[str, list[dict[str, Any]]] = {}
    unplaced: dict[str, str] = {}
    for row in json.loads(response.content):
        # The filter is checked again: a service that ignores it would send the whole country.
        is_inside = str(row["hydrologic_unit_code"] or "").startswith(huc)
        if not is_inside or str(row["site_type_code"] or "").startswith(_NOT_WATER_ON_THE_SURFACE):
            continue
        if row["position"]:
            by_site.setdefault(row["monitoring_location_id"], []).append(row)
        else:
            unplaced[row["monitoring_location_id"]] = row["monitoring_location_name"] or ""
    sites = tuple(_site(site_id, by_site[site_id]) for site_id in sorted(by_site))
    return SiteList(sites, response.moment, tuple(sorted(unplaced.items())))


def _site(site_id: str, rows: list[dict[str, Any]]) -> Site:
    longitude, latitude = rows[0]["position"]
    summer, fixed = _ZONES.get(rows[0]["time_zone_abbreviation"] or "", (UNKNOWN_ZONE, UNKNOWN_ZONE))
    return Site(
        id=site_id,
        name=rows[0]["monitoring_location_name"] or "",
        latitude=latitude,
        longitude=longitude,
        zone=summer if rows[0]["uses_daylight_savings"] == "Y" else fixed,
        series=tuple(sorted((_series(row) for row in rows), key=lambda series: series.id)),
    )


def _series(row: dict[str, Any]) -> TimeSeries:
    begin, end = (None if not row[name] else datetime.fromisoformat(row[name]) for name in ("begin", "end"))
    return TimeSeries(
        id=str(row["combined_meta_id"]),
        begin=begin and begin.replace(tzinfo=begin.tzinfo or UTC),  # without an offset it is UTC
        end=end and end.replace(tzinfo=end.tzinfo or UTC),
        description=" ".join(filter(None, (row["sublocation_identifier"], row["web_description"]))),
        is_primary=row["primary"] == "Primary",
    )


def common_zone(sites: Sequence[Site]) -> str:
    """Return the zone in which most of the sites lie; of equals, the first by name."""
    counts = Counter(site.zone for site in sites)
    return min(counts, key=lambda zone: (-counts[zone], zone)) if counts else UNKNOWN_ZONE


@dataclass(frozen=True)
class Station:
    """A site with its hourly values."""

    site: Site
    values: NDArray[np.float32]  # in the unit of its readings, one per hour of the axis, NaN where missing
    sensor: str  # id of the sensor (time series) that represents the site; empty where none sent anything
    readings: SensorReadings  # what that sensor sent
    observed: Mapping[str, int] = field(default_factory=dict)  # hours with a value, for every sensor of the site

    @property
    def missing_share(self) -> float:
        """The share of hours without a value."""
        return float(np.isnan(self.values).mean())

    @property
    def longest_gap(self) -> int:
        """The most hours in a row without a value."""
        is_there = np.concatenate([[True], ~np.isnan(self.values), [True]])
        return int(np.diff(np.flatnonzero(is_there)).max() - 1)

    @property
    def description(self) -> str:
        """What the service says of the chosen sensor, such as its depth."""
        return next((series.description for series in self.site.series if series.id == self.sensor), "")


def make_station(site: Site, frame: pd.DataFrame, axis: TimeAxis, settings: BasinSettings) -> Station:
    """Return the station of a site: of several sensors the one that observed most hours.

    Of equals, the one that the service calls primary, then the first by its id.
    """
    sensors = valid_readings(frame, settings.keep_negative)
    if not sensors:
        return Station(site, np.full(axis.length, np.nan, np.float32), "", SensorReadings())
    hourly = {name: hourly_values(readings, axis, settings) for name, readings in sensors.items()}
    observed = {name: int((~np.isnan(values)).sum()) for name, values in hourly.items()}
    primary = {series.id for series in site.series if series.is_primary}
    chosen = min(sensors, key=lambda name: (-observed[name], name not in primary, name))
    return Station(site, hourly[chosen], chosen, sensors[chosen], observed)


def hourly_values(readings: SensorReadings, axis: TimeAxis, settings: BasinSettings) -> NDArray[np.float32]:
    """Return the value of every hour of the axis, NaN where there is no reading, by the rule of `data.gridding`."""
    moments = readings.times.astype("datetime64[us]").astype(np.int64)
    return lay_series(Grid(axis), moments, readings.values, takes_mean=settings.hourly == "mean")
