"""Responses, for the OpenAPI document (/v1/openapi.json); routes build them as plain dictionaries."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from candor.service.schemas.examples import add_example


class _Response(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_extra=add_example)


class ErrorContent(_Response):
    """What is wrong, and what can be done about it."""

    code: str = Field(examples=["bad_input"])
    """Identifies the kind of error."""
    what: str
    """What was found, and what was expected instead."""
    where: str
    """The part of the request."""
    hint: str
    """What can be done about it."""


class ErrorResponse(_Response):
    """The one shape of all errors."""

    error: ErrorContent


class Health(_Response):
    """The process is alive."""

    status: Literal["ok"]


class Readiness(_Response):
    """The service takes requests."""

    status: Literal["ready"]
    models: list[str]


class Limits(_Response):
    """What a request may hold at most."""

    body_bytes: int
    sensors: int
    horizon: int


class ModelSummary(_Response):
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
    limits: Limits


class ModelList(_Response):
    """All models that are served."""

    models: list[ModelSummary]


class SensorPlace(_Response):
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


class SensorList(_Response):
    """The network of a model."""

    model: str
    sensors: list[SensorPlace]
    edges: list[EdgeLine]
    has_coordinates: bool


class Finding(_Response):
    """Something noticed about the readings."""

    level: str
    what: str
    where: str
    hint: str
    count: int


class ForecastRow(_Response):
    """One step of one sensor, in its unit; without calibration there are no intervals."""

    time: str
    sensor: str
    step: int
    forecast: float
    lower: float | None
    upper: float | None
    probability: float | None = None


class ForecastResponse(_Response):
    """A forecast of all sensors."""

    model: str
    version: str
    last_reading: str
    zone: str
    units: dict[str, str]
    coverage: float | None
    findings: list[Finding]
    forecasts: list[ForecastRow]


class ReadingsResponse(_Response):
    """Readings that are on disk."""

    accepted: int
    replaced: int
    last_reading: str | None


class Series(_Response):
    """The forecast of one sensor by step, and what was read."""

    forecast: list[float]
    lower: list[float | None]
    upper: list[float | None]
    observed: list[float | None]


class PastForecast(_Response):
    """A forecast beside what happened."""

    model: str
    time: str
    units: dict[str, str]
    coverage: float | None
    findings: list[Finding]
    """About the intervals."""
    steps: list[str]
    sensors: dict[str, Series]


class History(_Response):
    """Readings of one sensor."""

    model: str
    sensor: str
    unit: str
    times: list[str]
    values: list[float | None]


class SensorOutlook(_Response):
    """One sensor at a glance, in its unit."""

    id: str
    last: float | None
    forecast: float
    change: float | None
    change_end: float | None
    width: float | None
    unit: str


class Overview(_Response):
    """All sensors at a glance."""

    model: str
    time: str
    sensors: list[SensorOutlook]


class PatchSpan(_Response):
    """The times of the first and of the last step of a stretch."""

    start: str
    end: str


class FusionSpan(PatchSpan):
    """How much the branches count in a stretch of the forecast; a branch that the model has not counts zero."""

    functional: float
    forward: float
    reverse: float


class ContributionLine(_Response):
    """What came from one sensor along an edge."""

    direction: Literal["forward", "reverse"]
    sensor: str
    position: int
    patch: PatchSpan
    weight: float
    size: float


class PeerLine(_Response):
    """A sensor found by its behaviour, not by the edges."""

    sensor: str
    channel: int
    weight: float
    """Weights of all peers sum to one."""
    resemblance: float
    """Of the backgrounds of both, -1 to 1."""


class GateOpenings(_Response):
    """How far the gates were open, 0 to 1, by patch of the past."""

    accumulation: list[float]
    release: list[float]
    shock_current: list[float] | None
    """For what differs from the background of the same patch; null where rain stands for shocks."""
    shock_following: list[float] | None
    """For what differs from the background of the next patch, or null."""


class ExplanationResponse(_Response):
    """Where the forecast of one sensor came from."""

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


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Returns the description of the errors that a route may answer with; some every route may."""
    every = (401, 408, 413, 421, 422, 429, 500, 503)
    return {status: {"model": ErrorResponse} for status in sorted({*every, *statuses})}
