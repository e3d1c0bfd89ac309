"""Running a service: from run directories to a process that answers until it is told to stop."""

import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from types import FrameType

import pooch
import uvicorn

from candor.core.errors import InputError
from candor.runs.bundle import demo_bundle
from candor.service.app import make_service
from candor.service.connection import patient_protocol
from candor.service.limits import Doors
from candor.service.metrics import Metrics
from candor.service.security import check_binding
from candor.service.served import name_of, open_models
from candor.service.settings import ServiceSettings

STORE_FOLDER = ".candor-service"
_PLACE_LETTERS = 12
_BACKLOG = 2048
_LAST_SECONDS = 5  # for connections that do not close once the last request is answered
log = logging.getLogger("candor.service")
Tell = Callable[[str], None]


class Server(uvicorn.Server):
    """uvicorn with an orderly end: on a signal new requests are refused, accepted ones answered, then it is 0."""

    def __init__(self, config: uvicorn.Config, doors: Doors, drain_seconds: float, tell: Tell) -> None:
        super().__init__(config)
        self._doors = doors
        self._drain_seconds = drain_seconds
        self._tell = tell
        self._latest_end = float("inf")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen, and says where."""
        await super().startup(sockets)
        for listening in sockets or []:
            host, port = listening.getsockname()[:2]
            self._tell(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins to stop; a second Ctrl-C stops at once."""
        if self._doors.is_closing and sig == signal.SIGINT:
            self.force_exit = self.should_exit = True
        self._doors.is_closing = True
        self._latest_end = min(self._latest_end, time.monotonic() + self._drain_seconds)

    async def on_tick(self, counter: int) -> bool:
        """Returns whether to end, several times a second."""
        if self._doors.is_closing and (self._doors.inside == 0 or time.monotonic() > self._latest_end):
            self.should_exit = True
        return await super().on_tick(counter)


def serve(sources: Sequence[Path], settings: ServiceSettings, tell: Tell = log.info) -> None:
    """Serves runs until a signal ends it.

    Args:
        sources: run directories or bundles.
        settings: how.
        tell: is told where the service listens, once it does.
    """
    server, listening = prepare(sources, settings, tell)
    server.run(sockets=[listening])


def prepare(sources: Sequence[Path], settings: ServiceSettings, tell: Tell) -> tuple[Server, socket.socket]:
    """Returns a server with all models open, and the socket that it is to listen at."""
    check_binding(settings)
    listening = bind(settings.host, settings.port)
    try:
        metrics = Metrics()
        models = open_models(sources, settings, metrics, lambda source: store_file(source, settings.store))
    except BaseException:
        listening.close()
        raise
    service = make_service(models, settings, metrics)
    config = uvicorn.Config(
        service.app,
        http=patient_protocol(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )
    return Server(config, service.doors, settings.drain_seconds, tell), listening


def store_file(source: Path, folder: Path | None) -> Path:
    """Returns the file for readings of a run: beside it, so that a newly trained run leaves it alone, or in a folder.

    In a folder that runs of several places share, the place is part of the name. A link is not followed: where it leads
    to another run tomorrow, the readings stay. The package, with the demo in it, may lie where nobody can write.
    """
    name = name_of(source)
    if folder is None and source == demo_bundle():
        folder = Path(pooch.os_cache("candor")) / "service"
    if folder is None:
        return source.parent / STORE_FOLDER / f"{source.name or name}.sqlite"  # klamath.zip is not klamath
    place = sha256(os.fsencode(source.parent.resolve() / source.name)).hexdigest()
    return folder / f"{name}-{place[:_PLACE_LETTERS]}.sqlite"


def bind(host: str, port: int) -> socket.socket:
    """Returns a socket that listens at an address."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"the service cannot listen at {host}, port {port} ({error})",
            hint="choose another --port, or end what listens there",
        ) from None
