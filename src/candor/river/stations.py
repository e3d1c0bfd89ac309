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
from candor.river.readings import Readings, valid_readings
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
        """Returns the largest share of the period from `first` to `last` that one of the sensors can have observed."""
        return max(_overlap(series, first, last) for series in self.series)


def _overlap(series: TimeSeries, first: datetime, last: datetime) -> float:
    begin, end = max(series.begin or first, first), min(series.end or last, last)
    return max((end - begin) / (last - first), 0.0)


@dataclass(frozen=True)
class SiteList:
    """The sites of a basin as the service knew them when it was asked; id and name of those without a place apart."""

    sites: tuple[Site, ...]
    asked: datetime
    unplaced: tuple[tuple[str, str], ...] = ()


def find_sites(client: ServiceClient, huc: str, parameter: str, until: datetime | None = None) -> SiteList:
    """Returns the surface-water sites of a hydrologic unit that record a parameter continuously, by their ids.

    Args:
        client: of the service.
        huc: the hydrologic unit.
        parameter: what the sites measure.
        until: the end of the period that is looked at. A list from before it does not know how long the records of
            sites at work go on, and is asked for again.
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
    rows = json.loads(response.content)
    by_site: dict[str, list[dict[str, Any]]] = {}
    unplaced: dict[str, str] = {}
    for row in rows:
        # The filter is checked again: a service that ignores it would send the whole country.
        if not _is_surface(row) or not str(row["hydrologic_unit_code"] or "").startswith(huc):
            continue
        site_id = row["monitoring_location_id"]
        if row["position"]:
            by_site.setdefault(site_id, []).append(row)
        else:
            unplaced[site_id] = row["monitoring_location_name"] or ""
    sites = tuple(_site(site_id, by_site[site_id]) for site_id in sorted(by_site))
    return SiteList(sites, response.moment, tuple(sorted(unplaced.items())))


def _is_surface(row: dict[str, Any]) -> bool:
    return not str(row["site_type_code"] or "").startswith(_NOT_WATER_ON_THE_SURFACE)


def _site(site_id: str, rows: list[dict[str, Any]]) -> Site:
    first = rows[0]
    longitude, latitude = first["position"]
    return Site(
        id=site_id,
        name=first["monitoring_location_name"] or "",
        latitude=latitude,
        longitude=longitude,
        zone=_zone(first["time_zone_abbreviation"], first["uses_daylight_savings"]),
        series=tuple(sorted((_series(row) for row in rows), key=lambda series: series.id)),
    )


def _series(row: dict[str, Any]) -> TimeSeries:
    words = (row["sublocation_identifier"], row["web_description"])
    return TimeSeries(
        id=str(row["combined_meta_id"]),
        begin=_moment(row["begin"]),
        end=_moment(row["end"]),
        description=" ".join(str(word) for word in words if word),
        is_primary=row["primary"] == "Primary",
    )


def _moment(text: str | None) -> datetime | None:
    """Returns the moment that the service wrote; without an offset it is UTC."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _zone(abbreviation: str | None, has_summer_time: str | None) -> str:
    summer, fixed = _ZONES.get(abbreviation or "", (UNKNOWN_ZONE, UNKNOWN_ZONE))
    return summer if has_summer_time == "Y" else fixed


def common_zone(sites: Sequence[Site]) -> str:
    """Returns the zone in which most of the sites lie; of equals, the first by name."""
    counts = Counter(site.zone for site in sites)
    return min(counts, key=lambda zone: (-counts[zone], zone)) if counts else UNKNOWN_ZONE


@dataclass(frozen=True)
class Station:
    """A site with its hourly values.

    Args:
        site: where it is.
        values: in `unit`, one per hour of the axis, NaN where missing.
        sensor: id of the sensor (time series) that speaks for the site; empty where none sent anything.
        readings: what that sensor sent.
        observed: hours with a value, for every sensor of the site.
    """

    site: Site
    values: NDArray[np.float32]
    sensor: str
    readings: Readings
    observed: Mapping[str, int] = field(default_factory=dict)

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
    """Returns the station of a site: of several sensors the one that observed most hours.

    Of equals, the one that the service calls primary, then the first by its id.
    """
    sensors = valid_readings(frame, settings.keep_negative)
    if not sensors:
        nothing = Readings(np.empty(0, "datetime64[us]"), np.empty(0))
        return Station(site, np.full(axis.length, np.nan, np.float32), "", nothing)
    hourly = {name: hourly_values(readings, axis, settings) for name, readings in sensors.items()}
    observed = {name: int((~np.isnan(values)).sum()) for name, values in hourly.items()}
    primary = {series.id for series in site.series if series.is_primary}
    chosen = min(sensors, key=lambda name: (-observed[name], name not in primary, name))
    return Station(site, hourly[chosen], chosen, sensors[chosen], observed)


def hourly_values(readings: Readings, axis: TimeAxis, settings: BasinSettings) -> NDArray[np.float32]:
    """Returns the value of every hour of the axis, NaN where there is no reading, by the rule of `data.gridding`."""
    moments = readings.times.astype("datetime64[us]").astype(np.int64)
    return lay_series(Grid(axis), moments, readings.values, takes_mean=settings.hourly == "mean")
