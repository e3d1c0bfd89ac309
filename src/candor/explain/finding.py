"""One thing that a run tells of itself: in words, in numbers, and as a figure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def digits_for(values: NDArray[np.floating], apart: float) -> int:
    """Returns how many digits numbers need of which some lie only so far apart: three, or more if that is little.

    Levels above the sea differ by a ten-thousandth of what they are: three digits would make them all the same.
    """
    largest = float(np.abs(values).max())
    if not 0 < apart < largest:
        return 3
    needed = math.floor(math.log10(largest)) - math.floor(math.log10(apart)) + 2
    return min(max(needed, 3), _MOST_KNOWN)
