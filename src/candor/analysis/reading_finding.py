"""One thing that a run tells of itself: in words, in numbers, and as a figure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from candor.figures.style import Drawing


@dataclass(frozen=True, eq=False)
class Finding:
    """What was found out about one question.

    Args:
        name: of its files.
        title: what it is about.
        sentences: what was found, in plain words; where the network has no such part, that.
        numbers: the same for scripts; None where there is no such number.
        drawing: the figure with its numbers; None where there is nothing to draw.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    drawing: Drawing | None = None


def in_digits(value: float, digits: int = 3) -> str:
    """Returns a number with so many digits that count, thousands set apart."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "unknown"
    places = min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), 6)
    return f"{value:,.{places}f}"


def in_percent(share: float) -> str:
    """Returns a share as a percentage."""
    return f"{100 * share:.1f} %" if 0 < abs(share) < 0.1 else f"{100 * share:.0f} %"


def with_unit(value: float, unit: str) -> str:
    """Returns a number with its unit, if that is known."""
    return f"{in_digits(value)} {unit}".rstrip()
