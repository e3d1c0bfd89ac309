"""One thing that a run tells of itself: in words, in numbers, and as a figure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.digits import significant
from candor.render.figures.style import Drawing

_MOST_KNOWN = 7  # digits of a reading in single precision


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
    return significant(value, digits) if math.isfinite(value) else "unknown"


def in_percent(share: float) -> str:
    """Returns a share as a percentage."""
    return f"{100 * share:.1f} %" if 0 < abs(share) < 0.1 else f"{100 * share:.0f} %"


def digits_for(values: NDArray[np.floating], apart: float) -> int:
    """Returns how many digits numbers need of which some lie only so far apart: three, or more if that is little.

    Levels above the sea differ by a ten-thousandth of what they are: three digits would make them all the same.
    """
    largest = float(np.abs(values).max())
    if not 0 < apart < largest:
        return 3
    needed = math.floor(math.log10(largest)) - math.floor(math.log10(apart)) + 2
    return min(max(needed, 3), _MOST_KNOWN)


def with_unit(value: float, unit: str, digits: int = 3) -> str:
    """Returns a number with its unit, if that is known."""
    return f"{in_digits(value, digits)} {unit}".rstrip()
