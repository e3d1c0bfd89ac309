"""The process that serves: opens runs, assembles the application, listens, and shuts down in good order."""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import h11
import pooch
import uvicorn
from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from candor import __version__
from candor.core.errors import InputError
from candor.runs.bundle import demo_bundle
from candor.service import middleware
from candor.service.auth import check_binding
from candor.service.errors import RefusedError, add_error_handlers
from candor.service.metrics import Metrics
from candor.service.models import Models, name_of, open_models
from candor.service.page import page_routes
from candor.service.routes import forecast_routes, model_routes, reading_routes, state_routes
from candor.service.settings import ServiceSettings

_DESCRIPTION = (
    "Forecasts of a network of sensors. Times are ISO 8601; answers carry the offset of the model's zone. Numbers are "
    "in the unit of their sensor. Every error has the same shape."
)
STORE_FOLDER = ".candor-service"
_DIGEST_LETTERS = 12
_BACKLOG = 2048
_CLOSING_SECONDS = 5  # for connections that do not close once the last request is answered
log = logging.getLogger("candor.service")
Announce = Callable[[str], None]


class Server(uvicorn.Server):
    """uvicorn with a graceful shutdown: new requests are refused, accepted ones answered, and the exit code is 0."""

    def __init__(
        self, config: uvicorn.Config, drain: middleware.ConnectionDrain, drain_seconds: float, announce: Announce
    ) -> None:
        super().__init__(config)
        self._drain = drain
        self._drain_seconds = drain_seconds
        self._announce = announce
        self._deadline = float("inf")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and announces the address."""
        await super().startup(sockets)
        for listening in sockets or []:
            host, port = listening.getsockname()[:2]
            self._announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start the shutdown; a second Ctrl-C stops at once."""
        if self._drain.is_closing and sig == signal.SIGINT:
            self.force_exit = self.should_exit = True
        self._drain.is_closing = True
        self._deadline = min(self._deadline, time.monotonic() + self._drain_seconds)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to exit; uvicorn asks several times a second."""
        if self._drain.is_closing and (self._drain.in_progress == 0 or time.monotonic() > self._deadline):
            self.should_exit = True
        return await super().on_tick(counter)


class TimeoutProtocol(H11Protocol):
    """A connection that is aborted when the client takes too long to send a request's head or to read a response.

    uvicorn alone waits for both without a limit. Malformed requests get the error shape of the service.
    """

    settings: ClassVar[ServiceSettings]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer("head")
        self._stop_timer("reading")
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer("reading", self.settings.reading_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer("reading")

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:  # a response is being sent already
            self.transport.abort()
            return
        what = "this is not a request that can be read"
        response = RefusedError(
            400, "bad_http", what, hint="speak HTTP/1.1", headers={"Connection": "close"}
        ).response()
        for event in (
            h11.Response(status_code=400, headers=response.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch_head(self) -> None:
        """Start the timer while a request is awaited, and stop it once its head has arrived.

        Between requests uvicorn's keep-alive timer runs instead, until the first byte of the next one.
        """
        if self.conn.their_state is not h11.IDLE or self.timeout_keep_alive_task is not None:
            self._stop_timer("head")
        else:
            self._start_timer("head", self.settings.header_seconds)

    def _start_timer(self, name: str, seconds: float) -> None:
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, self.transport.abort)

    def _stop_timer(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()


def make_service(
    models: Models, settings: ServiceSettings, metrics: Metrics
) -> tuple[ASGIApp, middleware.ConnectionDrain]:
    """Return the service of some models, which closes them when it ends, and the middleware that shuts it down."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Python runs one thread at a time: more of them would only delay the event loop.
        current_default_thread_limiter().total_tokens = settings.threads
        models.start()
        try:
            yield
        finally:
            models.close()

    app = FastAPI(
        title="candor", version=__version__, description=_DESCRIPTION, lifespan=lifespan,
        openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None, redirect_slashes=False,
    )  # fmt: skip
    add_error_handlers(app)
    app.include_router(state_routes(models, metrics))
    # AccessControl checks the token; the dependency only makes the OpenAPI document mention it.
    guards = [] if settings.token is None else [Depends(HTTPBearer(auto_error=False))]
    for routes in (
        model_routes(models, settings),
        forecast_routes(models, settings),
        reading_routes(models, settings, metrics),
    ):
        app.include_router(routes, prefix="/v1", dependencies=guards)
    app.include_router(page_routes())
    limited = middleware.BodyLimit(middleware.ConcurrencyLimit(app, settings.most_waiting), settings)
    drain = middleware.ConnectionDrain(middleware.AccessControl(limited, settings))
    return middleware.MeasuredRequests(middleware.SecurityHeaders(drain), metrics), drain


def serve(sources: Sequence[Path], settings: ServiceSettings, announce: Announce = log.info) -> None:
    """Serve runs or bundles until a signal ends it; `announce` is called with the address once the service listens."""
    server, listening = prepare(sources, settings, announce)
    server.run(sockets=[listening])


def prepare(sources: Sequence[Path], settings: ServiceSettings, announce: Announce) -> tuple[Server, socket.socket]:
    """Return a server with all models open, and the socket that it is to listen at."""
    check_binding(settings)
    listening = bind(settings.host, settings.port)
    try:
        metrics = Metrics()
        models = open_models(sources, settings, metrics, lambda source: store_file(source, settings.store))
    except BaseException:
        listening.close()
        raise
    app, drain = make_service(models, settings, metrics)
    config = uvicorn.Config(
        app,
        http=type("Connection", (TimeoutProtocol,), {"settings": settings}),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    return Server(config, drain, settings.drain_seconds, announce), listening


def store_file(source: Path, folder: Path | None) -> Path:
    """Return the file for readings of a run: beside it, so that a newly trained run leaves it alone, or in a folder.

    In a folder that runs of several places share, the place is part of the name. A link is not followed: where it leads
    to another run tomorrow, the readings stay. The package, with the demo in it, may lie where nobody can write.
    """
    name = name_of(source)
    if folder is None and source == demo_bundle():
        folder = Path(pooch.os_cache("candor")) / "service"
    if folder is None:
        return source.parent / STORE_FOLDER / f"{source.name or name}.sqlite"  # klamath.zip is not klamath
    place = sha256(os.fsencode(source.parent.resolve() / source.name)).hexdigest()
    return folder / f"{name}-{place[:_DIGEST_LETTERS]}.sqlite"


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"the service cannot listen at {host}, port {port} ({error})",
            hint="choose another --port, or end what listens there",
        ) from None
