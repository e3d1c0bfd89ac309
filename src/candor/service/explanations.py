"""Answers to the question of why: where the forecast of one sensor came from."""

from asyncio import wrap_future
from datetime import UTC, datetime
from typing import Any

from anyio.to_thread import run_sync

from candor.data.panel import Panel
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import ForecastExplanation, Gates, Span
from candor.forecasting.questions import rounded
from candor.service.errors import RefusedError
from candor.service.forecasts import find_origin, plain_numbers
from candor.service.messages import ExplainQuestion
from candor.service.moments import parse_moment
from candor.service.readings import Sending, align_readings
from candor.service.served import Edition, Served
from candor.service.settings import ServiceSettings
from candor.service.views import find_column

_MOST_CONTRIBUTIONS = 200
_BRANCHES = ("functional", "forward", "reverse")


async def explain(served: Served, asked: ExplainQuestion, settings: ServiceSettings) -> dict[str, Any]:
    """Returns where the forecast of one sensor came from, beside the forecast itself, in its unit."""
    edition = served.edition
    forecaster = edition.forecaster
    if not isinstance(forecaster, Candor):
        raise RefusedError(
            409, "no_explanation", f"a {forecaster.name} model cannot say where its forecasts come from",
            where=f"model {served.name}", hint="ask a model of CANDOR; /v1/models says which explain",
        )  # fmt: skip
    find_column(edition, asked.sensor)
    panel, time = await run_sync(_readings_before, edition, asked, settings)
    found = await wrap_future(served.worker.do(lambda: forecaster.explain(panel, asked.sensor, time)))
    return {"model": served.name} | await run_sync(_content, found)


def _readings_before(
    edition: Edition, asked: ExplainQuestion, settings: ServiceSettings
) -> tuple[Panel, datetime | None]:
    """Returns readings, and the first step of the forecast that is asked about: None is the one after their last."""
    if asked.readings is None:
        return edition.recent(find_origin(edition, asked.time)), None
    aligned = align_readings(edition, Sending(asked.readings, datetime.now(UTC)), settings)
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
