"""Reading parts of a large file over HTTP, so that h5py sees a file and the network carries only what it looks at.

h5py holds a global lock while it reads, also while it waits for the network. So it is never given a file that waits: it
reads from a partial file in memory, fails at the first missing part, the part is fetched, and it starts anew.
"""

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import SEEK_CUR, SEEK_END, SEEK_SET, RawIOBase
from typing import Any

import requests

from candor.core.errors import InputError
from candor.core.text import first_line
from candor.river.retries import Failure, Result, Retries

BLOCK = 32 * 1024  # bytes
_PASSING = {429, 500, 502, 503, 504}  # the archive is busy or unwell, and asks to come again
_TIMEOUT = (15, 120)  # seconds to connect, and between two pieces of an answer
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class RemoteReader:
    """Reads files over HTTP by parts, from several threads at a time, each with a session of its own."""

    def __init__(self, new_session: Callable[[], requests.Session], retries: Retries) -> None:
        self._new_session = new_session
        self._retries = retries
        self._own = threading.local()

    def read(self, url: str, use: Callable[[RawIOBase], Result]) -> tuple[Result, int]:
        """Return what `use` makes of the file, and how many bytes of it were carried; `use` may be called often.

        Raises FileNotFoundError if there is no such file.
        """
        file = _PartialFile()
        carried = self._fetch(url, file, 0, BLOCK)
        while True:
            file.seek(0)
            try:
                return use(file), carried
            except Exception:  # whatever h5py makes of being stopped
                if file.lack is None:
                    raise
            carried += self._fetch(url, file, *file.lack)
            file.lack = None

    def _fetch(self, url: str, file: "_PartialFile", first: int, stop: int) -> int:
        """Put the bytes from `first` to `stop` into the file and return how many came."""
        response = self._retries.call(lambda: self._get(url, first, stop), lambda error: diagnose(error, url))
        body: bytes = response.content
        if response.status_code != 206:
            file.add(0, body, size=len(body))  # servers may ignore the wish for a part and send the whole
            return len(body)
        match = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != first or len(body) != min(stop, int(match[3])) - first:
            hint = "give the same command again later: what was read so far is kept"
            raise InputError("the archive sent another part of the file than was asked for", where=url, hint=hint)
        file.add(first, body, size=int(match[3]))
        return len(body)

    def _get(self, url: str, first: int, stop: int) -> Any:
        if not hasattr(self._own, "session"):
            self._own.session = self._new_session()
        wish = {"Range": f"bytes={first}-{stop - 1}", "Accept-Encoding": "identity"}
        response = self._own.session.get(url, headers=wish, timeout=_TIMEOUT)
        if response.status_code == 404:
            raise FileNotFoundError(url)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if response.status_code in (401, 403) or (response.ok and is_page):  # a page to log in on is a refusal too
            raise InputError(
                "the archive wants a login, and this one may not read the file",
                where=url,
                hint="log in at https://urs.earthdata.nasa.gov, open Applications, Authorized Apps, and approve "
                "NASA GESDISC DATA ARCHIVE; if you use a token, make a new one: they last 60 days",
            )
        response.raise_for_status()
        return response


def diagnose(error: Exception, where: str) -> Failure | None:
    """Return what is behind a failed request: one that may pass (busy, unwell, cut off) or not; None for bugs."""
    if not isinstance(error, requests.RequestException):
        return None
    again = "give the same command again later: what was read so far is kept"
    hint = f"look whether this machine has a network, and {again}"
    told = InputError(f"the service does not answer ({first_line(error)})", where=where, hint=hint)
    may_pass = error.response is None or error.response.status_code in _PASSING
    return Failure(told, may_pass, wished=_retry_after(error.response))


def _retry_after(response: Any) -> float | None:
    """Return the seconds that a service asks to wait, as a number or as a date, if it does."""
    asked = "" if response is None else response.headers.get("Retry-After", "").strip()
    if asked.isdigit():
        return float(asked)
    try:
        moment = parsedate_to_datetime(asked)
    except ValueError:
        return None
    # A date without a zone is UTC; one that has passed asks for nothing.
    return max((moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


class _PartialFile(RawIOBase):
    """A file in memory of which some blocks are missing; `lack` is the span that was read last and is missing."""

    def __init__(self) -> None:
        self.lack: tuple[int, int] | None = None
        self._blocks: dict[int, bytes] = {}
        self._place = self._size = 0

    def add(self, first: int, content: bytes, size: int) -> None:
        """Take bytes in, from a place where a block begins, of a file of this size."""
        self._size = size
        for offset in range(0, len(content), BLOCK):
            self._blocks[(first + offset) // BLOCK] = content[offset : offset + BLOCK]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        self._place = offset + {SEEK_SET: 0, SEEK_CUR: self._place, SEEK_END: self._size}[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        stop = min(self._place + len(buffer), self._size)
        if stop <= self._place:
            return 0
        blocks = range(self._place // BLOCK, (stop - 1) // BLOCK + 1)
        lacking = [block for block in blocks if block not in self._blocks]
        if lacking:
            self.lack = (lacking[0] * BLOCK, min((lacking[-1] + 1) * BLOCK, self._size))
            raise EOFError("these bytes are not here yet")
        content = b"".join(self._blocks[block] for block in blocks)
        offset, length = self._place - blocks[0] * BLOCK, stop - self._place
        buffer[:length] = content[offset : offset + length]
        self._place = stop
        return length
