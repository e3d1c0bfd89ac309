"""The two schematics of the method: how a forecast is made, and what a sensor's recent past is split into."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from candor.render.figures import style
from candor.render.figures.style import Drawing, new_figure

_LETTERS = 1.3  # that fit into a hundredth of the width


class Box(NamedTuple):
    """A step of the method: where it stands, in hundredths of the drawing, what it is called, and what it does."""

    left: float
    bottom: float
    width: float
    height: float
    colour: str
    title: str
    words: str


OVERVIEW: Mapping[str, Box] = {
    "window": Box(0.5, 40, 17.5, 26, style.GREY, "Recent past",
                  "readings of all sensors, cut into overlapping patches; clock and weekday"),
    "split": Box(22, 40, 17, 26, style.ORANGE, "Decomposition", "background, accumulation, release and shock"),
    "forward": Box(44, 70, 22.5, 20, style.BLUE, "Physical, forward",
                   "what deviated upstream arrives along the edges, position by position"),
    "reverse": Box(44, 43, 22.5, 20, style.SKY, "Physical, reverse",
                   "the same against the edges: congestion and backwater spread upstream"),
    "functional": Box(44, 11, 22.5, 25, style.GREEN, "Functional",
                      "sensors that behave alike, or opposite, beyond the map: the best k pairs of sensor and "
                      "relation"),
    "fusion": Box(71, 40, 12.5, 26, style.PURPLE, "Fusion", "three forecasts weighed by sensor and calendar"),
    "head": Box(87, 40, 12.5, 26, style.VERMILION, "Forecast",
                "patches decoded, averaged where they overlap, in your unit"),
}  # fmt: skip
OVERVIEW_ARROWS = (
    ("window", "split"), ("split", "forward"), ("split", "reverse"), ("split", "functional"), ("forward", "fusion"),
    ("reverse", "fusion"), ("functional", "fusion"), ("fusion", "head"),
)  # fmt: skip

SPLIT: Mapping[str, Box] = {
    "embedding": Box(1, 42, 15, 22, style.GREY, "Patch Z", "a stretch of readings as a vector of states"),
    "background": Box(22, 72, 18, 18, style.ORANGE, "Background B", "the smooth part of the patch and those before"),
    "current": Box(22, 42, 18, 20, style.GREY, "U = Z - B now", "departure from the background of the same patch"),
    "following": Box(22, 12, 18, 20, style.GREY, "V = Z - B next", "departure from the background that follows"),
    "accumulation": Box(48, 70, 19, 20, style.BLUE, "Accumulation A",
                        "what of U is building up, by a gate that sees its change and the clock"),
    "shock": Box(48, 41, 19, 20, style.VERMILION, "Shock S", "sudden parts of U and V, each by a gate on magnitudes"),
    "release": Box(48, 12, 19, 20, style.GREEN, "Release R", "what of V is going down towards the next background"),
    "states": Box(75, 58, 24, 30, style.SKY, "Refined states H",
                  "what a sensor does by itself, and a residual that travels along edges, louder where there are "
                  "shocks"),
    "relations": Box(75, 16, 24, 25, style.PURPLE, "Relations",
                     "who behaves like whom: levels and trends of the backgrounds of all sensors are compared"),
}  # fmt: skip
SPLIT_ARROWS = (
    ("embedding", "background"), ("embedding", "current"), ("embedding", "following"), ("background", "current"),
    ("current", "accumulation"), ("current", "shock"), ("following", "shock"), ("following", "release"),
    ("accumulation", "states"), ("shock", "states"), ("release", "states"), ("states", "relations"),
)  # fmt: skip


def draw_overview() -> Drawing:
    """Draw how a forecast is made, from readings to readings."""
    note = "What is read, what it is split into, three ways to carry it forward, and how they are blended."
    return _draw("CANDOR: how a forecast is made", note, OVERVIEW, OVERVIEW_ARROWS)


def draw_decomposition() -> Drawing:
    """Draw what each patch of a sensor's history is split into, and what reads the parts."""
    note = "Each departure is measured against two backgrounds: that of the same patch, and that of the next."
    return _draw("CANDOR: what the recent past is split into", note, SPLIT, SPLIT_ARROWS)


def _draw(title: str, note: str, boxes: Mapping[str, Box], arrows: Sequence[tuple[str, str]]) -> Drawing:
    figure = new_figure(title, note, height=4.2)
    axes = figure.subplots()
    axes.set(xlim=(0, 100), ylim=(5, 95))
    axes.axis("off")
    look: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 11,
        "color": style.GREY,
        "linewidth": 1.2,
        "zorder": 1,
    }
    for start, end in arrows:
        axes.add_patch(FancyArrowPatch(*_ends(boxes[start], boxes[end]), shrinkA=1, shrinkB=1, **look))
    for box in boxes.values():
        _draw_box(axes, box)
    return Drawing(figure, pd.DataFrame([{"step": box.title, "words": box.words} for box in boxes.values()]))


def _ends(start: Box, end: Box) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where an arrow begins and ends: it leads to the right, or down within a column."""
    if start.left == end.left:
        middle = start.left + start.width / 2
        return (middle, start.bottom), (middle, end.bottom + end.height)
    return (start.left + start.width, start.bottom + start.height / 2), (end.left, end.bottom + end.height / 2)


def _draw_box(axes: Axes, box: Box) -> None:
    form = "round,pad=0,rounding_size=1.2"
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": box.colour, "linewidth": 1.8, "zorder": 2}
    axes.add_patch(FancyBboxPatch((box.left, box.bottom), box.width, box.height, boxstyle=form, **look))
    middle, top = box.left + box.width / 2, box.bottom + box.height
    look = {"ha": "center", "va": "top", "color": style.BLACK, "zorder": 3}
    axes.text(middle, top - 2.2, box.title, fontsize=style.LABEL, fontweight="bold", **look)
    words = textwrap.fill(box.words, int(_LETTERS * box.width))
    axes.text(middle, top - 8, words, fontsize=style.SMALL - 1, linespacing=1.25, **look)
