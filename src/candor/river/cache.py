"""Responses of services on disk, kept by request, so that each request is sent once.

A response is two files: its content, and a note with the request, the address, the date and the checksum. The note is
written last and both are written whole, so that a response is either all there or not there.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pooch

from candor.core.errors import InputError
from candor.core.files import atomic_file, read_json, write_json
from candor.data.panel import digest_of

FORMAT_VERSION = 1
REFRESH_LASTS = timedelta(days=2)
"""A refresh that was broken off longer ago than this is started again: what it fetched is no longer fresh."""


@dataclass(frozen=True)
class Request:
    """What is asked of a service: everything that decides the response."""

    service: str
    operation: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The name of the response on disk."""
        return digest_of({"version": FORMAT_VERSION} | asdict(self))


@dataclass(frozen=True)
class Response:
    """What a service said: the content, where and when (UTC) it was fetched, and its checksum.

    `also` are further addresses that the client asked on the way to it: pages after the first, and lists.
    """

    content: bytes = field(repr=False)
    url: str
    fetched: str
    sha256: str
    also: tuple[str, ...] = ()

    @property
    def moment(self) -> datetime:
        """When it was fetched."""
        return datetime.fromisoformat(self.fetched)


class ResponseCache:
    """A folder of responses, made when the first one is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.damaged: list[str] = []
        """Names of responses that were found changed on disk, and were not used."""

    def find(self, request: Request) -> Response | None:
        """Return the response to a request sent before, or None; a damaged one counts as none."""
        content_file, note_file = self._files(request)
        if not note_file.exists():
            return None
        try:
            note = read_json(note_file)
            content = content_file.read_bytes()
            response = Response(content, note["url"], note["fetched"], note["sha256"], tuple(note.get("also", ())))
            datetime.fromisoformat(response.fetched)
        except (InputError, OSError, LookupError, TypeError, ValueError, AttributeError):
            response = None
        if response is None or sha256(response.content).hexdigest() != response.sha256:
            self.damaged.append(note_file.name)
            return None
        return response

    def keep(self, request: Request, content: bytes, url: str, also: tuple[str, ...] = ()) -> Response:
        """Return the response that was just fetched, after writing it to disk."""
        response = Response(
            content, url, datetime.now(UTC).isoformat(timespec="milliseconds"), sha256(content).hexdigest(), also
        )
        content_file, note_file = self._files(request)
        note = {"url": url, "also": also, "fetched": response.fetched, "sha256": response.sha256}
        with told_if_unwritable(self.folder, "the answer of a service"):
            with atomic_file(content_file) as temporary:
                temporary.write_bytes(content)
            write_json(note_file, note | {"question": asdict(request)})
        return response

    def begin_refresh(self, of_what: Mapping[str, Any]) -> datetime:
        """Return since when responses count as fresh: now, or when a refresh of the same began that was broken off."""
        path, now = self._refresh_file(of_what), datetime.now(UTC)
        try:
            begun = datetime.fromisoformat(read_json(path)["begun"])
            if timedelta(0) <= now - begun < REFRESH_LASTS:
                return begun
        except (InputError, LookupError, TypeError, ValueError):
            pass  # none was broken off, or nobody knows when
        with told_if_unwritable(self.folder, "the answer of a service"):
            write_json(path, {"begun": now.isoformat(), "of": dict(of_what)})
        return now

    def end_refresh(self, of_what: Mapping[str, Any]) -> None:
        """Forget a refresh that is done: the next one fetches everything again."""
        self._refresh_file(of_what).unlink(missing_ok=True)

    def _refresh_file(self, of_what: Mapping[str, Any]) -> Path:
        return self.folder / "refresh" / f"{digest_of(dict(of_what))}.json"

    def _files(self, request: Request) -> tuple[Path, Path]:
        folder = self.folder / request.service
        return folder / f"{request.key}.answer", folder / f"{request.key}.json"


@contextmanager
def told_if_unwritable(folder: Path, what: str, option: str = "--cache") -> Iterator[None]:
    """Turn what the file system says into an error that names the option for another folder."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{what} cannot be kept ({error.strerror or error})",
            where=str(folder),
            hint=f"make room, or name another folder with {option}",
        ) from None


def default_cache() -> Path:
    """Return the per-user folder in which responses of services are kept."""
    return Path(pooch.os_cache("candor")) / "river"
