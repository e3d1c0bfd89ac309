"""Answers to the questions of what comes next, what would have been said at some time, and how all sensors fare."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.alignment import Aligned
from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.questions import Question, forecast_rows, rounded
from candor.service.messages import ForecastQuestion
from candor.service.readings import Sending, align_for_client, align_readings, for_client, present
from candor.service.served import Edition, Served
from candor.service.settings import ServiceSettings
from candor.service.stacking import Forecast

_OVERVIEW_COVERAGE = 0.9


async def forecast_readings(served: Served, asked: ForecastQuestion, settings: ServiceSettings) -> dict[str, Any]:
    """Returns the forecast from the readings of a request."""
    edition, question = served.edition, Question(asked.coverage, asked.below, asked.above)
    sending = Sending(asked.readings, present(asked.now, edition.known.times.zone), asked.allow_short)
    aligned = await run_sync(align_readings, edition, sending, settings)
    forecast = await served.forecast(edition, aligned.panel)
    return await run_sync(_content, served, edition, aligned, forecast, question)


async def forecast_latest(served: Served, coverage: float) -> dict[str, Any]:
    """Returns the forecast after the last reading that the service knows."""
    edition, question = served.edition, Question(coverage)
    latest = await run_sync(_align_latest, edition)
    forecast = await served.forecast(edition, latest.panel)
    return await run_sync(_content, served, edition, latest, forecast, question)


async def forecast_at(served: Served, time: str, coverage: float) -> dict[str, Any]:
    """Returns the forecast whose first step is at a time, beside what was read at its steps."""
    edition = served.edition
    origin, panel = await run_sync(_readings_before, edition, time)
    forecast = await served.forecast(edition, panel)
    return await run_sync(_past_content, served, edition, origin, forecast, Question(coverage))


async def overview(served: Served, time: str | None) -> dict[str, Any]:
    """Returns of every sensor how it is expected to change, and how sure that is."""
    edition = served.edition
    origin, panel = await run_sync(_readings_before, edition, time)
    forecast = await served.forecast(edition, panel)
    return {
        "model": served.name,
        "time": edition.record.grid.local(origin),
        "sensors": await run_sync(_outlooks, edition, panel, forecast),
    }


def find_origin(edition: Edition, time: str | None) -> int:
    """Returns the row of the first forecast step at or after a time; None means the step after the last reading."""
    origins, grid = edition.origins(), edition.record.grid
    if origins is None:
        raise InputError(
            f"the service knows fewer than the {edition.forecaster.rows_needed} steps that the model reads",
            where="record",
            hint="send readings (POST /v1/readings), or forecast from your own (POST /v1/forecast)",
        )
    first, last = origins
    origin = last if time is None else grid.row_from(time)
    if not first <= origin <= last:
        what = "a forecast needs the steps before it, and they must be in the record"
        hint = f"choose a time from {grid.local(first)} to {grid.local(last)}"
        raise InputError(what, where=f"time {time}", hint=hint)
    return origin


def plain_numbers(values: Iterable[float]) -> list[float | None]:
    """Returns numbers as JSON has them: seven digits, and null where there is none."""
    return [None if value != value else rounded(float(value)) for value in values]


def _readings_before(edition: Edition, time: str | None) -> tuple[int, Panel]:
    """Returns the row of the first forecast step at a time, and what the model reads before it."""
    origin = find_origin(edition, time)
    return origin, edition.recent(origin)


def _align_latest(edition: Edition) -> Aligned:
    """Returns the latest readings that the service knows, with what there is to say about them."""
    panel = edition.recent(find_origin(edition, None))
    # The record of the run itself may be old, as those of studies are; readings that are sent should be new. The row
    # that they are nearest to may lie a little ahead.
    last = panel.times.end - panel.times.interval
    now = max(datetime.now(UTC), last) if edition.record.has_sent_readings else None
    aligned = align_for_client(edition, panel, now)
    _report_unknown(panel, edition.forecaster.history, aligned.findings)
    return aligned


def _report_unknown(panel: Panel, history: int, findings: Findings) -> None:
    """Adds warnings of further quantities, such as rain, that the model reads and that clients cannot send."""
    for name, covariate in panel.covariates.items():
        if unknown := int(np.isnan(covariate.values[-history:]).all(axis=1).sum()):
            what = f"{name} is unknown in {unknown} of the last {history} steps: the model takes it to be as usual"
            hint = "train on a record that reaches further, or serve a model that does not read it"
            findings.warning(what, name, unknown, hint)


def _content(
    served: Served, edition: Edition, recent: Aligned, forecast: Forecast, question: Question
) -> dict[str, Any]:
    rows = forecast_rows(question.describe(edition.forecaster, recent.panel, forecast))
    unknown = {} if edition.forecaster.calibration_ is not None else {"lower": None, "upper": None}
    times = recent.panel.times
    return {
        "model": served.name,
        "version": edition.version,
        "last_reading": times.iso(times.length - 1),
        "zone": times.zone,
        "units": _units(edition.known),
        "coverage": None if unknown else question.coverage,
        "findings": [asdict(finding) for finding in (*recent.findings, *_short_intervals(edition, question))],
        "forecasts": [row | unknown for row in rows] if unknown else rows,
    }


def _short_intervals(edition: Edition, question: Question) -> Findings:
    """Returns the warning that intervals cannot hold what is asked of them, if they cannot."""
    findings = Findings()
    question.report_short_intervals(edition.forecaster, findings)
    return for_client(findings)


def _past_content(
    served: Served, edition: Edition, origin: int, forecast: Forecast, question: Question
) -> dict[str, Any]:
    stop = origin + edition.forecaster.horizon
    lower, upper = _interval(edition.forecaster, forecast, question.coverage)
    observed = edition.record.rows(origin, stop).values
    parts = {"forecast": forecast, "lower": lower, "upper": upper, "observed": observed}
    return {
        "model": served.name,
        "time": edition.record.grid.local(origin),
        "units": _units(edition.known),
        "coverage": question.coverage if edition.forecaster.calibration_ is not None else None,
        "findings": [asdict(finding) for finding in _short_intervals(edition, question)],
        "steps": edition.record.grid.locals(origin, stop),
        "sensors": {
            sensor: {name: plain_numbers(part[:, column]) for name, part in parts.items()}
            for column, sensor in enumerate(edition.known.sensor_ids)
        },
    }


def _outlooks(edition: Edition, panel: Panel, forecast: Forecast) -> list[dict[str, Any]]:
    """Returns one line for each sensor, in its unit."""
    lower, upper = _interval(edition.forecaster, forecast, _OVERVIEW_COVERAGE)
    last = _last_values(panel.values[-edition.forecaster.history :])
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
        for place, sensor in enumerate(edition.known.sensors)
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
