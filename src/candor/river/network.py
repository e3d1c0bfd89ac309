"""Which station lies downstream of which, and how many kilometres of river lie between.

Every station is put on a flowline; from there the main path downstream is walked (NLDI navigation DM). An edge leads
from station i to station j where j lies on that path below i, at most the given distance away along the river.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from candor.data.findings import Findings
from candor.river.asking import Asker, Fetch, quiet_client
from candor.river.cache import Question
from candor.river.flowlines import Flowline, comid_of, read_flowlines
from candor.river.lengths import official_lengths
from candor.river.sites import Site

SAME_PLACE = 0.001  # km; stations closer than this, such as two depths of one buoy, are not below one another
FAR_FROM_LINE = 2.0  # km; a station further from its flowline is worth a look
_MARGIN = 100  # km; the service counts from the upper end of the first flowline, not from the station on it
_ONE_AT_A_TIME = Lock()
_NO_FEATURES: dict[str, Any] = {"type": "FeatureCollection", "features": []}


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


def find_river(asker: Asker, sites: Sequence[Site], max_distance_km: float, findings: Findings) -> River:
    """Returns the river on which the sites lie."""
    comids = locate_sites(asker, sites, findings)
    located = [site for site in sites if site.id in comids]
    asked = [_ask_for_path(comids[site.id], math.ceil(max_distance_km) + _MARGIN) for site in located]
    answers = asker.ask_all(asked, "following the river")
    paths = [read_flowlines(json.loads(answer.content)["features"]) for answer in answers]
    everywhere = {comid for path in paths for comid in path}
    lengths = official_lengths(asker, everywhere, findings)
    edges: list[RiverEdge] = []
    for site, measured in zip(located, paths, strict=True):
        path = {comid: replace(line, official=lengths.get(comid)) for comid, line in measured.items()}
        if comids[site.id] not in path:
            findings.warning("its flowline is not on its own way downstream; it has no edges from it", where=site.id)
            continue
        edges += _edges_from(site, located, comids, path, max_distance_km, findings)
    known = len(everywhere & lengths.keys())
    return River(without_circles(sorted(edges), findings), official=known, measured=len(everywhere) - known)


def locate_sites(asker: Asker, sites: Sequence[Site], findings: Findings) -> dict[str, str]:
    """Returns the flowline on which each site lies; a site that is on none is told of and left out."""
    by_index = asker.ask_all([_ask_for_site(site) for site in sites], "placing sites on the river")
    comids = {site.id: _first_comid(answer.content) for site, answer in zip(sites, by_index, strict=True)}
    unknown = [site for site in sites if not comids[site.id]]
    by_position = asker.ask_all([_ask_for_position(site) for site in unknown], "placing sites by their coordinates")
    for site, answer in zip(unknown, by_position, strict=True):
        comids[site.id] = _first_comid(answer.content)
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
    """Returns the edges from one site to those on its way downstream."""
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
    """Returns the kilometres from the downstream end of a flowline to every place that the path leads to from there.

    Where a path braids or, in bad data, runs in a circle, the shortest way counts.
    """
    import networkx

    graph = networkx.DiGraph()
    graph.add_node(own.ends[1])
    for line in path:
        upper, lower = line.ends
        length = min(line.length, graph.get_edge_data(upper, lower, {"length": math.inf})["length"])
        graph.add_edge(upper, lower, length=length)
    lengths: dict[tuple[float, float], float] = networkx.single_source_dijkstra_path_length(
        graph, own.ends[1], weight="length"
    )
    return lengths


def without_circles(edges: list[RiverEdge], findings: Findings) -> list[RiverEdge]:
    """Returns the edges without those that would let a river flow in a circle: of every circle the longest goes."""
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


def _ask_for_site(site: Site) -> tuple[Question, Fetch]:
    return _ask("get_features", {"feature_source": "nwissite", "feature_id": site.id}, f"nwissite/{site.id}")


def _ask_for_position(site: Site) -> tuple[Question, Fetch]:
    address = f"comid/position?coords=POINT({site.longitude} {site.latitude})"
    return _ask("get_features", {"lat": site.latitude, "long": site.longitude}, address)


def _ask_for_path(comid: str, distance: int) -> tuple[Question, Fetch]:
    arguments = {"navigation_mode": "DM", "distance": distance, "comid": int(comid)}
    address = f"comid/{comid}/navigation/DM/flowlines?distance={distance}&trimStart=false"
    return _ask("get_flowlines", arguments, address)


def _ask(operation: str, arguments: dict[str, Any], address: str) -> tuple[Question, Fetch]:
    """Returns a question to the NLDI and how to ask it; what the service does not know is an empty collection.

    The client does not say which address it asks, so that `address` says it, below the base that the client uses.
    """
    also: list[str] = []  # outlasts an attempt that fails

    def fetch() -> tuple[bytes, str, *tuple[str, ...]]:
        import httpx
        from dataretrieval import configuration, nldi
        from dataretrieval.exceptions import DataRetrievalError, HTTPError

        base = configuration.base_url(adapter="nldi", default=nldi.NLDI_API_BASE_URL)
        with quiet_client(), _list_of_sources(arguments, f"{base}/", also):
            try:
                content = getattr(nldi, operation)(**arguments, as_json=True)
            except HTTPError as error:
                if error.status_code != 404:
                    raise
                content = _NO_FEATURES
            except DataRetrievalError:
                raise
            except (ValueError, httpx.HTTPError) as error:  # a page under maintenance in place of its list of sources
                raise DataRetrievalError(f"it does not answer as it should ({error})") from error
        if not isinstance(content, dict) or "features" not in content:
            raise DataRetrievalError("it is no collection of features")
        return json.dumps(content).encode(), f"{base}/{address}", *also

    return Question("nldi", operation, arguments), fetch


@contextmanager
def _list_of_sources(arguments: Mapping[str, Any], address: str, also: list[str]) -> Iterator[None]:
    """Notes the address of the list of sources where the client asks for it: before its first question with a source.

    Whoever comes first fetches it while the others wait, so that it is asked for once.
    """
    from dataretrieval import nldi

    def is_known() -> bool:
        return getattr(nldi, "_AVAILABLE_DATA_SOURCES", ()) is not None

    if "feature_source" not in arguments or is_known():
        yield
        return
    with _ONE_AT_A_TIME:
        was_known = is_known()
        try:
            yield
        finally:
            if not was_known:
                also.append(address)


def _first_comid(content: bytes) -> str:
    features = json.loads(content)["features"]
    return comid_of(features[0].get("properties") or {}) if features else ""
