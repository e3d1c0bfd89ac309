"""A basin of thirteen sites made for tests, of which eleven are good enough."""

import math
from datetime import UTC, datetime, timedelta
from functools import cache

from made_rivers import straight
from usgs_answers import Observation, sensor_id
from usgs_server import MadeSite, UsgsServer

from candor.river.settings import BasinSettings

HOUR = timedelta(hours=1)
GOOD = tuple(f"USGS-{number:02d}" for number in range(1, 12))
FULL_OF_GAPS, TOO_SHORT = "USGS-12", "USGS-13"
START = datetime(2021, 5, 1, 7, tzinfo=UTC)  # midnight in California
HOURS = 21 * 24
TWO_SENSORS = "USGS-03"
RULES = BasinSettings(huc="180102", start="2021-05-01", end="2021-05-21", max_distance_km=50)


def oxygen(site: str, hour: float) -> str:
    """Returns what a site reads some hours after the start, in mg/L, as the service writes it."""
    phase = int(site[-2:]) / 3
    return f"{8 + math.sin(2 * math.pi * hour / 24 - phase) + 0.5 * math.sin(hour / 50 + phase):.2f}"


def fill(server: UsgsServer) -> None:
    """Lets a server know the basin: a straight river with a site on each of its reaches, from west to east."""
    names = (*GOOD, FULL_OF_GAPS, TOO_SHORT)
    server.reaches = {reach.comid: reach for reach in straight(*range(101, 114), step=0.1)}
    server.sites = [
        MadeSite(
            name,
            longitude=0.05 + 0.1 * place,
            comid=101 + place,
            sensors=tuple(sensor_id((name, one)) for one in range(2 if name == TWO_SENSORS else 1)),
            end="2021-05-10T00:00:00+00:00" if name == TOO_SHORT else "2025-01-01T00:00:00+00:00",
        )
        for place, name in enumerate(names)
    ]
    server.observations = list(_observations())


@cache
def _observations() -> tuple[Observation, ...]:
    """Returns all readings of the basin, made once: there are thousands of them."""
    found = []
    for name in (*GOOD, FULL_OF_GAPS):
        steps = 4 if name in GOOD[:2] else 1  # readings an hour
        for step in range(steps * HOURS):
            hour = step / steps
            is_lost = name == FULL_OF_GAPS and hour % 8 < 2
            value = "-999999" if name == "USGS-05" and hour in (100, 101) else oxygen(name, hour)
            if not is_lost:
                moment = START + hour * HOUR
                found.append(Observation(name, "00300", sensor_id((name, 0)), moment, value))
    found += [
        Observation(TWO_SENSORS, "00300", sensor_id((TWO_SENSORS, 1)), START + hour * HOUR, "1.00")
        for hour in range(HOURS - 1)
    ]
    return tuple(found)
