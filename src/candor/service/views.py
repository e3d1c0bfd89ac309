"""Answers about what is served: models, the network of sensors, and the past of a sensor."""

from typing import Any

from candor.core.errors import InputError
from candor.core.text import duration
from candor.data.adjacency import adjacency_of
from candor.data.times import zone_from_name
from candor.forecasting.questions import rounded
from candor.service.forecasts import plain_numbers
from candor.service.layout import has_coordinates
from candor.service.readings import unknown_sensor
from candor.service.served import Edition, Served
from candor.service.settings import ServiceSettings


def summarise(served: Served, settings: ServiceSettings) -> dict[str, Any]:
    """Returns what a client should know of a model before it asks it anything."""
    edition = served.edition
    record, known, grid = edition.run.record, edition.known, edition.record.grid
    first, stop = edition.record.span()
    origins = edition.origins()
    zone = zone_from_name(known.times.zone)
    return {
        "name": served.name,
        "model": record.label,
        "data": record.data,
        "unit": known.unit,
        "zone": known.times.zone,
        "interval_seconds": known.times.interval.total_seconds(),
        "interval": duration(known.times.interval),
        "history": edition.forecaster.rows_needed,
        "horizon": edition.forecaster.horizon,
        "sensors": len(known.sensors),
        "edges": len(known.edges),
        "made": None if record.made is None else record.made.astimezone(zone).isoformat(),
        "version": edition.version,
        "explains": edition.explains,
        "readings_changed": served.store.changed.astimezone(zone).isoformat(timespec="microseconds"),
        "last_reading": grid.local(stop - 1) if stop > first else None,
        "first_origin": None if origins is None else grid.local(origins[0]),
        "last_origin": None if origins is None else grid.local(origins[1]),
        "limits": {
            "body_bytes": settings.most_body_bytes,
            "sensors": settings.most_sensors,
            "horizon": settings.most_horizon,
        },
    }


def network(served: Served) -> dict[str, Any]:
    """Returns the sensors of a model with a place to draw them at, and its edges."""
    edition = served.edition
    known, places = edition.known, edition.places.tolist()
    edges, ids, weights = known.edges, known.sensor_ids, adjacency_of(known)
    return {
        "model": served.name,
        "sensors": [
            {
                "id": sensor.id,
                "name": sensor.name,
                "unit": sensor.unit,
                "latitude": sensor.latitude,
                "longitude": sensor.longitude,
                "x": round(across, 6),
                "y": round(up, 6),
            }
            for sensor, (across, up) in zip(known.sensors, places, strict=True)
        ],
        "edges": [
            {
                "from": ids[source],
                "to": ids[target],
                "weight": rounded(float(weights[source, target])),
                "distance": None if edges.distance is None else rounded(float(edges.distance[number])),
            }
            for number, (source, target) in enumerate(zip(edges.source, edges.target, strict=True))
        ],
        "has_coordinates": has_coordinates(known),
    }


def history(served: Served, sensor: str, until: str | None, steps: int, settings: ServiceSettings) -> dict[str, Any]:
    """Returns the readings of one sensor at the steps before a time, in its unit."""
    edition = served.edition
    column = find_column(edition, sensor)
    if steps > settings.most_steps:
        raise InputError(f"{steps:,} steps are too many", where="steps", hint=f"ask for up to {settings.most_steps:,}")
    record = edition.record
    first, stop = record.span()
    stop = stop if until is None else max(first, min(record.grid.row_from(until), stop))
    begin = max(first, stop - steps)
    return {
        "model": served.name,
        "sensor": sensor,
        "unit": edition.known.sensors[column].unit,
        "times": record.grid.locals(begin, stop),
        "values": plain_numbers(record.series(sensor, begin, stop)),
    }


def find_column(edition: Edition, sensor: str) -> int:
    """Returns the column of a sensor."""
    if sensor not in edition.known.sensor_ids:
        raise unknown_sensor(edition, repr(sensor))
    return edition.known.sensor_ids.index(sensor)
