"""How a report writes numbers, and what it calls things."""

import math

from candor.core.digits import significant
from candor.data.panel import Sensor

NOTHING = "–"
_LONGEST_LABEL = 22


def number(value: float | None) -> str:
    """Returns a number with about three digits that count, thousands set apart; a dash where there is none."""
    return NOTHING if value is None or not math.isfinite(value) else significant(value)


def percent(share: float | None) -> str:
    """Returns a share as a percentage with one decimal."""
    return NOTHING if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def amount(value: float | None, unit: str) -> str:
    """Returns a number with its unit."""
    return f"{number(value)} {unit}".rstrip()


def counted(count: int, thing: str) -> str:
    """Returns how many things there are, such as `1 edge` and `1,722 edges`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def full_name(sensor: Sensor) -> str:
    """Returns the name of a sensor with its id, or the id alone."""
    return f"{sensor.name} ({sensor.id})" if sensor.name else sensor.id


def short_name(sensor: Sensor) -> str:
    """Returns the name of a sensor, or its id, cut to what fits beside a chart."""
    name = sensor.name or sensor.id
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1].rstrip()}…"
