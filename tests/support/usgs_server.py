"""The USGS services on this machine: real sockets, recorded shapes, and every kind of trouble when asked for it."""

import base64
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import dataretrieval
from dataretrieval.nldi import NldiConfiguration
from dataretrieval.waterdata import WaterdataConfiguration
from made_rivers import Reach, main_path
from usgs_answers import OBSERVATION_PROPERTIES, Observation, recorded

OGC, NLDI = "/ogcapi/v1/collections/", "/nldi/linked-data"
NHDPLUS = "/fabric/pygeoapi/collections/nhdflowline_network/items"


@dataclass
class Trouble:
    """What goes wrong with the next `times` requests whose address contains `where`.

    A status is answered with `body`; `is_cut` closes the connection in the middle of a good answer; `seconds` delays.
    """

    where: str
    times: int = 1
    status: int | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class MadeSite:
    """A site as the catalogue knows it; NaN stands for an unknown place.

    `comid` is None where the river index does not know it.
    """

    id: str
    longitude: float
    latitude: float = 0.0
    comid: int | None = None
    huc: str = "180102040101"
    parameter: str = "00300"
    sensors: tuple[str, ...] = ("",)
    begin: str = "2000-01-01T00:00:00+00:00"
    end: str = "2026-01-01T00:00:00+00:00"
    zone: str | None = "PST"
    has_summer_time: str = "Y"
    kind: str = "ST"
    primary: str | None = None  # which of the sensors


class _QuietServer(ThreadingHTTPServer):
    """A server that does not mind clients which leave before the answer."""

    def handle_error(self, *_: object) -> None:
        """Keeps quiet."""


class UsgsServer:
    """What the services know, what they were asked, and what they were told to do wrong."""

    def __init__(self) -> None:
        self.sites: list[MadeSite] = []
        self.observations: list[Observation] = []
        self.reaches: dict[int, Reach] = {}
        self.lengths: dict[int, float | None] = {}
        """Official lengths of flowlines in km; where it is empty they are measured by their geometry."""
        self.troubles: list[Trouble] = []
        self.requests: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        """What came with each of the requests."""
        self.ignores_filters = False
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "UsgsServer":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def asked(self, where: str) -> list[str]:
        """Returns the addresses asked so far that contain a text."""
        return [address for address in self.requests if where in address]

    @contextmanager
    def counted(self, address: str, headers: Mapping[str, str]) -> Iterator[Trouble | None]:
        """Notes a request, and yields the trouble that awaits it."""
        with self._lock:
            self.requests.append(address)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            trouble = next((one for one in self.troubles if one.times > 0 and one.where in address), None)
            if trouble is not None:
                trouble.times -= 1
        try:
            yield trouble
        finally:
            with self._lock:
                self._at_once -= 1

    def answer(self, address: str) -> tuple[int, Any]:
        """Returns the status and the body of the answer to a request."""
        parts = urlsplit(address)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == f"{OGC}continuous/items":
            return self._continuous(query)
        if parts.path == f"{OGC}combined-metadata/items":
            return self._combined_metadata(query)
        return self._index(parts.path.removeprefix(NLDI).strip("/"), query)

    def answer_query(self, address: str, query: Any) -> tuple[int, Any]:
        """Returns the status and the body of the answer to a request that carries a CQL query: lengths of flowlines."""
        if urlsplit(address).path != NHDPLUS:
            return 404, {"description": "no such place"}
        wanted = parse_qs(urlsplit(address).query)["properties"][0].split(",")
        assert query["op"] == "in" and query["args"][0] == {"property": "comid"}
        template = recorded("flowline_network_byid_5")["features"][0]
        features = []
        for comid in query["args"][1]:
            if comid in self.lengths:
                properties = template["properties"] | {"comid": comid, "lengthkm": self.lengths[comid]}
                kept = {name: properties[name] for name in wanted}
                features.append(template | {"id": comid, "properties": kept, "geometry": None})
        return 200, _collection(features) | {"links": [], "numberReturned": len(features)}

    def _continuous(self, query: dict[str, str]) -> tuple[int, Any]:
        first, last = (datetime.fromisoformat(moment) for moment in query["time"].split("/"))
        wanted = query.get("properties", ",".join(OBSERVATION_PROPERTIES)).split(",")
        if last - first > timedelta(days=1100):
            return 400, recorded("error_time_envelope")
        if not set(wanted) <= set(OBSERVATION_PROPERTIES):
            return 400, recorded("error_unknown_property")
        found = [
            one
            for one in self.observations
            if one.site == query["monitoring_location_id"]
            and one.parameter == query["parameter_code"]
            and first <= one.time <= last
        ]
        found.sort(key=lambda one: (one.sensor, one.time))
        if "cursor" in query:
            sensor, moment = base64.urlsafe_b64decode(query["cursor"] + "==").decode().split("|")
            found = [one for one in found if (one.sensor, one.time) > (sensor, datetime.fromisoformat(moment))]
        page = found[: int(query["limit"])]
        features = [one.feature() for one in page]
        for feature in features:
            feature["properties"] = {name: feature["properties"][name] for name in wanted}
        links = [{"rel": "self", "href": self.address}]
        if len(page) < len(found):
            place = base64.urlsafe_b64encode(f"{page[-1].sensor}|{page[-1].time.isoformat()}".encode()).decode()
            rest = "&".join(f"{name}={quote(text)}" for name, text in query.items() if name != "cursor")
            href = f"{self.address}{OGC}continuous/items?cursor={place.rstrip('=')}&{rest}"
            links.append({"rel": "next", "href": href, "type": "application/geo+json"})
        return 200, _collection(features) | {"links": links, "numberReturned": len(features)}

    def _combined_metadata(self, query: dict[str, str]) -> tuple[int, Any]:
        pattern = re.fullmatch(r"hydrologic_unit_code LIKE '(\d+)%'", query["filter"])
        assert pattern and query["filter-lang"] == "cql-text" and query["data_type"] == "Continuous values"
        template = recorded("combined-metadata.items")["features"][0]["properties"]
        features = []
        for site in self.sites:
            is_meant = site.huc.startswith(pattern[1]) and site.parameter == query["parameter_code"]
            if not is_meant and not self.ignores_filters:
                continue
            for sensor in site.sensors:
                properties = template | {
                    "monitoring_location_id": site.id, "monitoring_location_name": f"RIVER AT {site.id}",
                    "hydrologic_unit_code": site.huc, "parameter_code": site.parameter, "unit_of_measure": "mg/l",
                    "begin": site.begin, "end": site.end, "time_zone_abbreviation": site.zone,
                    "uses_daylight_savings": site.has_summer_time,
                    "site_type_code": site.kind, "primary": "Primary" if sensor == site.primary else None,
                    "web_description": f"[sensor {sensor[:4]}]" if sensor else None,
                }  # fmt: skip
                kept = {name: properties[name] for name in query["properties"].split(",")}
                is_placed = not math.isnan(site.longitude)
                point = {"type": "Point", "coordinates": [site.longitude, site.latitude]} if is_placed else None
                features.append({"type": "Feature", "id": sensor, "properties": kept, "geometry": point})
        return 200, _collection(features)

    def _index(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path == "":
            return 200, recorded("linked-data_sources")
        if path == "comid/position":
            longitude, latitude = (float(part) for part in query["coords"][6:-1].split())
            near = [
                reach
                for reach in self.reaches.values()
                if any(math.dist(point, (longitude, latitude)) < 0.3 for point in reach.points)
            ]
            features = [one.feature() | {"properties": {"comid": str(one.comid)}} for one in near[:1]]
            return (200, _collection(features)) if features else (404, {"description": "no catchment there"})
        if match := re.fullmatch(r"comid/(\d+)/navigation/DM/flowlines", path):
            walk = main_path(self.reaches, int(match[1]), float(query["distance"]))
            return 200, _collection([reach.feature() for reach in walk])
        if match := re.fullmatch(r"nwissite/(.+)", path):
            site = next((one for one in self.sites if one.id == match[1] and one.comid is not None), None)
            if site is None:
                return 404, {"description": "no such feature"}
            content = recorded("nwissite_USGS-08279500")
            content["features"][0]["properties"] |= {"identifier": site.id, "comid": site.comid}
            return 200, content
        return 404, {"description": "no such place"}


def _collection(features: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": features}


def _handler(server: UsgsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(lambda: server.answer(self.path))

        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._reply(lambda: server.answer_query(self.path, query))

        def _reply(self, answer: Callable[[], tuple[int, Any]]) -> None:
            with server.counted(self.path, dict(self.headers)) as trouble:
                status, body = answer()
                headers: Mapping[str, str] = {}
                if trouble is not None:
                    time.sleep(trouble.seconds)
                    if trouble.status is not None:
                        status, body, headers = trouble.status, trouble.body, trouble.headers
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/geo+json")
                self.send_header("Content-Length", str(len(content)))
                for name, text in headers.items():
                    self.send_header(name, text)
                self.end_headers()
                is_cut = trouble is not None and trouble.is_cut
                self.wfile.write(content[: len(content) // 2] if is_cut else content)
                self.close_connection = is_cut

        def log_message(self, *_: object) -> None:
            """Keeps quiet."""

    return Handler


@contextmanager
def served_by(server: UsgsServer, retries: int = 4) -> Iterator[None]:
    """Lets the real clients talk to this server instead of to the USGS."""
    with dataretrieval.configure(
        WaterdataConfiguration(base_url=server.address, retries=retries),
        NldiConfiguration(base_url=f"{server.address}{NLDI}", retries=retries),
    ):
        yield
