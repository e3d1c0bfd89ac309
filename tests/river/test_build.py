"""The whole builder against the local server: the right panel, twice the same, nothing half-written."""

import hashlib
import json
import math
import shutil
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import made_basin
import numpy as np
import pytest
from made_rivers import DEGREE
from usgs_answers import sensor_id
from usgs_server import MadeSite, Trouble

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.data.findings import Finding, Level
from candor.data.panel import Covariate
from candor.data.panel_store import load_panel
from candor.river.build import Basin, build_basin
from candor.river.cache import ResponseCache
from candor.river.client import ServiceClient
from candor.river.folder import dataset_card, export_archive, save_basin
from candor.river.quality import in_words
from candor.river.settings import period

RULES = made_basin.RULES


@pytest.fixture
def basin(built) -> Basin:
    return built.basin


def test_the_panel_holds_the_good_stations_their_readings_and_the_river(basin) -> None:
    panel = basin.panel
    assert panel.sensor_ids == made_basin.GOOD
    assert (panel.times.start, panel.times.length) == (made_basin.START, made_basin.HOURS)
    assert panel.times.zone == "America/Los_Angeles"
    assert panel.unit == "mg/l"
    for column, site in enumerate(made_basin.GOOD):
        expected = np.array([made_basin.oxygen(site, hour) for hour in range(made_basin.HOURS)], np.float32)
        if site == "USGS-05":
            expected[[100, 101]] = np.nan  # stays missing: filling is not the panel's business
        np.testing.assert_array_equal(panel.values[:, column], expected)
    step = 0.1 * DEGREE
    expected_edges = {(i, j): (j - i) * step for i in range(11) for j in range(i + 1, 11) if (j - i) * step <= 50}
    found = {
        (int(i), int(j)): float(km)
        for i, j, km in zip(panel.edges.source, panel.edges.target, panel.edges.distance, strict=True)
    }
    assert found == {pair: pytest.approx(km, abs=0.001) for pair, km in expected_edges.items()}
    assert panel.edges.distance_unit == "km"


def test_the_report_tells_of_every_site_and_every_choice(basin) -> None:
    report = basin.report
    stations = {one.id: one for one in report.stations}
    assert [one.id for one in report.stations if one.is_kept] == list(made_basin.GOOD)
    assert "25.0 % of its hours are missing" in stations[made_basin.FULL_OF_GAPS].reason
    assert "its record covers" in stations[made_basin.TOO_SHORT].reason
    assert stations["USGS-05"].left_out["sentinel"] == 2
    assert stations["USGS-05"].longest_gap_hours == 2
    assert stations[made_basin.TWO_SENSORS].sensor == sensor_id((made_basin.TWO_SENSORS, 0))
    assert any(one.where == made_basin.TWO_SENSORS and "several sensors" in one.what for one in report.findings)
    assert report.station_hours == 11 * made_basin.HOURS
    assert report.observed == report.station_hours - 2


def test_building_again_from_the_disk_needs_no_service_and_gives_the_same_fingerprint(built) -> None:
    again = build_basin(RULES, built.client())  # the server is gone
    assert again.panel.fingerprint == built.basin.panel.fingerprint
    assert again.panel.provenance["requests"] == built.basin.panel.provenance["requests"]


def test_provenance_names_settings_versions_sensors_and_every_request(built) -> None:
    provenance = built.basin.panel.provenance
    assert provenance["settings"] == RULES.model_dump()
    assert provenance["client"].startswith("dataretrieval ")
    assert "candor-forecast" in provenance["versions"]
    assert provenance["sensors"]["USGS-01"] == sensor_id(("USGS-01", 0))
    services = [one["service"] for one in provenance["requests"]]
    assert services.count("waterdata") == 1 + 12  # the catalogue, and the sites whose record is long enough
    assert services.count("nldi") == 2 * 11
    assert all(one["fetched"] and one["sha256"] for one in provenance["requests"])


def test_provenance_names_the_very_addresses_that_were_asked_and_no_others(built) -> None:
    recorded = [[one["url"], *one.get("also", [])] for one in built.basin.panel.provenance["requests"]]
    addresses = [as_asked(address) for group in recorded for address in group]
    assert sorted(addresses) == sorted(as_asked(address) for address in built.requests)
    assert len([address for address in addresses if address[0].endswith("linked-data/")]) == 1
    (pages,) = [group for group in recorded if "/continuous/" in group[0] and "USGS-01" in group[0]]
    assert len(pages) == math.ceil(4 * made_basin.HOURS / 400)


def as_asked(address: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns an address in a form in which the way it is quoted and the order of its parts do not show."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}{parts.path}", sorted(parse_qsl(parts.query))


def test_a_list_of_sites_from_before_the_end_of_the_period_is_asked_for_again(usgs, client) -> None:
    made_basin.fill(usgs)
    ended = datetime(2021, 5, 12, tzinfo=UTC)
    known = usgs.sites
    usgs.sites = [replace(site, end=ended.isoformat()) for site in known]
    early = RULES.model_copy(update={"start": "2021-05-08", "end": "2021-05-10"})
    assert len(build_basin(early, client).panel.sensors) == 11
    (note,) = [path for path in client.cache.folder.rglob("*.json") if "combined" in path.read_text()]
    note.write_text(json.dumps(json.loads(note.read_text()) | {"fetched": "2021-05-12T08:00:00+00:00"}))
    usgs.sites = known
    usgs.requests.clear()
    build_basin(early, ServiceClient(client.cache))
    assert usgs.requests == [], "the list is younger than this period's end"
    late = RULES.model_copy(update={"start": "2021-05-11", "end": "2021-05-13"})
    with pytest.raises(InputError) as caught:
        build_basin(late, ServiceClient(client.cache, is_offline=True))
    assert "too short for the period: USGS-01" in caught.value.what
    assert len(build_basin(late, ServiceClient(client.cache)).panel.sensors) == 11
    assert len(usgs.asked("combined-metadata")) == 1


def test_sites_whose_records_are_too_short_are_named_and_so_is_the_way_to_ask_again(usgs, client) -> None:
    made_basin.fill(usgs)
    usgs.sites = [replace(site, end="2021-05-10T00:00:00+00:00") for site in usgs.sites]
    usgs.sites[-1] = replace(usgs.sites[-1], longitude=math.nan)
    with pytest.raises(InputError) as caught:
        build_basin(RULES, client)
    assert "the records of 12 sites are too short for the period: USGS-01" in caught.value.what
    assert "the places of 1 sites: USGS-13" in caught.value.what
    assert f"{datetime.now(UTC):%Y-%m-%d}" in caught.value.hint and "--refresh" in caught.value.hint


def test_offline_an_old_list_of_sites_is_taken_and_told_of(built, tmp_path) -> None:
    shutil.copytree(built.cache, tmp_path / "cache")
    (note,) = [path for path in (tmp_path / "cache").rglob("*.json") if "combined" in path.read_text()]
    note.write_text(json.dumps(json.loads(note.read_text()) | {"fetched": "2021-05-12T08:00:00+00:00"}))
    basin = build_basin(RULES, ServiceClient(ResponseCache(tmp_path / "cache"), is_offline=True))
    assert basin.panel.fingerprint == built.basin.panel.fingerprint
    assert [one.hint for one in basin.report.findings if "2021-05-12" in one.what] == [
        "leave out --offline: the list is asked for again"
    ]


def test_answers_that_were_damaged_are_counted_and_what_is_noticed_is_told_with_its_hint(usgs, client) -> None:
    made_basin.fill(usgs)
    rules = RULES.model_copy(update={"end": "2021-05-03"})
    whole = build_basin(rules, client).panel.fingerprint
    for response in sorted((client.cache.folder / "waterdata").glob("*.answer"))[:2]:
        response.write_bytes(b"harmed")
    basin = build_basin(rules, ServiceClient(ResponseCache(client.cache.folder)))
    assert basin.panel.fingerprint == whole
    lines = [in_words(one) for one in basin.report.findings]
    assert f"note: {client.cache.folder} answers on disk were damaged and were fetched again (2 times)" in lines
    old = replace(basin, report=replace(basin.report, findings=[Finding(Level.WARNING, "is old", hint="ask again")]))
    assert all(f"- {line}\n" in dataset_card(basin) for line in lines)
    assert "- warning: is old; hint: ask again\n" in dataset_card(old)


def test_the_mean_of_the_hour_is_an_option(built) -> None:
    basin = build_basin(RULES.model_copy(update={"hourly": "mean"}), built.client())
    readings = [
        float(made_basin.oxygen("USGS-01", 10 + quarter / 4)) for quarter in (-1, 0, 1, 2)
    ]  # the half hour after counts
    assert basin.panel.values[10, 0] == pytest.approx(np.mean(readings), abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "words", "hint"),
    [
        ({"min_sites": 12}, "11 stations lack at most 10 %", "--min-sites"),
        ({"min_edges": 44}, "at least 44 are asked for", "--min-edges"),
        ({"end": "2099-01-01"}, "not over yet", "in the past"),
        ({"end": "2021-04-01"}, "has no hours", "--end"),
        ({"start": "May"}, "not a time", "2020-10-08"),
        ({"zone": "Mars"}, "no time zone", "IANA"),
    ],
)
def test_what_cannot_be_built_is_told_in_plain_words(built, changes, words: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        build_basin(RULES.model_copy(update=changes), built.client())
    assert words in caught.value.what
    assert hint in caught.value.hint


@pytest.mark.parametrize("changes", [{"huc": "030501"}, {"parameter": "00010"}])
def test_a_basin_without_sites_is_told_of(usgs, client, changes) -> None:
    made_basin.fill(usgs)
    with pytest.raises(InputError, match="no site of hydrologic unit"):
        build_basin(RULES.model_copy(update=changes), client)
    assert len(usgs.requests) == 1


def test_a_catalogue_that_is_none_is_told_of_and_not_kept(usgs, client) -> None:
    made_basin.fill(usgs)
    usgs.troubles.append(Trouble("combined-metadata", status=200, body={"message": "maintenance"}))
    with pytest.raises(InputError, match=r"cannot be read .*maintenance"):
        build_basin(RULES, client)
    assert list(client.cache.folder.rglob("*.answer")) == []


def test_a_basin_has_at_least_one_edge_less_than_stations(usgs, client) -> None:
    made_basin.fill(usgs)
    next_only = {"max_distance_km": 0.101 * DEGREE}  # only to the next station
    rules = RULES.model_copy(update=next_only | {"end": "2021-05-03"})
    lost = MadeSite("USGS-06", 60.0, 40.0)
    assert len(build_basin(rules, client).panel.edges) == 10
    usgs.sites = [lost if site.id == lost.id else site for site in usgs.sites]
    client.fresh_since = datetime.now(UTC)
    with pytest.raises(InputError, match=r"8 pairs of stations .* at least 10 are asked for"):
        build_basin(rules, client)


def test_wrong_times_are_told_of_before_anything_is_asked(usgs, client) -> None:
    with pytest.raises(InputError):
        build_basin(RULES.model_copy(update={"end": "2099-01-01"}), client)
    assert usgs.requests == []


def test_the_paper_s_periods_have_as_many_hours_as_its_table() -> None:
    for start, end in (("2014-01-01", "2018-12-31"), ("2017-10-01", "2022-09-30"), ("2020-10-01", "2025-09-30")):
        for zone in ("UTC", "America/New_York", "America/Los_Angeles"):
            assert period(start, end, zone).length == 43_824


def test_rain_joins_as_a_covariate_with_its_origin(built) -> None:
    def rain(sensors, times) -> tuple[Covariate, dict[str, str]]:
        assert [sensor.longitude for sensor in sensors][:2] == pytest.approx([0.05, 0.15])
        return Covariate(np.full((times.length, len(sensors)), 0.5, np.float32), "mm/h"), {"product": "made up"}

    basin = build_basin(RULES, built.client(), rain=rain)
    assert "- Rain: made up" in dataset_card(basin)
    panel = basin.panel
    assert panel.covariates["rain"].unit == "mm/h"
    assert panel.provenance["rain"] == {"product": "made up"}


def test_a_basin_on_disk_is_a_panel_with_its_report_and_card(basin, tmp_path) -> None:
    assert save_basin(basin, tmp_path / "basin") == []
    assert load_panel(tmp_path / "basin").fingerprint == basin.panel.fingerprint
    report = read_json(tmp_path / "basin" / "quality.json")
    assert (report["sites"], report["edges"], report["hours"]) == (11, len(basin.panel.edges), made_basin.HOURS)
    card = (tmp_path / "basin" / "card.md").read_text(encoding="utf-8")
    for words in (*made_basin.GOOD, basin.panel.fingerprint, "public domain", "within 50 river km", "is_kept"):
        assert (words in card) == (words != "is_kept")


def test_a_basin_that_cannot_be_written_leaves_the_old_one_whole(basin, tmp_path, monkeypatch) -> None:
    save_basin(basin, tmp_path / "basin")
    before = {path: path.read_bytes() for path in (tmp_path / "basin").iterdir()}

    def fails(*_: object) -> str:
        raise RuntimeError("no room")

    monkeypatch.setattr("candor.river.folder.dataset_card", fails)
    with pytest.raises(RuntimeError):
        save_basin(basin, tmp_path / "basin")
    with pytest.raises(RuntimeError):
        save_basin(basin, tmp_path / "other")
    assert {path: path.read_bytes() for path in (tmp_path / "basin").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir() if path.name != "basin"] == []


def test_an_archive_holds_everything_with_checksums_that_hold(basin, tmp_path) -> None:
    save_basin(basin, tmp_path / "basin")
    names = export_archive(tmp_path / "basin", tmp_path / "basin.zip")
    with zipfile.ZipFile(tmp_path / "basin.zip") as archive:
        assert sorted(archive.namelist()) == sorted(names)
        assert {Path(name).suffix for name in names} == {".parquet", ".csv", ".json", ".md", ""}
        sums = dict(reversed(line.split("  ")) for line in archive.read("SHA256SUMS").decode().splitlines())
        assert set(sums) == set(names) - {"SHA256SUMS"}
        for name, expected in sums.items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == expected
        archive.extractall(tmp_path / "unpacked")
    assert load_panel(tmp_path / "unpacked" / "panel").fingerprint == basin.panel.fingerprint
    export_archive(tmp_path / "basin", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "basin.zip").read_bytes()


def test_archives_are_zip_files_of_panels(basin, tmp_path) -> None:
    save_basin(basin, tmp_path / "basin")
    with pytest.raises(InputError, match="zip"):
        export_archive(tmp_path / "basin", tmp_path / "basin.tar")
    with pytest.raises(InputError, match="not a panel folder"):
        export_archive(tmp_path, tmp_path / "basin.zip")
    assert not (tmp_path / "basin.zip").exists()
