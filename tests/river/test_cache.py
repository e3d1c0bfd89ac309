"""What was answered is kept: it is not asked for again, unless it was young, damaged, or is to be fresh."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from three_sites import ALL, AXIS, HOUR, SITES, hours_of
from usgs_server import Trouble

from candor.core.errors import InputError
from candor.data.times import TimeAxis
from candor.river import cache as cache_module
from candor.river.cache import Request, ResponseCache
from candor.river.client import ServiceClient
from candor.river.readings import DAYS_AT_A_TIME, fetch_readings

pytestmark = pytest.mark.usefixtures("three_sites")


def test_what_was_answered_is_not_asked_again_and_needs_no_service(usgs, client, tmp_path) -> None:
    first = fetch_readings(client, SITES, "00300", AXIS)
    assert len(usgs.requests) == 3
    usgs.troubles.append(Trouble("", times=99, status=503))
    again = ServiceClient(ResponseCache(tmp_path / "cache"))
    assert fetch_readings(again, SITES, "00300", AXIS) == first
    assert len(usgs.requests) == 3
    assert again.record == client.record


@pytest.mark.parametrize(("days", "is_asked_again"), [(0.5, True), (2.9, True), (3.1, False), (400, False)])
def test_only_what_was_fetched_soon_after_the_period_is_asked_for_again(
    days, is_asked_again, usgs, client, tmp_path
) -> None:
    fetch_readings(client, SITES, "00300", AXIS)
    for path in (tmp_path / "cache").rglob("*.json"):
        note = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(note | {"fetched": (AXIS.end + timedelta(days=days)).isoformat()}))
    for _ in range(2):  # what was asked for again is young no more
        fetch_readings(ServiceClient(ResponseCache(tmp_path / "cache")), SITES, "00300", AXIS)
        assert len(usgs.requests) == (6 if is_asked_again else 3)


def test_of_a_long_period_only_the_end_is_asked_for_again_and_not_twice_a_day(usgs, client, tmp_path) -> None:
    hours = 24 * (DAYS_AT_A_TIME + 5)
    recent = TimeAxis(datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - hours * HOUR, HOUR, hours)
    fetch_readings(client, SITES, "00300", recent)
    fetch_readings(client, SITES, "00300", recent)
    assert len(usgs.requests) == 6, "a job that was killed goes on where it was"
    for path in (tmp_path / "cache").rglob("*.json"):
        note = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(note | {"fetched": (datetime.now(UTC) - timedelta(days=1.1)).isoformat()}))
    fetch_readings(client, SITES, "00300", recent)
    assert len(usgs.requests) == 9


def test_other_questions_have_other_answers(tmp_path) -> None:
    cache = ResponseCache(tmp_path)
    requests = [
        Request("waterdata", "get_continuous", {"site": "1"}),
        Request("waterdata", "get_continuous", {"site": "2"}),
        Request("waterdata", "get_daily", {"site": "1"}),
        Request("nldi", "get_continuous", {"site": "1"}),
    ]
    for number, request in enumerate(requests):
        cache.keep(request, str(number).encode(), "http://somewhere")
    assert [cache.find(request).content for request in requests] == [b"0", b"1", b"2", b"3"]


def test_fresh_answers_take_the_place_of_kept_ones_when_asked_for(usgs, client, tmp_path) -> None:
    hours_of(client)
    usgs.observations = usgs.observations[:24]
    assert hours_of(ServiceClient(ResponseCache(tmp_path / "cache"))) == ALL
    assert hours_of(ServiceClient(ResponseCache(tmp_path / "cache"), fresh_since=datetime.now(UTC))) == {
        **dict.fromkeys(SITES, 0),
        "USGS-1": 24,
    }
    assert hours_of(ServiceClient(ResponseCache(tmp_path / "cache")))["USGS-2"] == 0


def test_a_refresh_goes_on_for_two_days_and_knows_what_it_is_of(tmp_path, monkeypatch) -> None:
    cache, one, other = ResponseCache(tmp_path), {"huc": "18"}, {"huc": "03"}
    begun = cache.begin_refresh(one)
    assert cache.begin_refresh(one) == begun < cache.begin_refresh(other)
    monkeypatch.setattr(cache_module, "REFRESH_LASTS", timedelta(0))
    renewed = cache.begin_refresh(one)
    assert renewed > begun, "what was fetched long ago is no longer fresh"
    monkeypatch.undo()
    assert cache.begin_refresh(one) == renewed
    for note in (tmp_path / "refresh").iterdir():
        note.write_text("{")
    assert cache.begin_refresh(one) > renewed
    cache.end_refresh(one)
    assert len(list((tmp_path / "refresh").iterdir())) == 1
    cache.end_refresh(one)


@pytest.mark.parametrize("harm", ["change", "truncate", "remove", "note"])
def test_a_damaged_answer_is_fetched_again(usgs, client, tmp_path, harm: str) -> None:
    hours_of(client)
    content = sorted((tmp_path / "cache").rglob("*.answer"))[0]
    if harm == "change":
        content.write_bytes(content.read_bytes()[:-1] + b"x")
    elif harm == "truncate":
        content.write_bytes(content.read_bytes()[:100])
    elif harm == "remove":
        content.unlink()
    else:
        content.with_suffix(".json").write_text("{")
    again = ServiceClient(ResponseCache(tmp_path / "cache"))
    assert hours_of(again) == ALL
    assert len(usgs.requests) == 4
    assert len(again.cache.damaged) == 1


def test_every_request_is_recorded_with_its_address_date_and_checksum(usgs, client) -> None:
    hours_of(client)
    assert [one["arguments"]["monitoring_location_id"] for one in client.record] == SITES
    for one in client.record:
        assert one["url"].startswith(usgs.address) and one["arguments"]["monitoring_location_id"] in one["url"]
        assert datetime.fromisoformat(one["fetched"]).tzinfo is not None
        assert len(one["sha256"]) == 64


def test_a_folder_that_cannot_be_written_is_told_of(usgs, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be kept") as caught:
        hours_of(ServiceClient(ResponseCache(tmp_path / "file" / "cache")))
    assert "--cache" in caught.value.hint
