"""A server of the USGS services on this machine, and clients whose pauses are short."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import certifi
import made_basin
import pytest
import three_sites as of_three_sites
from usgs_server import UsgsServer, served_by

from candor.cli import run
from candor.river.build import Basin, build_basin
from candor.river.cache import ResponseCache
from candor.river.client import ServiceClient
from candor.river.retries import RetryPolicy

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one certificate: clients load all they are given for each request, and none is needed here."""
    end = "-----END CERTIFICATE-----"
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(certifi.contents().partition(end)[0] + end + "\n", encoding="utf-8")
    return path


@contextmanager
def _local_usgs(authority: Path) -> Iterator[UsgsServer]:
    with pytest.MonkeyPatch.context() as patch, UsgsServer() as server, served_by(server):
        patch.setenv("SSL_CERT_FILE", str(authority))
        patch.setattr("dataretrieval.transport.retry._RETRY_BASE_BACKOFF", 0.001)
        patch.setattr("dataretrieval.transport.retry._RETRY_AFTER_JITTER", 0.001)
        yield server


@pytest.fixture
def usgs(one_authority: Path) -> Iterator[UsgsServer]:
    """The server, with the clients pointed at it."""
    with _local_usgs(one_authority) as server:
        yield server


@pytest.fixture
def three_sites(usgs: UsgsServer) -> None:
    """Lets the server have a day of readings of three sites."""
    usgs.observations = of_three_sites.observations()


@dataclass(frozen=True)
class Built:
    """A basin that was built once from a server that is gone, where its answers are kept, and what was asked."""

    basin: Basin
    cache: Path
    requests: tuple[str, ...]

    def client(self) -> ServiceClient:
        """Returns an asker that knows all answers."""
        return ServiceClient(ResponseCache(self.cache))


@pytest.fixture(scope="session")
def built(one_authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The made basin, for tests that look at it."""
    cache = tmp_path_factory.mktemp("built") / "cache"
    with _local_usgs(one_authority) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr("dataretrieval.nldi._AVAILABLE_DATA_SOURCES", None)  # as in a program that just began
        patch.setattr("candor.river.readings.PAGE", 400)  # the readings of a site fill several
        made_basin.fill(server)
        basin = build_basin(made_basin.RULES, ServiceClient(ResponseCache(cache)))
        return Built(basin, cache, tuple(f"{server.address}{path}" for path in server.requests))


@pytest.fixture
def client(usgs: UsgsServer, tmp_path: Path) -> ServiceClient:
    """A client of the server whose pauses are short."""
    return ServiceClient(ResponseCache(tmp_path / "cache"), RetryPolicy(first_wait=0.001, quota_wait=0.001, attempts=4))


@pytest.fixture
def build(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs the command in an empty folder and returns its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("API_USGS_PAT", raising=False)

    def call(*options: object) -> tuple[int, str, str]:
        code = run(["data", "build-river", "--out", "basin", "--cache", "cache", *map(str, options)])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call
