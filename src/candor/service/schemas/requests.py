"""Bodies and queries of requests; unknown names are refused, so that a mistyped one is an error and not a surprise."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from candor.service.schemas.examples import READINGS, add_example

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


class _Query(BaseModel):
    """The query of an address, where numbers are text."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False, json_schema_extra=add_example
    )


class _Body(_Query):
    """A body in JSON, where a text is never taken for a number."""

    model_config = ConfigDict(strict=True)


class SentReading(_Body):
    """One reading, in the unit of its sensor."""

    time: Time
    """When it was read."""
    sensor: SensorId
    """Id of the sensor."""
    value: Annotated[float, Field(ge=-_MOST, le=_MOST)] | None
    """The reading; null where there is none."""


# The first wrong one is enough: the problems of millions would fill the memory.
Readings = Annotated[list[SentReading], Field(min_length=1, fail_fast=True, examples=[READINGS])]


class ForecastRequest(_Body):
    """Recent readings to forecast from, at least as many steps as the model's history."""

    model: Name | None = None
    """Name of the model; may be left out where one is served."""
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

    model: Name | None = None
    """Name of the model; may be left out where one is served."""
    readings: Readings
    """Of sensors of the model; the same time and sensor again replaces, null withdraws."""


class ExplainRequest(_Body):
    """Which forecast to explain."""

    model: Name | None = None
    """Name of the model; may be left out where one is served."""
    sensor: SensorId
    """Id of the sensor."""
    time: Time | None = None
    """Of the first forecast step; by default the one after the last reading."""
    readings: Readings | None = None
    """Readings to forecast from; by default those that the service knows."""


class ModelQuery(_Query):
    """Which model."""

    model: Name | None = None
    """Name of the model; may be left out where one is served."""


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
