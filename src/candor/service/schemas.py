"""Bodies, queries and responses, for validation and for the OpenAPI document (/v1/openapi.json).

Unknown names in requests are refused, so that a mistyped one is an error and not a surprise. Routes build responses as
plain dictionaries: their classes are documentation, and tests hold the two together.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from candor.data.findings import Finding

EXAMPLES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
"""An example of each body and response by the name of its class: what `candor serve --demo` says, with no field null,
because FastAPI leaves nulls out of its document."""

_MOST = 1e15  # more is no measurement, and its square no single-precision number

Time = Annotated[
    str,
    Field(
        min_length=4,
        max_length=40,
        json_schema_extra={"format": "date-time"},
        examples=["2024-03-01T06:00:00+01:00"],
        description="ISO 8601. Without an offset it is read on the clock of the model's zone.",
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=200, examples=["klamath-daily"])]
SensorId = Annotated[str, Field(min_length=1, max_length=200, examples=["11509370"])]
Coverage = Annotated[float, Field(gt=0, lt=1, description="Chance that an interval holds the reading.", examples=[0.9])]
Threshold = Annotated[float, Field(ge=-_MOST, le=_MOST)]


def _add_example(schema: dict[str, Any], model: type[Any]) -> None:
    if model.__name__ in EXAMPLES:
        schema["examples"] = [EXAMPLES[model.__name__]]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_extra=_add_example)


class ModelQuery(_Schema):
    """Which model."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    model: Name | None = None
    """Name of the model; may be left out where one is served."""


class _Body(ModelQuery):
    """A body in JSON, where a text is never taken for a number."""

    model_config = ConfigDict(strict=True)


class SentReading(_Schema):
    """One reading, in the unit of its sensor."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, strict=True)
    time: Time
    """When it was read."""
    sensor: SensorId
    """Id of the sensor."""
    value: Annotated[float, Field(ge=-_MOST, le=_MOST)] | None
    """The reading; null where there is none."""


# The first wrong one is enough: the problems of millions would fill the memory.
_READINGS = EXAMPLES["ReadingsRequest"]["readings"]
Readings = Annotated[list[SentReading], Field(min_length=1, fail_fast=True, examples=[_READINGS])]


class ForecastRequest(_Body):
    """Recent readings to forecast from, at least as many steps as the model's history."""

    readings: Readings
    """In any order; of the same time and sensor the last counts."""
    coverage: Coverage = 0.9
    """Of the intervals."""
    below: Threshold | None = None
    """Ask how likely readings are below this, in their unit."""
    above: Threshold | None = None
    """Ask how likely readings are above this, in their unit."""
    now: Time | None = None
    """The present; by default that of the clock."""
    allow_short: bool = False
    """Whether to forecast from fewer steps than the history; missing steps count as gaps."""


class ReadingsRequest(_Body):
    """Readings to keep."""

    readings: Readings
    """Of sensors of the model; the same time and sensor again replaces, null withdraws."""


class ExplainRequest(_Body):
    """Which forecast to explain."""

    sensor: SensorId
    """Id of the sensor."""
    time: Time | None = None
    """Of the first forecast step; by default the one after the last reading."""
    readings: Readings | None = None
    """Readings to forecast from; by default those that the service knows."""


class LatestQuery(ModelQuery):
    """The forecast after the last reading."""

    coverage: Coverage = 0.9
    """Of the intervals."""


class AtQuery(LatestQuery):
    """The forecast that could have been made at some time."""

    time: Time
    """Of its first step; between two steps the later one is taken."""


class OverviewQuery(ModelQuery):
    """All sensors at a glance."""

    time: Time | None = None
    """Of the first forecast step; by default the one after the last reading."""


class HistoryQuery(ModelQuery):
    """The past of one sensor."""

    sensor: SensorId
    """Id of the sensor."""
    until: Time | None = None
    """Rows before this time; by default before the end."""
    steps: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    """How many rows."""


class ErrorContent(_Schema):
    """What is wrong, and what can be done about it."""

    code: str = Field(examples=["bad_input"])
    """Identifies the kind of error."""
    what: str
    """What was found, and what was expected instead."""
    where: str
    """The part of the request."""
    hint: str
    """What can be done about it."""


class ErrorResponse(_Schema):
    """The one shape of all errors."""

    error: ErrorContent


class Health(_Schema):
    """The process is alive."""

    status: Literal["ok"]


class Readiness(_Schema):
    """The service takes requests."""

    status: Literal["ready"]
    models: list[str]


class RequestLimits(_Schema):
    """What a request may hold at most."""

    body_bytes: int
    sensors: int
    horizon: int


class ModelSummary(_Schema):
    """A model; times are on the clock of its zone, with their offset."""

    name: str
    model: str
    data: str
    unit: str
    zone: str
    interval_seconds: float
    interval: str
    history: int
    horizon: int
    sensors: int
    edges: int
    made: str | None
    version: str
    explains: bool
    readings_changed: str
    """When readings were last sent; before that, when the service opened their store."""
    last_reading: str | None
    first_origin: str | None
    last_origin: str | None
    limits: RequestLimits


class ModelList(_Schema):
    """All models that are served."""

    models: list[ModelSummary]


class SensorPlace(_Schema):
    """A sensor; x grows to the east and y to the north, each from 0 to 1."""

    id: str
    name: str
    unit: str
    latitude: float | None
    longitude: float | None
    x: float
    y: float


class EdgeLine(BaseModel):
    """A directed edge; the distance is in the unit of the data."""

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    weight: float
    distance: float | None


class SensorList(_Schema):
    """The network of a model."""

    model: str
    sensors: list[SensorPlace]
    edges: list[EdgeLine]
    has_coordinates: bool


class ForecastRow(_Schema):
    """One step of one sensor, in its unit; without calibration there are no intervals."""

    time: str
    sensor: str
    step: int
    forecast: float
    lower: float | None
    upper: float | None
    probability: float | None = None


class _ForecastAnswer(_Schema):
    model: str
    units: dict[str, str]
    coverage: float | None
    findings: list[Finding]


class ForecastResponse(_ForecastAnswer):
    """A forecast of all sensors."""

    version: str
    last_reading: str
    zone: str
    forecasts: list[ForecastRow]


class ReadingsResponse(_Schema):
    """Readings that are on disk."""

    accepted: int
    replaced: int
    last_reading: str | None


class ForecastSeries(_Schema):
    """The forecast of one sensor by step, and what was read."""

    forecast: list[float]
    lower: list[float | None]
    upper: list[float | None]
    observed: list[float | None]


class PastForecast(_ForecastAnswer):
    """A forecast beside what happened; the findings are about its intervals."""

    time: str
    steps: list[str]
    sensors: dict[str, ForecastSeries]


class History(_Schema):
    """Readings of one sensor."""

    model: str
    sensor: str
    unit: str
    times: list[str]
    values: list[float | None]


class SensorOutlook(_Schema):
    """One sensor at a glance, in its unit."""

    id: str
    last: float | None
    forecast: float
    change: float | None
    change_end: float | None
    width: float | None
    unit: str


class OverviewResponse(_Schema):
    """All sensors at a glance."""

    model: str
    time: str
    sensors: list[SensorOutlook]


class PatchSpan(_Schema):
    """The times of the first and of the last step of a stretch."""

    start: str
    end: str


class FusionSpan(PatchSpan):
    """How much the branches count in a stretch of the forecast; a branch that the model has not counts zero."""

    functional: float
    forward: float
    reverse: float


class ContributionLine(_Schema):
    """What came from one sensor along an edge."""

    direction: Literal["forward", "reverse"]
    sensor: str
    position: int
    patch: PatchSpan
    weight: float
    size: float


class PeerLine(_Schema):
    """A sensor found by its behaviour, not by the edges."""

    sensor: str
    channel: int
    weight: float
    """Weights of all peers sum to one."""
    resemblance: float
    """Of the backgrounds of both, -1 to 1."""


class GateOpenings(_Schema):
    """How far the gates were open, 0 to 1, by patch of the past."""

    accumulation: list[float]
    release: list[float]
    shock_current: list[float] | None
    """For what differs from the background of the same patch; null where rain stands for shocks."""
    shock_following: list[float] | None
    """For what differs from the background of the next patch, or null."""


class AccountPart(_Schema):
    """A part of a forecast in the sensor's unit."""

    kind: Literal["usual", "storage", "shock", "arrived", "own", "arrivals", "rest", "alike", "learned", "blend"]
    values: list[float]
    """By step."""
    last: float
    """The same part of the last reading, from which changes are counted."""
    sender: str
    """Of what arrives."""
    delay: int
    """Steps that it takes along the edge; 0 where it runs against it."""
    is_told: bool
    """Whether the delay is told apart from none."""
    is_reverse: bool
    """Whether it comes against the direction of the edge."""


class AccountResponse(_Schema):
    """Parts that sum to a forecast."""

    last: float
    """The reading that changes are counted from."""
    parts: list[AccountPart]
    stages: dict[str, float]
    """Share of all changes by stage."""


class ExplanationResponse(_Schema):
    """Where the forecast of one sensor came from: states of the published network, or an account of its parts."""

    model: str
    sensor: str
    time: str
    unit: str
    times: list[str]
    forecast: list[float]
    patches: list[PatchSpan]
    components: dict[str, list[float]]
    gates: GateOpenings | None
    contributions: list[ContributionLine]
    """The 200 largest at most, the largest first."""
    peers: list[PeerLine]
    fusion: list[FusionSpan]
    account: AccountResponse | None = None
    """Of models with an account; the states above are empty then."""
