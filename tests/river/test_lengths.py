"""Official lengths of rivers: used where NHDPlus tells them, and geometry where it does not."""

import errno
from datetime import UTC, datetime

import made_basin
import pytest
from made_rivers import DEGREE, straight
from usgs_answers import recorded
from usgs_server import MadeSite, Trouble, served_by

from candor.core.errors import InputError
from candor.data.findings import Findings
from candor.river import network as lengths
from candor.river.build import build_basin
from candor.river.client import ServiceClient
from candor.river.network import River, find_river, official_lengths
from candor.river.stations import Site


def river_of(usgs, client, findings: Findings) -> River:
    """Returns three reaches of half a degree with a site in the middle of each, asked of the server."""
    usgs.reaches = {reach.comid: reach for reach in straight(11, 12, 13)}
    usgs.sites = [MadeSite(f"USGS-{n}", 0.25 + 0.5 * n, comid=11 + n) for n in range(3)]
    return find_river(client, [Site(one.id, "", 0.0, one.longitude, "UTC", ()) for one in usgs.sites], 400, findings)


def test_the_way_between_two_sites_is_made_of_official_lengths_shared_out_by_the_geometry(usgs, client) -> None:
    usgs.lengths = {11: 60.0, 12: 100.0, 13: 40.0}
    findings = Findings()
    river = river_of(usgs, client, findings)
    found = {(edge.source[-1], edge.target[-1]): edge.kilometres for edge in river.edges}
    assert found == pytest.approx({("0", "1"): 30 + 50, ("1", "2"): 50 + 20, ("0", "2"): 30 + 100 + 20}, abs=0.002)
    assert (river.official, river.measured) == (3, 0) and not findings


@pytest.mark.parametrize("unknown", [None, 0.0, -1.0])
def test_a_flowline_without_an_official_length_is_measured(usgs, client, unknown: float | None) -> None:
    usgs.lengths = {11: 60.0, 13: unknown}
    river = river_of(usgs, client, Findings())
    half = DEGREE / 4
    found = {(edge.source[-1], edge.target[-1]): edge.kilometres for edge in river.edges}
    assert found == pytest.approx({("0", "1"): 30 + half, ("1", "2"): 2 * half, ("0", "2"): 30 + 3 * half}, abs=0.002)
    assert (river.official, river.measured) == (1, 2)


@pytest.mark.parametrize("status", [400, 404, 503])
def test_a_service_that_does_not_tell_is_told_of_and_the_geometry_is_measured(usgs, client, status: int) -> None:
    usgs.troubles.append(Trouble("fabric", times=99, status=status, body={"code": "no"}))
    findings = Findings()
    with served_by(usgs, retries=0):
        river = river_of(usgs, client, findings)
    assert [edge.kilometres for edge in river.edges] == pytest.approx([DEGREE / 2, DEGREE, DEGREE / 2], abs=0.002)
    assert (river.official, river.measured) == (0, 3)
    (one,) = findings
    assert "official lengths" in one.what and "later" in one.hint and "NHDPlus" in one.where


@pytest.mark.parametrize("lost", [False, True])
def test_a_refresh_while_the_service_is_down_takes_the_lengths_that_are_kept(usgs, client, monkeypatch, lost) -> None:
    monkeypatch.setattr(lengths, "_AT_ONCE", 2)
    usgs.lengths = {11: 60.0, 12: 100.0, 13: 40.0}
    fresh = river_of(usgs, client, Findings())
    recorded_before = [one["sha256"] for one in client.record if one["service"] == "nhdplus"]
    if lost:
        (note,) = [path for path in client.cache.folder.rglob("*.json") if "[13]" in "".join(path.read_text().split())]
        note.unlink()
    usgs.troubles.append(Trouble("fabric", times=99, status=503))
    refreshing = ServiceClient(client.cache, client.retry_policy, fresh_since=datetime.now(UTC))
    findings = Findings()
    with served_by(usgs, retries=0):
        river = river_of(usgs, refreshing, findings)
    assert (river.official, river.measured) == ((2, 1) if lost else (3, 0))
    assert lost or river.edges == fresh.edges
    (one,) = findings
    assert ("it was measured where none are kept" if lost else "those that are kept were taken") in one.what
    recorded_now = [one["sha256"] for one in refreshing.record if one["service"] == "nhdplus"]
    assert recorded_now == (recorded_before[:1] if lost else recorded_before)


def test_a_disk_that_is_full_is_not_taken_for_a_service_that_does_not_tell(usgs, client, monkeypatch) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    usgs.lengths = {11: 60.0}
    monkeypatch.setattr("candor.river.cache.write_json", no_room)
    with pytest.raises(InputError, match="cannot be kept"):
        official_lengths(client, ["11"], Findings())


def test_an_answer_without_lengths_is_a_failure_that_is_told_of(usgs, client) -> None:
    features = [{"type": "Feature", "id": 1, "geometry": None, "properties": {"comid": 11}}]
    usgs.answer_query = lambda address, query: (200, {"type": "FeatureCollection", "features": features})
    findings = Findings()
    assert official_lengths(client, ["11"], findings) == {}
    assert ["it tells no lengths" in one.what for one in findings] == [True]


def test_an_answer_that_is_no_collection_is_told_of_and_not_kept(usgs, client) -> None:
    usgs.troubles.append(Trouble("fabric", times=99, status=200, body={"message": "maintenance"}))
    findings = Findings()
    assert official_lengths(client, ["11"], findings) == {}
    assert ["maintenance" in one.what for one in findings] == [True]
    assert list(client.cache.folder.rglob("*.answer")) == []


def test_the_recorded_answer_is_read_to_the_metre(usgs, client) -> None:
    response = recorded("flowline_network_byid_5")
    usgs.answer_query = lambda address, query: (200, response)
    official = {str(one["properties"]["comid"]): one["properties"]["lengthkm"] for one in response["features"]}
    assert official_lengths(client, official, Findings()) == official
    assert official["11687120"] == 3.705


def test_many_flowlines_are_asked_for_in_several_questions_and_only_once(usgs, client, monkeypatch) -> None:
    monkeypatch.setattr(lengths, "_AT_ONCE", 4)
    usgs.lengths = {comid: comid / 10 for comid in range(1, 12)}
    expected = {str(comid): comid / 10 for comid in range(1, 12)}
    for _ in range(2):
        assert official_lengths(client, expected, Findings()) == expected
    assert len(usgs.asked("fabric")) == 3
    assert official_lengths(client, [], Findings()) == {} and len(usgs.requests) == 3


def test_provenance_says_how_many_lengths_are_official(usgs, client) -> None:
    made_basin.fill(usgs)
    usgs.lengths = dict.fromkeys(range(101, 111), 12.0)
    panel = build_basin(made_basin.RULES.model_copy(update={"end": "2021-05-03"}), client).panel
    # Thirteen reaches lie below the first site, and the service knows ten of them.
    assert list(panel.provenance["flowlines"].values()) == [10, 3]
    assert [one["service"] for one in panel.provenance["requests"]].count("nhdplus") == 1
    assert panel.edges.distance[0] == pytest.approx(12.0)
