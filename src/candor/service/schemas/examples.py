"""One example of every body and answer, for the document that describes the service (/v1/openapi.json).

They show the model of `candor serve --demo`: dissolved oxygen in the Klamath River, one reading a day. No field is
null, because FastAPI leaves nulls out of its document.
"""

from typing import Any

_MODEL, _VERSION, _SENSOR, _OTHER, _UNIT = "klamath-daily", "3f9c0a52e1b7", "11509370", "11509500", "mg/L"
_YESTERDAY, _TODAY, _TOMORROW = (f"2025-03-{day}T00:00:00-08:00" for day in ("08", "09", "10"))
_UNITS = {_SENSOR: _UNIT, _OTHER: _UNIT}

READINGS: list[dict[str, Any]] = [
    {"time": _TODAY, "sensor": _SENSOR, "value": 10.4},
    {"time": _TODAY, "sensor": _OTHER, "value": 9.8},
]
_PATCH, _STEPS = {"start": _YESTERDAY, "end": _TODAY}, {"start": _TOMORROW, "end": "2025-03-11T00:00:00-08:00"}

EXAMPLES: dict[str, dict[str, Any]] = {
    "ForecastRequest": {
        "model": _MODEL, "readings": READINGS, "coverage": 0.8, "below": 5.0, "now": _TODAY, "allow_short": True,
    },
    "ReadingsRequest": {"model": _MODEL, "readings": READINGS},
    "ExplainRequest": {"model": _MODEL, "sensor": _SENSOR, "time": _TOMORROW},
    "ErrorResponse": {
        "error": {
            "code": "unknown_model",
            "what": "there is no model called 'danube'",
            "where": "model",
            "hint": f"there are: {_MODEL}",
        }
    },
    "Health": {"status": "ok"},
    "Readiness": {"status": "ready", "models": [_MODEL]},
    "ModelList": {
        "models": [
            {
                "name": _MODEL,
                "model": "candor",
                "data": _MODEL,
                "unit": _UNIT,
                "zone": "UTC-08:00",
                "interval_seconds": 86400.0,
                "interval": "1 d",
                "history": 28,
                "horizon": 14,
                "sensors": 11,
                "edges": 41,
                "made": "2025-03-10T09:30:00-08:00",
                "version": _VERSION,
                "explains": True,
                "readings_changed": "2025-03-10T10:00:00.000000-08:00",
                "last_reading": _TODAY,
                "first_origin": "2020-11-05T00:00:00-08:00",
                "last_origin": _TOMORROW,
                "limits": {"body_bytes": 16777216, "sensors": 10000, "horizon": 2000},
            }
        ]
    },
    "SensorList": {
        "model": _MODEL,
        "sensors": [
            {
                "id": _SENSOR, "name": "Klamath River above Keno Dam, at Keno, or", "unit": _UNIT,
                "latitude": 42.12788298, "longitude": -121.9288769, "x": 0.506885, "y": 0.363406,
            },
            {
                "id": _OTHER, "name": "Klamath River at Keno, or", "unit": _UNIT,
                "latitude": 42.13319946, "longitude": -121.9622313, "x": 0.389857, "y": 0.388563,
            },
        ],
        "edges": [{"from": _SENSOR, "to": _OTHER, "weight": 0.8854148, "distance": 4.81}],
        "has_coordinates": True,
    },
    "ForecastResponse": {
        "model": _MODEL,
        "version": _VERSION,
        "last_reading": _TODAY,
        "zone": "UTC-08:00",
        "units": _UNITS,
        "coverage": 0.8,
        "findings": [
            {
                "level": "warning", "what": "sensors have no reading in the last 28 rows", "where": _OTHER,
                "hint": "expect poor forecasts there", "count": 1,
            }
        ],
        "forecasts": [
            {
                "time": _TOMORROW, "sensor": _SENSOR, "step": 1, "forecast": 10.31, "lower": 9.62, "upper": 10.98,
                "probability": 0.001,
            }
        ],
    },
    "ReadingsResponse": {"accepted": 2, "replaced": 0, "last_reading": _TODAY},
    "PastForecast": {
        "model": _MODEL,
        "time": _TODAY,
        "units": _UNITS,
        "coverage": 0.9,
        "findings": [],
        "steps": [_TODAY, _TOMORROW],
        "sensors": {
            _SENSOR: {
                "forecast": [10.35, 10.31], "lower": [9.5, 9.4], "upper": [11.1, 11.2], "observed": [10.4, None],
            }
        },
    },
    "History": {
        "model": _MODEL, "sensor": _SENSOR, "unit": _UNIT, "times": [_YESTERDAY, _TODAY], "values": [None, 10.4],
    },
    "Overview": {
        "model": _MODEL,
        "time": _TOMORROW,
        "sensors": [
            {
                "id": _SENSOR, "last": 10.4, "forecast": 10.12, "change": -0.28, "change_end": -0.5, "width": 2.1,
                "unit": _UNIT,
            }
        ],
    },
    "ExplanationResponse": {
        "model": _MODEL,
        "sensor": _SENSOR,
        "time": _TOMORROW,
        "unit": _UNIT,
        "times": [_TOMORROW, "2025-03-11T00:00:00-08:00"],
        "forecast": [10.31, 10.2],
        "patches": [_PATCH],
        "components": {"background": [1.2], "accumulation": [0.3], "release": [0.1], "shock": [0.0]},
        "gates": {"accumulation": [0.4], "release": [0.3], "shock_current": [0.05], "shock_following": [0.02]},
        "contributions": [
            {"direction": "forward", "sensor": _OTHER, "position": 1, "patch": _PATCH, "weight": 0.6, "size": 0.42}
        ],
        "peers": [{"sensor": _OTHER, "channel": 0, "weight": 1.0, "resemblance": 0.87}],
        "fusion": [_STEPS | {"functional": 0.5, "forward": 0.3, "reverse": 0.2}],
    },
}  # fmt: skip
"""By the name of the class of the body or response."""


def add_example(schema: dict[str, Any], model: type[Any]) -> None:
    """Adds the example of a class to its JSON schema, if there is one."""
    if model.__name__ in EXAMPLES:
        schema["examples"] = [EXAMPLES[model.__name__]]
