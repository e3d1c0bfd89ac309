"""ASGI middleware around the application: metrics, security headers, shutdown, access control, and limits on demand."""

import asyncio
import hmac
import math
import time
from abc import ABC, abstractmethod

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from candor.service.auth import is_loopback, is_loopback_address
from candor.service.errors import RefusedError
from candor.service.metrics import Metrics, path_template
from candor.service.settings import ServiceSettings

_LINGER_SECONDS = 2.0
_MOST_RETRY_SECONDS = 30
_MEMORY = 0.9  # weight of the past in the moving average of the duration of requests
# plotly sets inline styles as it draws, and exports charts as data and blob URLs.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Middleware(ABC):
    """Handles the HTTP requests to an application; whatever else the server sends passes through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle what the server sends."""
        await (self._handle if scope["type"] == "http" else self._app)(scope, receive, send)

    @abstractmethod
    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""


def overload(seconds: float = 1.0) -> RefusedError:
    """Return the refusal of a request when the service is at its limit, to be sent again after so many seconds."""
    wait = str(min(max(math.ceil(seconds), 1), _MOST_RETRY_SECONDS))
    what, hint = "too many requests wait already", f"come back in {wait} s"
    return RefusedError(429, "overload", what, hint=hint, headers={"Retry-After": wait})


async def refuse(refusal: RefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request whose body may not have been read.

    Closing a connection while bytes still arrive resets it, and the client may lose the response. So the response is
    sent at once, and the rest of the body is read and discarded for `_LINGER_SECONDS` before the connection is closed.
    """
    is_unread = _has_body(scope)
    if is_unread:
        refusal.headers["Connection"] = "close"
    response = refusal.response()
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": is_unread})
    if is_unread:
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                    pass
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _has_body(scope: Scope) -> bool:
    names = {name for name, value in scope["headers"] if value != b"0"}
    return not names.isdisjoint({b"content-length", b"transfer-encoding"})


def _is_private(scope: Scope) -> bool:
    """Return whether a request is for data: it needs the token, and its response is not to be cached."""
    path: str = scope["path"]
    return path.startswith("/v1/") or path == "/metrics"


class MeasuredRequests(Middleware):
    """Counts and times the requests of an application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, begun, status = path_template(scope["path"]), time.perf_counter(), 500

        async def send_and_time(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._metrics.seconds.labels(path).observe(time.perf_counter() - begun)
            await send(message)

        self._metrics.in_progress.inc()
        try:
            await self._app(scope, receive, send_and_time)
        finally:
            self._metrics.in_progress.dec()
            self._metrics.requests.labels(path, str(status)).inc()


class SecurityHeaders(Middleware):
    """Adds security headers to every response; responses with data are not to be cached."""

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        uncached = [(b"cache-control", b"no-store")] if _is_private(scope) else []

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS, *uncached]}
            await send(message)

        await self._app(scope, receive, send_guarded)


class ConnectionDrain(Middleware):
    """Counts requests in progress, and answers new ones with 503 once the service shuts down."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self.in_progress = 0
        self.is_closing = False

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/healthz":
            await self._app(scope, receive, send)
        elif self.is_closing:
            headers = {"Retry-After": "5", "Connection": "close"}
            what, hint = "the service is about to stop", "ask again when another one runs"
            refusal = RefusedError(503, "shutting_down", what, hint=hint, headers=headers)
            await refuse(refusal, scope, receive, send)
        else:
            self.in_progress += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self.in_progress -= 1


class AccessControl(Middleware):
    """Checks the token, if there is one, and for a service of this machine alone the Host header.

    Without a token a foreign page in the user's browser could reach the service by DNS rebinding. Its requests carry a
    foreign host name, and are refused.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        super().__init__(app)
        self._token = None if settings.token is None else settings.token.get_secret_value().encode()
        self._is_local = self._token is None and not settings.allow_open and is_loopback(settings.host)
        self._host = settings.host.lower()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (refusal := self._refusal(scope)) is not None:
            await refuse(refusal, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> RefusedError | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._is_local and not self._is_own_host(headers.get(b"host", b"")):
            what = "the service is for this machine only, and was asked for under another name"
            hint = "use http://127.0.0.1, or start it with a token (--token-file)"
            return RefusedError(421, "wrong_host", what, where="header Host", hint=hint)
        if self._token is None or not _is_private(scope):
            return None
        scheme, _, sent = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(sent.strip(), self._token):
            return None
        what = "the token is not the right one" if sent else "a token is needed"
        hint = "send the header Authorization: Bearer TOKEN; whoever runs the service knows the token"
        headers_out = {"WWW-Authenticate": "Bearer"}
        return RefusedError(401, "unauthorized", what, where="header Authorization", hint=hint, headers=headers_out)

    def _is_own_host(self, host: bytes) -> bool:
        name = host.decode("latin-1").lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        return name in ("", "localhost", self._host) or is_loopback_address(name)


class BodyLimit(Middleware):
    """Reads the bodies of requests before the application sees them, none larger or slower than the settings allow.

    A slow client so occupies no slot of `ConcurrencyLimit` while it sends.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        super().__init__(app)
        self._settings = settings
        self._bytes_in_memory = 0  # of all bodies

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _has_body(scope):
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                is_whole = await self._read(scope, receive, body)
        except (TimeoutError, RefusedError) as error:
            what = f"the body did not arrive within {self._settings.body_seconds:g} s"
            too_slow = RefusedError(408, "too_slow", what, where="body", hint="send it faster")
            await refuse(error if isinstance(error, RefusedError) else too_slow, scope, receive, send)
        else:
            if is_whole:  # otherwise the client has disconnected
                await self._app(scope, _replay(bytes(body), receive), send)
        finally:
            self._bytes_in_memory -= len(body)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Append the body as it streams in; returns whether it is complete."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        self._check(int(declared) if declared.isdigit() else 0)
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return False
            part = message.get("body", b"")
            body += part
            self._bytes_in_memory += len(part)
            self._check(len(body))
            if self._bytes_in_memory > self._settings.most_held_bytes:
                raise overload()
            if not message.get("more_body", False):
                return True

    def _check(self, size: int) -> None:
        most = self._settings.most_body_bytes
        if size > most:
            what = f"the body is larger than {most:,} bytes"
            raise RefusedError(413, "too_large", what, where="body", hint="send fewer readings at a time")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a body that was read already, then the further messages of the client."""
    parts = [body]

    async def receive_again() -> Message:
        return {"type": "http.request", "body": parts.pop(), "more_body": False} if parts else await receive()

    return receive_again


class ConcurrencyLimit(Middleware):
    """Lets so many requests work or wait at a time; further ones get 429 with a Retry-After.

    Retry-After is the usual duration of a request: a client that returns by then finds a free slot. With a shorter
    time, answering refusals would take the processor from the work itself.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        super().__init__(app)
        self._free = most
        self._usual_seconds = 0.0  # exponential moving average

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        if self._free <= 0:
            # The body has been read, so that the connection can stay open.
            await overload(self._usual_seconds).response()(scope, receive, send)
            return
        self._free -= 1
        is_taken, begun = True, time.monotonic()

        def release() -> None:
            nonlocal is_taken
            if is_taken:
                self._free += 1
                duration = time.monotonic() - begun
                self._usual_seconds = _MEMORY * self._usual_seconds + (1 - _MEMORY) * duration
            is_taken = False

        async def send_and_release(message: Message) -> None:
            release()  # the work is done: a client that reads slowly must not occupy a slot
            await send(message)

        try:
            await self._app(scope, receive, send_and_release)
        finally:
            release()
