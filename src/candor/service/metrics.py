"""What the service tells Prometheus about itself."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
PATHS = (
    "/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/v1/openapi.json",
    "/v1/models",
    "/v1/sensors",
    "/v1/forecast",
    "/v1/forecast/latest",
    "/v1/forecast/at",
    "/v1/readings",
    "/v1/history",
    "/v1/overview",
    "/v1/explain",
)


class Metrics:
    """Counters of one service; several in a process do not mix."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        kept = self._registry
        self.requests = Counter("candor_requests", "Requests that were answered", ["path", "status"], registry=kept)
        self.seconds = Histogram(
            "candor_request_seconds",
            "Time from the head of a request to its answer",
            ["path"],
            buckets=_SECONDS,
            registry=kept,
        )
        self.inside = Gauge("candor_requests_in_progress", "Requests that are being answered", registry=kept)
        self.queue = Gauge("candor_queue_length", "Forecasts that wait for the model", ["model"], registry=kept)
        self.batch = Histogram(
            "candor_batch_windows", "Forecasts that were made in one go", ["model"], buckets=_WINDOWS, registry=kept
        )
        self.model = Gauge(
            "candor_model_info", "The version that is served is 1", ["model", "kind", "version"], registry=kept
        )
        self.reloads = Counter("candor_reloads", "Newer models that were taken up", ["model"], registry=kept)
        self.reload_failures = Counter(
            "candor_reload_failures",
            "Newer models that could not be opened; the old one goes on",
            ["model"],
            registry=kept,
        )
        self.readings = Counter("candor_readings_stored", "Readings that were stored", ["model"], registry=kept)

    def tell_version(self, model: str, kind: str, version: str, before: tuple[str, str] | None = None) -> None:
        """Says which version of a model is served, instead of the kind and version before."""
        if before is not None and before != (kind, version):
            self.model.remove(model, *before)
        self.model.labels(model, kind, version).set(1)
        self.reload_failures.labels(model)  # a counter that is there from the beginning can be watched
        self.queue.labels(model)

    def text(self) -> bytes:
        """Returns all numbers in the text format of Prometheus."""
        return generate_latest(self._registry)


class MetricsMiddleware:
    """Counts and times the requests of an application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, begun, status = path_template(scope["path"]), time.perf_counter(), 500

        async def listen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._metrics.seconds.labels(path).observe(time.perf_counter() - begun)
            await send(message)

        self._metrics.inside.inc()
        try:
            await self._app(scope, receive, listen)
        finally:
            self._metrics.inside.dec()
            self._metrics.requests.labels(path, str(status)).inc()


def path_template(path: str) -> str:
    """Returns the address as it is counted: one of few, whatever clients ask for."""
    if path in PATHS:
        return path
    return "/static/{path}" if path.startswith("/static/") else "other"
