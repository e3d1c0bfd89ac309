"""A service that the page can talk to: real sockets, real readings, and forecasts by a rule that tests can redo."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray
from patient import PATIENCE, expect
from playwright.sync_api import Browser, Locator, Page, sync_playwright

import candor
from candor.core.text import duration
from candor.data.panel import Panel

STATIC = Path(candor.__file__).parent / "service" / "static"
COVERAGE = 0.9
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_COMPONENTS = ("background", "accumulation", "release", "shock")
_SPARE: dict[Browser, list[Page]] = {}  # pages that no test looks at: to open one takes longer than most tests
Json = dict[str, Any]


class _RefusalError(Exception):
    """An answer with an error in it."""

    def __init__(self, status: int, code: str, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.status = status
        self.content = {"error": {"code": code, "what": what, "where": "", "hint": hint}}


@dataclass(frozen=True, eq=False)
class FakeModel:
    """A model whose forecast is half the way from the last reading back to the mean of the history.

    Args:
        name: under which it is served.
        panel: the record it forecasts; without rows, nothing can be forecast.
        history: steps.
        horizon: steps.
        explains: whether it gives reasons, as CANDOR does.
        has_intervals: whether it knows how sure it is.
    """

    name: str
    panel: Panel
    history: int = 28
    horizon: int = 14
    explains: bool = True
    has_intervals: bool = True

    def describe(self) -> Json:
        """Returns the entry of /v1/models."""
        panel, first, last = self.panel, self.history, self.panel.times.length
        has_record = last >= first
        return {
            "name": self.name, "model": "candor" if self.explains else "last-value", "data": panel.name,
            "unit": panel.unit, "zone": panel.times.zone, "interval": duration(panel.times.interval),
            "interval_seconds": panel.times.interval.total_seconds(),
            "history": self.history, "horizon": self.horizon, "sensors": len(panel.sensors),
            "edges": len(panel.edges), "made": "2026-01-02T03:04:05+00:00", "version": "0123abcd",
            "explains": self.explains, "readings_changed": "2026-01-02T03:04:05.000000+00:00",
            "last_reading": self.times(last - 1, last)[0] if has_record else None,
            "first_origin": self.times(first, first + 1)[0] if has_record else None,
            "last_origin": self.times(last, last + 1)[0] if has_record else None,
            "limits": {"body_bytes": 1_000_000, "sensors": 1000, "horizon": 1000},
        }  # fmt: skip

    def sensors(self) -> Json:
        """Returns the answer of /v1/sensors."""
        ids, edges = self.panel.sensor_ids, self.panel.edges
        known = all(sensor.latitude is not None and sensor.longitude is not None for sensor in self.panel.sensors)
        places = _places([(sensor.longitude, sensor.latitude) for sensor in self.panel.sensors] if known else len(ids))
        described = [
            {
                "id": sensor.id, "name": sensor.name, "unit": sensor.unit, "latitude": sensor.latitude,
                "longitude": sensor.longitude, "x": across, "y": up,
            }
            for sensor, (across, up) in zip(self.panel.sensors, places, strict=True)
        ]  # fmt: skip
        distances = [None] * len(edges) if edges.distance is None else edges.distance.tolist()
        connected = [
            {"from": ids[source], "to": ids[target], "weight": 1.0 / (1.0 + (distance or 0.0)), "distance": distance}
            for source, target, distance in zip(edges.source, edges.target, distances, strict=True)
        ]
        return {"model": self.name, "sensors": described, "edges": connected, "has_coordinates": known}

    def times(self, start: int, stop: int) -> list[str]:
        """Returns the moments of some rows, which may lie beyond the record."""
        return [moment.isoformat() for moment in self.panel.times.slice(start, stop).local]

    def row(self, time: str | None) -> int:
        """Returns the row of the first step of the forecast that is asked for."""
        length = self.panel.times.length
        origin = length if time is None else self.panel.times.index_of(time)
        if not self.history <= origin <= length:
            raise _RefusalError(400, "bad_input", "there are no readings before this moment", "send readings first")
        return origin

    def forecast(self, origin: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns forecasts and half widths of the intervals, step x sensor, in the sensors' units."""
        past = np.asarray(self.panel.values[origin - self.history : origin], np.float64)
        kept = np.where(np.isnan(past).all(axis=0), 0.0, past)
        mean, spread = np.nanmean(kept, axis=0), np.nanstd(kept, axis=0) + 0.1
        last = np.array([column[~np.isnan(column)][-1] for column in kept.T])
        steps = np.arange(1, self.horizon + 1)[:, None] / self.horizon
        return last + 0.5 * steps * (mean - last), spread * (0.5 + steps)

    def at(self, time: str | None) -> Json:
        """Returns the answer of /v1/forecast/at."""
        origin = self.row(time)
        forecast, half = self.forecast(origin)
        happened = np.full(forecast.shape, np.nan)
        known = self.panel.values[origin : origin + self.horizon]
        happened[: len(known)] = known
        bound = half if self.has_intervals else np.full(half.shape, np.nan)
        sensors = {
            sensor: {
                "forecast": _plain(forecast[:, place]), "lower": _plain((forecast - bound)[:, place]),
                "upper": _plain((forecast + bound)[:, place]), "observed": _plain(happened[:, place]),
            }
            for place, sensor in enumerate(self.panel.sensor_ids)
        }  # fmt: skip
        steps = self.times(origin, origin + self.horizon)
        units = {sensor.id: sensor.unit for sensor in self.panel.sensors}
        answer = {"model": self.name, "time": steps[0], "units": units, "coverage": COVERAGE, "findings": []}
        return answer | {"steps": steps, "sensors": sensors}

    def latest(self) -> Json:
        """Returns the answer of /v1/forecast/latest, with a remark on the readings."""
        found = self.at(None)
        rows = [
            {
                "time": time, "sensor": sensor, "step": step + 1,
                **{name: columns[name][step] for name in ("forecast", "lower", "upper")},
            }
            for sensor, columns in found["sensors"].items()
            for step, time in enumerate(found["steps"])
        ]  # fmt: skip
        remark = {"level": "warning", "what": "readings are missing", "where": "the end", "hint": "", "count": 3}
        last = self.times(self.panel.times.length - 1, self.panel.times.length)[0]
        answer = {"model": self.name, "version": "0123abcd", "last_reading": last, "zone": self.panel.times.zone}
        return answer | {"units": found["units"], "coverage": COVERAGE, "findings": [remark], "forecasts": rows}

    def overview(self, time: str | None) -> Json:
        """Returns the answer of /v1/overview."""
        origin = self.row(time)
        forecast, half = self.forecast(origin)
        rows = []
        for place, sensor in enumerate(self.panel.sensors):
            last = float(self.panel.values[origin - 1, place])
            is_known = not np.isnan(last)
            mean, end = float(forecast[:, place].mean()), float(forecast[-1, place])
            rows.append(
                {
                    "id": sensor.id, "unit": sensor.unit, "last": last if is_known else None, "forecast": mean,
                    "change": mean - last if is_known else None, "change_end": end - last if is_known else None,
                    "width": 2 * float(half[:, place].mean()) if self.has_intervals else None,
                }
            )  # fmt: skip
        return {"model": self.name, "time": self.times(origin, origin + 1)[0], "sensors": rows}

    def past(self, sensor: str, until: str | None, steps: int) -> Json:
        """Returns the answer of /v1/history."""
        stop = self.panel.times.length if until is None else self.panel.times.index_of(until)
        start, place = max(stop - steps, 0), self.place(sensor)
        values = _plain(np.asarray(self.panel.values[start:stop, place], np.float64))
        unit = self.panel.sensors[place].unit
        return {"model": self.name, "sensor": sensor, "unit": unit, "times": self.times(start, stop), "values": values}

    def place(self, sensor: str) -> int:
        """Returns the column of a sensor."""
        if sensor not in self.panel.sensor_ids:
            raise _RefusalError(404, "unknown_sensor", "there is no such sensor")
        return self.panel.sensor_ids.index(sensor)

    def explain(self, sensor: str, time: str | None) -> Json:
        """Returns the answer of /v1/explain: reasons of the right shape, without reason."""
        if not self.explains:
            raise _RefusalError(409, "no_explanation", "this model gives no reasons")
        place, origin, ids = self.place(sensor), self.row(time), self.panel.sensor_ids
        found, edges = self.at(time), self.panel.edges
        moments = self.times(origin - self.history, origin + self.horizon)
        length = self.history // 4
        starts = range(0, 4 * length, length)
        patches = [{"start": moments[start], "end": moments[start + length - 1]} for start in starts]
        waves = {name: [0.4 + 0.3 * np.sin(step + turn) for step, _ in enumerate(patches)]
                 for turn, name in enumerate((*_COMPONENTS, "shock_current", "shock_following"))}  # fmt: skip
        senders = [("forward", int(source)) for source in edges.source[edges.target == place]]
        senders += [("reverse", int(target)) for target in edges.target[edges.source == place]]
        arrived: list[Json] = [
            {
                "direction": direction, "sensor": ids[sender], "position": position, "patch": patches[-2 + position],
                "weight": 1 / len(senders), "size": 1 / (1 + rank + position),
            }
            for rank, (direction, sender) in enumerate(senders)
            for position in range(2)
        ]  # fmt: skip
        others = [other for other in ids if other != sensor][:12]
        shares = np.arange(len(others), 0, -1) / max(sum(range(len(others) + 1)), 1)
        targets = range(0, self.horizon, length)
        spans = [(found["steps"][first], found["steps"][min(first + length, self.horizon) - 1]) for first in targets]
        return {
            "model": self.name, "sensor": sensor, "time": found["time"], "unit": found["units"][sensor],
            "times": found["steps"], "forecast": found["sensors"][sensor]["forecast"], "patches": patches,
            "components": {name: waves[name] for name in _COMPONENTS},
            "gates": {name: waves[name] for name in ("accumulation", "release", "shock_current", "shock_following")},
            "contributions": sorted(arrived, key=lambda one: one["size"], reverse=True)[:200],
            "peers": [{"sensor": one, "channel": rank % 3, "weight": float(share), "resemblance": 0.9 - rank / 5}
                      for rank, (one, share) in enumerate(zip(others, shares, strict=True))],
            "fusion": [{"start": start, "end": end, "functional": 0.5 / rank, "forward": 0.3 / rank,
                        "reverse": 1 - 0.8 / rank} for rank, (start, end) in enumerate(spans, 1)],
            "account": None,
        }  # fmt: skip


def _places(known: Sequence[tuple[float | None, float | None]] | int) -> list[list[float]]:
    """Returns places from 0 to 1, to the right and up: by coordinates, or as many on a circle."""
    if isinstance(known, int):
        angles = np.linspace(0.0, 2 * np.pi, known, endpoint=False)
        points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        points = np.array(known, np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    places: list[list[float]] = (0.5 + (points - (low + high) / 2) / ((high - low).max() or 1.0)).tolist()
    return places


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


@dataclass(eq=False)
class PageServer:
    """What is served, the token it takes, and what was asked of it."""

    models: Sequence[FakeModel]
    token: str | None = None
    requests: list[str] = field(default_factory=list)
    address: str = ""

    def answer(self, path: str, query: dict[str, str], body: Json) -> Json:
        """Returns the answer to a question under /v1."""
        if path == "/v1/models":
            return {"models": [model.describe() for model in self.models]}
        name = query.get("model", body.get("model", self.models[0].name))
        model = next((one for one in self.models if one.name == name), None)
        if model is None:
            raise _RefusalError(404, "unknown_model", "there is no such model")
        time = query.get("time")
        answers: dict[str, Callable[[], Json]] = {
            "/v1/sensors": model.sensors,
            "/v1/overview": lambda: model.overview(time),
            "/v1/forecast/at": lambda: model.at(time),
            "/v1/forecast/latest": model.latest,
            "/v1/history": lambda: model.past(query["sensor"], query.get("until"), int(query["steps"])),
            "/v1/explain": lambda: model.explain(body["sensor"], body.get("time")),
        }
        if path not in answers:
            raise _RefusalError(404, "not_found", "there is nothing here")
        return answers[path]()


def _static(path: str) -> tuple[str, bytes]:
    """Returns the kind and the content of a file of the page."""
    name = "index.html" if path == "/" else path.removeprefix("/static/")
    if name == "plotly.min.js":
        return _KINDS[".js"], files("plotly").joinpath("package_data", name).read_bytes()
    file = STATIC / name
    if "/" in name or file.suffix not in _KINDS or not file.is_file():
        raise _RefusalError(404, "not_found", "there is nothing here")
    return _KINDS[file.suffix], file.read_bytes()


def _handler(server: PageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each answer would wait until the browser has confirmed the head: 40 ms
        wbufsize = -1

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: Json) -> None:
            server.requests.append(self.path)
            status, kind = 200, "application/json"
            parts = urlsplit(self.path)
            try:
                if not parts.path.startswith("/v1/"):
                    kind, content = _static(parts.path)
                elif server.token not in (None, (self.headers["Authorization"] or "").removeprefix("Bearer ")):
                    raise _RefusalError(401, "unauthorized", "a token is needed")
                else:
                    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                    content = json.dumps(server.answer(parts.path, query, body), allow_nan=False).encode()
            except Exception as error:  # a mistake of this server must be seen by the test, not swallowed by a thread
                refusal = error if isinstance(error, _RefusalError) else _RefusalError(500, "broken", repr(error))
                status, kind, content = refusal.status, "application/json", json.dumps(refusal.content).encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keeps quiet."""

    return Handler


class _QuietServer(ThreadingHTTPServer):
    """A server that does not mind browsers which leave before the answer."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Keeps quiet."""


@contextmanager
def serve_page(server: PageServer) -> Iterator[PageServer]:
    """Serves the page and its answers until the end of the block."""
    listener = _QuietServer(("127.0.0.1", 0), _handler(server))
    server.address = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


@contextmanager
def browsing() -> Iterator[Browser]:
    """Yields Debian's Chromium; tests that need it are skipped where it is absent."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed on this machine")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            _SPARE.pop(browser, None)
            browser.close()


@contextmanager
def opened(
    browser: Browser, address: str, *, complaint: str = "", has_charts: bool = True, **context: Any
) -> Iterator[Page]:
    """Yields the page at an address; it may neither complain nor ask anybody but its own service.

    Args:
        browser: that opens it.
        address: of the service, with what stands behind it, or of a file.
        complaint: part of the complaints that belong to the test.
        has_charts: whether charts will be drawn; without them, a test spares itself reading megabytes of plotly.
        context: further settings of the browser.
    """
    origin = address if address.startswith("file:") else "/".join(address.split("/")[:3])
    troubles: list[str] = []
    listeners: dict[str, Callable[[Any], None]] = {
        "console": lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None,
        "pageerror": lambda error: troubles.append(str(error)),
        "dialog": lambda dialog: troubles.append(f"a dialog: {dialog.message}"),
        "request": lambda request: None if _is_own(request.url, origin) else troubles.append(request.url),
    }
    spare = _SPARE.setdefault(browser, []) if not context else []
    page = spare.pop() if spare else _new_page(browser, **context)
    for event, listener in listeners.items():
        page.on(event, listener)  # type: ignore[call-overload]
    if not has_charts:
        page.route("**/plotly.min.js", lambda route: route.fulfill(body="", content_type=_KINDS[".js"]))
    try:
        page.goto(address)
        expect(page.locator("#loading")).to_be_hidden()  # else the first click would come too early, and wait
        yield page
    except BaseException:
        page.context.close()
        raise
    if context:
        page.context.close()
    else:  # left as if it were new
        page.unroute_all()
        page.evaluate("localStorage.clear(), sessionStorage.clear()")
        page.goto("about:blank")
        page.mouse.move(0, 0)
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        spare.append(page)
    assert not [trouble for trouble in troubles if not complaint or complaint not in trouble]


def _new_page(browser: Browser, **context: Any) -> Page:
    far_away: dict[str, Any] = {"timezone_id": "Asia/Tokyo"}  # from all sensors
    page = browser.new_context(viewport={"width": 1440, "height": 900}, **far_away | context).new_page()
    page.set_default_timeout(PATIENCE)
    return page


def _is_own(address: str, origin: str) -> bool:
    """Returns whether an address belongs to a service; what a file may ask for is itself, and no file beside it."""
    return address == origin or address.startswith((f"{origin}/", "data:", "blob:"))


def slide(slider: Locator, place: int) -> None:
    """Moves the slider, value and event in one go: in between, the page might put it back to where it was."""
    slider.evaluate("(slider, place) => { slider.value = place; slider.dispatchEvent(new Event('input')); }", place)
