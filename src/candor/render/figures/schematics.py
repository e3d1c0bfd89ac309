"""The two schematics of the method: how a forecast is made, and what a sensor's recent past is split into."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from candor.render.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LABEL,
    ORANGE,
    PURPLE,
    SKY,
    SMALL,
    VERMILION,
    Drawing,
    new_figure,
)

_LETTERS = 1.3  # that fit into a hundredth of the width


@dataclass(frozen=True)
class Box:
    """A step of the method: where it stands, in hundredths of the drawing, what it is called, and what it does."""

    left: float
    bottom: float
    width: float
    height: float
    title: str
    words: str
    colour: str

    def edge(self, side: str, share: float = 0.5) -> tuple[float, float]:
        """Returns a point on a side, `share` of the way up or to the right."""
        across, up = self.left + share * self.width, self.bottom + share * self.height
        return {
            "left": (self.left, up),
            "right": (self.left + self.width, up),
            "bottom": (across, self.bottom),
            "top": (across, self.bottom + self.height),
        }[side]


OVERVIEW: Mapping[str, Box] = {
    "window": Box(
        0.5,
        40,
        17.5,
        26,
        "Recent past",
        "readings of all sensors, cut into overlapping patches; clock and weekday",
        GREY,
    ),
    "split": Box(22, 40, 17, 26, "Decomposition", "background, accumulation, release and shock", ORANGE),
    "forward": Box(
        44,
        70,
        22.5,
        20,
        "Physical, forward",
        "what deviated upstream arrives along the edges, position by position",
        BLUE,
    ),
    "reverse": Box(
        44,
        43,
        22.5,
        20,
        "Physical, reverse",
        "the same against the edges: congestion and backwater spread upstream",
        SKY,
    ),
    "functional": Box(
        44,
        11,
        22.5,
        25,
        "Functional",
        "sensors that behave alike, or opposite, beyond the map: the best k pairs of sensor and relation",
        GREEN,
    ),
    "fusion": Box(71, 40, 12.5, 26, "Fusion", "three forecasts weighed by sensor and calendar", PURPLE),
    "head": Box(87, 40, 12.5, 26, "Forecast", "patches decoded, averaged where they overlap, in your unit", VERMILION),
}
OVERVIEW_ARROWS = (
    ("window", "right", "split", "left"),
    ("split", "right", "forward", "left"),
    ("split", "right", "reverse", "left"),
    ("split", "right", "functional", "left"),
    ("forward", "right", "fusion", "left"),
    ("reverse", "right", "fusion", "left"),
    ("functional", "right", "fusion", "left"),
    ("fusion", "right", "head", "left"),
)

SPLIT: Mapping[str, Box] = {
    "embedding": Box(1, 42, 15, 22, "Patch Z", "a stretch of readings as a vector of states", GREY),
    "background": Box(22, 72, 18, 18, "Background B", "the smooth part of the patch and those before", ORANGE),
    "current": Box(22, 42, 18, 20, "U = Z - B now", "departure from the background of the same patch", GREY),
    "following": Box(22, 12, 18, 20, "V = Z - B next", "departure from the background that follows", GREY),
    "accumulation": Box(
        48, 70, 19, 20, "Accumulation A", "what of U is building up, by a gate that sees its change and the clock", BLUE
    ),
    "shock": Box(48, 41, 19, 20, "Shock S", "sudden parts of U and V, each by a gate on magnitudes", VERMILION),
    "release": Box(48, 12, 19, 20, "Release R", "what of V is going down towards the next background", GREEN),
    "states": Box(
        75,
        58,
        24,
        30,
        "Refined states H",
        "what a sensor does by itself, and a residual that travels along edges, louder where there are shocks",
        SKY,
    ),
    "relations": Box(
        75,
        16,
        24,
        25,
        "Relations",
        "who behaves like whom: levels and trends of the backgrounds of all sensors are compared",
        PURPLE,
    ),
}
SPLIT_ARROWS = (
    ("embedding", "right", "background", "left"),
    ("embedding", "right", "current", "left"),
    ("embedding", "right", "following", "left"),
    ("background", "bottom", "current", "top"),
    ("current", "right", "accumulation", "left"),
    ("current", "right", "shock", "left"),
    ("following", "right", "shock", "left"),
    ("following", "right", "release", "left"),
    ("accumulation", "right", "states", "left"),
    ("shock", "right", "states", "left"),
    ("release", "right", "states", "left"),
    ("states", "bottom", "relations", "top"),
)


def draw_overview() -> Drawing:
    """Returns how a forecast is made, from readings to readings."""
    note = "What is read, what it is split into, three ways to carry it forward, and how they are blended."
    return _draw("CANDOR: how a forecast is made", note, OVERVIEW, OVERVIEW_ARROWS)


def draw_decomposition() -> Drawing:
    """Returns what each patch of a sensor's history is split into, and what reads the parts."""
    note = "Each departure is measured against two backgrounds: that of the same patch, and that of the next."
    return _draw("CANDOR: what the recent past is split into", note, SPLIT, SPLIT_ARROWS)


def _draw(title: str, note: str, boxes: Mapping[str, Box], arrows: Sequence[tuple[str, str, str, str]]) -> Drawing:
    figure = new_figure(title, note, height=4.2)
    axes = figure.subplots()
    axes.set_xlim(0, 100)
    axes.set_ylim(5, 95)
    axes.axis("off")
    for start, side, end, other in arrows:
        _draw_arrow(axes, boxes[start].edge(side), boxes[end].edge(other))
    for box in boxes.values():
        _draw_box(axes, box)
    rows = [{"step": box.title, "words": box.words} for box in boxes.values()]
    return Drawing(figure, pd.DataFrame(rows))


def _draw_box(axes: Axes, box: Box) -> None:
    shape = FancyBboxPatch(
        (box.left, box.bottom), box.width, box.height, boxstyle="round,pad=0,rounding_size=1.2",
        facecolor="white", edgecolor=box.colour, linewidth=1.8, zorder=2,
    )  # fmt: skip
    axes.add_patch(shape)
    middle, top = box.left + box.width / 2, box.bottom + box.height
    axes.text(
        middle, top - 2.2, box.title, ha="center", va="top", fontsize=LABEL, fontweight="bold", color=BLACK, zorder=3
    )
    axes.text(
        middle,
        top - 8,
        textwrap.fill(box.words, int(_LETTERS * box.width)),
        ha="center",
        va="top",
        fontsize=SMALL - 1,
        color=BLACK,
        linespacing=1.25,
        zorder=3,
    )


def _draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    arrow = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=11, color=GREY, linewidth=1.2, shrinkA=1, shrinkB=1, zorder=1
    )
    axes.add_patch(arrow)
