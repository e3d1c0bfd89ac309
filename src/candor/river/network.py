"""Which station lies downstream of which, and how many kilometres of river lie between.

Every station is put on a flowline; from there the main path downstream is walked (NLDI navigation DM). An edge leads
from station i to station j where j lies on that path below i, at most the given distance away along the river.

A flowline of the National Hydrography Dataset runs from its upstream end to its downstream end, and the next one
begins where it ends. Its length is the official one of NHDPlus (`lengthkm`, in the collection `nhdflowline_network` of
a USGS service), and where that is not known it is measured on the ellipsoid (GRS 80).
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.data.findings import Findings
from candor.river.cache import Request
from candor.river.client import Fetch, ServiceClient, ServiceError, quiet_library, watched_library
from candor.river.stations import Site

_DIGITS = 7  # of a degree: about a centimetre, by which ends of flowlines are told apart


@dataclass(frozen=True, eq=False)
class Flowline:
    """A stretch of river without a confluence, from upstream to downstream, by its number in the dataset (comid).

    `points` are vertex x (longitude, latitude), WGS 84 degrees; `official` is the length in kilometres as NHDPlus
    states it, None where that is not known.
    """

    id: str
    points: NDArray[np.float64]
    official: float | None = None

    @cached_property
    def _kilometres(self) -> NDArray[np.float64]:
        """How far down the line each vertex lies; the official length is shared out by the geometry."""
        from pyproj import Geod

        steps = Geod(ellps="GRS80").line_lengths(self.points[:, 0], self.points[:, 1])
        measured: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(steps)]) / 1000.0
        return measured if self.official is None or measured[-1] == 0 else measured * (self.official / measured[-1])

    @property
    def length(self) -> float:
        """Kilometres from end to end."""
        return float(self._kilometres[-1])

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The upstream and the downstream end, as places that can be compared."""
        (west, south), (east, north) = np.round(self.points[[0, -1]], _DIGITS).tolist()
        return (west, south), (east, north)

    def locate(self, longitude: float, latitude: float) -> tuple[float, float]:
        """Return how far down the line the point of it nearest a place lies, and how far off the place is, in km."""
        from pyproj import Geod

        # Near the place a degree of longitude is shorter than one of latitude by the cosine of the latitude.
        shape = np.array([np.cos(np.radians(latitude)), 1.0])
        place, points = np.array([longitude, latitude]) * shape, self.points * shape
        steps = np.diff(points, axis=0)
        squares = np.maximum((steps**2).sum(axis=1), 1e-30)
        along = np.clip(((place - points[:-1]) * steps).sum(axis=1) / squares, 0.0, 1.0)
        feet = points[:-1] + along[:, None] * steps
        nearest = int(np.argmin(((feet - place) ** 2).sum(axis=1)))
        before, after = self._kilometres[nearest : nearest + 2]
        foot = feet[nearest] / shape
        _, _, metres = Geod(ellps="GRS80").inv(longitude, latitude, *foot)
        return float(before + along[nearest] * (after - before)), float(metres) / 1000.0


def read_flowlines(features: Iterable[Mapping[str, Any]]) -> dict[str, Flowline]:
    """Return the flowlines of a GeoJSON collection by their ids; features without a line or an id are left out."""
    flowlines = {}
    for feature in features:
        name = comid_of(feature.get("properties") or {})
        points = _line_points(feature.get("geometry") or {})
        if name and len(points) >= 2:
            flowlines[name] = Flowline(name, points)
    return flowlines


def comid_of(properties: Mapping[str, Any]) -> str:
    """Return the number of the flowline that a feature speaks of, or an empty text; it comes as number or as text."""
    for name in ("nhdplus_comid", "comid"):
        text = str(properties.get(name) or "")
        if text.isdigit() and int(text) > 0:
            return text
    return ""


def _line_points(geometry: Mapping[str, Any]) -> NDArray[np.float64]:
    coordinates = geometry.get("coordinates") or []
    parts = {"LineString": [coordinates], "MultiLineString": coordinates}.get(geometry.get("type", ""), [])
    return np.array([point[:2] for part in parts for point in part], np.float64).reshape(-1, 2)


COLLECTION = "nhdflowline_network"
_PATH = "/fabric/pygeoapi"
_AT_ONCE = 400  # flowlines in one question; the service sends 500 on one page


def official_lengths(client: ServiceClient, comids: Iterable[str], findings: Findings) -> dict[str, float]:
    """Return the lengths of flowlines in kilometres by their ids, without those that the service does not tell.

    Where it does not answer, what it said before counts, however old it is: official lengths hardly ever change.
    """
    numbers = sorted(int(comid) for comid in comids)
    asked = [_lengths_request(numbers[first : first + _AT_ONCE]) for first in range(0, len(numbers), _AT_ONCE)]
    try:
        responses = client.get_all(asked, "looking up lengths of rivers")
    except ServiceError as error:
        responses = client.get_cached(request for request, _ in asked)
        is_all = len(responses) == len(asked)
        instead = "those that are kept were taken" if is_all else "it was measured where none are kept"
        findings.warning(
            f"the official lengths of the river could not be had, and {instead}: {error.what}",
            where=error.where,
            hint="build again later: the rest is kept",
        )
    rows = [row for response in responses for row in json.loads(response.content)]
    return {str(row["comid"]): row["lengthkm"] for row in rows if row["lengthkm"] and row["lengthkm"] > 0}


def _lengths_request(numbers: list[int]) -> tuple[Request, Fetch]:
    """Return the request for the lengths of some flowlines, and how to send it."""
    arguments: dict[str, Any] = {"properties": ["comid", "lengthkm"], "skip_geometry": True, "limit": _AT_ONCE}
    wanted = {"op": "in", "args": [{"property": "comid"}, numbers]}

    def fetch() -> tuple[bytes, str, *tuple[str, ...]]:
        from dataretrieval import configuration, nldi
        from dataretrieval.exceptions import DataRetrievalError
        from dataretrieval.ogc import get_ogc_data

        host = urlsplit(configuration.base_url(adapter="nldi", default=nldi.NLDI_API_BASE_URL))
        with watched_library() as pages:
            base, query = f"{host.scheme}://{host.netloc}{_PATH}", json.dumps(wanted)
            frame, metadata = get_ogc_data(
                arguments, COLLECTION, "feature_id", base_url=base, spatial=True, cql_body=query, adapter="nldi"
            )
        if not {"comid", "lengthkm"} <= set(frame.columns):
            raise DataRetrievalError("it tells no lengths")
        lengths = frame[["comid", "lengthkm"]].apply(pd.to_numeric, errors="coerce").astype({"comid": "int64"})
        return lengths.to_json(orient="records", double_precision=15).encode(), metadata.url, *pages[1:]

    return Request("nhdplus", COLLECTION, arguments | {"cql": wanted}), fetch


SAME_PLACE = 0.001  # km; stations closer than this, such as two depths of one buoy, are not below one another
FAR_FROM_LINE = 2.0  # km; a station further from its flowline is worth a look
_MARGIN = 100  # km; the service counts from the upper end of the first flowline, not from the station on it
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True, order=True)
class RiverEdge:
    """A way down the river from one station to another, in kilometres."""

    source: str
    target: str
    kilometres: float


@dataclass(frozen=True)
class River:
    """The ways from station to station, in the order of their ids, without self-loops and without circles.

    `official` is how many flowlines of the river have their length from NHDPlus, and `measured` how many from geometry.
    """

    edges: Sequence[RiverEdge]
    official: int
    measured: int


def find_river(client: ServiceClient, sites: Sequence[Site], max_distance_km: float, findings: Findings) -> River:
    """Return the river on which the sites lie."""
    comids = locate_sites(client, sites, findings)
    located = [site for site in sites if site.id in comids]
    asked = [_path_request(comids[site.id], math.ceil(max_distance_km) + _MARGIN) for site in located]
    responses = client.get_all(asked, "following the river")
    paths = [read_flowlines(json.loads(response.content)["features"]) for response in responses]
    everywhere = {comid for path in paths for comid in path}
    lengths = official_lengths(client, everywhere, findings)
    edges: list[RiverEdge] = []
    for site, measured in zip(located, paths, strict=True):
        path = {comid: replace(line, official=lengths.get(comid)) for comid, line in measured.items()}
        if comids[site.id] not in path:
            findings.warning("its flowline is not on its own way downstream; it has no edges from it", where=site.id)
            continue
        edges += _edges_from(site, located, comids, path, max_distance_km, findings)
    known = len(everywhere & lengths.keys())
    return River(without_circles(sorted(edges), findings), official=known, measured=len(everywhere) - known)


def locate_sites(client: ServiceClient, sites: Sequence[Site], findings: Findings) -> dict[str, str]:
    """Return the flowline on which each site lies; a site that is on none is told of and left out."""
    by_index = client.get_all([_site_request(site) for site in sites], "placing sites on the river")
    comids = {site.id: _first_comid(response.content) for site, response in zip(sites, by_index, strict=True)}
    unknown = [site for site in sites if not comids[site.id]]
    by_position = client.get_all([_position_request(site) for site in unknown], "placing sites by their coordinates")
    for site, response in zip(unknown, by_position, strict=True):
        comids[site.id] = _first_comid(response.content)
        if comids[site.id]:
            findings.note("is not in the river index and was placed by its coordinates", where=site.id)
        else:
            findings.warning("lies on no river that the service knows; it has no edges", where=site.id)
    return {site: comid for site, comid in comids.items() if comid}


def _edges_from(
    source: Site,
    sites: Iterable[Site],
    comids: Mapping[str, str],
    path: Mapping[str, Flowline],
    max_distance_km: float,
    findings: Findings,
) -> list[RiverEdge]:
    """Return the edges from one site to those on its way downstream."""
    own = path[comids[source.id]]
    start, off = own.locate(source.longitude, source.latitude)
    if off > FAR_FROM_LINE:
        findings.note(f"lies {off:.1f} km from its flowline", where=source.id, hint="look at its place on a map")
    below = distances_below(own, path.values())
    edges = []
    for site in sites:
        line = path.get(comids[site.id])
        if site.id == source.id or line is None:
            continue
        place, _ = line.locate(site.longitude, site.latitude)
        length = place - start if line is own else own.length - start + below.get(line.ends[0], math.inf) + place
        if math.isinf(length):
            what = f"the lines of the river have a gap on the way to {site.id}, which has no edge from here"
            findings.warning(what, where=source.id)
        elif SAME_PLACE < length <= max_distance_km:
            edges.append(RiverEdge(source.id, site.id, round(length, 3)))
    return edges


def distances_below(own: Flowline, path: Iterable[Flowline]) -> dict[tuple[float, float], float]:
    """Return the kilometres from the downstream end of a flowline to every place that the path leads to from there.

    Where a path braids or, in bad data, runs in a circle, the shortest way counts.
    """
    import networkx

    graph = networkx.DiGraph()
    graph.add_node(own.ends[1])
    for line in path:
        upper, lower = line.ends
        length = min(line.length, graph.get_edge_data(upper, lower, {"length": math.inf})["length"])
        graph.add_edge(upper, lower, length=length)
    return dict(networkx.single_source_dijkstra_path_length(graph, own.ends[1], weight="length"))


def without_circles(edges: list[RiverEdge], findings: Findings) -> list[RiverEdge]:
    """Return the edges without those that would let a river flow in a circle: of every circle the longest goes."""
    import networkx

    graph = networkx.DiGraph()
    graph.add_weighted_edges_from((edge.source, edge.target, edge.kilometres) for edge in edges)
    kept = set(edges)
    while True:
        circles = [part for part in networkx.strongly_connected_components(graph) if len(part) > 1]
        if not circles:
            return [edge for edge in edges if edge in kept]
        in_circle = [edge for edge in kept if any({edge.source, edge.target} <= part for part in circles)]
        longest = max(in_circle, key=lambda edge: (edge.kilometres, edge.source, edge.target))
        findings.warning(
            "each lies downstream of the other by the service; the longest way round was left out",
            where=f"{longest.source} -> {longest.target}",
        )
        kept.remove(longest)
        graph.remove_edge(longest.source, longest.target)


def _site_request(site: Site) -> tuple[Request, Fetch]:
    return _nldi_request("get_features", {"feature_source": "nwissite", "feature_id": site.id}, f"nwissite/{site.id}")


def _position_request(site: Site) -> tuple[Request, Fetch]:
    address = f"comid/position?coords=POINT({site.longitude} {site.latitude})"
    return _nldi_request("get_features", {"lat": site.latitude, "long": site.longitude}, address)


def _path_request(comid: str, distance: int) -> tuple[Request, Fetch]:
    arguments = {"navigation_mode": "DM", "distance": distance, "comid": int(comid)}
    address = f"comid/{comid}/navigation/DM/flowlines?distance={distance}&trimStart=false"
    return _nldi_request("get_flowlines", arguments, address)


def _nldi_request(operation: str, arguments: dict[str, Any], address: str) -> tuple[Request, Fetch]:
    """Return a request to the NLDI and how to send it; what the service does not know is an empty collection.

    The library does not say which address it asks, so that `address` says it, below the base that the library uses.
    """
    also: list[str] = []  # outlasts an attempt that fails

    def fetch() -> tuple[bytes, str, *tuple[str, ...]]:
        import httpx
        from dataretrieval import configuration, nldi
        from dataretrieval.exceptions import DataRetrievalError, HTTPError

        base = configuration.base_url(adapter="nldi", default=nldi.NLDI_API_BASE_URL)
        with quiet_library(), _list_of_sources(arguments, f"{base}/", also):
            try:
                content = getattr(nldi, operation)(**arguments, as_json=True)
            except DataRetrievalError as error:
                if not isinstance(error, HTTPError) or error.status_code != 404:
                    raise
                content = {"type": "FeatureCollection", "features": []}
            except (ValueError, httpx.HTTPError) as error:  # a page under maintenance in place of its list of sources
                raise DataRetrievalError(f"it does not answer as it should ({error})") from error
        if not isinstance(content, dict) or "features" not in content:
            raise DataRetrievalError("it is no collection of features")
        return json.dumps(content).encode(), f"{base}/{address}", *also

    return Request("nldi", operation, arguments), fetch


@contextmanager
def _list_of_sources(arguments: Mapping[str, Any], address: str, also: list[str]) -> Iterator[None]:
    """Note the address of the list of sources where the client asks for it: before its first question with a source.

    Whoever comes first fetches it while the others wait, so that it is asked for once.
    """
    from dataretrieval import nldi

    def is_known() -> bool:
        return getattr(nldi, "_AVAILABLE_DATA_SOURCES", ()) is not None

    if "feature_source" not in arguments or is_known():
        yield
        return
    with _ONE_AT_A_TIME:
        if not is_known():
            also.append(address)
        yield


def _first_comid(content: bytes) -> str:
    features = json.loads(content)["features"]
    return comid_of(features[0].get("properties") or {}) if features else ""
