"""The four components of one sensor's recent past and the gates that chose them, patch by patch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from candor.core.text import shared_time_format
from candor.render.figures.style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SMALL,
    VERMILION,
    Drawing,
    add_legend,
    at_tick,
    dress,
    new_figure,
)

_LOOKS = {
    "background": (BLUE, "o-"), "accumulation": (ORANGE, "s-"), "release": (GREEN, "^--"), "shock": (VERMILION, "D-."),
}  # fmt: skip
_MOST_DAYS, _MOST_CLOCKS = 8, 6  # labels there is room for


@dataclass(frozen=True, eq=False)
class ComponentPicture:
    """What the history of one sensor was split into.

    Args:
        sensor: what people call it.
        starts: local times of the first readings of the patches.
        ends: local times of their last readings.
        strengths: by name of the component, by patch: how much of it there was, in the network's own measure.
        gates: by name of the gate, by patch: 0 shut, 1 open.
    """

    sensor: str
    starts: Sequence[datetime]
    ends: Sequence[datetime]
    strengths: Mapping[str, NDArray[np.floating]]
    gates: Mapping[str, NDArray[np.floating]]


def draw_components(picture: ComponentPicture) -> Drawing:
    """Returns the figure of strengths above the gates.

    Each component is a line of its own: sizes of states do not add up, so that the height of a stack would say nothing.
    """
    note = (
        "Strengths are root mean squares of the network's states before they are normalised. They do not add up: "
        "compare\na component with itself."
    )
    figure = new_figure(f"Recent past of {picture.sensor}", note, height=6.0)
    strengths, gates = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = np.arange(len(picture.starts))
    dress(strengths, "", "strength, without unit")
    for name, values in picture.strengths.items():
        colour, line = _LOOKS[name]
        strengths.plot(places, values, line, color=colour, markersize=4, linewidth=1.6, label=name)
    strengths.set_ylim(bottom=0)
    add_legend(strengths, len(picture.strengths))
    dress(gates, "history patch (first to last reading)", "gate: 0 shut, 1 open")
    for (name, values), colour in zip(picture.gates.items(), (ORANGE, GREEN, VERMILION, PURPLE), strict=False):
        gates.plot(places, values, color=colour, marker="o", markersize=4, linewidth=1.6, label=name)
    gates.set_ylim(0, 1)
    add_legend(gates, len(picture.gates))
    _label_patches(gates, picture)
    return Drawing(figure, _table(picture))


def _label_patches(axes: Axes, picture: ComponentPicture) -> None:
    """Writes beginning and end of patches in two lines, of so many patches as there is room for."""
    clock = shared_time_format((*picture.starts, *picture.ends))
    most = _MOST_CLOCKS if clock else _MOST_DAYS
    shown = range(0, len(picture.starts), -(-len(picture.starts) // most))
    starts, ends = ([at_tick(moment, f"%d %b {clock}") for moment in row] for row in (picture.starts, picture.ends))
    axes.set_xticks(list(shown), [f"{starts[place]}\nto {ends[place]}" for place in shown], fontsize=SMALL)


def _table(picture: ComponentPicture) -> pd.DataFrame:
    spans = {name: [moment.isoformat() for moment in getattr(picture, name)] for name in ("starts", "ends")}
    strengths = {f"{name} strength": values for name, values in picture.strengths.items()}
    gates = {f"{name} gate": values for name, values in picture.gates.items()}
    return pd.DataFrame({"start": spans["starts"], "end": spans["ends"], **strengths, **gates})
