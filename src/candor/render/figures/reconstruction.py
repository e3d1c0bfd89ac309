"""The history of one sensor beside what its components rebuild of it, and what each of them adds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from candor.render.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    Drawing,
    add_legend,
    dress,
    in_unit,
    new_figure,
    on_axis,
    use_local_times,
)

_PARTS = {"accumulation": (ORANGE, "-"), "release": (GREEN, "--"), "shock": (VERMILION, "-.")}
_MOST_DOTS = 150
_LETTERS = 118  # in a line of the note


@dataclass(frozen=True, eq=False)
class ReconstructionPicture:
    """Histories of one sensor, one after the other, in its unit.

    Args:
        sensor: what people call it.
        unit: of all numbers.
        times: local times of the steps.
        breaks: local times at which a new history begins.
        readings: NaN where there is none.
        current: rebuilt against the background of the same patch.
        following: rebuilt against that of the next patch.
        parts: what accumulation, release and shock add, by name.
        note: how large the errors are.
    """

    sensor: str
    unit: str
    times: Sequence[datetime]
    breaks: Sequence[datetime]
    readings: NDArray[np.floating]
    current: NDArray[np.floating]
    following: NDArray[np.floating]
    parts: Mapping[str, NDArray[np.floating]]
    note: str = ""


def draw_reconstruction(picture: ReconstructionPicture) -> Drawing:
    """Returns the figure: readings and both reconstructions above, what the components add below."""
    figure = new_figure(f"History rebuilt: {picture.sensor}", fill(picture.note, _LETTERS), height=6.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = on_axis(picture.times)
    dots = {"marker": "o", "markersize": 3} if len(places) <= _MOST_DOTS else {}
    dress(above, "", in_unit("reading", picture.unit))
    above.plot(places, picture.readings, color=BLACK, linewidth=1.6, label="readings", **dots)
    above.plot(places, picture.current, color=BLUE, linewidth=1.6, label="background + accumulation + shock")
    above.plot(places, picture.following, "--", color=PURPLE, linewidth=1.6, label="next background + release + shock")
    add_legend(above, 3)
    dress(below, "", in_unit("what is added", picture.unit))
    below.axhline(0, color=GREY, linewidth=0.8)
    for name, values in picture.parts.items():
        colour, line = _PARTS[name]
        below.plot(places, values, line, color=colour, linewidth=1.6, label=name)
    add_legend(below, 3)
    _mark_breaks((above, below), picture)
    use_local_times(below, picture.times)
    return Drawing(figure, _table(picture))


def _mark_breaks(both: Sequence[Axes], picture: ReconstructionPicture) -> None:
    for axes in both:
        for place in on_axis(picture.breaks) if picture.breaks else ():
            axes.axvline(place, color=GREY, linewidth=0.8, linestyle=":")


def _table(picture: ReconstructionPicture) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "time": [moment.isoformat() for moment in picture.times],
            "reading": picture.readings,
            "current_reference": picture.current,
            "next_reference": picture.following,
            **picture.parts,
        }
    )
