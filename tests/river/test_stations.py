"""Which sites a basin has, which sensor speaks for a site, and which sites are complete enough."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from usgs_answers import Observation, sensor_id, transcoded
from usgs_server import MadeSite

from candor.data.times import TimeAxis
from candor.river.build import build_basin
from candor.river.readings import SensorReadings, as_frame, fetch_readings
from candor.river.settings import BasinSettings, period
from candor.river.stations import _ZONES, common_zone, find_sites, hourly_values, make_station

HOUR = timedelta(hours=1)
START = datetime(2021, 5, 1, tzinfo=UTC)
A, B = sorted((sensor_id("a"), sensor_id("b")))
RULES = BasinSettings(huc="180102", start="2021-05-01", end="2021-05-04", zone="UTC", min_sites=1)


def readings(site: str, hours: range, sensor: str = A, value: str = "8.0") -> list[Observation]:
    """Returns a reading on each of some hours after the start."""
    return [Observation(site, "00300", sensor, START + hour * HOUR, value) for hour in hours]


def station_of(usgs, client, site: MadeSite, hours: int = 96):
    """Returns the station that the server's only site becomes."""
    usgs.sites = [site]
    (found,) = find_sites(client, "180102", "00300").sites
    axis = TimeAxis(START, HOUR, hours)
    return make_station(found, as_frame(fetch_readings(client, [site.id], "00300", axis)[site.id]), axis, RULES)


def test_sites_are_those_of_the_basin_the_parameter_and_the_surface(usgs, client) -> None:
    usgs.sites = [
        MadeSite("USGS-2", 0.2),
        MadeSite("USGS-1", 0.1, huc="18010211"),
        MadeSite("USGS-3", 0.3, huc="180103040101"),
        MadeSite("USGS-4", 0.4, parameter="00010"),
        MadeSite("USGS-5", 0.5, kind="GW"),
        MadeSite("USGS-6", 0.6, kind="LK"),
    ]
    assert [site.id for site in find_sites(client, "180102", "00300").sites] == ["USGS-1", "USGS-2", "USGS-6"]


def test_sites_without_a_place_are_named_apart(usgs, client) -> None:
    usgs.sites = [
        MadeSite("USGS-2", float("nan")),
        MadeSite("USGS-1", 0.1),
        MadeSite("USGS-3", float("nan"), kind="GW"),
    ]
    found = find_sites(client, "180102", "00300")
    assert [site.id for site in found.sites] == ["USGS-1"]
    assert [site_id for site_id, _ in found.unplaced] == ["USGS-2"]


def test_a_service_that_ignores_the_filter_does_not_make_the_basin_larger(usgs, client) -> None:
    usgs.sites = [MadeSite("USGS-1", 0.1), MadeSite("USGS-2", 0.2, huc="030501010101")]
    usgs.ignores_filters = True
    assert [site.id for site in find_sites(client, "180102", "00300").sites] == ["USGS-1"]


def test_a_basin_without_sites_is_empty(usgs, client) -> None:
    assert find_sites(client, "180102", "00300").sites == ()


def test_what_the_catalogue_says_of_a_site_is_kept(usgs, client) -> None:
    usgs.sites = [MadeSite("USGS-1", -121.79, 42.22, sensors=(B, A), primary=B, begin="2020-01-01T00:00:00+00:00")]
    (site,) = find_sites(client, "180102", "00300").sites
    assert (site.longitude, site.latitude, site.zone) == (-121.79, 42.22, "America/Los_Angeles")
    assert [series.id for series in site.series] == [A, B]
    assert [series.is_primary for series in site.series] == [False, True]
    assert site.series[0].begin == datetime(2020, 1, 1, tzinfo=UTC)
    assert site.series[0].description == f"[sensor {A[:4]}]"


def test_the_zone_is_that_of_most_sites(usgs, client) -> None:
    usgs.sites = [MadeSite(f"USGS-{n}", n / 10, zone=zone) for n, zone in enumerate(("EST", "CST", "CST"))]
    assert common_zone(find_sites(client, "180102", "00300").sites) == "America/Chicago"


@pytest.mark.parametrize(
    ("zone", "has_summer_time", "expected"),
    [("MST", "Y", "America/Denver"), ("MST", "N", "UTC-07:00"), ("AST", "N", "UTC-04:00"), ("EST", "", "UTC-05:00")],
)
def test_a_site_without_summer_time_keeps_its_winter_clock(usgs, client, zone, has_summer_time, expected) -> None:
    usgs.sites = [MadeSite("USGS-1", 0.1, zone=zone, has_summer_time=has_summer_time)]
    (site,) = find_sites(client, "180102", "00300").sites
    assert site.zone == expected
    july, january = (period(f"2021-{month}-01", f"2021-{month}-01", site.zone).start.hour for month in ("07", "01"))
    assert january - july == (has_summer_time == "Y")


def test_the_winter_clock_of_every_zone_is_its_fixed_offset() -> None:
    for name, fixed in _ZONES.values():
        january = [period("2021-01-01", "2021-01-01", zone).start for zone in (name, fixed)]
        assert january[0] == january[1], name


@pytest.mark.parametrize("zone", [None, "XYZ"])
def test_a_zone_that_is_not_known_is_told_of_and_can_be_given(usgs, client, zone: str | None) -> None:
    usgs.sites = [MadeSite("USGS-1", 0.1, sensors=(A,), zone=zone)]
    usgs.observations = readings("USGS-1", range(-12, 108))
    rules = RULES.model_copy(update={"min_edges": 0, "zone": None})
    for given, expected in ((None, ["warning"]), ("UTC", []), ("America/Denver", [])):
        basin = build_basin(rules.model_copy(update={"zone": given}), client)
        assert basin.panel.times.zone == (given or "UTC")
        assert [one.level for one in basin.report.findings if "--zone" in one.hint] == expected


def test_of_several_sensors_the_most_complete_speaks_for_the_site(usgs, client) -> None:
    usgs.observations = readings("USGS-1", range(50), A, "1.0") + readings("USGS-1", range(51), B, "2.0")
    station = station_of(usgs, client, MadeSite("USGS-1", 0.1, sensors=(A, B), primary=A))
    assert station.sensor == B
    assert station.observed == {A: 50, B: 51}
    assert set(station.values[:51]) == {2.0}  # sensors are never mixed
    assert station.description == f"[sensor {B[:4]}]"


@pytest.mark.parametrize(("primary", "chosen"), [(A, A), (B, B), (None, A)])
def test_of_equally_complete_sensors_the_primary_one_speaks(usgs, client, primary, chosen) -> None:
    usgs.observations = readings("USGS-1", range(50), A) + readings("USGS-1", range(40, 90), B)
    assert station_of(usgs, client, MadeSite("USGS-1", 0.1, sensors=(A, B), primary=primary)).sensor == chosen


def test_completeness_counts_hours_and_not_readings(usgs, client) -> None:
    dense = [Observation("USGS-1", "00300", A, START + step * HOUR / 12, "1.0") for step in range(240)]
    usgs.observations = dense + readings("USGS-1", range(30), B, "2.0")
    assert station_of(usgs, client, MadeSite("USGS-1", 0.1, sensors=(A, B))).sensor == B


def test_the_recorded_sensors_of_one_site_are_judged_by_their_hours(usgs, client) -> None:
    usgs.observations = transcoded("iv_multiple_methods_63680")
    usgs.sites = [MadeSite("USGS-444306122144600", 0.1, parameter="63680")]
    (site,) = find_sites(client, "180102", "63680").sites
    axis = TimeAxis(datetime(2020, 4, 18, 7, tzinfo=UTC), HOUR, 24)
    frame = as_frame(fetch_readings(client, [site.id], "63680", axis)[site.id])
    station = make_station(site, frame, axis, RULES)
    hours = {
        name: {(one.time - axis.start + HOUR / 2) // HOUR for one in usgs.observations if one.sensor == name}
        for name in (sensor_id(254051), sensor_id(254060))
    }
    assert station.observed == {name: len(found & set(range(24))) for name, found in hours.items()}
    assert station.sensor == max(hours, key=lambda name: station.observed[name])


def test_gaps_and_missing_hours_are_counted(usgs, client) -> None:
    usgs.observations = readings("USGS-1", range(10, 40)) + readings("USGS-1", range(50, 90))
    station = station_of(usgs, client, MadeSite("USGS-1", 0.1, sensors=(A,)))
    assert station.missing_share == pytest.approx(26 / 96)
    assert station.longest_gap == 10
    assert np.isnan(station.values[:10]).all() and np.isnan(station.values[90:]).all()


def test_a_site_that_sent_nothing_is_a_station_without_hours(usgs, client) -> None:
    station = station_of(usgs, client, MadeSite("USGS-1", 0.1))
    assert station.missing_share == 1.0 and station.longest_gap == 96 and station.sensor == ""


def test_stations_lack_at_most_the_given_share_of_hours(usgs, client) -> None:
    usgs.sites = [MadeSite(f"USGS-{n}", n / 10, comid=None) for n in (1, 2)]
    usgs.observations = readings("USGS-1", range(48)) + readings("USGS-2", range(47), B)
    rules = RULES.model_copy(update={"max_missing": 0.5, "min_edges": 0})
    basin = build_basin(rules, client)
    assert basin.panel.sensor_ids == ("USGS-1",)  # exactly half is allowed, an hour less is not
    assert [(one.id, one.is_kept) for one in basin.report.stations] == [("USGS-1", True), ("USGS-2", False)]
    assert "51.0 % of its hours are missing" in basin.report.stations[1].reason


def test_a_site_whose_record_is_too_short_is_not_fetched_but_told_of(usgs, client) -> None:
    usgs.sites = [
        MadeSite("USGS-1", 0.1, sensors=(A,)),
        MadeSite("USGS-2", 0.2, sensors=(B,), end="2021-05-03T00:00:00+00:00"),
        MadeSite("USGS-3", 0.3, begin="2022-01-01T00:00:00+00:00"),
        MadeSite("USGS-4", 0.4, sensors=(B,), begin="2021-05-01T08:00:00+00:00"),
    ]
    usgs.observations = readings("USGS-1", range(96)) + readings("USGS-4", range(8, 96), B)
    basin = build_basin(RULES.model_copy(update={"min_edges": 0}), client)
    assert basin.panel.sensor_ids == ("USGS-1", "USGS-4")  # a record that covers 92 % may lack few enough hours
    assert len(usgs.asked("continuous")) == 2
    reasons = {one.id: one.reason for one in basin.report.stations}
    assert "50 %" in reasons["USGS-2"] and "0 %" in reasons["USGS-3"]


def readings_of(sent: list[Observation]) -> SensorReadings:
    times = np.array([one.time.astimezone(UTC).replace(tzinfo=None) for one in sent], "datetime64[us]")
    return SensorReadings(times, np.array([float(one.value) for one in sent]))


def test_sensors_of_different_intervals_share_the_grid() -> None:
    observations = transcoded("iv_mixed_frequency")
    axis = TimeAxis(datetime(2018, 6, 1, 4, tzinfo=UTC), HOUR, 24, "America/New_York")
    for site, interval in (("USGS-01541000", 15), ("USGS-01570500", 30)):
        sent = [one for one in observations if (one.site, one.parameter) == (site, "00060")]
        assert sent[1].time - sent[0].time == timedelta(minutes=interval)
        found = hourly_values(readings_of(sent), axis, RULES)
        assert found.tolist() == [float(one.value) for one in sent if one.time.minute == 0]


def test_the_hours_of_daylight_saving_days_follow_the_readings_on_both_clocks() -> None:
    for name, local_hours in (("iv_dst_start_20180311", 23), ("iv_dst_end_20181104", 25)):
        sent = transcoded(name)
        axis = TimeAxis(sent[0].time.astimezone(UTC), HOUR, len(sent) // 4, "America/New_York")
        found = hourly_values(readings_of(sent), axis, RULES)
        assert found.tolist() == [float(one.value) for one in sent if one.time.minute == 0]
        days = axis.local.strftime("%Y-%m-%d").value_counts()
        assert sorted(days) == sorted([24, 24, local_hours])
