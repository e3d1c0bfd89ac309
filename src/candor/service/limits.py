"""What keeps the service on its feet: bodies of bounded size and patience, a bounded queue, and an orderly end."""

import asyncio
import math
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from candor.service.errors import RefusedError
from candor.service.settings import ServiceSettings

_LINGER_SECONDS = 2.0
_MOST_RETRY_SECONDS = 30
_MEMORY = 0.9  # how much of what was usual stays, when a request was answered


def overload(seconds: float = 1.0) -> RefusedError:
    """Returns the refusal of a request that comes at a bad moment, and may come back in so many seconds."""
    wait = min(max(math.ceil(seconds), 1), _MOST_RETRY_SECONDS)
    return RefusedError(
        429, "overload", "too many requests wait already",
        hint=f"come back in {wait} s", headers={"Retry-After": str(wait)},
    )  # fmt: skip


async def refuse(refusal: RefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request whose body may not have been read.

    A connection that is closed while bytes arrive is reset, and the client may never see the answer. So the answer goes
    out at once, and what arrives after it is thrown away for a moment before the connection is closed.
    """
    is_unread = _has_body(scope)
    if is_unread:
        refusal.headers["Connection"] = "close"
    answer = refusal.answer()
    await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": is_unread})
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
    """Reads the bodies of requests for an application, none larger or slower than the settings allow.

    A request gets on only when its body is there, so that slow clients hold nothing that others wait for.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._settings = settings
        self._held = 0  # bytes of all bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
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
            if is_whole:  # if not, the client has left
                await self._app(scope, _replay(bytes(body), receive), send)
        finally:
            self._held -= len(body)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Adds the body as it streams in; returns whether it came to its end."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        self._check(int(declared) if declared.isdigit() else 0)
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return False
            part = message.get("body", b"")
            body += part
            self._held += len(part)
            self._check(len(body))
            if self._held > self._settings.most_held_bytes:
                raise overload()
            if not message.get("more_body", False):
                return True

    def _check(self, size: int) -> None:
        most = self._settings.most_body_bytes
        if size > most:
            what = f"the body is larger than {most:,} bytes"
            raise RefusedError(413, "too_large", what, where="body", hint="send fewer readings at a time")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Returns a way to receive a body that was read already; after it comes what the client does next."""
    parts = [body]

    async def receive_again() -> Message:
        return {"type": "http.request", "body": parts.pop(), "more_body": False} if parts else await receive()

    return receive_again


class Slots:
    """Lets so many requests work or wait at a time, and tells further ones to come back.

    Those who come back after as long as a request usually takes find the place of one that was there before them; if
    they came sooner, answering them would keep the service from its work.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._free = most
        self._usual_seconds = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http" or not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        if self._free <= 0:
            refusal = overload(self._usual_seconds)
            await refusal.answer()(scope, receive, send)  # the body is read: the connection can stay
            return
        self._free -= 1
        is_taken, begun = True, time.monotonic()

        def give_back() -> None:
            nonlocal is_taken
            if is_taken:
                self._free += 1
                held = time.monotonic() - begun
                self._usual_seconds = _MEMORY * self._usual_seconds + (1 - _MEMORY) * held
            is_taken = False

        async def send_without_slot(message: Message) -> None:
            give_back()  # the work is done; how fast a client reads is its own affair
            await send(message)

        try:
            await self._app(scope, receive, send_without_slot)
        finally:
            give_back()


class Doors:
    """Counts who is inside, and lets nobody in once the service was told to stop."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.inside = 0
        self.is_closing = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
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
        self.inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.inside -= 1
