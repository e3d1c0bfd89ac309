"""The addresses of the service; what they answer with is made in `answers`."""

from asyncio import wrap_future
from datetime import UTC, datetime
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from candor.forecasting.account import AccountForecaster
from candor.forecasting.candor import Candor
from candor.forecasting.forecast_table import ForecastOptions
from candor.service import answers, schemas
from candor.service.errors import RefusedError, StrictJSONResponse
from candor.service.metrics import Metrics
from candor.service.models import Models, parse_moment
from candor.service.readings import align_readings, storable
from candor.service.settings import ServiceSettings

_EVERYWHERE = (401, 408, 413, 421, 422, 429, 500, 503)  # errors that every address may answer with


def _described(response: type[Any], *errors: int) -> dict[str, Any]:
    """Return how the document describes the response of an address, and its errors besides those of every address."""
    described = {status: {"model": schemas.ErrorResponse} for status in sorted({*_EVERYWHERE, *errors})}
    return {"response_model": response, "responses": described}


def state_routes(models: Models, metrics: Metrics) -> APIRouter:
    """Return `/healthz`, `/readyz` and `/metrics`, for the machines that supervise the service.

    While the service shuts down, `ConnectionDrain` answers all but /healthz before them.
    """
    router = APIRouter(tags=["state"])

    @router.get("/healthz", **_described(schemas.Health))
    async def health() -> Response:
        """The process is alive."""
        return StrictJSONResponse({"status": "ok"})

    @router.get("/readyz", **_described(schemas.Readiness))
    async def readiness() -> Response:
        """The models are open and requests are taken."""
        return StrictJSONResponse({"status": "ready", "models": list(models.served)})

    @router.get("/metrics", response_class=Response, responses=_described(Response)["responses"])
    async def counters() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})

    return router


def model_routes(models: Models, settings: ServiceSettings) -> APIRouter:
    """Return the routes that describe the models."""
    router = APIRouter(tags=["models"])

    @router.get("/models", **_described(schemas.ModelList))
    def list_models() -> Response:
        """The models that are served."""
        described = [answers.describe_model(served, settings) for served in models.served.values()]
        return StrictJSONResponse({"models": described})

    @router.get("/sensors", **_described(schemas.SensorList, 400, 404))
    def list_sensors(asked: Annotated[schemas.ModelQuery, Query()]) -> Response:
        """The sensors and directed edges of a model."""
        return StrictJSONResponse(answers.describe_network(models.find(asked.model)))

    return router


def forecast_routes(models: Models, settings: ServiceSettings) -> APIRouter:
    """Return the routes of forecasts; each waits for its turn in the batches of its model (see `batching`)."""
    router = APIRouter(tags=["forecasts"])

    @router.post("/forecast", **_described(schemas.ForecastResponse, 400, 404))
    async def forecast(asked: schemas.ForecastRequest) -> Response:
        """A forecast of all sensors from readings that are sent along."""
        served = models.find(asked.model)
        loaded, options = served.loaded, ForecastOptions(asked.coverage, asked.below, asked.above)
        now = datetime.now(UTC) if asked.now is None else parse_moment(asked.now, loaded.known.times.zone)
        aligned = await run_sync(align_readings, loaded, asked.readings, settings, now, asked.allow_short)
        made = await served.forecast(loaded, aligned.panel)
        content = await run_sync(answers.forecast, served, loaded, aligned, made, options)
        return await run_sync(StrictJSONResponse, content)

    @router.get("/forecast/latest", **_described(schemas.ForecastResponse, 400, 404))
    async def forecast_latest(asked: Annotated[schemas.LatestQuery, Query()]) -> Response:
        """A forecast after the last reading that the service knows."""
        served = models.find(asked.model)
        loaded, options = served.loaded, ForecastOptions(asked.coverage)
        latest = await run_sync(answers.align_latest, loaded)
        made = await served.forecast(loaded, latest.panel)
        content = await run_sync(answers.forecast, served, loaded, latest, made, options)
        return await run_sync(StrictJSONResponse, content)

    @router.get("/forecast/at", **_described(schemas.PastForecast, 400, 404))
    async def forecast_at(asked: Annotated[schemas.AtQuery, Query()]) -> Response:
        """A forecast from the readings before a time, beside what was read from then on."""
        served = models.find(asked.model)
        loaded, options = served.loaded, ForecastOptions(asked.coverage)
        origin, panel = await run_sync(loaded.readings_before, asked.time)
        made = await served.forecast(loaded, panel)
        table = await run_sync(options.table, loaded.forecaster, panel, made)
        content = await run_sync(answers.past_forecast, served, loaded, origin, table, options)
        return await run_sync(StrictJSONResponse, content)

    @router.get("/overview", **_described(schemas.OverviewResponse, 400, 404))
    async def overview(asked: Annotated[schemas.OverviewQuery, Query()]) -> Response:
        """One line for every sensor: how it is expected to change, and how sure that is."""
        served = models.find(asked.model)
        loaded = served.loaded
        origin, panel = await run_sync(loaded.readings_before, asked.time)
        made = await served.forecast(loaded, panel)
        content = await run_sync(answers.overview, served, loaded, origin, panel, made)
        return await run_sync(StrictJSONResponse, content)

    @router.post("/explain", **_described(schemas.ExplanationResponse, 400, 404, 409))
    async def explain(asked: schemas.ExplainRequest) -> Response:
        """Where the forecast of one sensor came from."""
        served = models.find(asked.model)
        loaded = served.loaded
        forecaster = loaded.forecaster
        if not loaded.explains:
            what = f"a {forecaster.name} model cannot say where its forecasts come from"
            hint = "ask a model of CANDOR; /v1/models says which explain"
            raise RefusedError(409, "no_explanation", what, where=f"model {served.name}", hint=hint)
        loaded.column_of(asked.sensor)
        time = None  # of the first step: the one after the last of the readings
        if asked.readings is None:
            _, panel = await run_sync(loaded.readings_before, asked.time)
        else:
            panel = (await run_sync(align_readings, loaded, asked.readings, settings, datetime.now(UTC))).panel
            time = None if asked.time is None else parse_moment(asked.time, panel.times.zone)

        def why() -> dict[str, Any]:
            assert isinstance(forecaster, Candor | AccountForecaster)  # the others explain nothing
            if isinstance(forecaster, AccountForecaster) or forecaster.is_additive:
                return answers.breakdown(forecaster.break_down(panel, asked.sensor, time))
            return answers.explanation(forecaster.explain(panel, asked.sensor, time))

        content = await wrap_future(served.worker.submit(why))
        return await run_sync(StrictJSONResponse, {"model": served.name} | content)

    return router


def reading_routes(models: Models, settings: ServiceSettings, metrics: Metrics) -> APIRouter:
    """Return the routes that store readings of clients, and show the past of a sensor."""
    router = APIRouter(tags=["readings"])

    @router.post("/readings", **_described(schemas.ReadingsResponse, 400, 404))
    def add_readings(sent: schemas.ReadingsRequest) -> Response:
        """Keep readings; once this is answered they are on disk."""
        served = models.find(sent.model)
        loaded = served.loaded
        readings = storable(loaded, sent.readings, datetime.now(UTC), settings)
        replaced = served.store.append(readings)
        metrics.readings.labels(served.name).inc(len(readings))
        content = {"accepted": len(readings), "replaced": replaced, "last_reading": loaded.record.last_time}
        return StrictJSONResponse(content)

    @router.get("/history", **_described(schemas.History, 400, 404))
    def show_history(asked: Annotated[schemas.HistoryQuery, Query()]) -> Response:
        """Readings of one sensor before a time."""
        return StrictJSONResponse(answers.history(models.find(asked.model), asked, settings))

    return router
