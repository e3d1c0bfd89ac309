"""The addresses of the service, and what stands around them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import APIRouter, Depends, FastAPI, Query, Response
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp

from candor import __version__
from candor.service import answers, explanations, forecasts, views
from candor.service.errors import Answer, add_error_handlers
from candor.service.limits import BodyLimit, Doors, Slots
from candor.service.messages import (
    AtQuery,
    ExplainQuestion,
    ForecastQuestion,
    HistoryQuery,
    LatestQuery,
    ModelQuery,
    NewReadings,
    OverviewQuery,
)
from candor.service.metrics import Measured, Metrics
from candor.service.pages import page_routes
from candor.service.readings import storable
from candor.service.security import Gate, SecurityHeaders
from candor.service.served import Models
from candor.service.settings import ServiceSettings

_DESCRIPTION = (
    "Forecasts of a network of sensors. Times are ISO 8601; answers carry the offset of the model's zone. Numbers are "
    "in the unit of their sensor. Every error has the same shape."
)


@dataclass(frozen=True, eq=False)
class Service:
    """A service that is ready to be run.

    Args:
        app: what a server calls.
        doors: count the requests inside, and close.
    """

    app: ASGIApp
    doors: Doors


def make_service(models: Models, settings: ServiceSettings, metrics: Metrics) -> Service:
    """Returns the service of some models; it closes them when it ends."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Python runs one thread at a time: more of them would only keep the one that talks to clients waiting.
        current_default_thread_limiter().total_tokens = settings.threads
        models.start()
        try:
            yield
        finally:
            models.close()

    app = FastAPI(
        title="candor", version=__version__, description=_DESCRIPTION, lifespan=lifespan,
        openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None, redirect_slashes=False,
    )  # fmt: skip
    add_error_handlers(app)
    app.include_router(_probe_routes(models, metrics))
    guards = [] if settings.token is None else [Depends(HTTPBearer(auto_error=False))]  # tells readers of the document
    for routes in (
        _view_routes(models, settings),
        _forecast_routes(models, settings),
        _store_routes(models, settings, metrics),
    ):
        app.include_router(routes, prefix="/v1", dependencies=guards)
    app.include_router(page_routes())
    doors = Doors(Gate(BodyLimit(Slots(app, settings.most_waiting), settings), settings))
    return Service(Measured(SecurityHeaders(doors), metrics), doors)


def _probe_routes(models: Models, metrics: Metrics) -> APIRouter:
    """Returns what machines that look after the service ask; a service that is closing answers before it gets here."""
    router = APIRouter(tags=["state"])

    @router.get("/healthz", response_model=answers.Health, responses=answers.errors())
    async def health() -> Response:
        """The process is alive."""
        return Answer({"status": "ok"})

    @router.get("/readyz", response_model=answers.Readiness, responses=answers.errors())
    async def readiness() -> Response:
        """The models are open and requests are taken."""
        return Answer({"status": "ready", "models": list(models.served)})

    @router.get("/metrics", response_class=Response, responses=answers.errors())
    async def numbers() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})

    return router


def _view_routes(models: Models, settings: ServiceSettings) -> APIRouter:
    router = APIRouter(tags=["what is there"])

    @router.get("/models", response_model=answers.ModelList, responses=answers.errors())
    def list_models() -> Response:
        """The models that are served."""
        return Answer({"models": [views.summarise(served, settings) for served in models.served.values()]})

    @router.get("/sensors", response_model=answers.SensorList, responses=answers.errors(400, 404))
    def list_sensors(asked: Annotated[ModelQuery, Query()]) -> Response:
        """The sensors and directed edges of a model."""
        return Answer(views.network(models.find(asked.model)))

    @router.get("/history", response_model=answers.History, responses=answers.errors(400, 404))
    def show_history(asked: Annotated[HistoryQuery, Query()]) -> Response:
        """Readings of one sensor before a time."""
        served = models.find(asked.model)
        return Answer(views.history(served, asked.sensor, asked.until, asked.steps, settings))

    return router


def _forecast_routes(models: Models, settings: ServiceSettings) -> APIRouter:
    router = APIRouter(tags=["what comes"])
    wrong = answers.errors(400, 404)

    @router.post("/forecast", response_model=answers.ForecastAnswer, responses=wrong)
    async def forecast(asked: ForecastQuestion) -> Response:
        """A forecast of all sensors from readings that are sent along."""
        return await run_sync(Answer, await forecasts.forecast_readings(models.find(asked.model), asked, settings))

    @router.get("/forecast/latest", response_model=answers.ForecastAnswer, responses=wrong)
    async def forecast_latest(asked: Annotated[LatestQuery, Query()]) -> Response:
        """A forecast after the last reading that the service knows."""
        return await run_sync(Answer, await forecasts.forecast_latest(models.find(asked.model), asked.coverage))

    @router.get("/forecast/at", response_model=answers.PastForecast, responses=wrong)
    async def forecast_at(asked: Annotated[AtQuery, Query()]) -> Response:
        """A forecast from the readings before a time, beside what was read from then on."""
        return await run_sync(Answer, await forecasts.forecast_at(models.find(asked.model), asked.time, asked.coverage))

    @router.get("/overview", response_model=answers.Overview, responses=wrong)
    async def overview(asked: Annotated[OverviewQuery, Query()]) -> Response:
        """One line for every sensor: how it is expected to change, and how sure that is."""
        return await run_sync(Answer, await forecasts.overview(models.find(asked.model), asked.time))

    @router.post("/explain", response_model=answers.ExplanationAnswer, responses=answers.errors(400, 404, 409))
    async def explain(asked: ExplainQuestion) -> Response:
        """Where the forecast of one sensor came from."""
        return await run_sync(Answer, await explanations.explain(models.find(asked.model), asked, settings))

    return router


def _store_routes(models: Models, settings: ServiceSettings, metrics: Metrics) -> APIRouter:
    router = APIRouter(tags=["what was read"])

    @router.post("/readings", response_model=answers.Receipt, responses=answers.errors(400, 404))
    def add_readings(sent: NewReadings) -> Response:
        """Keeps readings; once this is answered they are on disk."""
        served = models.find(sent.model)
        edition = served.edition
        readings = storable(edition, sent.readings, datetime.now(UTC), settings)
        replaced = served.store.append(readings)
        metrics.readings.labels(served.name).inc(len(readings))
        first, stop = edition.record.span()
        last: Any = edition.record.grid.local(stop - 1) if stop > first else None
        return Answer({"accepted": len(readings), "replaced": replaced, "last_reading": last})

    return router
