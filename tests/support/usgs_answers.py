"""Recorded USGS answers, and the same in the shape of today's service."""

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "fixtures" / "usgs"
OBSERVATION_PROPERTIES = (
    "time_series_id", "monitoring_location_id", "parameter_code", "statistic_id", "time", "value", "unit_of_measure",
    "approval_status", "qualifier", "last_modified", "method_category",
)  # fmt: skip


def recorded(name: str) -> Any:
    """Returns a recorded answer."""
    return json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Observation:
    """One reading as the service keeps it; the value is a text, or None."""

    site: str
    parameter: str
    sensor: str
    time: datetime
    value: str | None
    unit: str = "mg/l"
    approval: str = "Approved"
    qualifier: tuple[str, ...] | None = None

    def feature(self) -> dict[str, Any]:
        """Returns the reading as a feature of the collection `continuous`."""
        values = (
            self.sensor, self.site, self.parameter, "00011", self.time.astimezone(UTC).isoformat(), self.value,
            self.unit, self.approval, None if self.qualifier is None else list(self.qualifier),
            "2026-10-01T00:58:19.731858+00:00", None,
        )  # fmt: skip
        properties = dict(zip(OBSERVATION_PROPERTIES, values, strict=True))
        return {"type": "Feature", "properties": properties, "id": self._name, "geometry": None}

    @cached_property
    def _name(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.sensor} {self.time.isoformat()}"))


@cache
def sensor_id(number: object) -> str:
    """Returns an id as long as the service's for a sensor known by a number."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"sensor {number}").hex


def transcoded(name: str) -> list[Observation]:
    """Returns the readings of a recorded answer of the former service, as today's service would know them."""
    found = []
    for series in recorded(name)["value"]["timeSeries"]:
        variable = series["variable"]
        for block in series["values"]:
            sensor = sensor_id(block["method"][0]["methodID"])
            for reading in block["value"]:
                status, *qualifiers = reading["qualifiers"]
                found.append(
                    Observation(
                        site=f"USGS-{series['sourceInfo']['siteCode'][0]['value']}",
                        parameter=variable["variableCode"][0]["value"],
                        sensor=sensor,
                        time=datetime.fromisoformat(reading["dateTime"]),
                        value=reading["value"],
                        unit=variable["unit"]["unitCode"],
                        approval={"A": "Approved", "P": "Provisional"}[status],
                        qualifier=tuple(qualifiers) or None,
                    )
                )
    return found
