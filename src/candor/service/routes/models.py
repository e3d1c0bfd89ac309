"""What is served: the models, and the sensors and edges of each with their places on the map."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from candor.core.text import duration
from candor.data.panel import adjacency_of
from candor.data.times import zone_from_name
from candor.forecasting.forecast_table import rounded
from candor.service.errors import StrictJSONResponse
from candor.service.map_layout import has_coordinates
from candor.service.models import Models, ServedModel
from candor.service.schemas import responses
from candor.service.schemas.requests import ModelQuery
from candor.service.schemas.responses import errors
from candor.service.settings import ServiceSettings


def model_routes(models: Models, settings: ServiceSettings) -> APIRouter:
    """Returns the routes."""
    router = APIRouter(tags=["models"])

    @router.get("/models", response_model=responses.ModelList, responses=errors())
    def list_models() -> Response:
        """The models that are served."""
        return StrictJSONResponse({"models": [describe_model(served, settings) for served in models.served.values()]})

    @router.get("/sensors", response_model=responses.SensorList, responses=errors(400, 404))
    def list_sensors(asked: Annotated[ModelQuery, Query()]) -> Response:
        """The sensors and directed edges of a model."""
        return StrictJSONResponse(describe_network(models.find(asked.model)))

    return router


def describe_model(served: ServedModel, settings: ServiceSettings) -> dict[str, Any]:
    """Returns what a client should know of a model before it asks it anything."""
    loaded = served.loaded
    record, known, grid = loaded.run.record, loaded.known, loaded.record.grid
    origins = loaded.origins()
    zone = zone_from_name(known.times.zone)
    return {
        "name": served.name,
        "model": record.label,
        "data": record.data,
        "unit": known.unit,
        "zone": known.times.zone,
        "interval_seconds": known.times.interval.total_seconds(),
        "interval": duration(known.times.interval),
        "history": loaded.forecaster.rows_needed,
        "horizon": loaded.forecaster.horizon,
        "sensors": len(known.sensors),
        "edges": len(known.edges),
        "made": None if record.made is None else record.made.astimezone(zone).isoformat(),
        "version": loaded.version,
        "explains": loaded.explains,
        "readings_changed": served.store.changed.astimezone(zone).isoformat(timespec="microseconds"),
        "last_reading": loaded.record.last_time,
        "first_origin": None if origins is None else grid.local(origins[0]),
        "last_origin": None if origins is None else grid.local(origins[1]),
        "limits": {
            "body_bytes": settings.most_body_bytes,
            "sensors": settings.most_sensors,
            "horizon": settings.most_horizon,
        },
    }


def describe_network(served: ServedModel) -> dict[str, Any]:
    """Returns the sensors of a model with a place to draw them at, and its edges."""
    loaded = served.loaded
    known, places = loaded.known, loaded.places.tolist()
    edges, ids, weights = known.edges, known.sensor_ids, adjacency_of(known)
    return {
        "model": served.name,
        "sensors": [
            {
                "id": sensor.id,
                "name": sensor.name,
                "unit": sensor.unit,
                "latitude": sensor.latitude,
                "longitude": sensor.longitude,
                "x": round(across, 6),
                "y": round(up, 6),
            }
            for sensor, (across, up) in zip(known.sensors, places, strict=True)
        ],
        "edges": [
            {
                "from": ids[source],
                "to": ids[target],
                "weight": rounded(float(weights[source, target])),
                "distance": None if edges.distance is None else rounded(float(edges.distance[number])),
            }
            for number, (source, target) in enumerate(zip(edges.source, edges.target, strict=True))
        ],
        "has_coordinates": has_coordinates(known),
    }
