"""Runs to serve, and services that really listen: each test talks to one over a socket."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from made_runs import make_run, river
from tiny import PROTOCOL, tiny_recipe

from candor.data.panel import Panel
from candor.service.server import Server, prepare
from candor.service.settings import ServiceSettings

Start = Callable[..., "Live"]


@dataclass(frozen=True)
class Live:
    """A service that listens, and a client of it."""

    url: str
    client: httpx.Client
    server: Server

    @property
    def port(self) -> int:
        """Where it listens."""
        return httpx.URL(self.url).port or 0

    def get(self, path: str, **parameters: Any) -> Any:
        """Returns the content of an answer that must be good."""
        answer = self.client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, **body: Any) -> Any:
        """Returns the content of an answer that must be good."""
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refusal(self, method: str, path: str, **request: Any) -> tuple[int, dict[str, str]]:
        """Returns status and error of an answer that must be in the shape of errors."""
        answer = self.client.request(method, path, **request)
        assert answer.headers["content-type"] == "application/json", answer.text
        content = answer.json()
        assert set(content) == {"error"} and set(content["error"]) == {"code", "what", "where", "hint"}
        return answer.status_code, content["error"]


@contextmanager
def listening(sources: Sequence[Path], **settings: Any) -> Iterator[Live]:
    """Yields a service of runs in a thread of this process, at a free port."""
    addresses: list[str] = []
    is_up = threading.Event()

    def announce(address: str) -> None:
        addresses.append(address)
        is_up.set()

    server, socket = prepare(sources, ServiceSettings(port=0, **settings), announce)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        assert is_up.wait(60), "the service did not start"
        # Machines that run tests are busy: patience here is no part of what is tested.
        with httpx.Client(base_url=addresses[0], timeout=120, trust_env=False) as client:
            yield Live(addresses[0], client, server)
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join(60)
    assert not thread.is_alive(), "the service did not stop"


class _Hurried:
    """What uvicorn knows of asyncio, with looks at whether to end ten times as often: a test waits for two of them."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 10)


@pytest.fixture(scope="session", autouse=True)
def hurried_end() -> Iterator[None]:
    """Services end within moments once they are told to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", _Hurried())
        yield


@pytest.fixture(scope="session")
def panel() -> Panel:
    """The readings that all runs here were trained on."""
    return river()


@pytest.fixture(scope="session")
def candor_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small CANDOR, trained for an epoch."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    return make_run(folder, "candor", PROTOCOL, recipe=tiny_recipe(epochs=1))


@pytest.fixture(scope="session")
def linear_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that explains nothing."""
    return make_run(tmp_path_factory.mktemp("runs") / "plain")


@pytest.fixture(scope="session")
def live(candor_run: Path, linear_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service of both runs that no test changes."""
    with listening([candor_run, linear_run], store=tmp_path_factory.mktemp("store")) as service:
        yield service


@pytest.fixture(scope="module")
def attacked(candor_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service that clients may send anything to."""
    with listening([candor_run], store=tmp_path_factory.mktemp("store")) as service:
        yield service


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts services of a test's own, which end with it."""
    with ExitStack() as stack:
        yield partial(_start, stack, tmp_path)


@pytest.fixture(scope="module")
def start_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts services that several tests of a file talk to."""
    with ExitStack() as stack:
        yield lambda *sources, **settings: _start(stack, tmp_path_factory.mktemp("started"), *sources, **settings)


def _start(stack: ExitStack, folder: Path, *sources: Path, **settings: Any) -> Live:
    return stack.enter_context(listening(sources, **{"store": folder / "store"} | settings))


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Runs Python in another process, which is killed with the test if it has not ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: object, **environment: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def sendable() -> Callable[[Panel], list[dict[str, Any]]]:
    """Turns the readings of a panel into what clients send."""

    def readings(panel: Panel) -> list[dict[str, Any]]:
        times = [moment.isoformat() for moment in panel.times.local]
        return [
            {"time": time, "sensor": sensor, "value": None if value != value else float(value)}
            for time, row in zip(times, panel.values, strict=True)
            for sensor, value in zip(panel.sensor_ids, row, strict=True)
        ]

    return readings
