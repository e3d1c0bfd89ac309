"""`/healthz`, `/readyz` and `/metrics`: for the machines that supervise the service."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from candor.service.errors import StrictJSONResponse
from candor.service.metrics import Metrics
from candor.service.models import Models
from candor.service.schemas import responses
from candor.service.schemas.responses import errors


def health_routes(models: Models, metrics: Metrics) -> APIRouter:
    """Returns the routes; while the service shuts down, `ConnectionDrain` answers all but /healthz before them."""
    router = APIRouter(tags=["state"])

    @router.get("/healthz", response_model=responses.Health, responses=errors())
    async def health() -> Response:
        """The process is alive."""
        return StrictJSONResponse({"status": "ok"})

    @router.get("/readyz", response_model=responses.Readiness, responses=errors())
    async def readiness() -> Response:
        """The models are open and requests are taken."""
        return StrictJSONResponse({"status": "ready", "models": list(models.served)})

    @router.get("/metrics", response_class=Response, responses=errors())
    async def counters() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.text(), headers={"content-type": CONTENT_TYPE_LATEST})

    return router
