"""A basin from public services: sites, readings, hours, stations, river, panel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

import numpy as np

from candor.core.errors import InputError
from candor.core.text import listed, percent
from candor.core.versions import versions
from candor.data.findings import Findings
from candor.data.panel import Covariate, Edges, Panel, Sensor
from candor.data.times import TimeAxis
from candor.river.client import ServiceClient, require_client
from candor.river.network import River, RiverEdge, find_river
from candor.river.quality import QualityReport, StationQuality
from candor.river.readings import USGS_SENTINELS, as_frame, fetch_readings
from candor.river.settings import BasinSettings, period
from candor.river.stations import UNKNOWN_ZONE, Site, SiteList, Station, common_zone, find_sites, make_station

RainStep = Callable[[tuple[Sensor, ...], TimeAxis], tuple[Covariate, Mapping[str, Any]]]
"""Returns the rain at the sensors' coordinates for every hour of the axis, and where it came from."""

_WESTERNMOST = timedelta(hours=12)  # clocks are behind UTC by this at most


@dataclass(frozen=True)
class Basin:
    """A panel of a basin and what is to be said of it."""

    panel: Panel
    report: QualityReport
    settings: BasinSettings


def build_basin(settings: BasinSettings, client: ServiceClient, name: str = "", rain: RainStep | None = None) -> Basin:
    """Return the basin built by the given rules from the services, or from their responses on disk.

    With all responses on disk no network is needed. `rain` adds a covariate of that name.
    """
    require_client()
    # A moment at which the period is over in every zone that it may turn out to have. Wrong times are refused here.
    end = period(settings.start, settings.end, settings.zone or "UTC").end + _WESTERNMOST * (settings.zone is None)
    catalogue = find_sites(client, settings.huc, settings.parameter, until=end)
    sites = catalogue.sites
    if not sites:
        raise InputError(
            f"no site of hydrologic unit {settings.huc} measures parameter {settings.parameter} continuously",
            hint="check the two codes; fewer digits of --huc name a larger basin",
        )
    axis = period(settings.start, settings.end, settings.zone or common_zone(sites))
    candidates, too_short = _long_enough(sites, axis, settings.max_missing)
    reason = "the service does not know its place"
    unplaced = [StationQuality(site, title, is_kept=False, reason=reason) for site, title in catalogue.unplaced]
    responses = fetch_readings(client, [site.id for site in candidates], settings.parameter, axis)
    stations = [make_station(site, as_frame(responses[site.id]), axis, settings) for site in candidates]
    kept, complete = _complete_enough(stations, settings)
    if len(kept) < settings.min_sites:
        raise _too_few(kept, stations, too_short, catalogue, settings)
    findings = _findings(catalogue, kept, axis, is_zone_given=settings.zone is not None)
    river = find_river(client, [station.site for station in kept], settings.max_distance_km, findings)
    least = max(len(kept) - 1, 0) if settings.min_edges is None else settings.min_edges
    if len(river.edges) < least:
        raise InputError(
            f"{len(river.edges)} pairs of stations lie below one another within {settings.max_distance_km:g} km of "
            f"river, and at least {least} are asked for",
            where=f"hydrologic unit {settings.huc}",
            hint="raise --max-distance-km, or lower --min-edges",
        )
    if client.cache.damaged:
        what = "answers on disk were damaged and were fetched again"
        findings.note(what, where=str(client.cache.folder), count=len(client.cache.damaged))
    panel = _panel(kept, river.edges, axis, name or f"huc{settings.huc}")
    panel = replace(panel, provenance=_provenance(settings, client, kept, river))
    if rain is not None:
        covariate, origin = rain(panel.sensors, panel.times)
        if unknown := unknown_rain(covariate, is_offline=client.is_offline):
            findings.warning(unknown, hint="build again later: only what is lacking is read")
        provenance = {**panel.provenance, "rain": dict(origin)}
        panel = replace(panel, covariates={"rain": covariate}, provenance=provenance)
    described = sorted(too_short + unplaced + complete, key=lambda one: one.id)
    observed = int(np.count_nonzero(panel.mask))
    counts = len(panel.sensors), len(panel.edges), panel.times.length, observed
    return Basin(panel, QualityReport(described, *counts, findings), settings)


def _long_enough(sites: Sequence[Site], axis: TimeAxis, max_missing: float) -> tuple[list[Site], list[StationQuality]]:
    """Return the sites worth fetching, and what is to be said of those whose records are too short for the period."""
    candidates, told = [], []
    for site in sites:
        share = site.overlap(axis.start - axis.interval / 2, axis.end)
        if share * axis.length + 1 >= (1 - max_missing) * axis.length:
            candidates.append(site)
        else:
            reason = f"its record covers {100 * share:.0f} % of the period at most"
            told.append(StationQuality(site.id, site.name, is_kept=False, reason=reason))
    return candidates, told


def _complete_enough(
    stations: Sequence[Station], settings: BasinSettings
) -> tuple[list[Station], list[StationQuality]]:
    """Return the stations that lack few enough hours, and what is to be said of all of them."""
    kept = [station for station in stations if station.missing_share <= settings.max_missing]
    described = [
        StationQuality(
            id=station.site.id,
            name=station.site.name,
            is_kept=station in kept,
            reason="" if station in kept else f"{percent(station.missing_share)} of its hours are missing",
            sensor=station.sensor,
            sensor_description=station.description,
            observed_hours=station.observed,
            missing_share=round(station.missing_share, 6),
            longest_gap_hours=station.longest_gap,
            readings=len(station.readings.values),
            left_out=station.readings.left_out,
            approvals=station.readings.approvals,
            qualifiers=station.readings.qualifiers,
        )
        for station in stations
    ]
    return kept, described


def _too_few(
    kept: Sequence[Station],
    stations: Sequence[Station],
    too_short: Sequence[StationQuality],
    catalogue: SiteList,
    settings: BasinSettings,
) -> InputError:
    """Return what to say of a basin with too few stations: who came near, and whose record is too short."""
    shares = sorted((station.missing_share, station.site.id) for station in stations if station not in kept)
    near = listed((f"{site} ({percent(share)})" for share, site in shares), most=5)
    rejected = f"; the next by missing hours are {near}" if near else ""
    hint = "choose another period, raise --max-missing, or lower --min-sites"
    if too_short:
        names = listed((one.id for one in too_short), most=5)
        rejected += f"; the records of {len(too_short)} sites are too short for the period: {names}"
        hint += f"; the list of records is of {catalogue.asked:%Y-%m-%d}, and --refresh asks for it again"
    if catalogue.unplaced:
        names = listed((site for site, _ in catalogue.unplaced), most=5)
        rejected += f"; the service does not know the places of {len(catalogue.unplaced)} sites: {names}"
    return InputError(
        f"{len(kept)} stations lack at most {100 * settings.max_missing:g} % of the hours, and at least "
        f"{settings.min_sites} are asked for{rejected}",
        where=f"hydrologic unit {settings.huc}",
        hint=hint,
    )


def _findings(catalogue: SiteList, kept: Sequence[Station], axis: TimeAxis, *, is_zone_given: bool) -> Findings:
    findings = Findings()
    if catalogue.asked < axis.end:
        what = f"the list of sites is of {catalogue.asked:%Y-%m-%d}, before the end of the period; some may lack"
        findings.warning(what, hint="leave out --offline: the list is asked for again")
    zones = sorted({site.zone for site in catalogue.sites})
    if axis.zone == UNKNOWN_ZONE and not is_zone_given:
        what = "the service does not say in which zone the sites lie; the panel keeps the clock of UTC"
        findings.warning(what, hint="give their zone with --zone: hours of the day and days of the week depend on it")
    if len(zones) > 1:
        findings.note(f"the sites lie in the zones {listed(zones)}; the panel keeps the clock of {axis.zone}")
    for station in kept:
        if len(station.observed) > 1:
            counts = listed(f"{sensor} {hours:,} h" for sensor, hours in station.observed.items())
            what = f"has several sensors ({counts}); the most complete one speaks for it: {station.sensor}"
            findings.note(what, where=station.site.id)
    return findings


def _panel(stations: Sequence[Station], edges: Sequence[RiverEdge], axis: TimeAxis, name: str) -> Panel:
    """Return the panel; what is missing in it stays missing."""
    sensors = tuple(
        Sensor(s.site.id, s.site.name, s.site.latitude, s.site.longitude, s.readings.unit) for s in stations
    )
    place = {sensor.id: position for position, sensor in enumerate(sensors)}
    return Panel(
        values=np.stack([station.values for station in stations], axis=1),
        times=axis,
        sensors=sensors,
        edges=Edges(
            source=np.array([place[edge.source] for edge in edges], np.int32),
            target=np.array([place[edge.target] for edge in edges], np.int32),
            distance=np.array([edge.kilometres for edge in edges], np.float32),
            distance_unit="km",
        ),
        name=name,
    )


def unknown_rain(rain: Covariate, *, is_offline: bool) -> str:
    """Return in words how many hours lack rain at some station, and why; nothing where no hour does."""
    lacking, hours = int(np.isnan(rain.values).any(axis=1).sum()), len(rain.values)
    if not lacking:
        return ""
    offline = "it was never read, and --offline asks nobody"
    online = "the archive does not have it yet (the final IMERG run is published months later) or has no value there"
    return f"the rain of {lacking:,} of {hours:,} hours is unknown: {offline if is_offline else online}"


def _provenance(
    settings: BasinSettings, client: ServiceClient, stations: Sequence[Station], river: River
) -> dict[str, Any]:
    return {
        "source": "U.S. Geological Survey: Water Data (continuous values), NLDI and NHDPlus (river network)",
        "client": f"dataretrieval {version('dataretrieval')}",
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "settings": settings.model_dump(),
        # What forecasts from other files of readings leave out as well.
        "gaps": {"missing": list(USGS_SENTINELS), "minimum": None if settings.keep_negative else 0.0},
        "flowlines": {
            "length from NHDPlus (lengthkm)": river.official,
            "length measured on the geometry": river.measured,
        },
        "sensors": {station.site.id: station.sensor for station in stations},
        "requests": list(client.record),
    }
