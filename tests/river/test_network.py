"""The directed river: who lies below whom, how far along the water, on every shape a river can have."""

import itertools
import math
from urllib.parse import unquote_plus, urlsplit

import numpy as np
import pytest
from made_rivers import DEGREE, Reach, straight
from usgs_answers import recorded
from usgs_server import MadeSite

from candor.data.findings import Findings
from candor.river.network import (
    Flowline,
    RiverEdge,
    comid_of,
    find_river,
    locate_sites,
    read_flowlines,
    without_circles,
)
from candor.river.stations import Site


def as_site(made: MadeSite) -> Site:
    return Site(made.id, "", made.latitude, made.longitude, "UTC", ())


def edges_of(usgs, client, reaches, made, max_distance_km=200.0, findings=None) -> dict[tuple[str, str], float]:
    """Returns the lengths of the edges among some sites on some river, asked of the server."""
    usgs.reaches, usgs.sites = {reach.comid: reach for reach in reaches}, made
    found = find_river(
        client, [as_site(one) for one in made], max_distance_km, Findings() if findings is None else findings
    ).edges
    assert all(edge.source != edge.target for edge in found)
    return {(edge.source, edge.target): edge.kilometres for edge in found}


def test_on_a_straight_river_every_site_leads_to_every_site_below_by_the_length_of_the_water(usgs, client) -> None:
    places = {"USGS-A": 0.25, "USGS-B": 0.75, "USGS-C": 1.0, "USGS-D": 1.4}
    made = [MadeSite(name, place, comid=[11, 12, 12, 13][n]) for n, (name, place) in enumerate(places.items())]
    found = edges_of(usgs, client, straight(11, 12, 13), made)
    expected = {
        (one, other): DEGREE * (places[other] - places[one]) for one, other in itertools.combinations(places, 2)
    }
    assert found.keys() == expected.keys()
    for pair, length in expected.items():
        assert found[pair] == pytest.approx(length, abs=0.001)


def test_no_edge_is_longer_than_allowed_and_none_that_is_allowed_is_lost(usgs, client) -> None:
    made = [MadeSite(f"USGS-{n}", 0.49 + 0.5 * n, comid=21 + n) for n in range(6)]
    step = 0.5 * DEGREE
    for allowed in (1.01 * step, 2.01 * step, 3.99 * step):
        found = edges_of(usgs, client, straight(*range(21, 27)), made, allowed)
        hops = math.floor(allowed / step)
        assert len(found) == sum(min(hops, 5 - n) for n in range(6))
        assert max(found.values()) <= allowed


def test_distance_is_counted_from_the_site_and_not_from_the_upper_end_of_its_reach(usgs, client) -> None:
    made = [MadeSite("USGS-A", 0.49, comid=21), MadeSite("USGS-B", 1.51, comid=24)]
    found = edges_of(usgs, client, straight(*range(21, 27)), made, 1.03 * DEGREE)
    assert found == {("USGS-A", "USGS-B"): pytest.approx(1.02 * DEGREE, abs=0.001)}


def test_both_arms_of_a_confluence_lead_below_it_and_not_to_each_other(usgs, client) -> None:
    reaches = [
        Reach(1, ((0.0, 0.0), (1.0, 0.0)), below=3),
        Reach(2, ((1.0, 0.5), (1.0, 0.0)), below=3),
        Reach(3, ((1.0, 0.0), (2.0, 0.0))),
    ]
    made = [MadeSite("USGS-A", 0.6, comid=1), MadeSite("USGS-B", 1.0, 0.3, comid=2), MadeSite("USGS-C", 1.2, comid=3)]
    found = edges_of(usgs, client, reaches, made)
    assert found.keys() == {("USGS-A", "USGS-C"), ("USGS-B", "USGS-C")}
    assert found["USGS-A", "USGS-C"] == pytest.approx(0.6 * DEGREE, abs=0.001)
    meridian = 110.574  # km of the first degree of latitude
    assert found["USGS-B", "USGS-C"] == pytest.approx(0.3 * meridian + 0.2 * DEGREE, abs=0.01)


def test_a_diversion_is_left_by_its_own_sites_but_not_entered_from_above(usgs, client) -> None:
    reaches = [
        Reach(1, ((0.0, 0.0), (0.5, 0.0)), below=2),
        Reach(2, ((0.5, 0.0), (1.0, 0.0)), below=4),
        Reach(3, ((0.5, 0.0), (0.75, 0.1), (1.0, 0.0)), below=4),  # the canal beside reach 2
        Reach(4, ((1.0, 0.0), (1.5, 0.0))),
    ]
    made = [
        MadeSite("USGS-ABOVE", 0.4, comid=1),
        MadeSite("USGS-CANAL", 0.75, 0.1, comid=3),
        MadeSite("USGS-MAIN", 0.8, comid=2),
        MadeSite("USGS-UNDER", 1.1, comid=4),
    ]
    found = edges_of(usgs, client, reaches, made)
    assert found.keys() == {
        ("USGS-ABOVE", "USGS-MAIN"),
        ("USGS-ABOVE", "USGS-UNDER"),
        ("USGS-CANAL", "USGS-UNDER"),
        ("USGS-MAIN", "USGS-UNDER"),
    }


def test_on_a_braided_river_the_shortest_of_the_ways_sent_is_the_length(usgs, client) -> None:
    reaches = straight(1, 2, 3)
    side = Reach(9, ((0.5, 0.0), (0.75, 0.3), (1.0, 0.0)), below=3)
    made = [MadeSite("USGS-A", 0.1, comid=1), MadeSite("USGS-B", 1.3, comid=3)]
    true_answer = usgs.answer

    def with_side_arm(address: str):
        status, body = true_answer(address)
        if "navigation" in address and "comid/1/" in address:
            body["features"].insert(1, side.feature())
        return status, body

    usgs.answer = with_side_arm
    found = edges_of(usgs, client, [*reaches, side], made)
    assert found == {("USGS-A", "USGS-B"): pytest.approx(1.2 * DEGREE, abs=0.001)}


def test_a_site_off_the_network_has_no_edges_and_is_told_of(usgs, client) -> None:
    made = [MadeSite("USGS-A", 0.1, comid=1), MadeSite("USGS-B", 0.9, comid=2), MadeSite("USGS-LOST", 40.0, 40.0)]
    findings = Findings()
    assert edges_of(usgs, client, straight(1, 2), made, findings=findings).keys() == {("USGS-A", "USGS-B")}
    assert [(one.level, one.where) for one in findings] == [("warning", "USGS-LOST")]


def test_the_recorded_answer_for_a_position_places_a_site(usgs, client) -> None:
    response = recorded("features_by_lat_long")
    true_answer = usgs.answer
    usgs.answer = lambda address: (200, response) if "comid/position" in address else true_answer(address)
    findings = Findings()
    site = Site("USGS-X", "", 43.087, -89.509, "UTC", ())
    assert locate_sites(client, [site], findings) == {"USGS-X": "13294314"}
    (address,) = usgs.asked("comid/position")
    assert unquote_plus(urlsplit(address).query) == "coords=POINT(-89.509 43.087)"
    (one,) = findings
    assert "placed by its coordinates" in one.what
    usgs.reaches = {reach.comid: reach for reach in straight(1, 2)}
    _, made = true_answer("/nldi/linked-data/comid/position?coords=POINT(0.2 0)")
    assert comid_of(made["features"][0]["properties"]) == "1"
    assert made["features"][0]["properties"].keys() <= response["features"][0]["properties"].keys()


def test_a_site_that_the_index_lacks_is_placed_by_its_coordinates(usgs, client) -> None:
    made = [MadeSite("USGS-A", 0.1, comid=1), MadeSite("USGS-B", 0.9, comid=None)]
    findings = Findings()
    assert edges_of(usgs, client, straight(1, 2), made, findings=findings) == {
        ("USGS-A", "USGS-B"): pytest.approx(0.8 * DEGREE, abs=0.001)
    }
    assert [(one.level, one.where) for one in findings] == [("note", "USGS-B")]


def test_a_river_that_runs_in_a_circle_loses_its_longest_way_round(usgs, client) -> None:
    corners = ((0.0, 0.0), (0.4, 0.0), (0.4, 0.4), (0.0, 0.4), (0.0, 0.0))
    reaches = [Reach(n + 1, (corners[n], corners[n + 1]), below=n % 4 + 2 if n < 3 else 1) for n in range(4)]
    made = [MadeSite("USGS-A", 0.3, comid=1), MadeSite("USGS-B", 0.4, 0.1, comid=2)]
    findings = Findings()
    found = edges_of(usgs, client, reaches, made, 400, findings)
    assert found.keys() == {("USGS-A", "USGS-B")}
    assert found["USGS-A", "USGS-B"] < 30
    assert [(one.level, one.where) for one in findings] == [("warning", "USGS-B -> USGS-A")]


def test_circles_of_many_edges_are_opened_and_nothing_else_is_lost() -> None:
    ring = [RiverEdge(one, other, length) for one, other, length in (("a", "b", 1), ("b", "c", 2), ("c", "a", 3))]
    other = [RiverEdge("c", "d", 50), RiverEdge("a", "d", 53)]
    findings = Findings()
    assert without_circles([*ring, *other], findings) == [*ring[:2], *other]
    assert len(findings) == 1
    assert without_circles(other, Findings()) == other


def test_two_sensors_at_one_place_are_not_below_one_another(usgs, client) -> None:
    made = [MadeSite("USGS-TOP", 0.3, comid=1), MadeSite("USGS-BOTTOM", 0.3, comid=1), MadeSite("USGS-Z", 0.4, comid=1)]
    assert edges_of(usgs, client, straight(1), made).keys() == {("USGS-TOP", "USGS-Z"), ("USGS-BOTTOM", "USGS-Z")}


def test_a_site_far_from_its_line_is_told_of(usgs, client) -> None:
    findings = Findings()
    edges_of(usgs, client, straight(1), [MadeSite("USGS-A", 0.2, 0.05, comid=1)], findings=findings)
    assert [(one.where, one.what) for one in findings] == [("USGS-A", "lies 5.5 km from its flowline")]


def test_a_gap_between_the_lines_of_a_river_is_told_of(usgs, client) -> None:
    upper, lower = straight(1, 2)
    apart = Reach(2, tuple((x + 0.001, y) for x, y in lower.points))
    findings, made = Findings(), [MadeSite("USGS-A", 0.2, comid=1), MadeSite("USGS-B", 0.7, comid=2)]
    assert edges_of(usgs, client, [upper, apart], made, findings=findings) == {}
    ((where, what),) = [(one.where, one.what) for one in findings]
    assert where == "USGS-A" and "a gap on the way to USGS-B" in what


def test_a_path_without_its_own_beginning_is_told_of(usgs, client) -> None:
    usgs.reaches = {reach.comid: reach for reach in straight(1, 2)}
    true_answer, findings = usgs.answer, Findings()
    usgs.answer = lambda address: (200, {"features": []}) if "navigation" in address else true_answer(address)
    made = [MadeSite("USGS-A", 0.1, comid=1), MadeSite("USGS-B", 0.9, comid=2)]
    assert edges_of(usgs, client, straight(1, 2), made, findings=findings) == {}
    assert {one.where for one in findings} == {"USGS-A", "USGS-B"}


def test_lengths_of_lines_agree_with_the_official_ones() -> None:
    features = recorded("flowline_network_byid_5")["features"]
    official = {comid_of(feature["properties"]): feature["properties"]["lengthkm"] for feature in features}
    lines = read_flowlines(features)
    assert lines.keys() == official.keys()
    for name, line in lines.items():
        assert line.length == pytest.approx(official[name], rel=0.01)


def test_recorded_flowlines_meet_end_to_end() -> None:
    for name in ("nwissite_USGS-08279500_UM_flowlines_10km", "flowlines_by_comid"):
        lines = list(read_flowlines(recorded(name)["features"]).values())
        for lower, upper in itertools.pairwise(lines):  # an upstream walk: each one ends where the one before begins
            assert upper.ends[1] == lower.ends[0]


def test_the_recorded_gauge_lies_on_its_recorded_flowline() -> None:
    (feature,) = recorded("nwissite_USGS-08279500")["features"]
    line = read_flowlines(recorded("nwissite_USGS-08279500_UM_flowlines_10km")["features"])[
        comid_of(feature["properties"])
    ]
    place, off = line.locate(*feature["geometry"]["coordinates"])
    assert 0 < place < line.length
    assert off < 0.1


def test_the_place_on_a_line_is_the_nearest_of_many_tried() -> None:
    line = Flowline("1", np.array([[-121.8, 42.2], [-121.75, 42.22], [-121.72, 42.15], [-121.6, 42.1]]))
    place, off = line.locate(-121.70, 42.18)
    tried = []
    for one, other in itertools.pairwise(line.points):
        for share in np.linspace(0, 1, 2000):
            point = one + share * (other - one)
            east = (point[0] + 121.70) * DEGREE * math.cos(math.radians(42.18))
            tried.append(math.hypot(east, (point[1] - 42.18) * 111.05))
    assert off == pytest.approx(min(tried), rel=0.01)
    assert 0 < place < line.length
    assert line.locate(-121.8, 42.2) == (0.0, pytest.approx(0.0, abs=1e-6))
    assert line.locate(-121.6, 42.1)[0] == pytest.approx(line.length)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [({"comid": 17864756}, "17864756"), ({"nhdplus_comid": "13294314"}, "13294314"), ({"comid": ""}, ""),
     ({"comid": None}, ""), ({"comid": "0"}, ""), ({}, "")],
)  # fmt: skip
def test_the_number_of_a_flowline_comes_as_number_or_text_or_not_at_all(properties, expected) -> None:
    assert comid_of(properties) == expected
