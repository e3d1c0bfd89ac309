"""Forecasts: from readings in the request, after the latest readings, at a past time, and all sensors at a glance."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray

from candor.data.alignment import Aligned
from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.forecasting.forecast_table import ForecastOptions, ForecastTable, plain_numbers
from candor.service import explanations
from candor.service.batching import Forecast
from candor.service.errors import StrictJSONResponse
from candor.service.models import LoadedModel, Models, ServedModel
from candor.service.readings import SentReadings, align_for_client, align_readings, for_client, present
from candor.service.record import last_values
from candor.service.schemas import responses
from candor.service.schemas.requests import AtQuery, ExplainRequest, ForecastRequest, LatestQuery, OverviewQuery
from candor.service.schemas.responses import errors
from candor.service.settings import ServiceSettings


def forecast_routes(models: Models, settings: ServiceSettings) -> APIRouter:
    """Returns the routes; each waits for its turn in the batches of its model (see `batching`)."""
    router = APIRouter(tags=["forecasts"])
    wrong = errors(400, 404)

    @router.post("/forecast", response_model=responses.ForecastResponse, responses=wrong)
    async def forecast(asked: ForecastRequest) -> Response:
        """A forecast of all sensors from readings that are sent along."""
        content = await _forecast_readings(models.find(asked.model), asked, settings)
        return await run_sync(StrictJSONResponse, content)

    @router.get("/forecast/latest", response_model=responses.ForecastResponse, responses=wrong)
    async def forecast_latest(asked: Annotated[LatestQuery, Query()]) -> Response:
        """A forecast after the last reading that the service knows."""
        return await run_sync(StrictJSONResponse, await _forecast_latest(models.find(asked.model), asked.coverage))

    @router.get("/forecast/at", response_model=responses.PastForecast, responses=wrong)
    async def forecast_at(asked: Annotated[AtQuery, Query()]) -> Response:
        """A forecast from the readings before a time, beside what was read from then on."""
        content = await _forecast_at(models.find(asked.model), asked.time, asked.coverage)
        return await run_sync(StrictJSONResponse, content)

    @router.get("/overview", response_model=responses.Overview, responses=wrong)
    async def overview(asked: Annotated[OverviewQuery, Query()]) -> Response:
        """One line for every sensor: how it is expected to change, and how sure that is."""
        return await run_sync(StrictJSONResponse, await _overview(models.find(asked.model), asked.time))

    @router.post("/explain", response_model=responses.ExplanationResponse, responses=errors(400, 404, 409))
    async def explain(asked: ExplainRequest) -> Response:
        """Where the forecast of one sensor came from."""
        content = await explanations.explain(models.find(asked.model), asked, settings)
        return await run_sync(StrictJSONResponse, content)

    return router


async def _forecast_readings(served: ServedModel, asked: ForecastRequest, settings: ServiceSettings) -> dict[str, Any]:
    """Returns the forecast from the readings of a request."""
    loaded, options = served.loaded, ForecastOptions(asked.coverage, asked.below, asked.above)
    sent = SentReadings(asked.readings, present(asked.now, loaded.known.times.zone), asked.allow_short)
    aligned = await run_sync(align_readings, loaded, sent, settings)
    forecast = await served.forecast(loaded, aligned.panel)
    return await run_sync(_content, served, loaded, aligned, forecast, options)


async def _forecast_latest(served: ServedModel, coverage: float) -> dict[str, Any]:
    """Returns the forecast after the last reading that the service knows."""
    loaded, options = served.loaded, ForecastOptions(coverage)
    latest = await run_sync(_align_latest, loaded)
    forecast = await served.forecast(loaded, latest.panel)
    return await run_sync(_content, served, loaded, latest, forecast, options)


async def _forecast_at(served: ServedModel, time: str, coverage: float) -> dict[str, Any]:
    """Returns the forecast whose first step is at a time, beside what was read at its steps."""
    loaded, options = served.loaded, ForecastOptions(coverage)
    origin, panel = await run_sync(loaded.readings_before, time)
    forecast = await served.forecast(loaded, panel)
    table = await run_sync(options.table, loaded.forecaster, panel, forecast)
    return await run_sync(_past_content, served, loaded, origin, table, options)


async def _overview(served: ServedModel, time: str | None) -> dict[str, Any]:
    """Returns of every sensor how it is expected to change, and how sure that is."""
    loaded = served.loaded
    origin, panel = await run_sync(loaded.readings_before, time)
    forecast = await served.forecast(loaded, panel)
    return {
        "model": served.name,
        "time": loaded.record.grid.local(origin),
        "sensors": await run_sync(_outlooks, loaded, panel, forecast),
    }


def _align_latest(loaded: LoadedModel) -> Aligned:
    """Returns the latest readings that the service knows, with findings about them."""
    _, panel = loaded.readings_before(None)
    # The record of the run itself may be old, as those of studies are; readings that are sent should be new. The row
    # that they are nearest to may lie a little ahead.
    last = panel.times.end - panel.times.interval
    now = max(datetime.now(UTC), last) if loaded.record.has_sent_readings else None
    aligned = align_for_client(loaded, panel, now)
    # Clients cannot send further quantities that the model reads, such as rain.
    history = loaded.forecaster.history
    for name, covariate in panel.covariates.items():
        if unknown := int(np.isnan(covariate.values[-history:]).all(axis=1).sum()):
            what = f"{name} is unknown in {unknown} of the last {history} steps: the model takes it to be as usual"
            hint = "train on a record that reaches further, or serve a model that does not read it"
            aligned.findings.warning(what, name, unknown, hint)
    return aligned


def _content(
    served: ServedModel, loaded: LoadedModel, recent: Aligned, forecast: Forecast, options: ForecastOptions
) -> dict[str, Any]:
    table, times = options.table(loaded.forecaster, recent.panel, forecast), recent.panel.times
    unknown = {} if table.has_intervals else {"lower": None, "upper": None}
    return {
        "model": served.name,
        "version": loaded.version,
        "last_reading": times.iso(times.length - 1),
        "zone": times.zone,
        "units": _units(loaded),
        "coverage": options.coverage if table.has_intervals else None,
        "findings": [asdict(finding) for finding in (*recent.findings, *_short_intervals(loaded, options))],
        "forecasts": [row | unknown for row in table.to_json()],
    }


def _past_content(
    served: ServedModel, loaded: LoadedModel, origin: int, table: ForecastTable, options: ForecastOptions
) -> dict[str, Any]:
    stop = origin + loaded.forecaster.horizon
    observed = loaded.record.rows(origin, stop).values
    nothing = np.full_like(observed, np.nan)
    parts = {"forecast": nothing, "lower": nothing, "upper": nothing} | table.columns | {"observed": observed}
    return {
        "model": served.name,
        "time": loaded.record.grid.local(origin),
        "units": _units(loaded),
        "coverage": options.coverage if table.has_intervals else None,
        "findings": [asdict(finding) for finding in _short_intervals(loaded, options)],
        "steps": loaded.record.grid.locals(origin, stop),
        "sensors": {
            sensor: {name: plain_numbers(part[:, column]) for name, part in parts.items()}
            for column, sensor in enumerate(table.sensors)
        },
    }


def _short_intervals(loaded: LoadedModel, options: ForecastOptions) -> Findings:
    """Returns the warning that intervals cannot reach their coverage, if they cannot."""
    findings = Findings()
    options.report_short_intervals(loaded.forecaster, findings)
    return for_client(findings)


def _outlooks(loaded: LoadedModel, panel: Panel, forecast: Forecast) -> list[dict[str, Any]]:
    """Returns one line for each sensor, in its unit."""
    table = ForecastOptions().table(loaded.forecaster, panel, forecast)
    widths = table.columns["upper"] - table.columns["lower"] if table.has_intervals else np.full_like(forecast, np.nan)
    last = last_values(panel.values[-loaded.forecaster.history :])
    mean = forecast.mean(axis=0)
    columns = {
        "last": last,
        "forecast": mean,
        "change": _change(last, mean),
        "change_end": _change(last, forecast[-1]),
        "width": widths.mean(axis=0),
    }
    rows = zip(*(plain_numbers(column) for column in columns.values()), strict=True)
    return [
        {"id": sensor.id, **dict(zip(columns, row, strict=True)), "unit": sensor.unit}
        for sensor, row in zip(loaded.known.sensors, rows, strict=True)
    ]


def _change(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns differences to six digits of the larger number: the seventh is noise, which would look like a change."""
    level = np.fmax(np.abs(before), np.abs(after)).astype(np.float64)
    scale = 10.0 ** (5 - np.floor(np.log10(np.maximum(level, np.finfo(np.float32).tiny))))
    changed: NDArray[np.float64] = np.round((after.astype(np.float64) - before) * scale) / scale
    return changed + 0.0  # zero has no sign


def _units(loaded: LoadedModel) -> dict[str, str]:
    return {sensor.id: sensor.unit for sensor in loaded.known.sensors}
