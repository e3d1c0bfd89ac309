"""Readings fetched by the real client over real sockets: pages, periods, sensors, and which of them count."""

import base64
import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest
from usgs_answers import Observation, recorded, sensor_id, transcoded
from usgs_server import UsgsServer

from candor.data.gridding import Grid, lay_series
from candor.data.times import TimeAxis
from candor.river import readings as readings_module
from candor.river.client import ServiceClient
from candor.river.readings import MOST_DAYS, SensorReadings, as_frame, fetch_readings, split_period, valid_readings

HOUR = timedelta(hours=1)


def axis_over(observations: list[Observation], zone: str = "UTC") -> TimeAxis:
    """Returns the hours that a list of readings belongs to, the one after the last reading included."""
    first = min(one.time for one in observations).astimezone(UTC).replace(minute=0)
    last = max(one.time for one in observations).astimezone(UTC).replace(minute=0)
    return TimeAxis(first, HOUR, (last - first) // HOUR + 2, zone)


def fetched(client: ServiceClient, site: str, parameter: str, axis: TimeAxis) -> dict[str, SensorReadings]:
    """Returns the valid readings of a site, fetched from the server."""
    return valid_readings(as_frame(fetch_readings(client, [site], parameter, axis)[site]), keep_negative=False)


def from_values(*values: str | None, keep_negative: bool = False) -> SensorReadings:
    """Returns what is left of readings one minute apart."""
    frame = pd.DataFrame(
        {
            "time_series_id": "s",
            "time": [f"2020-01-01T00:{minute:02d}:00+00:00" for minute in range(len(values))],
            "value": pd.array(values, "string"),
            "unit_of_measure": "mg/l",
            "approval_status": "Approved",
            "qualifier": pd.array([None] * len(values), "string"),
        }
    )
    return valid_readings(frame, keep_negative)["s"]


def test_every_reading_of_two_sites_and_two_parameters_arrives_where_it_belongs(usgs, client) -> None:
    usgs.observations = transcoded("iv_two_sites_two_params")
    axis = axis_over(usgs.observations)
    for site in ("USGS-01541000", "USGS-01541200"):
        for parameter in ("00060", "00065"):
            (found,) = fetched(client, site, parameter, axis).values()
            sent = [one for one in usgs.observations if (one.site, one.parameter) == (site, parameter)]
            assert found.values.tolist() == [float(one.value) for one in sent]
            assert pd.DatetimeIndex(found.times, tz="UTC").tolist() == [one.time for one in sent]
            assert found.unit == sent[0].unit


def test_recorded_readings_of_mixed_intervals_become_the_hours_that_were_sent(usgs, client) -> None:
    usgs.observations = transcoded("iv_mixed_frequency")
    axis = TimeAxis(datetime(2018, 6, 1, 4, tzinfo=UTC), HOUR, 24, "America/New_York")
    for site, a_day in (("USGS-01541000", 96), ("USGS-01570500", 48)):  # every 15 minutes, and every 30
        (found,) = fetched(client, site, "00060", axis).values()
        sent = {one.time: float(one.value) for one in usgs.observations if (one.site, one.parameter) == (site, "00060")}
        assert len(sent) == a_day
        hours = lay_series(Grid(axis), found.times.astype(np.int64), found.values)
        assert hours.tolist() == [sent[axis.start + hour * HOUR] for hour in range(24)]


def test_pages_are_followed_by_their_cursors_to_the_last_reading(usgs, client, monkeypatch) -> None:
    monkeypatch.setattr(readings_module, "PAGE", 10)
    usgs.observations = transcoded("iv_two_sites_two_params")
    (found,) = fetched(client, "USGS-01541000", "00060", axis_over(usgs.observations)).values()
    assert len(found.values) == 93
    assert len(usgs.asked("continuous")) == 10
    assert len(usgs.asked("cursor=")) == 9


def test_the_page_asked_for_has_the_properties_of_the_recorded_one(usgs, client) -> None:
    usgs.observations = transcoded("iv_two_sites_two_params")
    fetched(client, "USGS-01541000", "00060", axis_over(usgs.observations))
    (address,) = usgs.asked("continuous")
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    known = set(recorded("continuous_page1_full")["features"][0]["properties"])
    assert set(query["properties"].split(",")) <= known
    assert query["skipGeometry"].lower() == "true"
    assert int(query["limit"]) == 10_000


def test_a_recorded_page_is_read_as_it_was_sent(usgs, client) -> None:
    page = recorded("continuous_page1_full")
    usgs.answer = lambda address: (200, page | {"links": []})
    axis = TimeAxis(datetime(2026, 10, 1, tzinfo=UTC), HOUR, 1)
    sent = [feature["properties"] for feature in page["features"]]
    found = fetched(client, "USGS-01646500", "00060", axis)
    assert list(found) == [sent[0]["time_series_id"]]
    (one,) = found.values()
    assert one.values.tolist() == [float(reading["value"]) for reading in sent]
    assert one.approvals == {"Provisional": len(sent)}
    assert one.qualifiers == {}


def cursor_of(page) -> tuple[str, datetime]:
    """Returns the sensor and the time at which a page says the next one begins."""
    (link,) = [link for link in page["links"] if link["rel"] == "next"]
    assert link["type"] == "application/geo+json"
    cursor = parse_qs(urlsplit(link["href"]).query)["cursor"][0]
    sensor, moment = base64.urlsafe_b64decode(cursor + "==").decode().split("|")
    return sensor, datetime.fromisoformat(moment)


def test_the_pages_made_here_are_linked_as_the_recorded_ones(usgs) -> None:
    usgs.observations = transcoded("iv_two_sites_two_params")
    first = usgs.observations[0]
    since = first.time.replace(hour=0).astimezone(UTC)
    span = f"{since:%Y-%m-%dT%H:%M:%SZ}/{since + timedelta(days=3):%Y-%m-%dT%H:%M:%SZ}"
    query = f"monitoring_location_id={first.site}&parameter_code={first.parameter}&time={span}&limit=3"
    _, made = usgs.answer(f"/ogcapi/v1/collections/continuous/items?{query}")
    last = made["features"][-1]["properties"]
    assert cursor_of(made) == (last["time_series_id"], datetime.fromisoformat(last["time"]))
    slim, full = recorded("continuous_page1_slim"), recorded("continuous_page1_full")
    sensor = full["features"][0]["properties"]["time_series_id"]
    for page in (slim, full):
        assert made.keys() <= page.keys()
        assert cursor_of(page) == (sensor, datetime.fromisoformat(page["features"][-1]["properties"]["time"]))
    assert made["features"][0].keys() == slim["features"][0].keys()
    assert made["features"][0]["geometry"] is slim["features"][0]["geometry"] is None


def test_a_recorded_page_leads_to_the_next_by_its_own_cursor(usgs, client) -> None:
    text = json.dumps(recorded("continuous_page1_slim"))
    slim = json.loads(text.replace("https://api.waterdata.usgs.gov", usgs.address))
    rest = recorded("continuous_page1_full")
    rest = rest | {"features": rest["features"][3:], "links": []}
    usgs.answer = lambda address: (200, rest if "cursor=" in address else slim)
    axis = TimeAxis(datetime(2026, 10, 1, tzinfo=UTC), HOUR, 1)
    found = fetched(client, "USGS-01646500", "00060", axis)
    (link,) = [link["href"] for link in slim["links"] if link["rel"] == "next"]
    _, second = usgs.asked("continuous")
    assert parse_qs(urlsplit(second).query)["cursor"] == parse_qs(urlsplit(link).query)["cursor"]
    sent = [feature["properties"]["value"] for feature in (*slim["features"], *rest["features"])]
    values = [value for one in found.values() for value in one.values.tolist()]
    assert values == [float(value) for value in sent[3:] + sent[:3]]  # the slim page does not name its sensor


def test_no_request_spans_more_days_than_the_service_allows(usgs, client) -> None:
    axis = TimeAxis(datetime(2014, 1, 1, tzinfo=UTC), HOUR, 43_824)
    assert fetched(client, "USGS-1", "00300", axis) == {}
    spans = [parse_qs(urlsplit(address).query)["time"][0].split("/") for address in usgs.asked("continuous")]
    moments = sorted([datetime.fromisoformat(moment) for moment in span] for span in spans)
    assert all(last - first <= timedelta(days=MOST_DAYS) for first, last in moments)
    assert [last for _, last in moments[:-1]] == [first for first, _ in moments[1:]]
    assert moments[0][0] == axis.start - HOUR / 2 and moments[-1][1] == axis.end - HOUR / 2
    with pytest.raises(ValueError, match="1100"):
        split_period(axis.start, axis.end, days=MOST_DAYS + 1)


def test_a_reading_where_two_requests_meet_counts_once(usgs, client, monkeypatch) -> None:
    monkeypatch.setattr(readings_module, "split_period", lambda first, last: split_period(first, last, days=1))
    start = datetime(2021, 5, 1, tzinfo=UTC)
    usgs.observations = [
        Observation("USGS-1", "00300", "s", start - HOUR / 2 + step * HOUR / 2, str(step)) for step in range(145)
    ]
    (found,) = fetched(client, "USGS-1", "00300", TimeAxis(start, HOUR, 72)).values()
    assert len(usgs.asked("continuous")) == 3
    assert found.values.tolist() == list(range(145))
    assert found.left_out["repeated"] == 2


def test_sensors_of_one_site_are_kept_apart(usgs, client) -> None:
    usgs.observations = transcoded("iv_multiple_methods_63680")
    found = fetched(client, "USGS-444306122144600", "63680", axis_over(usgs.observations))
    assert {name: len(one.values) for name, one in found.items()} == {sensor_id(254051): 34, sensor_id(254060): 139}


def test_sentinels_among_qualified_readings_are_missing_and_the_qualifiers_are_counted(usgs, client) -> None:
    usgs.observations = transcoded("iv_multiple_qualifiers")
    sent = [one.value for one in usgs.observations]
    (found,) = fetched(client, "USGS-01542500", "00060", axis_over(usgs.observations)).values()
    assert found.left_out["sentinel"] == sent.count("-999999") > 0
    assert len(found.values) == len(sent) - sent.count("-999999")
    assert found.qualifiers == {
        word: sum(word in (one.qualifier or ()) for one in usgs.observations) for word in ("Ice", "e")
    }


def test_an_empty_answer_is_no_readings(usgs, client) -> None:
    assert transcoded("iv_empty_result") == []
    assert fetched(client, "USGS-1", "00300", TimeAxis(datetime(2021, 5, 1, tzinfo=UTC), HOUR, 24)) == {}


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("-999999", "sentinel"), ("-9999.0", "sentinel"), ("-123456", "sentinel"), ("Eqp", "not a number"),
        ("***", "not a number"), ("NaN", "not a number"), ("", "empty"), (None, "empty"), ("inf", "infinite"),
        ("-inf", "infinite"), ("1e39", "infinite"), ("-0.1", "negative"),
    ],
)  # fmt: skip
def test_what_is_no_reading_is_left_out_and_told(value: str | None, cause: str) -> None:
    found = from_values("8.5", value, "0")
    assert found.values.tolist() == [8.5, 0.0]
    assert {name: count for name, count in found.left_out.items() if count} == {cause: 1}


def test_negative_readings_count_where_the_quantity_can_be_negative_but_sentinels_never_do() -> None:
    assert from_values("-0.4", "-999999", keep_negative=True).values.tolist() == [-0.4]


def test_readings_of_a_sensor_without_a_name_are_not_lost() -> None:
    frame = pd.DataFrame({name: pd.array([None], "string") for name in readings_module._PROPERTIES})
    frame["time"], frame["value"] = "2020-01-01T00:00:00+00:00", "8.5"
    assert [one.values.tolist() for one in valid_readings(frame, keep_negative=False).values()] == [[8.5]]


def test_no_valid_reading_is_changed_or_lost() -> None:
    texts = [f"{number:.2f}" for number in np.random.default_rng(0).uniform(0, 20, 50)]
    assert from_values(*texts).values.tolist() == [float(text) for text in texts]


def test_daylight_saving_days_give_every_hour_once(usgs: UsgsServer, client: ServiceClient) -> None:
    for name, hours in (("iv_dst_start_20180311", 71), ("iv_dst_end_20181104", 73)):
        usgs.observations = transcoded(name)
        axis = axis_over(usgs.observations, "America/New_York")
        (found,) = fetched(client, "USGS-01541000", "00060", axis).values()
        assert axis.length == hours + 1  # three days, one of them an hour shorter or longer, and the midnight after
        assert len(found.values) == len(usgs.observations) == 4 * hours
        assert (np.diff(found.times) > np.timedelta64(0)).all()
