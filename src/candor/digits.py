"""How a number is written for people: in tables on the screen and in the card of an exported model."""

from math import floor, log10

MOST_DIGITS = 12
"""After the point, in whatever is written for people."""


def number(value: float | None, digits: int = 3) -> str:
    """Returns a number with so many digits after the point, more if it is small, and a dash where there is none."""
    if value is None or value != value:
        return "–"
    if digits and 0 < abs(value) < 10.0 ** (1 - digits):  # little would be left of it
        digits = min(digits - 1 - floor(log10(abs(value))), MOST_DIGITS)
    return f"{value:,.{digits}f}"
