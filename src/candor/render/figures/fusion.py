"""How much the three branches count over the horizon, and how far sensors and windows differ in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.render.figures.style import BLUE, GREEN, ORANGE, Drawing, add_legend, dress, new_figure, plain

# Two branches may weigh the same: lines that lie on one another are told apart by their dashes and marks.
_LINES = {"functional": (BLUE, "o-"), "forward": (ORANGE, "s-"), "reverse": (GREEN, "^--")}
_WORDS = {"functional": "own past, sensors alike", "forward": "along the edges", "reverse": "against the edges"}


Spread = tuple[float, float, float]
"""Mean, 10th and 90th percentile."""


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


def draw_fusions(systems: Mapping[str, Mapping[str, Spread]]) -> Drawing:
    """Returns the figure of the mean weights of several systems beside each other, with 10 % to 90 % as bars.

    Args:
        systems: by name, by branch: mean, 10th and 90th percentile of the weight.
    """
    note = "Mean over sensors, windows of the test part and target patches; bars: 10 % to 90 %."
    figure = new_figure("What forecasts rest on, system by system", note, height=1.8 + 0.6 * len(systems))
    axes = figure.subplots()
    dress(axes, "weight in the forecast")
    branches = [name for name in _LINES if any(name in found for found in systems.values())]
    for rank, branch in enumerate(branches):
        offset = (rank - (len(branches) - 1) / 2) * 0.22
        places = [place + offset for place, found in enumerate(systems.values()) if branch in found]
        means, lows, highs = np.array([found[branch] for found in systems.values() if branch in found]).T
        colour, mark = _LINES[branch][0], _LINES[branch][1][0]
        axes.hlines(places, lows, highs, color=colour, linewidth=2.4, alpha=0.45)
        axes.plot(means, places, mark, color=colour, markersize=7, label=_label(branch))
    axes.set_yticks(range(len(systems)), [plain(name) for name in systems])
    axes.set_ylim(len(systems) - 0.5, -0.5)  # the first on top
    axes.set_xlim(0, 1)
    axes.grid(visible=False, axis="y")
    add_legend(axes, len(branches))
    rows = [
        {"system": system, "branch": branch, "mean": mean, "low_10": low, "high_90": high}
        for system, found in systems.items()
        for branch, (mean, low, high) in found.items()
    ]
    return Drawing(figure, pd.DataFrame(rows))


def _label(name: str) -> str:
    return f"{name}: {_WORDS[name]}"
