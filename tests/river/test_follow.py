"""The live feed against the local server: new, silent, revised and withdrawn readings, trouble, and a kill."""

import os
import signal
from dataclasses import replace
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import made_basin
import numpy as np
import pytest
from made_basin import GOOD, HOUR, HOURS, START, oxygen
from usgs_answers import Observation, sensor_id
from usgs_server import Trouble, UsgsServer, served_by

from candor.core import files
from candor.core.errors import InputError
from candor.river.build import build_basin
from candor.river.follow import Feed, Followed, follow
from candor.river.retries import RetryPolicy

SITES = GOOD[:4]  # the first two read four times an hour, the third has two sensors
END = START + HOURS * HOUR  # of what the basin was built from
NEEDED = 24
REVISED_WITHIN = timedelta(days=1)  # shorter than in truth: most hours of a record are those that are still revised
ROWS = NEEDED + REVISED_WITHIN // HOUR
HASTY = RetryPolicy(first_wait=0.001, quota_wait=0.001, attempts=3)


@pytest.fixture(scope="module")
def observations() -> list[Observation]:
    """What the sites read in the last week of the basin."""
    whole = SimpleNamespace()
    made_basin.fill(whole)
    return [one for one in whole.observations if one.site in SITES and one.time > END - 168 * HOUR]


@pytest.fixture(autouse=True)
def a_day_of_revisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("candor.river.follow.REVISED_WITHIN", REVISED_WITHIN)


@pytest.fixture(autouse=True)
def sites_at_work(usgs: UsgsServer, observations: list[Observation]) -> None:
    usgs.observations = list(observations)


@pytest.fixture
def feed(built, tmp_path: Path) -> Feed:
    panel = built.basin.panel
    return Feed.of(panel.select(SITES).slice(0, 0), panel.provenance, NEEDED, tmp_path / "live")


def read_on(usgs: UsgsServer, hours: int, sites: tuple[str, ...] = SITES) -> None:
    """Lets sites go on reading, once an hour."""
    usgs.observations += [
        Observation(site, "00300", sensor_id((site, 0)), START + hour * HOUR, oxygen(site, hour))
        for site in sites
        for hour in range(HOURS, HOURS + hours)
    ]


def change(usgs: UsgsServer, site: str, hour: int, value: str | None) -> None:
    """Revises a reading, or withdraws it."""
    place = next(
        place
        for place, one in enumerate(usgs.observations)
        if (one.site, one.sensor, one.time) == (site, sensor_id((site, 0)), START + hour * HOUR)
    )
    usgs.observations[place : place + 1] = [] if value is None else [replace(usgs.observations[place], value=value)]


def asked_from(usgs: UsgsServer) -> dict[str, datetime]:
    """Returns from when on each site was asked."""
    queries = [parse_qs(urlsplit(address).query) for address in usgs.asked("continuous")]
    return {
        query["monitoring_location_id"][0]: datetime.fromisoformat(query["time"][0].split("/")[0]) for query in queries
    }


def news(found: Followed) -> dict[str, tuple[int, int]]:
    """Returns how many readings of each site are new and how many were revised, where there are any."""
    return {site.id: (site.new, site.revised) for site in found.sites if site.new or site.revised}


@pytest.mark.parametrize("hourly", ["nearest", "mean"])
def test_what_is_said_of_an_hour_is_what_the_builder_says(built, feed, hourly: str) -> None:
    settings = made_basin.RULES.model_copy(update={"hourly": hourly})
    whole = build_basin(settings, built.client()).panel.select(SITES)
    found = follow(replace(feed, settings=settings), END)
    assert found.panel.times == whole.times.slice(HOURS - ROWS, HOURS)
    np.testing.assert_array_equal(found.panel.values, whole.values[-ROWS:])
    assert [(s.id, s.unit) for s in found.panel.sensors] == [(s.id, s.unit) for s in whole.sensors]
    assert found.findings == []


def test_an_hour_is_there_when_it_is_over(feed) -> None:
    minutes = {29: HOURS - 3, 30: HOURS - 2, 89: HOURS - 2}
    for later, last in minutes.items():
        axis = feed.axis(START + (HOURS - 2) * HOUR + timedelta(minutes=later))
        assert axis.end - HOUR == START + last * HOUR and axis.length == ROWS


def test_new_hours_arrive_and_only_what_is_new_or_young_is_asked_for(usgs, feed) -> None:
    first = follow(feed, END)
    begin = first.panel.times.start - HOUR / 2
    assert asked_from(usgs) == dict.fromkeys(SITES, begin)
    assert all(site.last_reading == END - HOUR for site in first.sites[2:])  # the first two read four times an hour
    read_on(usgs, 5)
    usgs.requests.clear()
    later = follow(feed, END + 5 * HOUR)
    assert asked_from(usgs) == dict.fromkeys(SITES, END - REVISED_WITHIN)
    assert news(later) == dict.fromkeys(SITES, (5, 0))
    np.testing.assert_array_equal(later.panel.values[:-5], first.panel.values[5:])
    expected = [[np.float32(oxygen(site, hour)) for site in SITES] for hour in range(HOURS, HOURS + 5)]
    np.testing.assert_array_equal(later.panel.values[-5:], expected)


def test_what_a_site_sends_after_days_of_silence_is_fetched(usgs, feed) -> None:
    everything = list(usgs.observations)
    usgs.observations = [
        one for one in everything if one.site != SITES[0] or one.time < END - REVISED_WITHIN - 10 * HOUR
    ]
    assert np.isnan(follow(feed, END).panel.values[-32:, 0]).all()
    usgs.observations = everything
    found = follow(feed, END + HOUR)
    fresh = follow(replace(feed, folder=feed.folder.with_name("fresh")), END + HOUR)
    np.testing.assert_array_equal(found.panel.values, fresh.panel.values)
    assert not np.isnan(found.panel.values[-32:-1, 0]).any()


def test_after_a_long_pause_only_what_is_needed_is_asked_for(usgs, feed) -> None:
    follow(feed, END - 100 * HOUR)
    usgs.requests.clear()
    found = follow(feed, END)
    assert asked_from(usgs) == dict.fromkeys(SITES, found.panel.times.start - HOUR / 2)
    fresh = follow(replace(feed, folder=feed.folder.with_name("fresh")), END)
    np.testing.assert_array_equal(found.panel.values, fresh.panel.values)


def test_nothing_new_is_no_news_and_the_same_hours(usgs, feed) -> None:
    first = follow(feed, END)
    kept = {path.name: path.stat().st_size for path in feed.folder.iterdir()}
    again = follow(feed, END)
    assert news(again) == {} and set(news(first)) == set(SITES)
    assert again.panel.fingerprint == first.panel.fingerprint
    assert {path.name: path.stat().st_size for path in feed.folder.iterdir()} == kept
    old = follow(
        feed, END + 9 * REVISED_WITHIN, is_offline=True
    )  # nothing newer comes: the hours end with the last reading
    assert old.panel.times.end == END + HOUR  # a quarter to serves the hour too
    np.testing.assert_array_equal(old.panel.values[:-1], first.panel.values[1:])
    earlier = follow(feed, END - 10 * HOUR)  # a present that lies before the last one
    np.testing.assert_array_equal(earlier.panel.values[10:], first.panel.values[:-10])


def test_a_silent_site_is_empty_from_its_last_reading_on_and_the_others_go_on(usgs, feed) -> None:
    follow(feed, END)
    read_on(usgs, 6, SITES[:1] + SITES[2:])
    found = follow(feed, END + 6 * HOUR)
    is_missing = np.isnan(found.panel.values[-8:])
    assert is_missing[:, 1].tolist() == [False] * 3 + [True] * 5  # a quarter to serves the hour too
    assert not np.delete(is_missing, 1, axis=1).any()
    silent, *others = sorted(found.sites, key=lambda site: site.last_reading)
    assert (silent.id, silent.last_reading) == (SITES[1], END - HOUR / 4)
    assert {site.last_reading for site in others} == {END + 5 * HOUR}


def test_young_readings_are_revised_and_withdrawn_and_old_ones_stand(usgs, feed) -> None:
    follow(feed, END)
    young, old = HOURS - 1 - REVISED_WITHIN // HOUR + 2, HOURS - 1 - REVISED_WITHIN // HOUR - 2
    change(usgs, SITES[1], young, "1.25")
    change(usgs, SITES[2], young, None)
    change(usgs, SITES[3], old, "1.25")
    found = follow(feed, END)
    assert news(found) == {SITES[1]: (0, 1), SITES[2]: (0, 1)}
    row = young - (HOURS - ROWS)
    assert found.panel.values[row, 1] == 1.25
    assert np.isnan(found.panel.values[row, 2])
    assert found.panel.values[row - 4, 3] == np.float32(oxygen(SITES[3], old))


@pytest.mark.parametrize("silent_hours", [ROWS + 50, 30])
def test_another_sensor_of_a_site_never_speaks_for_the_one_the_model_knows(usgs, feed, silent_hours: int) -> None:
    site, silent = SITES[2], min(silent_hours, ROWS)
    theirs, own = [one for one in usgs.observations if one.site != site], sensor_id((site, 0))
    usgs.observations = theirs + [
        replace(one, sensor=sensor_id((site, 1))) if one.time >= END - silent_hours * HOUR else one
        for one in usgs.observations
        if (one.site, one.sensor) == (site, own)
    ]
    found = follow(feed, END)
    assert np.isnan(found.panel.values[-silent:, 2]).all() and not np.isnan(found.panel.values[:-silent, 2]).any()
    (finding,) = found.findings
    assert "another one speaks" in finding.what and site in finding.where and sensor_id((site, 1)) in finding.where


def test_a_service_out_of_order_for_a_while_is_waited_for(usgs, feed) -> None:
    usgs.troubles.append(Trouble("continuous", times=4, status=503))
    assert set(news(follow(feed, END, retry_policy=HASTY))) == set(SITES)


def test_a_service_out_of_order_is_told_of_and_what_was_kept_serves_offline(usgs, feed) -> None:
    with pytest.raises(InputError, match="no site has a reading") as nothing:
        follow(feed, END, is_offline=True)
    assert "--offline" in nothing.value.hint
    whole = follow(feed, END)
    read_on(usgs, 2)
    usgs.troubles.append(Trouble(SITES[3], times=999, status=503))
    with served_by(usgs, retries=0), pytest.raises(InputError) as caught:
        follow(feed, END + 2 * HOUR, retry_policy=replace(HASTY, at_once=1))
    assert "out of order" in caught.value.what
    assert "--offline" in caught.value.hint and str(feed.folder) in caught.value.hint
    usgs.requests.clear()
    found = follow(feed, END + 2 * HOUR, is_offline=True)
    assert usgs.requests == []
    np.testing.assert_array_equal(found.panel.values[:-2], whole.panel.values[2:])
    is_new = ~np.isnan(found.panel.values[-1])
    assert is_new[:3].all() and not is_new[3]  # what was answered before the trouble is there


def test_a_kill_while_a_record_is_written_costs_nothing(usgs, feed) -> None:
    follow(feed, END)
    read_on(usgs, 3)

    def be_killed() -> None:
        true_flush, flushed = files._flush_to_disk, []

        def flush(path: Path) -> None:
            flushed.append(path)
            if len(flushed) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            true_flush(path)

        files._flush_to_disk = flush
        follow(feed, END + 3 * HOUR, retry_policy=RetryPolicy(at_once=1))

    job = get_context("fork").Process(target=be_killed, daemon=True)
    job.start()
    job.join(120)
    assert job.exitcode == -signal.SIGKILL
    assert any(path.name.startswith(".") for path in feed.folder.iterdir())
    found = follow(feed, END + 3 * HOUR)
    assert found.findings == []
    assert set(news(found)) == set(SITES[1:])  # the first record was written
    fresh = follow(replace(feed, folder=feed.folder.with_name("fresh")), END + 3 * HOUR)
    assert found.panel.fingerprint == fresh.panel.fingerprint


@pytest.mark.parametrize("harm", ["cut", "change", "other"])
def test_a_damaged_record_is_fetched_again(usgs, feed, harm: str) -> None:
    whole = follow(feed, END)
    path, other = (feed.folder / f"{site}.parquet" for site in SITES[:2])
    content = bytearray(path.read_bytes())
    if harm == "cut":
        content = content[:-100]
    elif harm == "change":
        content[len(content) // 3] ^= 0xFF
    path.write_bytes(b"something else" if harm == "other" else content)
    usgs.requests.clear()
    found = follow(feed, END)
    assert found.panel.fingerprint == whole.panel.fingerprint
    assert asked_from(usgs)[SITES[0]] == found.panel.times.start - HOUR / 2 < asked_from(usgs)[SITES[1]]
    assert [finding.what for finding in found.findings] == ["records on disk were damaged and were fetched again"]
    assert other.is_file()


def test_offline_a_damaged_record_is_left_where_it_is_and_said_to_be_left_out(usgs, feed) -> None:
    follow(feed, END)
    path = feed.folder / f"{SITES[0]}.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    harmed = path.read_bytes()
    usgs.requests.clear()
    found = follow(feed, END, is_offline=True)
    assert usgs.requests == [] and path.read_bytes() == harmed
    assert [(one.what, one.count) for one in found.findings] == [
        (f"records on disk are damaged and were left out: {path.name}", 1)
    ]
    assert found.sites[0].last_reading is None and found.sites[1].last_reading is not None
    assert follow(feed, END).sites[0].last_reading is not None
    assert path.read_bytes() != harmed


def test_records_do_not_grow_for_ever(usgs, feed) -> None:
    sizes = []
    for later in (0, 40, 80):
        follow(feed, END - 80 * HOUR + later * HOUR)
        sizes.append((feed.folder / f"{SITES[3]}.parquet").stat().st_size)
    assert max(sizes) < 1.2 * min(sizes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"settings": None}, "build-river"), ({"sensors": None}, "build-river"), ({"sensors": {}}, "USGS-01")],
)
def test_other_panels_cannot_be_followed(built, tmp_path, changes, words: str) -> None:
    panel = built.basin.panel
    provenance = {name: part for name, part in (panel.provenance | changes).items() if part is not None}
    with pytest.raises(InputError) as caught:
        Feed.of(panel, provenance, NEEDED, tmp_path)
    assert words in caught.value.what
    assert "build the basin" in caught.value.hint
