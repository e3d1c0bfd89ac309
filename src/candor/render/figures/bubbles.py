"""Errors of models against what they cost: a bubble each, and the line of those that no other model beats in both."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from candor.render.figures import style
from candor.render.figures.labels import write_labels
from candor.render.figures.style import Drawing, add_legend, in_unit, new_axes, plain

Cost = Literal["parameters", "time"]
_ERRORS = {"mae": "mean absolute error", "mse": "mean squared error"}
_HEIGHT = 5.4  # inches
_LARGEST, _SMALLEST = 700.0, 14.0  # areas of bubbles, points squared


@dataclass(frozen=True)
class Bubble:
    """A model."""

    name: str
    error: float  # over all steps, mean over seeds, in the unit of the readings or, if squared, in its square
    seeds: int  # how many trainings the error is the mean of
    parameters: int
    seconds: float  # of a forecast of a batch
    is_ours: bool = False
    is_reconstruction: bool = False  # rebuilt by us without its authors' code; no line rests on it
    metric: Literal["mae", "mse"] = "mae"  # whether the error is the mean absolute or the mean squared one

    def cost(self, of: Cost) -> float:
        """Return the parameters or the seconds."""
        return float(self.parameters) if of == "parameters" else self.seconds


def pareto_line(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of those points of cost and error that no other beats, cheapest first.

    A point beats another if it is smaller in one number and not larger in the other; of equal points none does.
    """
    line: list[int] = []
    for place in sorted(range(len(points)), key=points.__getitem__):
        if not line or points[place][1] < points[line[-1]][1] or points[place] == points[line[-1]]:
            line.append(place)
    return line


def draw_bubbles(bubbles: Sequence[Bubble], against: Cost, title: str, unit: str, batch: int) -> Drawing:
    """Return the figure of errors against one cost; the area of a bubble shows the other.

    Args:
        bubbles: at least one, all with the same kind of error.
        against: the cost on the horizontal axis, which is logarithmic.
        title: what it is about.
        unit: of the readings.
        batch: windows of a forecast whose time was measured.
    """
    (metric,) = {bubble.metric for bubble in bubbles}
    other: Cost = "time" if against == "parameters" else "parameters"
    words = {"parameters": "parameters", "time": f"time to forecast {batch} windows"}
    points = [(bubble.cost(against), bubble.error) for bubble in bubbles]
    ranked = [place for place, bubble in enumerate(bubbles) if not bubble.is_reconstruction]
    line = [ranked[place] for place in pareto_line([points[place] for place in ranked])]
    largest = max(bubble.cost(other) for bubble in bubbles)
    areas = np.array([_area(bubble.cost(other), largest) for bubble in bubbles])
    note = f"Area: {words[other]}. Dashed: the least error at this cost or less."
    note += " Grey: our reconstruction, on which no line rests." if len(ranked) < len(bubbles) else ""
    up = in_unit(_ERRORS[metric], f"({unit})²" if unit and metric == "mse" else unit)
    figure, axes = new_axes(title, note, words[against], up, _HEIGHT)
    _set_limits(axes, points, against)
    corners = _corners([points[place] for place in line], axes.get_xlim()[1])
    axes.plot(*corners.T, "--", color=style.GREY, linewidth=1.2, zorder=1.5)
    for place in np.argsort(-areas, kind="stable"):  # the small ones on top
        bubble, (across, up) = bubbles[place], points[place]
        colour = style.VERMILION if bubble.is_ours else style.GREY if bubble.is_reconstruction else style.BLUE
        axes.scatter(across, up, s=areas[place], color=colour, alpha=0.8 if bubble.is_ours else 0.5, zorder=3)
    _add_key(axes, other, largest)
    figure.draw_without_rendering()  # settles the layout,
    figure.set_layout_engine("none")  # which must not move any more
    texts = [_name(axes, bubble, *point) for bubble, point in zip(bubbles, points, strict=True)]
    radii, steps = np.sqrt(areas / math.pi) / 72, np.stack([corners[:-1], corners[1:]], axis=1)
    write_labels(axes, texts, np.array(points), radii, steps, gap=0.03, is_strict=False)
    return Drawing(figure, _table(bubbles, line))


def _name(axes: Axes, bubble: Bubble, across: float, up: float) -> Text:
    look = {"fontsize": style.LABEL, "fontweight": "bold"} if bubble.is_ours else {"fontsize": style.SMALL}
    paper = [withStroke(linewidth=2, foreground="white")]
    return axes.text(
        across,
        up,
        plain(bubble.name),
        ha="center",
        va="center",
        color=style.BLACK,
        zorder=5,
        path_effects=paper,
        **look,
    )


def _corners(line: Sequence[tuple[float, float]], end: float) -> NDArray[np.float64]:
    """Return the line as steps: an error can be had from the cost of its model on, up to the end of the axis."""
    costs, errors = np.reshape(line, (-1, 2)).T
    return np.stack([np.repeat([*costs, end], 2)[1:-1], np.repeat(errors, 2)], axis=1)


def _area(cost: float, largest: float) -> float:
    """Return the area of a bubble; one too small to be seen is drawn as a dot."""
    return max(_SMALLEST, _LARGEST * cost / largest)


def _set_limits(axes: Axes, points: Sequence[tuple[float, float]], against: Cost) -> None:
    """Leave room for names around all points, and write round numbers on the horizontal axis."""
    costs, errors = np.array(points).T
    first, last = np.log10([costs.min(), costs.max()])
    room = max(0.12 * (last - first), 0.15)
    axes.set_xscale("log")
    axes.set_xlim(10 ** (first - room), 10 ** (last + room))
    height = np.ptp(errors) or 0.1 * abs(errors[0]) or 1.0
    axes.set_ylim(errors.min() - 0.2 * height, errors.max() + 0.12 * height)
    marks = (1.0,) if last - first + 2 * room > 2.5 else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=marks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: _in_words(cost, against)))
    axes.xaxis.set_minor_locator(NullLocator())


def _in_words(cost: float, of: Cost) -> str:
    """Return a round cost as people write it: 20 k, 1 M, 5 ms, 10 s."""
    if of == "time":
        return f"{cost:g} s" if cost >= 1 else f"{1e3 * cost:g} ms" if cost >= 1e-3 else f"{1e6 * cost:g} µs"
    return f"{cost / 1e6:g} M" if cost >= 1e6 else f"{cost / 1e3:g} k" if cost >= 1e3 else f"{cost:g}"


def _add_key(axes: Axes, of: Cost, largest: float) -> None:
    """Show what three areas mean."""
    power = 10.0 ** math.floor(math.log10(largest))
    round_cost = next((step * power for step in (5, 2) if step * power <= largest), power)
    for share in (1.0, 0.5, 0.1):
        area = _area(share * round_cost, largest)
        axes.scatter([], [], s=area, color=style.GREY, alpha=0.4, label=_in_words(share * round_cost, of))
    add_legend(axes, 3, borderaxespad=0.0, borderpad=1.0, columnspacing=2.5)


def _table(bubbles: Sequence[Bubble], line: Sequence[int]) -> pd.DataFrame:
    columns = {
        "model": [bubble.name for bubble in bubbles],
        _ERRORS[bubbles[0].metric].replace(" ", "_"): [bubble.error for bubble in bubbles],
        "seeds": [bubble.seeds for bubble in bubbles],
        "parameters": [bubble.parameters for bubble in bubbles],
        "inference_seconds": [bubble.seconds for bubble in bubbles],
        "is_on_pareto_line": [place in line for place in range(len(bubbles))],
    }
    return pd.DataFrame(columns)
