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
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.questions import Question, forecast_rows, plain_numbers
from candor.service import explanations
from candor.service.errors import StrictJSONResponse
from candor.service.models import LoadedModel, Models, ServedModel
from candor.service.readings import SentReadings, align_for_client, align_readings, for_client, present
from candor.service.schemas import responses
from candor.service.schemas.requests import AtQuery, ExplainRequest, ForecastRequest, LatestQuery, OverviewQuery
from candor.service.schemas.responses import errors
from candor.service.settings import ServiceSettings
from candor.service.stacking import Forecast

_OVERVIEW_COVERAGE = 0.9


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
    loaded, question = served.loaded, Question(asked.coverage, asked.below, asked.above)
    sent = SentReadings(asked.readings, present(asked.now, loaded.known.times.zone), asked.allow_short)
    aligned = await run_sync(align_readings, loaded, sent, settings)
    forecast = await served.forecast(loaded, aligned.panel)
    return await run_sync(_content, served, loaded, aligned, forecast, question)


async def _forecast_latest(served: ServedModel, coverage: float) -> dict[str, Any]:
    """Returns the forecast after the last reading that the service knows."""
    loaded, question = served.loaded, Question(coverage)
    latest = await run_sync(_align_latest, loaded)
    forecast = await served.forecast(loaded, latest.panel)
    return await run_sync(_content, served, loaded, latest, forecast, question)


async def _forecast_at(served: ServedModel, time: str, coverage: float) -> dict[str, Any]:
    """Returns the forecast whose first step is at a time, beside what was read at its steps."""
    loaded = served.loaded
    origin, panel = await run_sync(_readings_before, loaded, time)
    forecast = await served.forecast(loaded, panel)
    return await run_sync(_past_content, served, loaded, origin, forecast, Question(coverage))


async def _overview(served: ServedModel, time: str | None) -> dict[str, Any]:
    """Returns of every sensor how it is expected to change, and how sure that is."""
    loaded = served.loaded
    origin, panel = await run_sync(_readings_before, loaded, time)
    forecast = await served.forecast(loaded, panel)
    return {
        "model": served.name,
        "time": loaded.record.grid.local(origin),
        "sensors": await run_sync(_outlooks, loaded, panel, forecast),
    }


def _readings_before(loaded: LoadedModel, time: str | None) -> tuple[int, Panel]:
    """Returns the row of the first forecast step at a time, and what the model reads before it."""
    origin = loaded.find_origin(time)
    return origin, loaded.recent(origin)


def _align_latest(loaded: LoadedModel) -> Aligned:
    """Returns the latest readings that the service knows, with what there is to say about them."""
    panel = loaded.recent(loaded.find_origin(None))
    # The record of the run itself may be old, as those of studies are; readings that are sent should be new. The row
    # that they are nearest to may lie a little ahead.
    last = panel.times.end - panel.times.interval
    now = max(datetime.now(UTC), last) if loaded.record.has_sent_readings else None
    aligned = align_for_client(loaded, panel, now)
    _report_unknown(panel, loaded.forecaster.history, aligned.findings)
    return aligned


def _report_unknown(panel: Panel, history: int, findings: Findings) -> None:
    """Adds warnings of further quantities, such as rain, that the model reads and that clients cannot send."""
    for name, covariate in panel.covariates.items():
        if unknown := int(np.isnan(covariate.values[-history:]).all(axis=1).sum()):
            what = f"{name} is unknown in {unknown} of the last {history} steps: the model takes it to be as usual"
            hint = "train on a record that reaches further, or serve a model that does not read it"
            findings.warning(what, name, unknown, hint)


def _content(
    served: ServedModel, loaded: LoadedModel, recent: Aligned, forecast: Forecast, question: Question
) -> dict[str, Any]:
    rows = forecast_rows(question.describe(loaded.forecaster, recent.panel, forecast))
    unknown = {} if loaded.forecaster.calibration_ is not None else {"lower": None, "upper": None}
    times = recent.panel.times
    return {
        "model": served.name,
        "version": loaded.version,
        "last_reading": times.iso(times.length - 1),
        "zone": times.zone,
        "units": _units(loaded.known),
        "coverage": None if unknown else question.coverage,
        "findings": [asdict(finding) for finding in (*recent.findings, *_short_intervals(loaded, question))],
        "forecasts": [row | unknown for row in rows] if unknown else rows,
    }


def _short_intervals(loaded: LoadedModel, question: Question) -> Findings:
    """Returns the warning that intervals cannot hold what is asked of them, if they cannot."""
    findings = Findings()
    question.report_short_intervals(loaded.forecaster, findings)
    return for_client(findings)


def _past_content(
    served: ServedModel, loaded: LoadedModel, origin: int, forecast: Forecast, question: Question
) -> dict[str, Any]:
    stop = origin + loaded.forecaster.horizon
    lower, upper = _interval(loaded.forecaster, forecast, question.coverage)
    observed = loaded.record.rows(origin, stop).values
    parts = {"forecast": forecast, "lower": lower, "upper": upper, "observed": observed}
    return {
        "model": served.name,
        "time": loaded.record.grid.local(origin),
        "units": _units(loaded.known),
        "coverage": question.coverage if loaded.forecaster.calibration_ is not None else None,
        "findings": [asdict(finding) for finding in _short_intervals(loaded, question)],
        "steps": loaded.record.grid.locals(origin, stop),
        "sensors": {
            sensor: {name: plain_numbers(part[:, column]) for name, part in parts.items()}
            for column, sensor in enumerate(loaded.known.sensor_ids)
        },
    }


def _outlooks(loaded: LoadedModel, panel: Panel, forecast: Forecast) -> list[dict[str, Any]]:
    """Returns one line for each sensor, in its unit."""
    lower, upper = _interval(loaded.forecaster, forecast, _OVERVIEW_COVERAGE)
    last = _last_values(panel.values[-loaded.forecaster.history :])
    mean = forecast.mean(axis=0)
    columns = {
        "last": last,
        "forecast": mean,
        "change": _change(last, mean),
        "change_end": _change(last, forecast[-1]),
        "width": (upper - lower).mean(axis=0),
    }
    numbers = {name: plain_numbers(column) for name, column in columns.items()}
    return [
        {"id": sensor.id} | {name: column[place] for name, column in numbers.items()} | {"unit": sensor.unit}
        for place, sensor in enumerate(loaded.known.sensors)
    ]


def _change(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns differences to six digits of the larger number: the seventh is noise, which would look like a change."""
    level = np.fmax(np.abs(before), np.abs(after)).astype(np.float64)
    scale = 10.0 ** (5 - np.floor(np.log10(np.maximum(level, np.finfo(np.float32).tiny))))
    changed: NDArray[np.float64] = np.round((after.astype(np.float64) - before) * scale) / scale
    return changed + 0.0  # zero has no sign


def _interval(forecaster: Forecaster, forecast: Forecast, coverage: float) -> tuple[Forecast, Forecast]:
    """Returns the ends of the intervals, step x sensor; NaN if the forecaster does not know its errors."""
    if forecaster.calibration_ is None:
        unknown = np.full_like(forecast, np.nan)
        return unknown, unknown
    lower, upper = forecaster.calibration_.interval(forecast[None], coverage)
    return lower[0].astype(np.float32), upper[0].astype(np.float32)


def _last_values(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the last reading of each sensor, NaN if there is none."""
    is_there = ~np.isnan(values)
    row = len(values) - 1 - is_there[::-1].argmax(axis=0)
    last: NDArray[np.float32] = values[row, np.arange(values.shape[1])]
    return last


def _units(known: Panel) -> dict[str, str]:
    return {sensor.id: sensor.unit for sensor in known.sensors}
