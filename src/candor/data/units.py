"""Units of readings: which spellings mean the same, and the ways from one unit to another that are exact."""

import re
from collections.abc import Iterable

# By quantity: how numbers become those of its first unit, factor * number + offset. The factors are exact; those of
# `checks.units` are rounded, for guessing.
UNITS = {
    "speed": {"km/h": (1.0, 0.0), "mph": (1.609344, 0.0)},
    "length": {"m": (1.0, 0.0), "cm": (0.01, 0.0), "mm": (0.001, 0.0), "ft": (0.3048, 0.0)},
    "flow": {"m3/s": (1.0, 0.0), "ft3/s": (0.028316846592, 0.0)},
    "temperature": {"degc": (1.0, 0.0), "degf": (5 / 9, -160 / 9)},
    "content of fresh water": {"mg/l": (1.0, 0.0), "ppm": (1.0, 0.0)},  # a litre of it weighs a kilogram
}
_OTHER_SPELLINGS = {"kmh": "km/h", "kph": "km/h", "c": "degc", "f": "degf", "cfs": "ft3/s"}
_OTHER_SIGNS = str.maketrans({"°": "deg", "²": "2", "³": "3", "µ": "u", "μ": "u", "^": "", " ": ""})
_LITRE = re.compile(r"(?<![A-Za-z])([munpdchk]?)L(?![A-Za-z])")


def plain_unit(unit: str) -> str:
    """Return one name for all spellings of a unit: mg/L is mg/l, cfs is ft3/s, °C is degc.

    Units outside the table keep their case, for MW are not mW; a litre may be written l or L in all of them.
    """
    plain = unit.translate(_OTHER_SIGNS).strip()
    folded = plain.casefold()
    folded = _OTHER_SPELLINGS.get(folded, folded)
    return folded if any(folded in names for names in UNITS.values()) else _LITRE.sub(r"\1l", plain)


def distinct_units(units: Iterable[str]) -> list[str]:
    """Return the units that are not the same as an earlier one, each as it was spelled first."""
    first: dict[str, str] = {}
    for unit in units:
        first.setdefault(plain_unit(unit), unit)
    return list(first.values())
