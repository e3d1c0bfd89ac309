"""The archive of IMERG over real sockets: search answers, reading by parts, trouble on the way, and the login."""

import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from io import RawIOBase
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import earthaccess
import numpy as np
import pytest
import requests
from earthaccess.system import System
from imerg_granules import LATITUDES, LONGITUDES, GranuleServer, name_at, search_answer, write_granule

from candor.core.errors import InputError
from candor.river.http_ranges import BLOCK, RemoteReader
from candor.river.imerg import EarthdataArchive, ImergCell, granule_of, read_half_hour, sign_in
from candor.river.retries import Clock, Retries, RetryPolicy

START = datetime(2020, 3, 1, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
CELLS = [ImergCell(581, 1321), ImergCell(583, 1318), ImergCell(581, 1320)]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a granule of the whole Earth."""
    rates = np.random.default_rng(0).random((3600, 1800), np.float32)
    return write_granule(tmp_path_factory.mktemp("g") / name_at(START), START, rates).read_bytes()


@pytest.fixture
def server(content: bytes) -> Iterator[GranuleServer]:
    """A server that has one granule."""
    with GranuleServer({name_at(START): content}).running() as running:
        yield running


def archive_at(server: GranuleServer) -> EarthdataArchive:
    """Returns the real archive client, logged in, pointed at the local server and never pausing."""
    login = earthaccess.Auth()
    login.login(strategy="none", system=System(f"{server.url}/search/", "", "", "127.0.0.1"))
    login.token, login.authenticated = {"access_token": "secret"}, True
    return EarthdataArchive(login, RetryPolicy(first_wait=0.0))


class Hasty(Clock):
    """A clock on which pauses are over at once."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float, stop: threading.Event) -> None:
        self.time += seconds


def reader_noting(pauses: list[float]) -> RemoteReader:
    """Returns a reader whose pauses are over at once, and noted."""
    return RemoteReader(requests.Session, Retries(RetryPolicy(first_wait=1.5), pauses.append, Hasty()))


def granule_at(server: GranuleServer, start: datetime = START):
    return granule_of(search_answer(start, server.url))


def assert_nothing_was_carried_twice(server: GranuleServer) -> None:
    spans = sorted(tuple(map(int, wish.removeprefix("bytes=").split("-"))) for _, wish, _ in server.requests)
    assert all(last < first for (_, last), (first, _) in pairwise(spans))


def test_a_recorded_search_answer_has_the_layout_of_those_made_here(real_data: Path) -> None:
    path = real_data.parent / "fixtures" / "imerg" / "cmr_granule_GPM_3IMERGHH.umm_json"
    if not path.is_file():
        pytest.skip("no recorded search answer beside the real data")
    recorded = json.loads(path.read_text())["items"][0]
    with pytest.raises(InputError, match="version 06 of IMERG"):
        granule_of(recorded)
    made = search_answer(START, "https://archive.nasa.gov")
    for part in ("meta", "umm"):
        assert made[part].keys() <= recorded[part].keys()
        assert {key: type(value) for key, value in made[part].items()} == {
            key: type(recorded[part][key]) for key in made[part]
        }


def test_a_search_answer_is_read_and_version_06_refused_by_name() -> None:
    response = search_answer(START, "https://archive.nasa.gov/2020/061")
    granule = granule_of(response)
    assert granule.name == "3B-HHR.MS.MRG.3IMERG.20200301-S000000-E002959.0000.V07B.HDF5"
    assert granule.url == f"https://archive.nasa.gov/2020/061/{granule.name}"
    assert granule.start == START and granule.megabytes == 10.0
    with pytest.raises(InputError, match="version 06 of IMERG") as refused:
        granule_of(search_answer(START, "https://archive.nasa.gov", version="V06B"))
    assert "V06B" in refused.value.where


def test_a_search_asks_for_version_07_of_the_period_and_sorts_the_answers(server: GranuleServer) -> None:
    starts = [START + step * HALF_HOUR for step in (1, 0, 2, 3, -1)]
    server.answers = [search_answer(start, server.url) for start in starts]
    server.answers.insert(0, search_answer(START, server.url, version="V07A"))
    found = archive_at(server).find(START, START + 3 * HALF_HOUR)
    assert set(found) == {START, START + HALF_HOUR, START + 2 * HALF_HOUR}  # neighbours are left out
    assert all(granule.start == start and granule.name == name_at(start) for start, granule in found.items())
    query = server.queries[0]
    assert (query["short_name"], query["version"]) == (["GPM_3IMERGHH"], ["07"])
    assert query["temporal[]"] == ["2020-03-01T00:00:00Z,2020-03-01T01:29:59Z"]


def test_an_answer_without_an_address_is_named() -> None:
    response = search_answer(START, "https://archive.nasa.gov")
    response["umm"]["RelatedUrls"] = [link for link in response["umm"]["RelatedUrls"] if link["Type"] != "GET DATA"]
    with pytest.raises(InputError, match="without an address") as refused:
        granule_of(response)
    assert name_at(START) in refused.value.where


def test_a_search_is_repeated_when_the_service_is_busy_and_given_up_when_it_says_no(server: GranuleServer) -> None:
    server.faults = [429, 503]
    server.answers = [search_answer(START, server.url)]
    assert len(archive_at(server).find(START, START + HALF_HOUR)) == 1
    assert len(server.requests) == 3
    server.always = 400
    with pytest.raises(InputError, match="does not answer"):
        archive_at(server).find(START, START + HALF_HOUR)
    assert len(server.requests) == 4


def test_only_the_parts_with_the_cells_are_carried(server: GranuleServer, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(content)
    rates, carried = archive_at(server).read(granule_at(server), CELLS)
    np.testing.assert_array_equal(rates, read_half_hour(tmp_path / "whole", name_at(START), CELLS))
    assert rates.min() > 0 and len(set(rates.tolist())) == 3
    assert carried < len(content) / 40  # one chunk of 25 in one variable of two, and some of the directory
    assert all(wish and login == "Bearer secret" for _, wish, login in server.requests)
    assert_nothing_was_carried_twice(server)


def test_a_server_that_cannot_send_parts_is_read_whole(server: GranuleServer, content: bytes) -> None:
    server.always = "whole"
    rates, carried = archive_at(server).read(granule_at(server), CELLS)
    assert carried == len(content) and rates.min() > 0 and len(server.requests) == 1


def test_trouble_that_passes_changes_nothing(server: GranuleServer) -> None:
    calm, carried = archive_at(server).read(granule_at(server), CELLS)
    server.faults = [503, "cut", 429, 500, "cut"]
    rates, carried_again = archive_at(server).read(granule_at(server), CELLS)
    np.testing.assert_array_equal(rates, calm)
    assert carried_again == carried


def test_the_pauses_double_and_obey_the_service(server: GranuleServer) -> None:
    pauses: list[float] = []
    reader = reader_noting(pauses)
    server.always, server.headers = 503, {}
    with pytest.raises(InputError, match="does not answer") as refused:
        reader.read(f"{server.url}/{name_at(START)}", RawIOBase.readall)
    assert pauses == [1.5, 3, 6, 12, 24] and len(server.requests) == 6
    assert "is kept" in refused.value.hint
    pauses.clear()
    server.headers = {"Retry-After": "7"}
    with pytest.raises(InputError):
        reader.read(f"{server.url}/{name_at(START)}", RawIOBase.readall)
    assert pauses == [7] * 5


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_long_pause_is_kept_and_one_that_is_too_long_is_not_begun(server: GranuleServer, form: str) -> None:
    def asks_for(seconds: float) -> dict[str, str]:
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
        return {"Retry-After": str(int(seconds)) if form == "seconds" else date}

    pauses: list[float] = []
    reader, url = reader_noting(pauses), f"{server.url}/{name_at(START)}"
    server.faults, server.headers = [429], asks_for(3000)
    assert len(reader.read(url, lambda file: file.read(5))[0]) == 5
    assert pauses == [pytest.approx(3000, abs=60)], "an hourly quota is waited for, not asked at every two minutes"
    asked = len(server.requests)
    server.always, server.headers = 429, asks_for(RetryPolicy().longest_wait + 600)
    with pytest.raises(InputError, match="does not answer") as refused:
        reader.read(url, lambda file: file.read(5))
    assert "is kept" in refused.value.hint and len(pauses) == 1 and len(server.requests) == asked + 1


def test_a_pause_until_a_date_that_has_passed_is_none_and_nonsense_is_not_obeyed(server: GranuleServer) -> None:
    pauses: list[float] = []
    for asked, expected in (("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", 1.5)):
        server.faults, server.headers = [503], {"Retry-After": asked}
        reader_noting(pauses).read(f"{server.url}/{name_at(START)}", lambda file: file.read(5))
        assert pauses.pop() == expected


def test_a_part_from_another_place_is_refused(server: GranuleServer) -> None:
    server.faults = ["shifted"]
    with pytest.raises(InputError, match="another part of the file"):
        archive_at(server).read(granule_at(server), CELLS)


@pytest.mark.parametrize("refusal", [401, 403, "page"])
def test_a_login_that_may_not_read_is_told_what_to_approve(server: GranuleServer, refusal: int | str) -> None:
    server.always = refusal
    with pytest.raises(InputError, match="login") as refused:
        archive_at(server).read(granule_at(server), CELLS)
    assert "NASA GESDISC DATA ARCHIVE" in refused.value.hint
    assert len(server.requests) == 1, "a refusal does not pass by asking again"


def test_a_file_that_is_gone_is_no_error(server: GranuleServer) -> None:
    assert archive_at(server).read(granule_at(server, START + HALF_HOUR), CELLS) is None


def test_a_file_is_read_at_any_place_in_any_order(server: GranuleServer, content: bytes) -> None:
    size, generator = len(content), np.random.default_rng(1)
    places = [(0, 10), (BLOCK - 1, 2), (size - 5, 50), *((int(generator.integers(size)), 70_000) for _ in range(5))]

    def use(file: RawIOBase) -> list[bytes | None]:
        parts = []
        for place, length in places:
            assert file.seek(place) == file.tell() == place
            parts.append(file.read(length))
        assert file.seek(-3, 2) == size - 3 and file.seek(1, 1) == size - 2
        return [*parts, file.read(9)]

    parts, carried = reader_noting([]).read(f"{server.url}/{name_at(START)}", use)
    assert parts == [*(content[place : place + length] for place, length in places), content[-2:]]
    assert carried < size
    assert_nothing_was_carried_twice(server)


def test_four_files_are_under_way_at_once(tmp_path: Path) -> None:
    starts = [START + step * HALF_HOUR for step in range(4)]
    generator, files = np.random.default_rng(2), {}
    for start in starts:
        rates = generator.random((300, 1800), np.float32)
        path = write_granule(tmp_path / name_at(start), start, rates, LONGITUDES[500:800], LATITUDES)
        files[path.name] = path.read_bytes()
    # Each request waits for those of the three other files: if h5py held its lock meanwhile, they would never come.
    meeting = threading.Barrier(4, timeout=20)
    with GranuleServer(files).running() as server, ThreadPoolExecutor(4) as pool:
        server.before = lambda name: meeting.wait()
        archive = archive_at(server)
        found = list(pool.map(lambda start: archive.read(granule_at(server, start), CELLS), starts))
    assert len(server.requests) > 8
    for start, (rates, _) in zip(starts, found, strict=True):
        np.testing.assert_array_equal(rates, read_half_hour(tmp_path / name_at(start), name_at(start), CELLS))


@pytest.fixture
def without_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nobody ever logged in to Earthdata."""
    for name in ("EARTHDATA_TOKEN", "EARTHDATA_USERNAME", "EARTHDATA_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.mark.usefixtures("without_login")
def test_a_missing_login_is_explained_with_every_way_to_log_in(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a login at NASA's Earthdata") as refused:
        sign_in()
    for words in ("https://urs.earthdata.nasa.gov", "NASA GESDISC DATA ARCHIVE", "EARTHDATA_TOKEN", ".netrc"):
        assert words in refused.value.hint
    (tmp_path / "no-netrc").write_text("machine example.org login a password b\n")
    with pytest.raises(InputError, match="needs a login"):
        sign_in()


@pytest.mark.usefixtures("without_login")
def test_a_token_in_the_environment_is_a_login(server: GranuleServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EARTHDATA_TOKEN", "from-the-environment")
    rates, _ = sign_in().read(granule_at(server), CELLS)
    assert rates.min() > 0 and {login for _, _, login in server.requests} == {"Bearer from-the-environment"}


@pytest.mark.usefixtures("without_login")
@pytest.mark.parametrize("place", ["environment", "netrc"])
def test_a_refused_password_and_an_unreachable_service_are_told_apart(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "environment":
        monkeypatch.setenv("EARTHDATA_USERNAME", "ann")
        monkeypatch.setenv("EARTHDATA_PASSWORD", "wrong")
    else:
        (tmp_path / "no-netrc").write_text("machine urs.earthdata.nasa.gov login ann password wrong\n")
    no = SimpleNamespace(ok=False, text="invalid credentials")
    monkeypatch.setattr(earthaccess.Auth, "_find_or_create_token", lambda self: no)
    with pytest.raises(InputError, match="Earthdata refuses the login") as refused:
        sign_in()
    assert ("EARTHDATA_USERNAME" if place == "environment" else ".netrc") in refused.value.where

    def unreachable(self: earthaccess.Auth) -> None:
        raise requests.ConnectionError("no route to host")

    monkeypatch.setattr(earthaccess.Auth, "_find_or_create_token", unreachable)
    with pytest.raises(InputError, match=r"cannot be reached \(no route to host\)") as refused:
        sign_in()
    assert "network" in refused.value.hint


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "earthaccess", None)
    with pytest.raises(InputError, match="package earthaccess") as refused:
        sign_in()
    assert "candor-forecast[river]" in refused.value.hint
