"""Hourly rain: two half hours make an hour, a kill costs little, and nothing is asked for twice."""

import hashlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import earthaccess
import h5py
import numpy as np
import pandas as pd
import pytest
from earthaccess.system import System
from hypothesis import given, settings
from hypothesis import strategies as st
from imerg_granules import LATITUDES, LONGITUDES, GranuleServer, name_at, search_answer, write_granule
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.panel import Panel, Sensor, digest_of
from candor.data.panel_store import load_panel, save_panel
from candor.data.times import TimeAxis
from candor.river.imerg import EarthdataArchive, Granule, ImergCell
from candor.river.rain import FetchedRain, fetch_rain
from candor.river.retries import Retries, RetryPolicy

START = datetime(2020, 2, 28, 22, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
SENSORS = (
    Sensor("upper", latitude=42.15, longitude=-121.85),
    Sensor("lower", latitude=42.05, longitude=-122.05),
    Sensor("beside upper", latitude=42.16, longitude=-121.84),  # in the same cell
)


def axis(hours: int, start: datetime = START) -> TimeAxis:
    return TimeAxis(start, timedelta(hours=1), hours, "America/Los_Angeles")


class MadeArchive:
    """An archive in memory whose rain is a formula of the half hour and the cell; it remembers what it was asked."""

    def __init__(self, absent: Callable[[datetime], bool] = lambda start: False) -> None:
        self.absent = absent
        self.gone: set[datetime] = set()  # listed, but not there when they are read
        self.searches: list[tuple[datetime, datetime]] = []
        self.read_starts: list[datetime] = []
        self.dies_after = 10**9
        self.retries = Retries(RetryPolicy())

    def rate(self, start: datetime, cell: ImergCell) -> float:
        return float((start.timestamp() // 1800) % 977 + cell.column / 8)

    def find(self, first: datetime, stop: datetime) -> dict[datetime, Granule]:
        self.searches.append((first, stop))
        starts = [first + step * HALF_HOUR for step in range(int((stop - first) / HALF_HOUR))]
        found = [start for start in starts if not self.absent(start)]
        return {s: Granule(name_at(s), s, f"https://archive/{s:%j}/{name_at(s)}", 8.0) for s in found}

    def read(self, granule: Granule, cells: list[ImergCell]) -> tuple[NDArray[np.float32], int] | None:
        if len(self.read_starts) >= self.dies_after:
            raise KeyboardInterrupt
        self.read_starts.append(granule.start)
        if granule.start in self.gone:
            return None
        return np.array([self.rate(granule.start, cell) for cell in cells], np.float32), 250_000


def by_hand(archive: MadeArchive, times: TimeAxis) -> NDArray[np.float64]:
    """The same by another route: all half hours in a table, and pandas makes hours that are named by their end."""
    stamps = pd.date_range(times.start - timedelta(hours=1), times.end, freq="30min", inclusive="left")[:-2]
    cells = [ImergCell(581, 1321), ImergCell(579, 1320), ImergCell(581, 1321)]
    table = pd.DataFrame(
        [
            [np.nan if archive.absent(stamp) or stamp in archive.gone else archive.rate(stamp, cell) for cell in cells]
            for stamp in stamps.to_pydatetime()
        ],
        index=stamps,
    )
    origin = times.start - timedelta(hours=1)
    hours = table.resample("1h", closed="left", label="right", origin=origin).agg(lambda part: part.mean(skipna=False))
    assert (hours.index == pd.DatetimeIndex(times.utc, tz="UTC")).all()
    return hours.to_numpy()


@settings(max_examples=25)
@given(
    st.integers(1, 60),
    st.integers(0, 3),
    st.sets(st.integers(0, 130), max_size=12),
    st.sets(st.integers(0, 130), max_size=3),
)
def test_an_hour_is_the_mean_of_the_two_half_hours_before_it(
    tmp_path_factory: pytest.TempPathFactory, hours: int, late: int, absent: set[int], gone: set[int]
) -> None:
    times = axis(hours, START + late * HALF_HOUR)
    archive = MadeArchive(absent=lambda start: int((start - START) / HALF_HOUR) + 2 in absent)
    archive.gone = {START + (step - 2) * HALF_HOUR for step in gone}
    rain = fetch_rain(SENSORS, times, tmp_path_factory.mktemp("rain"), archive=archive)
    np.testing.assert_allclose(rain.covariate.values, by_hand(archive, times), rtol=1e-6)
    assert rain.covariate.unit == "mm/h" and rain.covariate.values.dtype == np.float32


def test_no_row_holds_rain_that_falls_after_it(tmp_path: Path) -> None:
    archive = MadeArchive()
    fetch_rain(SENSORS, axis(3), tmp_path, archive=archive)
    assert max(archive.read_starts) + HALF_HOUR == axis(3).end - timedelta(hours=1)
    assert min(archive.read_starts) == START - timedelta(hours=1)


@pytest.mark.parametrize("dies_after", [0, 1, 2, 47, 49, 100])
def test_a_killed_job_goes_on_where_it_was(tmp_path: Path, dies_after: int) -> None:
    times, archive = axis(72), MadeArchive()
    whole = fetch_rain(SENSORS, times, tmp_path / "whole", archive=MadeArchive())
    archive.dies_after = dies_after
    with pytest.raises(KeyboardInterrupt):
        fetch_rain(SENSORS, times, tmp_path / "killed", archive=archive)
    before, archive.read_starts, archive.dies_after = set(archive.read_starts), [], 10**9
    resumed = fetch_rain(SENSORS, times, tmp_path / "killed", archive=archive)
    np.testing.assert_array_equal(resumed.covariate.values, whole.covariate.values)
    searches = resumed.provenance["searches"]
    assert len(searches) == 2 and searches[0]["files"] == searches[1]["files"] + len(before - set(archive.read_starts))
    for name in resumed.provenance.keys() - {"searches", "first_fetched", "last_fetched", "days"}:
        assert resumed.provenance[name] == whole.provenance[name]
    for name in ("day", "files", "sha256"):
        assert [day[name] for day in resumed.provenance["days"]] == [day[name] for day in whole.provenance["days"]]
    again = before & set(archive.read_starts)
    assert len({start.date() for start in again}) <= 1, "only the day that was under way is read again"
    assert len(archive.read_starts) == 144 - len(before - again)


def test_a_pause_is_told_of_and_ctrl_c_does_not_wait_until_it_is_over(tmp_path: Path) -> None:
    gave_up: list[datetime] = []

    class Busy(MadeArchive):
        def read(self, granule: Granule, cells: list[ImergCell]) -> tuple[NDArray[np.float32], int] | None:
            if granule.start == START:
                try:
                    self.retries.pause(60.0)
                except CancelledError:
                    gave_up.append(granule.start)
                    raise
            return super().read(granule, cells)

    is_paused, told = threading.Event(), []

    def press_a_key(what: str, share: float | None) -> None:
        if "pause" in what:
            told.append((what, share))
            is_paused.set()
        elif "2 of 8" in what:
            assert is_paused.wait(20)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_rain(SENSORS, axis(4), tmp_path, archive=Busy(), report=press_a_key)
    assert gave_up == [START], "the pause was broken off, not waited for"
    assert told == [("reading rain | reading rain: the archive needs a pause of 60 s", 1 / 8)]
    assert not np.isnan(fetch_rain(SENSORS, axis(4), tmp_path, archive=MadeArchive()).covariate.values).any()


def test_what_is_there_is_not_asked_for_again_and_needs_no_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EARTHDATA_TOKEN", "EARTHDATA_USERNAME", "EARTHDATA_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    first = fetch_rain(SENSORS, axis(30), tmp_path, archive=MadeArchive())
    again = fetch_rain(SENSORS, axis(30), tmp_path)
    np.testing.assert_array_equal(again.covariate.values, first.covariate.values)
    archive = MadeArchive()
    fetch_rain(SENSORS, axis(40), tmp_path, archive=archive)
    assert sorted(archive.read_starts) == [START + (58 + step) * HALF_HOUR for step in range(20)]
    with pytest.raises(InputError, match="needs a login"):
        fetch_rain(SENSORS, axis(41), tmp_path)


def test_files_that_appear_later_are_taken_up(tmp_path: Path) -> None:
    archive = MadeArchive(absent=lambda start: start.day == 29)
    early = fetch_rain(SENSORS, axis(30), tmp_path, archive=archive)
    assert np.isnan(early.covariate.values[3:27]).all() and early.provenance["unknown_half_hours"] == 48
    archive = MadeArchive()
    late = fetch_rain(SENSORS, axis(30), tmp_path, archive=archive)
    assert {start.day for start in archive.read_starts} == {29}
    assert not np.isnan(late.covariate.values).any() and late.provenance["unknown_half_hours"] == 0


def test_only_the_half_hours_that_lack_are_read_again(tmp_path: Path) -> None:
    scattered = [START + step * HALF_HOUR for step in (3, 10, 11, 60, 100)]
    fetch_rain(SENSORS, axis(60), tmp_path, archive=MadeArchive(absent=lambda start: start in scattered))
    archive = MadeArchive()
    rain = fetch_rain(SENSORS, axis(60), tmp_path, archive=archive)
    assert sorted(archive.read_starts) == scattered and len(archive.searches) == 1
    np.testing.assert_allclose(rain.covariate.values, by_hand(archive, axis(60)), rtol=1e-6)


def test_offline_takes_what_is_there_and_leaves_the_rest_unknown(tmp_path: Path) -> None:
    first = fetch_rain(SENSORS, axis(5), tmp_path, archive=MadeArchive())
    archive = MadeArchive()
    rain = fetch_rain(SENSORS, axis(8), tmp_path, archive=archive, is_offline=True)
    np.testing.assert_array_equal(rain.covariate.values[:5], first.covariate.values)
    assert np.isnan(rain.covariate.values[5:]).all() and not archive.searches
    assert rain.provenance["half_hours"] == 16 and rain.provenance["unknown_half_hours"] == 6


def test_other_sensors_never_get_the_rain_that_was_kept_for_these(tmp_path: Path) -> None:
    first = fetch_rain(SENSORS, axis(5), tmp_path, archive=MadeArchive())
    moved = (Sensor("upper", latitude=42.15, longitude=-121.75), *SENSORS[1:])
    archive = MadeArchive()
    rain = fetch_rain(moved, axis(5), tmp_path, archive=archive)
    assert len(archive.read_starts) == 10
    assert rain.covariate.values[0, 0] == pytest.approx(archive.rate(START - HALF_HOUR, ImergCell(582, 1321)) - 0.5)
    back = fetch_rain(SENSORS, axis(5), tmp_path, is_offline=True)
    np.testing.assert_array_equal(back.covariate.values, first.covariate.values)


@pytest.mark.parametrize("damage", ["cut", "changed", "other day", "empty"])
def test_a_damaged_day_is_read_again(tmp_path: Path, damage: str) -> None:
    whole = fetch_rain(SENSORS, axis(60), tmp_path, archive=MadeArchive())
    days = sorted(tmp_path.rglob("2020-*.json"))
    assert [path.stem for path in days] == ["2020-02-28", "2020-02-29", "2020-03-01", "2020-03-02"]
    text = days[1].read_text()
    content = json.loads(text)
    content["half_hours"]["2020-02-29T10:00:00+00:00"]["rates"][0] += 1
    other = days[2].read_text()
    days[1].write_text({"cut": text[:500], "changed": json.dumps(content), "other day": other, "empty": ""}[damage])
    archive = MadeArchive()
    again = fetch_rain(SENSORS, axis(60), tmp_path, archive=archive)
    assert {start.date().isoformat() for start in archive.read_starts} == {"2020-02-29"}
    np.testing.assert_array_equal(again.covariate.values, whole.covariate.values)
    kept, former = (json.loads(words)["half_hours"].values() for words in (days[1].read_text(), text))
    for half_hour, as_it_was in zip(kept, former, strict=True):
        assert (half_hour["file"], half_hour["rates"]) == (as_it_was["file"], as_it_was["rates"])


def test_five_years_are_87648_files_searched_by_the_month(tmp_path: Path) -> None:
    five_years = axis(43_824, datetime(2020, 10, 1, 7, tzinfo=UTC))
    archive = MadeArchive(absent=lambda start: True)
    rain = fetch_rain(SENSORS, five_years, tmp_path, archive=archive)
    assert rain.provenance["half_hours"] == rain.provenance["unknown_half_hours"] == 87_648
    assert all(stop - first <= timedelta(days=31) for first, stop in archive.searches)
    assert sum((stop - first) // HALF_HOUR for first, stop in archive.searches) == 87_648
    assert np.isnan(rain.covariate.values).all()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["searches.json"]
    assert len(rain.provenance["searches"]) == len(archive.searches) == 59


def test_the_volume_is_stated_once_before_the_second_file_is_read(tmp_path: Path) -> None:
    archive, told = MadeArchive(), []
    archive.gone = {START - 2 * HALF_HOUR}
    fetch_rain(SENSORS, axis(4), tmp_path, archive=MadeArchive())
    fetch_rain(SENSORS, axis(500, START + timedelta(hours=2)), tmp_path, archive=archive, announce=told.append)
    assert len(told) == 1
    # 250 kB of 8 MB were carried of the first, and 996 of a thousand half hours are lacking.
    for words in ("996 half-hourly files", "4 of 1,000 are here already", "8.0 GB", "0.2 GB"):
        assert words in told[0]


def test_whoever_hears_the_volume_can_stop_it(tmp_path: Path) -> None:
    archive = MadeArchive()
    archive.gone = {START - 2 * HALF_HOUR, START - HALF_HOUR}  # nothing is known of the volume before the third file

    def refuse(text: str) -> None:
        raise InputError("too much")

    with pytest.raises(InputError, match="too much"):
        fetch_rain(SENSORS, axis(100), tmp_path, archive=archive, announce=refuse)
    assert archive.read_starts == [START + (step - 2) * HALF_HOUR for step in range(3)]


def test_progress_grows_to_the_whole_and_tells_what_was_carried(tmp_path: Path) -> None:
    told: list[tuple[str, float | None]] = []
    fetch_rain(
        SENSORS, axis(72), tmp_path, archive=MadeArchive(), report=lambda what, share: told.append((what, share))
    )
    shares = [share for _, share in told]
    assert shares == [step / 144 for step in range(145)], "every file is told of: one takes seconds"
    assert "144 of 144 half hours, 0.04 GB" in told[-1][0]
    assert {what.partition(" | ")[0] for what, _ in told} == {"reading rain"}


@pytest.mark.parametrize(
    "times",
    [
        TimeAxis(START, timedelta(minutes=30), 4),
        TimeAxis(START, timedelta(days=1), 4),
        TimeAxis(START + timedelta(minutes=15), timedelta(hours=1), 4),
    ],
)
def test_times_that_are_not_hourly_are_refused(times: TimeAxis, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="hourly times"):
        fetch_rain(SENSORS, times, tmp_path, archive=MadeArchive())


def test_where_the_rain_came_from_is_recorded(tmp_path: Path) -> None:
    rain = fetch_rain(SENSORS, axis(5), tmp_path, archive=MadeArchive(absent=lambda start: start == START))
    assert rain.provenance["product"] == "GPM_3IMERGHH version 07"
    assert rain.provenance["files_by_version"] == {"V07B": 9} and rain.provenance["unknown_half_hours"] == 1
    assert rain.provenance["cells"]["upper"] == [-121.85, 42.15]
    assert "hour that ends" in rain.provenance["row"]
    names = [name_at(START + (step - 2) * HALF_HOUR) for step in range(10) if step != 2]
    assert rain.provenance["sha256_of_file_names"] == hashlib.sha256("\n".join(names).encode()).hexdigest()
    assert rain.provenance["clients"] == {"earthaccess": version("earthaccess"), "h5py": h5py.__version__}
    json.dumps(rain.provenance, allow_nan=False)


def test_when_files_were_searched_and_read_is_recorded_and_outlasts_a_rebuild(tmp_path: Path) -> None:
    begun = datetime.now(UTC).replace(microsecond=0)
    rain = fetch_rain(SENSORS, axis(5), tmp_path, archive=MadeArchive())
    dates = [datetime.fromisoformat(rain.provenance[name]) for name in ("first_fetched", "last_fetched")]
    (search,) = rain.provenance["searches"]
    assert begun <= datetime.fromisoformat(search["asked"]) <= dates[0] <= dates[1] <= datetime.now(UTC)
    assert (search["short_name"], search["version"], search["files"]) == ("GPM_3IMERGHH", "07", 10)
    assert datetime.fromisoformat(search["first"]) == START - 2 * HALF_HOUR
    assert datetime.fromisoformat(search["stop"]) == START + 8 * HALF_HOUR
    later = fetch_rain(SENSORS, axis(5, START + timedelta(days=40)), tmp_path, archive=MadeArchive())
    assert len(later.provenance["searches"]) == 1 and later.provenance["searches"] != [search]
    assert fetch_rain(SENSORS, axis(5), tmp_path, is_offline=True).provenance == rain.provenance


def test_every_day_is_recorded_with_the_place_the_date_and_a_checksum_of_what_was_read(tmp_path: Path) -> None:
    class Wetter(MadeArchive):
        def rate(self, start: datetime, cell: ImergCell) -> float:
            return super().rate(start, cell) + (start == START + 10 * HALF_HOUR)

    def days_of(archive: MadeArchive, folder: str) -> list[dict[str, Any]]:
        absent = {START + 3 * HALF_HOUR}
        archive.absent = lambda start: start in absent
        return fetch_rain(SENSORS, axis(24), tmp_path / folder, archive=archive).provenance["days"]

    days, others = days_of(MadeArchive(), "a"), days_of(Wetter(), "b")
    assert [(day["day"], day["files"]) for day in days] == [("2020-02-28", 5), ("2020-02-29", 42)]
    assert [day["folders"] for day in days] == [["https://archive/059/"], ["https://archive/060/"]]
    assert all(datetime.fromisoformat(day["first_fetched"]) <= datetime.now(UTC) for day in days)
    assert days[0]["sha256"] == others[0]["sha256"] and days[1]["sha256"] != others[1]["sha256"]


def test_days_that_an_earlier_version_wrote_without_dates_are_still_read(tmp_path: Path) -> None:
    first = fetch_rain(SENSORS, axis(2), tmp_path, archive=MadeArchive())
    for day in tmp_path.rglob("2020-*.json"):
        content = json.loads(day.read_text())
        del content["sha256"]
        for half_hour in content["half_hours"].values():
            del half_hour["fetched"], half_hour["folder"]
        day.write_text(json.dumps(content | {"sha256": digest_of(content)}))
    again = fetch_rain(SENSORS, axis(2), tmp_path, is_offline=True)
    np.testing.assert_array_equal(again.covariate.values, first.covariate.values)
    assert again.provenance["first_fetched"] is None
    assert [day["folders"] for day in again.provenance["days"]] == [[]]


def fetch_from(server: GranuleServer, times: TimeAxis, folder: Path) -> FetchedRain:
    login = earthaccess.Auth()
    login.login(strategy="none", system=System(f"{server.url}/search/", "", "", "127.0.0.1"))
    return fetch_rain(SENSORS, times, folder, archive=EarthdataArchive(login, RetryPolicy(first_wait=0.0)))


def test_from_the_archive_to_a_panel_that_can_be_saved(tmp_path: Path) -> None:
    generator, files, rates = np.random.default_rng(0), {}, {}
    starts = [START + (step - 2) * HALF_HOUR for step in range(8)]
    del starts[5]
    for start in starts:
        rates[start] = np.where(generator.random((30, 20)) < 0.1, -9999.9, generator.random((30, 20))).astype(
            np.float32
        )
        path = tmp_path / name_at(start)
        write_granule(path, start, rates[start], LONGITUDES[570:600], LATITUDES[1310:1330])
        files[path.name] = path.read_bytes()
    with GranuleServer(files).running() as server:
        server.answers = [search_answer(start, server.url) for start in starts]
        server.faults = [503]
        times = axis(4)
        rain = fetch_from(server, times, tmp_path / "kept")
        asked = len(server.requests)
        again = fetch_rain(SENSORS, times, tmp_path / "kept", is_offline=True)
        assert len(server.requests) == asked
    expected = np.full((4, 3), np.nan)
    for row in (0, 1, 3):
        halves = [rates[START + (2 * row + half - 2) * HALF_HOUR] for half in (0, 1)]
        for column, (east, north) in enumerate([(11, 11), (9, 10), (11, 11)]):
            pair = [half[east, north] for half in halves]
            expected[row, column] = np.mean(pair) if min(pair) >= 0 else np.nan
    np.testing.assert_allclose(rain.covariate.values, expected, rtol=1e-6)
    assert np.isfinite(expected).sum() > 3
    panel = Panel(np.ones((4, 3), np.float32), times, SENSORS, covariates={"rain": rain.covariate})
    save_panel(panel, tmp_path / "panel")
    assert load_panel(tmp_path / "panel").fingerprint == panel.fingerprint
    same = Panel(np.ones((4, 3), np.float32), times, SENSORS, covariates={"rain": again.covariate})
    assert same.fingerprint == panel.fingerprint
