"""Answers to the question of why: where the forecast of one sensor came from."""

from asyncio import wrap_future
from datetime import UTC, datetime
from typing import Any

from anyio.to_thread import run_sync

from candor.data.panel import Panel
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import ForecastExplanation, Gates, Span
from candor.forecasting.forecast_table import plain_numbers, rounded
from candor.service.errors import RefusedError
from candor.service.models import LoadedModel, ServedModel, parse_moment
from candor.service.readings import SentReadings, align_readings
from candor.service.schemas.requests import ExplainRequest
from candor.service.settings import ServiceSettings

_MOST_CONTRIBUTIONS = 200
_BRANCHES = ("functional", "forward", "reverse")


async def explain(served: ServedModel, asked: ExplainRequest, settings: ServiceSettings) -> dict[str, Any]:
    """Returns where the forecast of one sensor came from, beside the forecast itself, in its unit."""
    loaded = served.loaded
    forecaster = loaded.forecaster
    if not isinstance(forecaster, Candor):
        raise RefusedError(
            409, "no_explanation", f"a {forecaster.name} model cannot say where its forecasts come from",
            where=f"model {served.name}", hint="ask a model of CANDOR; /v1/models says which explain",
        )  # fmt: skip
    loaded.column_of(asked.sensor)
    panel, time = await run_sync(_readings_before, loaded, asked, settings)
    found = await wrap_future(served.worker.submit(lambda: forecaster.explain(panel, asked.sensor, time)))
    return {"model": served.name} | await run_sync(_content, found)


def _readings_before(
    loaded: LoadedModel, asked: ExplainRequest, settings: ServiceSettings
) -> tuple[Panel, datetime | None]:
    """Returns readings, and the first step of the forecast that is asked about: None is the one after their last."""
    if asked.readings is None:
        return loaded.readings_before(asked.time)[1], None
    aligned = align_readings(loaded, SentReadings(asked.readings, datetime.now(UTC)), settings)
    return aligned.panel, None if asked.time is None else parse_moment(asked.time, aligned.panel.times.zone)


def _content(found: ForecastExplanation) -> dict[str, Any]:
    return {
        "sensor": found.sensor,
        "time": found.time.isoformat(),
        "unit": found.unit,
        "times": [time.isoformat() for time in found.times],
        "forecast": plain_numbers(found.forecast),
        "patches": [_span(patch) for patch in found.patches],
        "components": {name: plain_numbers(part.raw_strength) for name, part in found.components.items()},
        "gates": None if found.gates is None else _gates(found.gates),
        "contributions": [
            {
                "direction": one.direction,
                "sensor": one.sensor,
                "position": one.position,
                "patch": _span(one.patch),
                "weight": rounded(one.weight),
                "size": rounded(one.size),
            }
            for one in found.contributions[:_MOST_CONTRIBUTIONS]
        ],
        "peers": [
            {
                "sensor": peer.sensor,
                "channel": peer.channel,
                "weight": rounded(peer.weight),
                "resemblance": rounded(peer.resemblance),
            }
            for peer in found.peers
        ],
        "fusion": [
            _span(patch.span) | {branch: rounded(getattr(patch, branch)) for branch in _BRANCHES}
            for patch in found.fusion
        ],
    }


def _gates(gates: Gates) -> dict[str, list[float | None] | None]:
    return {name: None if part is None else plain_numbers(part) for name, part in vars(gates).items()}


def _span(span: Span) -> dict[str, str]:
    return {"start": span.start.isoformat(), "end": span.end.isoformat()}
