"""ASGI middleware that bounds what clients can demand: body size and time, concurrent requests, and shutdown."""

import asyncio
import math
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from candor.service.errors import RefusedError
from candor.service.settings import ServiceSettings

_LINGER_SECONDS = 2.0
_MOST_RETRY_SECONDS = 30
_MEMORY = 0.9  # weight of the past in the moving average of the duration of requests


def overload(seconds: float = 1.0) -> RefusedError:
    """Returns the refusal of a request when the service is at its limit, to be sent again after so many seconds."""
    wait = min(max(math.ceil(seconds), 1), _MOST_RETRY_SECONDS)
    return RefusedError(
        429, "overload", "too many requests wait already",
        hint=f"come back in {wait} s", headers={"Retry-After": str(wait)},
    )  # fmt: skip


async def refuse(refusal: RefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request whose body may not have been read.

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


class BodyLimit:
    """Reads the bodies of requests before the application sees them, none larger or slower than the settings allow.

    A slow client so occupies no slot of `ConcurrencyLimit` while it sends.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._settings = settings
        self._bytes_in_memory = 0  # of all bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            try:
                async with asyncio.timeout(self._settings.body_seconds):
                    is_whole = await self._read(scope, receive, body)
            except TimeoutError:
                what = f"the body did not arrive within {self._settings.body_seconds:g} s"
                await refuse(
                    RefusedError(408, "too_slow", what, where="body", hint="send it faster"), scope, receive, send
                )
                return
            except RefusedError as refusal:
                await refuse(refusal, scope, receive, send)
                return
            if is_whole:  # otherwise the client has disconnected
                await self._app(scope, _replay(bytes(body), receive), send)
        finally:
            self._bytes_in_memory -= len(body)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Appends the body as it streams in; returns whether it is complete."""
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
    """Returns a `receive` that yields a body that was read already, then the further messages of the client."""
    parts = [body]

    async def receive_again() -> Message:
        return {"type": "http.request", "body": parts.pop(), "more_body": False} if parts else await receive()

    return receive_again


class ConcurrencyLimit:
    """Lets so many requests work or wait at a time; further ones get 429 with a Retry-After.

    Retry-After is the usual duration of a request: a client that returns by then finds a free slot. With a shorter
    time, answering refusals would take the processor from the work itself.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._free = most
        self._usual_seconds = 0.0  # exponential moving average

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or not scope["path"].startswith("/v1/"):
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


class ConnectionDrain:
    """Counts requests in progress, and answers new ones with 503 once the service shuts down."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.in_progress = 0
        self.is_closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self._app(scope, receive, send)
            return
        if self.is_closing:
            refusal = RefusedError(
                503, "shutting_down", "the service is about to stop",
                hint="ask again when another one runs", headers={"Retry-After": "5", "Connection": "close"},
            )  # fmt: skip
            await refuse(refusal, scope, receive, send)
            return
        self.in_progress += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.in_progress -= 1
