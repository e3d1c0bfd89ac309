"""HTTP connections that a client cannot hold for ever, and that speak the one language of errors."""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from candor.service.errors import RefusedError
from candor.service.settings import ServiceSettings


class PatientConnection(H11Protocol):
    """A connection that is given up when the head of a request, or the reading of an answer, takes too long.

    uvicorn alone waits for ever for both.
    """

    patience: ClassVar[ServiceSettings]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head()
        self._stop_reading()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading = self._reading or self.loop.call_later(self.patience.reading_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_reading()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:  # an answer is on its way already
            self.transport.abort()
            return
        hint = "speak HTTP/1.1"
        answer = RefusedError(400, "bad_http", "this is not a request that can be read", hint=hint).answer()
        headers = [*answer.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch_head(self) -> None:
        """Starts the clock while a request is awaited, and stops it once its head is there.

        Between requests the clock of keep-alive runs instead, until the first byte of the next one.
        """
        if self.conn.their_state is not h11.IDLE or self.timeout_keep_alive_task is not None:
            self._stop_head()
        elif self._head is None:
            self._head = self.loop.call_later(self.patience.header_seconds, self.transport.abort)

    def _stop_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None


def patient_protocol(settings: ServiceSettings) -> type[PatientConnection]:
    """Returns the kind of connections that has the patience of the settings."""
    return type("Connection", (PatientConnection,), {"patience": settings})
