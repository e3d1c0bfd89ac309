"""How much the branches count: altogether, by the clock, over the horizon, and in several systems."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from candor.explain.pictures import FUSION_CLOCKS, FusionPicture, Spread, WeightGroup
from candor.render.figures.style import BLACK, BRANCHES, Drawing, add_key, add_legend, dress, name_rows, new_figure

_MOST_CLOCKS, _MOST_STEPS = 6, 5  # labels there is room for


def draw_fusion(picture: FusionPicture) -> Drawing:
    """Returns the figure: altogether, by step ahead, and by hour of day, else by month, else by weekday."""
    figure = new_figure("How much the branches count", picture.note, height=4.6)
    parts = figure.subplot_mosaic(
        [["key", "key", "key"], ["overall", "clock", "ahead"]], width_ratios=(2, 4, 4), height_ratios=(0.25, 3)
    )
    _draw_overall(parts["overall"], picture.overall)
    clock = next(kind for kind in FUSION_CLOCKS if kind in picture.groups)
    _draw_groups(parts["clock"], picture.groups[clock], _MOST_CLOCKS)
    dress(parts["clock"], "local time" if "hour" in clock else "", "", f"By {clock}")
    _draw_groups(parts["ahead"], picture.groups["step ahead"], _MOST_STEPS)
    dress(parts["ahead"], "beginning of the target patch", "", "By step ahead")
    for name in ("clock", "ahead"):
        parts[name].tick_params(labelleft=False)
    add_key(parts["key"], parts["clock"].get_lines(), 3)
    grouped = [("all", "all", picture.overall)]
    grouped += [(kind, group.label, group.weights) for kind, groups in picture.groups.items() for group in groups]
    rows = [
        {"by": kind, "group": label, "branch": branch, "mean": mean, "low_10": low, "high_90": high}
        for kind, label, weights in grouped
        for branch, (mean, low, high) in weights.items()
    ]
    return Drawing(figure, pd.DataFrame(rows))


def _draw_overall(axes: Axes, overall: Mapping[str, Spread]) -> None:
    dress(axes, "", "weight", "Altogether")
    for place, (name, (mean, low, high)) in enumerate(overall.items()):
        axes.bar(place, mean, width=0.7, color=BRANCHES[name].colour, alpha=0.85)
        axes.errorbar(place, mean, [[mean - low], [high - mean]], color=BLACK, capsize=4, linewidth=1.4)
    axes.set_xticks([])
    axes.set_ylim(0, 1)
    axes.grid(visible=False, axis="x")


def _draw_groups(axes: Axes, groups: Sequence[WeightGroup], most: int) -> None:
    places = range(len(groups))
    for name, look in BRANCHES.items():
        if name not in groups[0].weights:
            continue
        mean, low, high = zip(*(group.weights[name] for group in groups), strict=True)
        axes.fill_between(places, low, high, color=look.colour, alpha=0.18, linewidth=0)
        axes.plot(places, mean, look.line, color=look.colour, linewidth=1.6, markersize=4, label=_label(name))
    shown = range(0, len(groups), -(-len(groups) // most))
    axes.set_xticks(list(shown), [groups[place].label for place in shown])
    axes.set_ylim(0, 1)


def draw_fusions(systems: Mapping[str, Mapping[str, Spread]]) -> Drawing:
    """Returns the figure of the mean weights of several systems beside each other, with 10 % to 90 % as bars.

    Args:
        systems: by name, by branch: mean, 10th and 90th percentile of the weight.
    """
    note = "Mean over sensors, windows of the test part and target patches; bars: 10 % to 90 %."
    figure = new_figure("What forecasts rest on, system by system", note, height=1.8 + 0.6 * len(systems))
    axes = figure.subplots()
    dress(axes, "weight in the forecast")
    branches = [name for name in BRANCHES if any(name in found for found in systems.values())]
    for rank, branch in enumerate(branches):
        offset = (rank - (len(branches) - 1) / 2) * 0.22
        places = [place + offset for place, found in enumerate(systems.values()) if branch in found]
        means, lows, highs = np.array([found[branch] for found in systems.values() if branch in found]).T
        look = BRANCHES[branch]
        axes.hlines(places, lows, highs, color=look.colour, linewidth=2.4, alpha=0.45)
        axes.plot(means, places, look.mark, color=look.colour, markersize=7, label=_label(branch))
    name_rows(axes, list(systems))
    axes.set_xlim(0, 1)
    add_legend(axes, len(branches))
    rows = [
        {"system": system, "branch": branch, "mean": mean, "low_10": low, "high_90": high}
        for system, found in systems.items()
        for branch, (mean, low, high) in found.items()
    ]
    return Drawing(figure, pd.DataFrame(rows))


def _label(branch: str) -> str:
    return f"{branch}: {BRANCHES[branch].words}"
