"""Readings: those that clients send are stored, and the past of a sensor can be read."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from candor.core.errors import InputError
from candor.forecasting.forecast_table import plain_numbers
from candor.service.errors import StrictJSONResponse
from candor.service.metrics import Metrics
from candor.service.models import Models, ServedModel, parse_moment
from candor.service.readings import storable
from candor.service.schemas import responses
from candor.service.schemas.requests import HistoryQuery, ReadingsRequest
from candor.service.schemas.responses import errors
from candor.service.settings import ServiceSettings


def reading_routes(models: Models, settings: ServiceSettings, metrics: Metrics) -> APIRouter:
    """Returns the routes."""
    router = APIRouter(tags=["readings"])

    @router.post("/readings", response_model=responses.ReadingsResponse, responses=errors(400, 404))
    def add_readings(sent: ReadingsRequest) -> Response:
        """Keeps readings; once this is answered they are on disk."""
        served = models.find(sent.model)
        loaded = served.loaded
        readings = storable(loaded, sent.readings, datetime.now(UTC), settings)
        replaced = served.store.append(readings)
        metrics.readings.labels(served.name).inc(len(readings))
        content = {"accepted": len(readings), "replaced": replaced, "last_reading": loaded.record.last_time}
        return StrictJSONResponse(content)

    @router.get("/history", response_model=responses.History, responses=errors(400, 404))
    def show_history(asked: Annotated[HistoryQuery, Query()]) -> Response:
        """Readings of one sensor before a time."""
        served = models.find(asked.model)
        return StrictJSONResponse(_history(served, asked.sensor, asked.until, asked.steps, settings))

    return router


def _history(
    served: ServedModel, sensor: str, until: str | None, steps: int, settings: ServiceSettings
) -> dict[str, Any]:
    """Returns the readings of one sensor at the steps before a time, in its unit."""
    loaded = served.loaded
    column = loaded.column_of(sensor)
    if steps > settings.most_steps:
        raise InputError(f"{steps:,} steps are too many", where="steps", hint=f"ask for up to {settings.most_steps:,}")
    record = loaded.record
    first, stop = record.span()
    if until is not None:
        axis = record.grid.axis
        stop = max(first, min(axis.index_of(parse_moment(until, axis.zone)), stop))
    begin = max(first, stop - steps)
    return {
        "model": served.name,
        "sensor": sensor,
        "unit": loaded.known.sensors[column].unit,
        "times": record.grid.locals(begin, stop),
        "values": plain_numbers(record.series(sensor, begin, stop)),
    }
