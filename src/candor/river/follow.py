"""What is new in a basin that was built: the live feed of a model that was trained on it.

Sites are asked for what came since they were asked last, and once more for what is younger than `YOUNG`, for the USGS
revises young readings. What counts, the grid of hours and the sensor that speaks for a site are those of the basin.
An hour is there when it is over, half an hour after it: what is said of it is what the builder would say of it.

Every answer goes at once into a record on disk, a file per site that is written whole or not at all. A record holds
what a forecast needs and `YOUNG` more; older readings leave it.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from candor.core.errors import InputError
from candor.core.files import atomic_file
from candor.core.progress import Report, silent
from candor.core.settings import parse_settings
from candor.core.text import listed
from candor.data.findings import Findings
from candor.data.panel import Panel, Sensor
from candor.data.panel_store import SIGNS_OF_DAMAGE
from candor.data.times import TimeAxis
from candor.river.cache import Request, Response, ResponseCache, told_if_unwritable
from candor.river.client import ServiceClient, require_client
from candor.river.readings import REVISED_WITHIN, SensorReadings, readings_request, times_of, valid_readings
from candor.river.retries import RetryPolicy
from candor.river.settings import HOUR, BasinSettings
from candor.river.stations import hourly_values

_FORMAT = "candor-site-record-1"
_TICK = timedelta(seconds=1)  # the finest that services are asked by
_LONG_SILENCE = np.timedelta64(1, "D")  # of a sensor while another one at its site speaks
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # before any reading


@dataclass(frozen=True)
class Feed:
    """What is followed: a basin, by the rules it was built by."""

    basin: Panel  # its sensors, hours and zone; its rows are not used
    settings: BasinSettings
    sensors: Mapping[str, str]  # the sensor (time series) that represents each site
    hours: int  # how many rows a forecast needs
    folder: Path  # where the records of the sites are kept

    @staticmethod
    def of(basin: Panel, provenance: Mapping[str, Any], hours: int, folder: Path) -> "Feed":
        """Return the feed of a basin, by the rules that the builder wrote down; other panels have none."""
        sensors = provenance.get("sensors")
        if "settings" not in provenance or not isinstance(sensors, Mapping) or basin.times.interval != HOUR:
            raise InputError(
                "only basins that `candor data build-river` wrote can be followed: these data do not say which sites "
                "and sensors they came from",
                where=basin.name,
                hint="build the basin and train on its folder; for other data give new readings to `candor forecast`",
            )
        if lost := [sensor for sensor in basin.sensor_ids if sensor not in sensors]:
            raise InputError(
                f"the basin does not say which sensors speak for {listed(lost)}",
                where=basin.name,
                hint="build the basin again and train on its folder",
            )
        settings = parse_settings(BasinSettings, provenance["settings"], f"settings of {basin.name}")
        return Feed(basin, settings, sensors, hours, Path(folder))

    def axis(self, now: datetime) -> TimeAxis:
        """Return the hours that are over, of which the last is as late as `now` allows."""
        times = self.basin.times
        last = (now - HOUR / 2 - times.start) // HOUR
        return times.slice(last + 1 - self.hours - REVISED_WITHIN // HOUR, last + 1)


@dataclass(frozen=True)
class SiteNews:
    """How a site is doing: its last reading (UTC; None if there is none), and how many are new or were revised."""

    id: str
    name: str
    last_reading: datetime | None
    new: int
    revised: int


@dataclass(frozen=True, eq=False)
class Followed:
    """The hours until now as the basin's builder would have made them, and what is to be said of them."""

    panel: Panel
    sites: tuple[SiteNews, ...]
    findings: Findings


def follow(
    feed: Feed,
    now: datetime,
    *,
    retry_policy: RetryPolicy | None = None,
    is_offline: bool = False,
    report: Report = silent,
) -> Followed:
    """Return the latest hours of all sites, after fetching what is new.

    Nothing later than `now` is fetched. Offline, what is on disk is taken, however old it is.
    """
    now, axis = now.astimezone(UTC).replace(microsecond=0), feed.axis(now)
    if is_offline and (last := _last_kept(feed, now)) is not None:
        axis = feed.axis(min(now, last + HOUR))  # nothing newer will come: the hours end with the last reading
    records, findings = SiteRecords(feed, axis.start - HOUR / 2, now), Findings()
    before = _read_all(feed, records, Findings())
    if not is_offline:
        _fetch_news(ServiceClient(records, retry_policy, report), records, feed)
    found = _read_all(feed, records, findings)
    if records.damaged and is_offline:
        what, hint = "records on disk are damaged and were left out", "leave out --offline: they are fetched again"
        findings.warning(f"{what}: {listed(records.damaged)}", str(feed.folder), len(records.damaged), hint)
    elif records.damaged:
        findings.note("records on disk were damaged and were fetched again", str(feed.folder), len(records.damaged))
    if not any(len(readings.values) for readings in found.values()):
        kept = f"leave out --offline: nothing of that time is kept in {feed.folder}"
        hint = kept if is_offline else "look at https://waterdata.usgs.gov whether they are at work, and try later"
        what = f"no site has a reading since {axis.local[0]:%Y-%m-%d %H:%M}"
        raise InputError(what, where=feed.basin.name, hint=hint)
    news = tuple(_news(sensor, before[sensor.id], found[sensor.id]) for sensor in feed.basin.sensors)
    return Followed(_panel(feed, axis, found, now), news, findings)


class SiteRecords(ResponseCache):
    """What the sites read lately, a file per site. An answer is kept by putting it in the place of what it covers.

    What is older than `begin` leaves the records, and what is later than `now` is not read.
    """

    def __init__(self, feed: Feed, begin: datetime, now: datetime) -> None:
        super().__init__(feed.folder)
        self.parameter, self.begin, self.now = feed.settings.parameter, begin, now

    def find(self, request: Request) -> Response | None:
        """Return None: what is asked for is what is not there, or no longer sure."""
        return None

    def first_needed(self, site: str) -> datetime:
        """Return from when on a site is to be asked: everything before is known and no longer young."""
        record = self._load(site)
        if record is None or record.first > self.begin:
            return self.begin
        return max(self.begin, min(record.last, self.now) - REVISED_WITHIN)

    def read(self, site: str) -> pd.DataFrame:
        """Return what is known of a site as `readings.as_frame` does; no rows if nothing is."""
        record = self._load(site)
        return pd.DataFrame() if record is None else _between(record.rows, self.begin, self.now + _TICK)

    def keep(self, request: Request, content: bytes, url: str, also: tuple[str, ...] = ()) -> Response:
        """Return the answer that was just fetched, after putting it into the record of its site."""
        site = request.arguments["monitoring_location_id"]
        first, last = (datetime.fromisoformat(moment) for moment in request.arguments["time"].split("/"))
        fetched = pd.read_parquet(io.BytesIO(content))
        known = self._load(site)
        if known is not None and known.first <= first <= known.last:
            older = _between(known.rows, self.begin, first)
            fetched, first = pd.concat([older, fetched], ignore_index=True), max(known.first, self.begin)
        # What a site sends after a silence belongs to that time: after a long one it is asked from its last reading on.
        latest = times_of(fetched).max()
        reached = first if pd.isna(latest) else latest.to_pydatetime()
        self._save(site, _Record(fetched, first, min(last, reached + REVISED_WITHIN)))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Response(content, url, now, sha256(content).hexdigest(), also)

    def _load(self, site: str) -> "_Record | None":
        path = self._path(site)
        if not path.exists():
            return None
        try:
            table = pq.read_table(path, page_checksum_verification=True)
            facts = {name.decode(): fact.decode() for name, fact in table.schema.metadata.items()}
            if (facts["format"], facts["parameter"]) != (_FORMAT, self.parameter):
                raise ValueError("this is a record of something else")
            first, last = (datetime.fromisoformat(facts[name]) for name in ("first", "last"))
            rows = table.replace_schema_metadata(None).to_pandas(types_mapper=lambda _: pd.StringDtype())
        except SIGNS_OF_DAMAGE:
            # The file stays until an answer takes its place: offline, none does.
            if path.name not in self.damaged:
                self.damaged.append(path.name)
            return None
        return _Record(rows, first, last)

    def _save(self, site: str, record: "_Record") -> None:
        span = {"first": record.first.isoformat(), "last": record.last.isoformat()}
        facts = {"format": _FORMAT, "parameter": self.parameter} | span
        table = pa.Table.from_pandas(record.rows, preserve_index=False).replace_schema_metadata(facts)
        with told_if_unwritable(self.folder, "what a site read", "--store"), atomic_file(self._path(site)) as temporary:
            pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)

    def _path(self, site: str) -> Path:
        return self.folder / f"{quote(site, safe='')}.parquet"


@dataclass(frozen=True, eq=False)
class _Record:
    """All readings of a site from `first` to `last`, as texts."""

    rows: pd.DataFrame
    first: datetime
    last: datetime


def _fetch_news(client: ServiceClient, records: SiteRecords, feed: Feed) -> None:
    """Let every site be asked for what is new or still young; answers go into the records."""
    require_client()
    asked = [
        readings_request(site, records.parameter, records.first_needed(site), records.now)
        for site in feed.basin.sensor_ids
    ]
    try:
        client.get_all(asked, "fetching what is new")
    except InputError as error:
        if _last_kept(feed, records.now) is None:
            raise
        hint = f"{error.hint}; --offline forecasts from what is kept"
        raise InputError(error.what, where=error.where, hint=hint) from error


def _last_kept(feed: Feed, now: datetime) -> datetime | None:
    """Return the time of the last reading on disk until `now`, however old it is; None if there is none."""
    kept = _read_all(feed, SiteRecords(feed, _LONG_AGO, now), Findings()).values()
    last = [pd.Timestamp(readings.times[-1], tz="UTC").to_pydatetime() for readings in kept if len(readings.times)]
    return max(last, default=None)


def _between(rows: pd.DataFrame, first: datetime, stop: datetime) -> pd.DataFrame:
    """Return the rows from `first` to just before `stop`; those without a readable time are left out."""
    times = times_of(rows)
    return rows[(times >= first) & (times < stop)]


def _read_all(feed: Feed, records: SiteRecords, findings: Findings) -> dict[str, SensorReadings]:
    """Return the valid readings of the sensor that represents each site; another one never takes its place."""
    found = {}
    for site in feed.basin.sensor_ids:
        rows, sensor = records.read(site), feed.sensors[site]
        valid = {} if rows.empty else valid_readings(rows, feed.settings.keep_negative)
        found[site] = valid.get(sensor, SensorReadings())
        latest = {other: readings.times[-1] for other, readings in valid.items() if len(readings.times)}
        silent_since = latest.get(sensor, np.datetime64("1970-01-01"))
        if others := [other for other, moment in latest.items() if moment - silent_since > _LONG_SILENCE]:
            what = f"the sensor that the model knows ({sensor}) is silent, and another one speaks: left out"
            findings.warning(what, f"{site}: {listed(others)}", hint="build the basin again and train on it")
    return found


def _news(sensor: Sensor, before: SensorReadings, now: SensorReadings) -> SiteNews:
    old, new = (dict(zip(r.times.tolist(), r.values.tolist(), strict=True)) for r in (before, now))
    changed = [moment for moment, value in old.items() if new.get(moment) != value]
    last: datetime | None = max(new).replace(tzinfo=UTC) if new else None
    return SiteNews(sensor.id, sensor.name, last, new=len(new.keys() - old.keys()), revised=len(changed))


def _panel(feed: Feed, axis: TimeAxis, found: Mapping[str, SensorReadings], now: datetime) -> Panel:
    sensors = feed.basin.sensors
    return Panel(
        values=np.stack([hourly_values(found[sensor.id], axis, feed.settings) for sensor in sensors], axis=1),
        times=axis,
        sensors=tuple(replace(sensor, unit=found[sensor.id].unit or sensor.unit) for sensor in sensors),
        edges=feed.basin.edges,
        name=feed.basin.name,
        provenance={"followed_at": now.isoformat(), "settings": feed.settings.model_dump()},
    )
