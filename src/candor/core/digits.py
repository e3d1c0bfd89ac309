"""How a number is written for people: with so many digits after the point, or with so many that count."""

from math import floor, log10

_MOST_DIGITS = 12  # after the point


def number(value: float | None, digits: int = 3) -> str:
    """Returns a number with so many digits after the point, more if it is small, and a dash where there is none."""
    if value is None or value != value:
        return "–"
    if digits and 0 < abs(value) < 10.0 ** (1 - digits):  # little would be left of it
        digits = min(digits - 1 - floor(log10(abs(value))), _MOST_DIGITS)
    return f"{value:,.{digits}f}"


def significant(value: float, digits: int = 3) -> str:
    """Returns a finite number with so many digits that count, thousands set apart."""
    if value == 0:
        return "0"
    places = min(max(digits - 1 - floor(log10(abs(value))), 0), _MOST_DIGITS)
    return f"{value:,.{places}f}"
