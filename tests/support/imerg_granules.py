"""IMERG granules written in the recorded layout, and a server that has them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import h5py
import numpy as np
from numpy.typing import NDArray

LONGITUDES = (np.arange(3600) / 10 - 179.95).astype(np.float32)
LATITUDES = (np.arange(1800) / 10 - 89.95).astype(np.float32)
FILL = np.float32(-9999.9)
EPOCH = datetime(1980, 1, 6, tzinfo=UTC)


def name_at(start: datetime, version: str = "V07B") -> str:
    """Returns what the archive calls the file of the half hour that starts then."""
    end = start + timedelta(minutes=29, seconds=59)
    minutes = 60 * start.hour + start.minute
    return f"3B-HHR.MS.MRG.3IMERG.{start:%Y%m%d}-S{start:%H%M%S}-E{end:%H%M%S}.{minutes:04d}.{version}.HDF5"


def write_granule(
    path: Path,
    start: datetime,
    rates: NDArray[np.float32],
    longitudes: NDArray[np.float32] = LONGITUDES,
    latitudes: NDArray[np.float32] = LATITUDES,
    **changed: str,
) -> Path:
    """Writes a granule of these rates, longitude x latitude; attributes can be changed to what no V07 file has."""
    attributes = {"axes": "time,lon,lat", "unit": "mm/hr", "epoch": "seconds since 1980-01-06 00:00:00 UTC"} | changed
    with h5py.File(path, "w") as file:
        grid = file.create_group("Grid")
        for name, content, unit in (("lon", longitudes, "degrees_east"), ("lat", latitudes, "degrees_north")):
            grid.create_dataset(name, data=content, chunks=content.shape)
            grid[name].attrs.update(DimensionNames=np.bytes_(name), units=np.bytes_(unit))
        seconds = int((start - EPOCH).total_seconds())
        grid.create_dataset("time", data=np.array([seconds], np.int32), maxshape=(None,), chunks=(32,))
        grid["time"].attrs.update(DimensionNames=np.bytes_("time"), units=np.bytes_(attributes["epoch"]))
        # Beside the wanted one, as in the archive: reading must not touch it.
        for name in ("randomError", "precipitation"):
            chunks = (1, min(145, len(longitudes)), len(latitudes))
            values = grid.create_dataset(name, data=rates[None], chunks=chunks)
            values.attrs.update(
                DimensionNames=np.bytes_(attributes["axes"]), units=np.bytes_(attributes["unit"]), _FillValue=FILL
            )
    return path


def search_answer(start: datetime, url: str, version: str = "V07B") -> dict[str, Any]:
    """Returns what the archive's search says of the file of a half hour, in the layout of its answers (UMM-G 1.6.4)."""
    name, end = name_at(start, version), start + timedelta(minutes=29, seconds=59)
    collection = f"GPM_3IMERGHH.{version[1:3]}"
    return {
        "meta": {
            "concept-type": "granule", "concept-id": "G1-GES_DISC", "revision-id": 1, "provider-id": "GES_DISC",
            "native-id": f"{collection}:{name}", "format": "application/echo10+xml",
        },
        "umm": {
            "RelatedUrls": [
                {"URL": f"{url}/{name}", "Type": "GET DATA"},
                {"URL": f"s3://made-up/{name}", "Type": "GET DATA VIA DIRECT ACCESS"},
                {"URL": f"{url}/opendap/{name}", "Type": "USE SERVICE API", "Subtype": "OPENDAP DATA"},
            ],
            "CollectionReference": {"ShortName": "GPM_3IMERGHH", "Version": version[1:3]},
            "DataGranule": {
                "DayNightFlag": "Unspecified",
                "Identifiers": [{"Identifier": name, "IdentifierType": "ProducerGranuleId"}],
                "ArchiveAndDistributionInformation": [{"Name": "Not provided", "Size": 10.0, "SizeUnit": "MB"}],
            },
            "TemporalExtent": {
                "RangeDateTime": {
                    "BeginningDateTime": f"{start:%Y-%m-%dT%H:%M:%S.000Z}",
                    "EndingDateTime": f"{end:%Y-%m-%dT%H:%M:%S.999Z}",
                }
            },
            "GranuleUR": f"{collection}:{name}",
            "MetadataSpecification": {
                "URL": "https://cdn.earthdata.nasa.gov/umm/granule/v1.6.4", "Name": "UMM-G", "Version": "1.6.4",
            },
        },
    }  # fmt: skip


class GranuleServer:
    """A server of files by parts and of search answers, which can be told to misbehave.

    Args:
        files: contents by name.
        answers: what every search is answered with.
        faults: are done one after the other, before the server behaves: a status, "cut", "page", "whole", "shifted".
        headers: sent with every fault.
    """

    def __init__(self, files: dict[str, bytes], answers: Sequence[dict[str, Any]] = ()) -> None:
        self.files, self.answers = files, list(answers)
        self.faults: list[int | str] = []
        self.headers: dict[str, str] = {}
        self.always: int | str | None = None
        self.requests: list[tuple[str, str, str]] = []  # path, range, authorization
        self.queries: list[dict[str, list[str]]] = []
        self.before = lambda name: None
        self.url = ""
        self.lock = Lock()

    @contextmanager
    def running(self) -> Iterator["GranuleServer"]:
        """Yields the server, which listens on a free port of this machine."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *arguments: object) -> None:
                """Says nothing."""

        listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{listener.server_port}"
        thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            listener.shutdown()
            listener.server_close()
            thread.join()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answers one request."""
        address = urlsplit(handler.path)
        wish = handler.headers.get("Range", "")
        with self.lock:
            self.requests.append((address.path, wish, handler.headers.get("Authorization", "")))
            fault = self.always or (self.faults.pop(0) if self.faults else None)
        if isinstance(fault, int):
            self._send(handler, fault, b"busy", self.headers)
        elif address.path.startswith("/search/"):
            self.queries.append(parse_qs(address.query))
            body = json.dumps({"hits": len(self.answers), "items": self.answers}).encode()
            self._send(handler, 200, body, {"CMR-Hits": str(len(self.answers))})
        else:
            name = address.path.rsplit("/", 1)[-1]
            self.before(name)
            self._send_part(handler, name, wish, fault)

    def _send_part(self, handler: BaseHTTPRequestHandler, name: str, wish: str, fault: str | None) -> None:
        content = self.files.get(name)
        if content is None:
            return self._send(handler, 404, b"", {})
        if fault == "page":
            return self._send(handler, 200, b"<html>log in</html>", {"Content-Type": "text/html; charset=utf-8"})
        if fault == "whole":
            return self._send(handler, 200, content, {})
        first, last = (int(number) for number in wish.removeprefix("bytes=").split("-"))
        part = content[first : last + 1]
        if fault == "shifted":
            first += 1
        place = {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(content)}"}
        if fault == "cut":
            place["Content-Length"] = str(len(part))
            part = part[: len(part) // 2]
            handler.close_connection = True
        return self._send(handler, 206, part, place)

    def _send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        handler.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)
