"""`candor data build-river`, run in this process against the local server."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import earthaccess
import made_basin
import numpy as np
import pytest
from earthaccess.system import System
from imerg_granules import LATITUDES, LONGITUDES, GranuleServer, name_at, search_answer, write_granule
from numpy.typing import NDArray
from usgs_server import Trouble, UsgsServer, served_by

from candor.cli import run
from candor.cli.screen import say
from candor.core.files import read_json
from candor.core.progress import Report
from candor.data.panel import Covariate
from candor.data.panel_store import load_panel
from candor.river import rain as rain_module
from candor.river.imerg import EarthdataArchive, Granule, ImergCell, cell_of
from candor.river.rain import RainStore, StoredHalfHour
from candor.river.retries import Retries, RetryPolicy
from candor.runs.run import load_record

HALF_HOUR = timedelta(minutes=30)
BASIN = ("--huc", "180102", "--start", "2021-05-01", "--end", "2021-05-21", "--max-distance-km", "50")


def test_a_basin_is_built_and_then_trained_on(usgs, build, capsys) -> None:
    made_basin.fill(usgs)
    code, out, err = build(*BASIN, "--archive", "basin.zip")
    assert code == 0, err
    assert "504 hours x 11 stations" in err
    assert "API_USGS_PAT is not set" in err
    assert "25.0 % of its hours are missing" in out
    assert Path("basin.zip").is_file()
    panel = load_panel(Path("basin"))
    assert panel.name == "huc180102"
    assert run(["train", "basin", "--model", "linear", "history=24", "horizon=12", "--run", "r"]) == 0
    gaps = load_record(Path("r")).gaps
    assert gaps is not None and gaps.minimum == 0 and {-123456, -999999} < set(gaps.missing)  # in new files, too
    assert run(["evaluate", "r"]) == 0
    capsys.readouterr()
    asked = len(usgs.requests)
    code, out, _ = build(*BASIN, "--json")
    assert code == 0
    assert json.loads(out)["fingerprint"] == panel.fingerprint
    assert len(usgs.requests) == asked


def test_a_preset_is_compared_with_the_paper(built, build, monkeypatch) -> None:
    monkeypatch.setenv("CANDOR_DATA", "nothing")
    days = ("--start", "2021-05-01", "--end", "2021-05-21", "--max-distance-km", 50)
    code, out, err = build("--preset", "basin180102", *days, "--cache", built.cache)
    assert code == 0, err
    shown = [line.split("│") for line in out.splitlines() if line.startswith("│ hours")]
    assert [cell.strip() for cell in shown[0][1:5]] == ["hours", "43,824", "504", "-43,320"]
    assert load_panel(Path("basin")).name == "basin180102"


def test_the_key_is_not_asked_for_when_it_is_there(built, build, monkeypatch) -> None:
    monkeypatch.setenv("API_USGS_PAT", "a key")
    code, _, err = build(*BASIN, "--cache", built.cache)
    assert code == 0
    assert "API_USGS_PAT" not in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--start", "2021-05-01", "--end", "2021-05-21"), "--huc must be given"),
        (("--huc", "180102"), "--start, --end must be given"),
        (("--preset", "basin180102", "--huc", "180102"), "a preset has its own basin"),
        (("--preset", "basin99"), "known: basin030501"),
        ((*BASIN, "--huc", "18010"), "huc"),
        ((*BASIN, "--parameter", "DO"), "parameter"),
        ((*BASIN, "--max-missing", "1.5"), "max_missing"),
        ((*BASIN, "--hourly", "median"), "hourly"),
        ((*BASIN, "--end", "2099-01-01"), "not over yet"),
        ((*BASIN, "--archive", "basin.tar"), "zip"),
        ((*BASIN, "--refresh", "--offline"), "give one of them"),
    ],
)
def test_wrong_options_give_plain_words_two_and_no_request(usgs, build, options, words: str) -> None:
    code, _, err = build(*options)
    assert code == 2
    assert words in err
    assert "Traceback" not in err
    assert usgs.requests == []


def test_a_service_that_refuses_leaves_nothing_half_written(usgs, build) -> None:
    made_basin.fill(usgs)
    usgs.troubles.append(Trouble("USGS-07", times=99, status=400, body={"code": "InvalidQuery"}))
    code, _, err = build(*BASIN)
    assert code == 2
    assert "does not accept the request" in err
    assert [path.name for path in Path().iterdir()] == ["cache"]


def test_without_a_network_the_command_says_so_in_plain_words_and_leaves_no_basin(build) -> None:
    with UsgsServer() as server:
        pass  # nobody listens at its address any more
    with served_by(server, retries=0):
        code, out, err = build(*BASIN)
    assert code == 2
    words = " ".join(err.split())
    assert "cannot be reached" in words and "connection to the internet" in words and "Traceback" not in out + err
    assert not Path("basin").exists()


@pytest.mark.parametrize("package", ["dataretrieval.nldi", "networkx"])
def test_without_the_packages_of_rivers_the_command_says_what_to_install(usgs, build, monkeypatch, package) -> None:
    made_basin.fill(usgs)
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = build(*BASIN)
    assert code == 2
    assert package in err and "pip install 'candor-forecast[river]'" in " ".join(err.split())
    assert usgs.requests == [] and not Path("basin").exists()


def test_rain_is_fetched_for_the_places_and_hours_of_the_panel(built, build, monkeypatch) -> None:
    def made_rain(sensors, times, folder, *, log_in, is_offline, announce, report):
        assert not is_offline
        announce("nothing to read")
        values = np.full((times.length, len(sensors)), 0.25, np.float32)
        origin = {"product": "made up", "folder": folder.name, "unknown_half_hours": 0, "half_hours": 1008}
        return rain_module.FetchedRain(Covariate(values, "mm/h"), origin)

    monkeypatch.setattr(rain_module, "fetch_rain", made_rain)
    code, _, err = build(*BASIN, "--cache", built.cache, "--rain")
    assert code == 0, err
    panel = load_panel(Path("basin"))
    assert panel.covariates["rain"].unit == "mm/h"
    assert panel.provenance["rain"]["folder"] == "rain"
    assert "unknown" not in err


def test_offline_takes_the_rain_that_was_read_and_asks_nobody(built, build, monkeypatch) -> None:
    def nobody(*_: object) -> None:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr("candor.river.imerg.sign_in", nobody)
    panel, halves = built.basin.panel, timedelta(minutes=30)
    cells = sorted({cell_of(sensor) for sensor in panel.sensors})
    begin = panel.times.start
    known = {begin + step * halves: StoredHalfHour("f.V07B.HDF5", np.full(len(cells), step), "") for step in range(4)}
    shutil.copytree(built.cache, "kept")
    RainStore(Path("kept/rain"), cells).write(begin.date(), known)
    code, _, err = build(*BASIN, "--cache", "kept", "--rain", "--offline")
    assert code == 0, err
    assert "the rain of 502 of 504 hours is unknown: it was never read" in " ".join(err.split())
    assert "API_USGS_PAT" not in err
    rain = load_panel(Path("basin")).covariates["rain"].values
    assert rain[1:3].tolist() == [[0.5] * 11, [2.5] * 11]
    assert np.isnan(rain).sum() == rain.size - 2 * 11


class EndingArchive:
    """An archive in memory that has the half hours which start before a moment."""

    def __init__(self, published: datetime) -> None:
        self.published = published
        self.retries = Retries(RetryPolicy())

    def find(self, first: datetime, stop: datetime) -> dict[datetime, Granule]:
        starts = [first + step * HALF_HOUR for step in range(int((stop - first) / HALF_HOUR))]
        return {one: Granule("f.V07B.HDF5", one, "", 1.0) for one in starts if one < self.published}

    def read(self, granule: Granule, cells: list[ImergCell]) -> tuple[NDArray[np.float32], int]:
        return np.ones(len(cells), np.float32), 1000


def test_rain_that_is_not_published_yet_is_told_of_on_the_screen_in_the_report_and_on_the_card(
    built, build, monkeypatch
) -> None:
    archive = EndingArchive(built.basin.panel.times.start + timedelta(hours=99))
    monkeypatch.setattr("candor.river.imerg.sign_in", lambda: archive)
    shutil.copytree(built.cache, "kept")
    code, out, err = build(*BASIN, "--cache", "kept", "--rain")
    assert code == 0, err
    # A row ends its hour: the first hundred rows end until the last published half hour does.
    words = "the rain of 404 of 504 hours is unknown: the archive does not have it yet"
    assert words in " ".join(err.split()) and "months later" in err and words in out
    assert "hint: build again later: only what is lacking is read" in out
    assert np.isnan(load_panel(Path("basin")).covariates["rain"].values).any(axis=1).sum() == 404
    (finding,) = [one for one in read_json(Path("basin/quality.json"))["findings"] if "rain" in one["what"]]
    assert words in finding["what"] and finding["level"] == "warning"
    assert words in Path("basin/card.md").read_text(encoding="utf-8")


def test_the_bar_of_the_command_hears_of_readings_and_of_rain(built, build, monkeypatch) -> None:
    heard: list[tuple[str, float | None]] = []

    @contextmanager
    def collector() -> Iterator[Report]:
        yield lambda what, share: heard.append((what, share))

    monkeypatch.setattr("candor.cli.build_river.progress", collector)
    monkeypatch.setattr("candor.river.imerg.sign_in", lambda: EndingArchive(datetime.now(UTC)))
    shutil.copytree(built.cache, "kept")
    code, _, err = build(*BASIN, "--cache", "kept", "--rain")
    assert code == 0, err
    assert ("fetching readings | fetching readings: 12 of 12 answers", 1.0) in heard
    rain = [share for what, share in heard if what.startswith("reading rain")]
    assert rain[0] == 0.0 and rain[-1] == 1.0 and rain == sorted(rain)


@pytest.fixture
def granules(usgs, monkeypatch, tmp_path) -> Iterator[GranuleServer]:
    """Servers of readings and of one day of rain, with the command logged in: as many mm/h as half hours passed."""
    made_basin.fill(usgs)
    starts = [made_basin.START + (step - 2) * HALF_HOUR for step in range(2 * 24)]
    files = {}
    for step, start in enumerate(starts):
        rates = np.full((20, 20), step, np.float32) + np.arange(20, dtype=np.float32)[:, None] / 64  # more in the east
        path = write_granule(tmp_path / "granule", start, rates, LONGITUDES[1800:1820], LATITUDES[890:910])
        files[name_at(start)] = path.read_bytes()
    with GranuleServer(files).running() as server:
        server.answers = [search_answer(start, server.url) for start in starts]
        login = earthaccess.Auth()
        login.login(strategy="none", system=System(f"{server.url}/search/", "", "", "127.0.0.1"))
        archive = EarthdataArchive(login, RetryPolicy(first_wait=0.0))
        monkeypatch.setattr("candor.river.imerg.sign_in", lambda: archive)
        yield server


def test_a_day_with_rain_is_built_from_both_services_and_the_volume_is_stated_before_it_is_read(
    usgs, granules, build, monkeypatch
) -> None:
    read: set[str] = set()
    read_when_said: dict[str, int] = {}

    def say_and_note(text: str) -> None:
        read_when_said[text] = len(read)
        say(text)

    usgs.sites = usgs.sites[:4]
    day = (*BASIN, "--end", "2021-05-01", "--min-sites", "4", "--min-edges", "3", "--rain")
    granules.before = read.add
    monkeypatch.setattr("candor.cli.build_river.say", say_and_note)
    code, _, err = build(*day)
    assert code == 0, err
    (volume,) = [text for text in read_when_said if "have to be looked into" in text]
    assert "48 half-hourly files" in volume and "GB" in volume and volume in " ".join(err.split())
    assert read_when_said[volume] == 1 and len(read) == 48
    rain = load_panel(Path("basin")).covariates["rain"]
    hours, sites = np.arange(24)[:, None], np.arange(4)
    np.testing.assert_allclose(rain.values, 2 * hours + 0.5 + sites / 64, rtol=1e-6)
    assert rain.unit == "mm/h"

    usgs.requests.clear()
    read.clear()
    code, _, err = build(*day, "--refresh")
    assert code == 0 and usgs.asked("/continuous/")
    assert read == set(), "rain that was read stands"


def test_offline_says_which_answers_are_not_there_and_asks_nobody(usgs, build) -> None:
    made_basin.fill(usgs)
    code, _, err = build(*BASIN, "--offline")
    assert code == 2
    assert "1 of 1 answers are not on disk" in " ".join(err.split())
    assert "--offline" in err and usgs.requests == [] and not Path("basin").exists()


@pytest.fixture
def without_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nobody ever logged in to Earthdata."""
    for name in ("EARTHDATA_TOKEN", "EARTHDATA_USERNAME", "EARTHDATA_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.mark.usefixtures("without_login")
@pytest.mark.parametrize("is_installed", [True, False])
def test_rain_without_a_login_or_its_package_is_told_of_before_the_usgs_is_asked(
    usgs, build, monkeypatch, is_installed: bool
) -> None:
    made_basin.fill(usgs)
    if not is_installed:
        monkeypatch.setitem(sys.modules, "earthaccess", None)
    code, _, err = build(*BASIN, "--rain")
    assert code == 2
    assert ("EARTHDATA_TOKEN" if is_installed else "candor-forecast[river]") in " ".join(err.split())
    assert usgs.requests == []
    assert not Path("basin").exists()


@pytest.mark.usefixtures("without_login")
def test_rain_that_is_all_there_needs_no_login(built, build) -> None:
    halves, cells, days = timedelta(minutes=30), {cell_of(sensor) for sensor in built.basin.panel.sensors}, {}
    times = built.basin.panel.times
    for step in range(2 * times.length):
        start = times.start - timedelta(hours=1) + step * halves
        half_hour = StoredHalfHour("f.V07B.HDF5", np.full(len(cells), 2.0), "2026-01-01T00:00:00+00:00")
        days.setdefault(start.date(), {})[start] = half_hour
    shutil.copytree(built.cache, "kept")
    store = RainStore(Path("kept/rain"), sorted(cells))
    for day, known in days.items():
        store.write(day, known)
    code, _, err = build(*BASIN, "--cache", "kept", "--rain")
    assert code == 0, err
    assert (load_panel(Path("basin")).covariates["rain"].values == 2.0).all()


def test_a_refresh_that_was_broken_off_goes_on_and_a_finished_one_begins_anew(usgs, build) -> None:
    made_basin.fill(usgs)
    usgs.sites = usgs.sites[:7]
    few = (*BASIN, "--end", "2021-05-03", "--min-sites", "7", "--min-edges", "6")
    assert build(*few)[0] == 0
    asked = len(usgs.requests)
    refusal = Trouble("USGS-07&", times=99, status=400, body={"code": "InvalidQuery"})
    usgs.troubles.append(refusal)
    assert build(*few, "--refresh")[0] == 2
    before_the_end = len(usgs.requests) - asked
    usgs.troubles.clear()
    usgs.requests.clear()
    code, _, err = build(*few, "--refresh")
    assert code == 0 and "going on with the refresh" in err
    assert 1 + 7 - before_the_end <= len(usgs.asked("/continuous/")) < 7
    assert usgs.asked("combined-metadata") == []
    usgs.requests.clear()
    code, _, err = build(*few, "--refresh")
    assert code == 0 and "going on" not in err
    assert len(usgs.asked("/continuous/")) == 7 and len(usgs.asked("combined-metadata")) == 1
