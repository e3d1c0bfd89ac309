"""Spellings of units: those that mean the same have one name, and others never do."""

from datetime import UTC, datetime
from itertools import combinations

import numpy as np
import pytest

from candor.data.panel import Panel, Sensor
from candor.data.times import DAY, TimeAxis
from candor.data.units import UNITS, distinct_units, plain_unit

SPELLINGS = (
    ("mg/l", "mg/L", " MG/L", "mg / L"),
    ("ft3/s", "ft^3/s", "ft³/s", "cfs", "CFS"),
    ("degc", "°C", "deg C", "C"),
    ("ug/L", "ug/l", "µg/l", "μg/L"),  # the sign for micro, and the Greek letter
    ("L/s", "l/s"),
    ("m^2", "m²"),
)
DIFFERENT = ("MW", "mW", "mS/cm", "uS/cm", "kg", "Kg", "ppm", "mg/l", "ug/L", "l", "ML", "Lux", "lux", "")


@pytest.mark.parametrize("spellings", SPELLINGS)
def test_spellings_of_a_unit_have_one_name(spellings: tuple[str, ...]) -> None:
    assert len({plain_unit(unit) for unit in spellings}) == 1
    assert distinct_units(spellings) == [spellings[0]]


def test_other_units_have_other_names() -> None:
    for unit, other in combinations((*DIFFERENT, *(name for names in UNITS.values() for name in names)), 2):
        assert (plain_unit(unit) == plain_unit(other)) == (unit == other)


def test_a_panel_whose_sensors_spell_one_unit_differently_has_one_unit() -> None:
    sensors = tuple(Sensor(str(place), unit=unit) for place, unit in enumerate(("mg/l", "mg/L", "", "degC")))
    times = TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), DAY, 1)
    assert Panel(np.ones((1, 4), np.float32), times, sensors).unit == "mg/l, degC"
