"""How much each branch counts: altogether, by the clock, and over the horizon, with how far single cases differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes

from candor.render.figures.style import BLUE, GREEN, ORANGE, SMALL, Drawing, dress, new_figure

Spread = tuple[float, float, float]
"""Mean, and the ends of the middle four fifths."""
_LOOKS = {"functional": (BLUE, "o-"), "forward": (ORANGE, "s-"), "reverse": (GREEN, "^--")}
_WORDS = {"functional": "own past, sensors alike", "forward": "along the edges", "reverse": "against the edges"}
_MOST_CLOCKS, _MOST_STEPS = 6, 5  # labels there is room for
_LETTERS = 118


CLOCKS = ("hour of day", "month", "weekday")
"""What weights are drawn by: the first of these that there is."""


@dataclass(frozen=True, eq=False)
class Group:
    """Weights of one hour, month or step: its number, what it is called, and the spread by branch."""

    value: int
    label: str
    weights: Mapping[str, Spread]


@dataclass(frozen=True, eq=False)
class AllocationPicture:
    """Fusion weights.

    Args:
        overall: by branch, over everything.
        groups: by what they are grouped by (hour of day, weekday, month, step ahead).
        note: what the weights are over.
    """

    overall: Mapping[str, Spread]
    groups: Mapping[str, Sequence[Group]]
    note: str = ""


def draw_allocation(picture: AllocationPicture) -> Drawing:
    """Returns the figure: altogether, by step ahead, and by hour of day, else by month, else by weekday."""
    figure = new_figure("How much the branches count", fill(picture.note, _LETTERS), height=4.6)
    parts = figure.subplot_mosaic(
        [["key", "key", "key"], ["overall", "clock", "ahead"]], width_ratios=(2, 4, 4), height_ratios=(0.25, 3)
    )
    _draw_overall(parts["overall"], picture.overall)
    clock = next(kind for kind in CLOCKS if kind in picture.groups)
    _draw_groups(parts["clock"], picture.groups[clock], _MOST_CLOCKS)
    dress(parts["clock"], "local time" if "hour" in clock else "", "", f"By {clock}")
    _draw_groups(parts["ahead"], picture.groups["step ahead"], _MOST_STEPS)
    dress(parts["ahead"], "beginning of the target patch", "", "By step ahead")
    for name in ("clock", "ahead"):
        parts[name].tick_params(labelleft=False)
    handles, drawn = parts["clock"].get_legend_handles_labels()
    parts["key"].set_axis_off()
    parts["key"].legend(
        handles=handles, labels=[f"{name}: {_WORDS[name]}" for name in drawn], loc="center left", ncols=3,
        fontsize=SMALL, frameon=False,
    )  # fmt: skip
    return Drawing(figure, _table(picture))


def _draw_overall(axes: Axes, overall: Mapping[str, Spread]) -> None:
    dress(axes, "", "weight", "Altogether")
    for place, (name, (mean, low, high)) in enumerate(overall.items()):
        axes.bar(place, mean, width=0.7, color=_LOOKS[name][0], alpha=0.85)
        axes.errorbar(place, mean, [[mean - low], [high - mean]], color="#222222", capsize=4, linewidth=1.4)
    axes.set_xticks([])
    axes.set_ylim(0, 1)
    axes.grid(visible=False, axis="x")


def _draw_groups(axes: Axes, groups: Sequence[Group], most: int) -> None:
    places = range(len(groups))
    for name, (colour, line) in _LOOKS.items():
        if name not in groups[0].weights:
            continue
        mean, low, high = zip(*(group.weights[name] for group in groups), strict=True)
        axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(places, mean, line, color=colour, linewidth=1.6, markersize=4, label=name)
    shown = range(0, len(groups), -(-len(groups) // most))
    axes.set_xticks(list(shown), [groups[place].label for place in shown])
    axes.set_ylim(0, 1)


def _table(picture: AllocationPicture) -> pd.DataFrame:
    grouped = [("all", "all", picture.overall)]
    grouped += [(kind, group.label, group.weights) for kind, groups in picture.groups.items() for group in groups]
    return pd.DataFrame(
        [
            {"by": kind, "group": label, "branch": branch, "mean": mean, "low_10": low, "high_90": high}
            for kind, label, weights in grouped
            for branch, (mean, low, high) in weights.items()
        ]
    )
