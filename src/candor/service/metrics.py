"""Counters and timings of the service for Prometheus."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
PATHS = (
    *("/", "/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/models", "/v1/sensors", "/v1/forecast"),
    *("/v1/forecast/latest", "/v1/forecast/at", "/v1/readings", "/v1/history", "/v1/overview", "/v1/explain"),
)


class Metrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        count, measure = partial(Counter, registry=self._registry), partial(Gauge, registry=self._registry)
        self.requests = count("candor_requests", "Requests that were answered", ["path", "status"])
        self.seconds = Histogram(
            "candor_request_seconds", "Time from the head of a request to its answer", ["path"],
            buckets=_SECONDS, registry=self._registry,
        )  # fmt: skip
        self.in_progress = measure("candor_requests_in_progress", "Requests that are being answered")
        self.queue = measure("candor_queue_length", "Forecasts that wait for the model", ["model"])
        self.batch = Histogram(
            "candor_batch_windows", "Forecasts that were made in one go", ["model"],
            buckets=_WINDOWS, registry=self._registry,
        )  # fmt: skip
        self.model = measure("candor_model_info", "The version that is served is 1", ["model", "kind", "version"])
        self.reloads = count("candor_reloads", "Newer models that were taken up", ["model"])
        self.reload_failures = count(
            "candor_reload_failures", "Newer models that could not be opened; the old one goes on", ["model"]
        )
        self.readings = count("candor_readings_stored", "Readings that were stored", ["model"])

    def set_version(self, model: str, kind: str, version: str, before: tuple[str, str] | None = None) -> None:
        """Set the version of a model that is served, in place of the kind and version before."""
        if before is not None and before != (kind, version):
            self.model.remove(model, *before)
        self.model.labels(model, kind, version).set(1)
        self.reload_failures.labels(model)  # counters that exist from the start can be monitored
        self.queue.labels(model)

    def text(self) -> bytes:
        """Return all numbers in the text format of Prometheus."""
        return generate_latest(self._registry)


def path_template(path: str) -> str:
    """Return the address for the label of a counter, one of few whatever clients ask for."""
    if path in PATHS:
        return path
    return "/static/{path}" if path.startswith("/static/") else "other"
