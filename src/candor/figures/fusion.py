"""How much the three branches count over the horizon, and how far sensors and windows differ in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.figures.style import BLUE, GREEN, ORANGE, Drawing, add_legend, dress, new_figure

# Two branches may weigh the same: lines that lie on one another are told apart by their dashes and marks.
_LINES = {"functional": (BLUE, "o-"), "forward": (ORANGE, "s-"), "reverse": (GREEN, "^--")}
_WORDS = {"functional": "own past, sensors alike", "forward": "along the edges", "reverse": "against the edges"}


@dataclass(frozen=True, eq=False)
class FusionPicture:
    """Fusion weights by target patch.

    Args:
        ahead: middle of each target patch, in `ahead_unit` after the last reading.
        ahead_unit: such as days.
        horizon: how far the forecast reaches, in the same unit.
        weights: by name of the branch, sample x target; a sample is a sensor in a window.
        note: what the samples are.
    """

    ahead: Sequence[float]
    ahead_unit: str
    horizon: float
    weights: Mapping[str, NDArray[np.floating]]
    note: str = ""


def draw_fusion(picture: FusionPicture) -> Drawing:
    """Returns the figure of mean weights, each within the middle four fifths of the samples."""
    figure = new_figure("What the forecast rests on over the horizon", picture.note)
    axes = figure.subplots()
    dress(axes, f"{picture.ahead_unit} after the last reading", "weight in the forecast")
    columns: dict[str, object] = {f"{picture.ahead_unit} ahead": list(picture.ahead)}
    for name, weights in picture.weights.items():
        mean, (low, high) = weights.mean(axis=0), np.quantile(weights, (0.1, 0.9), axis=0)
        colour, line = _LINES[name]
        axes.fill_between(picture.ahead, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(picture.ahead, mean, line, color=colour, linewidth=1.8, markersize=5, label=_label(name))
        columns |= {f"{name} mean": mean, f"{name} 10 %": low, f"{name} 90 %": high}
    axes.set_xlim(0, picture.horizon)
    axes.set_ylim(0, 1)
    add_legend(axes, len(picture.weights))
    return Drawing(figure, pd.DataFrame(columns))


def _label(name: str) -> str:
    return f"{name}: {_WORDS[name]}"
