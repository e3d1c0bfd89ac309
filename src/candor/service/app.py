"""The FastAPI application: its routes, and the middleware around them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp

from candor import __version__
from candor.service.errors import add_error_handlers
from candor.service.metrics import Metrics
from candor.service.middleware import (
    AccessControl,
    BodyLimit,
    ConcurrencyLimit,
    ConnectionDrain,
    MeasuredRequests,
    SecurityHeaders,
)
from candor.service.models import Models
from candor.service.page import page_routes
from candor.service.routes import forecast_routes, model_routes, reading_routes, state_routes
from candor.service.settings import ServiceSettings

_DESCRIPTION = (
    "Forecasts of a network of sensors. Times are ISO 8601; answers carry the offset of the model's zone. Numbers are "
    "in the unit of their sensor. Every error has the same shape."
)


def make_service(models: Models, settings: ServiceSettings, metrics: Metrics) -> tuple[ASGIApp, ConnectionDrain]:
    """Returns the service of some models, which closes them when it ends, and the middleware that shuts it down."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Python runs one thread at a time: more of them would only delay the event loop.
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
    app.include_router(state_routes(models, metrics))
    # AccessControl checks the token; the dependency only makes the OpenAPI document mention it.
    guards = [] if settings.token is None else [Depends(HTTPBearer(auto_error=False))]
    for routes in (
        model_routes(models, settings),
        forecast_routes(models, settings),
        reading_routes(models, settings, metrics),
    ):
        app.include_router(routes, prefix="/v1", dependencies=guards)
    app.include_router(page_routes())
    limited = BodyLimit(ConcurrencyLimit(app, settings.most_waiting), settings)
    drain = ConnectionDrain(AccessControl(limited, settings))
    return MeasuredRequests(SecurityHeaders(drain), metrics), drain
