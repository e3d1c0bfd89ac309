"""The content of responses, in the shapes of `schemas`: models, forecasts, explanations, history."""

from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.text import duration
from candor.data.alignment import Aligned
from candor.data.findings import Findings
from candor.data.panel import Panel, adjacency_of
from candor.data.times import zone_from_name
from candor.explain.places import known_places
from candor.forecasting.breakdown import Breakdown
from candor.forecasting.explanation import ForecastExplanation
from candor.forecasting.forecast_table import ForecastOptions, ForecastTable, plain_numbers, rounded
from candor.service.batching import Forecast
from candor.service.models import LoadedModel, ServedModel, parse_moment
from candor.service.readings import align_for_client, for_client
from candor.service.record import last_values
from candor.service.schemas import HistoryQuery
from candor.service.settings import ServiceSettings

_MOST_CONTRIBUTIONS = 200
_BRANCHES = ("functional", "forward", "reverse")
_CONTRIBUTION = ("direction", "sensor", "position", "patch", "weight", "size")


def describe_model(served: ServedModel, settings: ServiceSettings) -> dict[str, Any]:
    """Return what a client should know of a model before it asks it anything."""
    loaded = served.loaded
    record, known, grid = loaded.run.record, loaded.known, loaded.record.grid
    first, last = (None, None) if (origins := loaded.origins()) is None else map(grid.local, origins)
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
        "first_origin": first,
        "last_origin": last,
        "limits": {
            "body_bytes": settings.most_body_bytes,
            "sensors": settings.most_sensors,
            "horizon": settings.most_horizon,
        },
    }


def describe_network(served: ServedModel) -> dict[str, Any]:
    """Return the sensors of a model with a place to draw them at, and its edges."""
    known, places = served.loaded.known, served.loaded.places.tolist()
    edges, ids, weights = known.edges, known.sensor_ids, adjacency_of(known)
    lengths = [None] * len(edges) if edges.distance is None else plain_numbers(edges.distance)
    return {
        "model": served.name,
        "sensors": [
            asdict(sensor) | {"x": round(across, 6), "y": round(up, 6)}
            for sensor, (across, up) in zip(known.sensors, places, strict=True)
        ],
        "edges": [
            {"from": ids[i], "to": ids[j], "weight": rounded(float(weights[i, j])), "distance": length}
            for i, j, length in zip(edges.source, edges.target, lengths, strict=True)
        ],
        "has_coordinates": known_places(known) is not None,
    }


def align_latest(loaded: LoadedModel) -> Aligned:
    """Return the latest readings that the service knows, with findings about them."""
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


def forecast(
    served: ServedModel, loaded: LoadedModel, recent: Aligned, made: Forecast, options: ForecastOptions
) -> dict[str, Any]:
    """Return a forecast after the last of some readings."""
    table, times = options.table(loaded.forecaster, recent.panel, made), recent.panel.times
    unknown = {} if table.has_intervals else {"lower": None, "upper": None}
    return _about(served, loaded, table, options, recent.findings) | {
        "version": loaded.version,
        "last_reading": times.iso(times.length - 1),
        "zone": times.zone,
        "forecasts": [row | unknown for row in table.to_json()],
    }


def past_forecast(
    served: ServedModel, loaded: LoadedModel, origin: int, table: ForecastTable, options: ForecastOptions
) -> dict[str, Any]:
    """Return the forecast from an origin on, beside what was read at its steps."""
    stop, grid = origin + loaded.forecaster.horizon, loaded.record.grid
    observed = loaded.record.rows(origin, stop).values
    nothing = np.full_like(observed, np.nan)
    parts = {"forecast": nothing, "lower": nothing, "upper": nothing} | table.columns | {"observed": observed}
    return _about(served, loaded, table, options, Findings()) | {
        "time": grid.local(origin),
        "steps": grid.locals(origin, stop),
        "sensors": {
            sensor: {name: plain_numbers(part[:, column]) for name, part in parts.items()}
            for column, sensor in enumerate(table.sensors)
        },
    }


def _about(
    served: ServedModel, loaded: LoadedModel, table: ForecastTable, options: ForecastOptions, noticed: Findings
) -> dict[str, Any]:
    """Return what is said of a forecast besides its numbers; a warning where intervals cannot reach their coverage."""
    short = Findings()
    options.report_short_intervals(loaded.forecaster, short)
    return {
        "model": served.name,
        "units": {sensor.id: sensor.unit for sensor in loaded.known.sensors},
        "coverage": options.coverage if table.has_intervals else None,
        "findings": [asdict(finding) for finding in (*noticed, *for_client(short))],
    }


def overview(served: ServedModel, loaded: LoadedModel, origin: int, panel: Panel, made: Forecast) -> dict[str, Any]:
    """Return how every sensor is expected to change, and how sure that is, in its unit."""
    table = ForecastOptions().table(loaded.forecaster, panel, made)
    widths = table.columns["upper"] - table.columns["lower"] if table.has_intervals else np.full_like(made, np.nan)
    last, mean = last_values(panel.values[-loaded.forecaster.history :]), made.mean(axis=0)
    columns = {
        "last": last,
        "forecast": mean,
        "change": _change(last, mean),
        "change_end": _change(last, made[-1]),
        "width": widths.mean(axis=0),
    }
    rows = zip(*(plain_numbers(column) for column in columns.values()), strict=True)
    outlooks = [
        {"id": sensor.id, "unit": sensor.unit, **dict(zip(columns, row, strict=True))}
        for sensor, row in zip(loaded.known.sensors, rows, strict=True)
    ]
    return {"model": served.name, "time": loaded.record.grid.local(origin), "sensors": outlooks}


def _change(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return differences to six digits of the larger number: the seventh is noise, which would look like a change."""
    level = np.fmax(np.abs(before), np.abs(after)).astype(np.float64)
    scale = 10.0 ** (5 - np.floor(np.log10(np.maximum(level, np.finfo(np.float32).tiny))))
    changed: NDArray[np.float64] = np.round((after.astype(np.float64) - before) * scale) / scale
    return changed + 0.0  # zero has no sign


def explanation(found: ForecastExplanation) -> dict[str, Any]:
    """Return where the forecast of one sensor came from, beside the forecast itself, in its unit."""
    facts = vars(found) | {
        "components": {name: part.raw_strength for name, part in found.components.items()},
        "contributions": tuple(
            {name: getattr(one, name) for name in _CONTRIBUTION} for one in found.contributions[:_MOST_CONTRIBUTIONS]
        ),
        "fusion": tuple(
            vars(patch.span) | {branch: getattr(patch, branch) for branch in _BRANCHES} for patch in found.fusion
        ),
    }
    return {name: _as_json(fact) for name, fact in facts.items()} | {"account": None}


def breakdown(found: Breakdown) -> dict[str, Any]:
    """Return the parts that the forecast of one sensor is made of, in its unit."""
    account = {"last": found.last, "parts": found.parts, "stages": found.stages}
    nothing: dict[str, Any] = {name: [] for name in ("patches", "contributions", "peers", "fusion")}
    return nothing | {
        "sensor": found.sensor, "time": _as_json(found.times[0]), "unit": found.unit, "times": _as_json(found.times),
        "forecast": _as_json(found.forecast), "components": {}, "gates": None, "account": _as_json(account),
    }  # fmt: skip


def _as_json(value: Any) -> Any:
    match value:
        case float():
            return rounded(value)
        case datetime():
            return value.isoformat()
        case np.ndarray():
            return plain_numbers(value)
        case tuple():
            return [_as_json(part) for part in value]
        case dict():
            return {name: _as_json(part) for name, part in value.items()}
    return _as_json(vars(value)) if is_dataclass(value) else value


def history(served: ServedModel, asked: HistoryQuery, settings: ServiceSettings) -> dict[str, Any]:
    """Return the readings of one sensor at the steps before a time, in its unit."""
    loaded = served.loaded
    column = loaded.column_of(asked.sensor)
    if asked.steps > settings.most_steps:
        what, hint = f"{asked.steps:,} steps are too many", f"ask for up to {settings.most_steps:,}"
        raise InputError(what, where="steps", hint=hint)
    record, axis = loaded.record, loaded.record.grid.axis
    first, stop = record.span()
    if asked.until is not None:
        stop = max(first, min(axis.index_of(parse_moment(asked.until, axis.zone)), stop))
    begin = max(first, stop - asked.steps)
    return {
        "model": served.name,
        "sensor": asked.sensor,
        "unit": loaded.known.sensors[column].unit,
        "times": record.grid.locals(begin, stop),
        "values": plain_numbers(record.series(asked.sensor, begin, stop)),
    }
