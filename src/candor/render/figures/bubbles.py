"""Errors of models against what they cost: a bubble each, and the line of those that no other model beats in both."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from candor.render.figures.style import (
    BLACK,
    BLUE,
    GREY,
    LABEL,
    SMALL,
    VERMILION,
    Drawing,
    dress,
    in_unit,
    new_figure,
    plain,
)

Cost = Literal["parameters", "time"]
Numbers = NDArray[np.float64]
_ERRORS = {"mae": "mean absolute error", "mse": "mean squared error"}
_HEIGHT = 5.4  # inches
_LARGEST, _SMALLEST = 700.0, 14.0  # areas of bubbles, points squared
_DISTANCES = (2.0, 6.0, 12.0, 20.0, 30.0, 42.0, 56.0)  # of names from their bubbles, points
_PER_POINT = 0.01  # the trouble of a point of distance
_ROUNDS = 4
_FAR = 10.0  # from here on a thin line leads from the name to its bubble
_SAMPLES = 60  # points on a line that are looked at
_DIRECTIONS = tuple(math.radians(degrees) for degrees in (0, 180, 90, 270, 45, 315, 135, 225, 20, 340, 160, 200))


@dataclass(frozen=True)
class Bubble:
    """A model.

    Args:
        name: what it is called.
        error: over all steps, mean over seeds, in the unit of the readings or, if squared, in its square.
        seeds: how many trainings the error is the mean of.
        parameters: learned numbers.
        seconds: time of a forecast of a batch.
        is_ours: whether it is CANDOR.
        is_reconstruction: whether it was rebuilt by us without its authors' code; no line rests on it.
        metric: whether the error is the mean absolute or the mean squared one.
    """

    name: str
    error: float
    seeds: int
    parameters: int
    seconds: float
    is_ours: bool = False
    is_reconstruction: bool = False
    metric: Literal["mae", "mse"] = "mae"

    def cost(self, of: Cost) -> float:
        """Returns the parameters or the seconds."""
        return float(self.parameters) if of == "parameters" else self.seconds


def pareto_line(points: Sequence[tuple[float, float]]) -> list[int]:
    """Returns the places of those points of cost and error that no other beats, cheapest first.

    A point beats another if it is smaller in one number and not larger in the other; of equal points none does.
    """
    line: list[int] = []
    for place in sorted(range(len(points)), key=points.__getitem__):
        if not line or points[place][1] < points[line[-1]][1] or points[place] == points[line[-1]]:
            line.append(place)
    return line


def draw_bubbles(bubbles: Sequence[Bubble], against: Cost, title: str, unit: str, batch: int) -> Drawing:
    """Returns the figure of errors against one cost; the area of a bubble shows the other.

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
    areas = [_area(bubble.cost(other), largest) for bubble in bubbles]
    note = f"Area: {words[other]}. Dashed: the least error at this cost or less."
    note += " Grey: our reconstruction, on which no line rests." if len(ranked) < len(bubbles) else ""
    figure = new_figure(title, note, height=_HEIGHT)
    axes = figure.subplots()
    dress(axes, words[against], in_unit(_ERRORS[metric], f"({unit})²" if unit and metric == "mse" else unit))
    _set_limits(axes, points, against)
    corners = _corners([points[place] for place in line], axes.get_xlim()[1])
    axes.plot(*np.reshape(corners, (-1, 2)).T, "--", color=GREY, linewidth=1.2, zorder=1.5)
    for place in sorted(range(len(bubbles)), key=lambda place: -areas[place]):  # the small ones on top
        colour = VERMILION if bubbles[place].is_ours else GREY if bubbles[place].is_reconstruction else BLUE
        axes.scatter(
            *points[place], s=areas[place], color=colour, alpha=0.8 if bubbles[place].is_ours else 0.5, zorder=3
        )
    _add_key(axes, other, largest)
    _write_names(figure, axes, bubbles, points, areas, corners)
    return Drawing(figure, _table(bubbles, line))


def _corners(line: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Returns the line as steps: an error can be had from the cost of its model on, up to the end of the axis."""
    if not line:
        return []
    corners = [line[0]]
    for cost, error in line[1:]:
        corners += [(cost, corners[-1][1]), (cost, error)]
    return [*corners, (end, corners[-1][1])]


def _area(cost: float, largest: float) -> float:
    """Returns the area of a bubble; one too small to be seen is drawn as a dot."""
    return max(_SMALLEST, _LARGEST * cost / largest)


def _set_limits(axes: Axes, points: Sequence[tuple[float, float]], against: Cost) -> None:
    """Leaves room for names around all points, and writes round numbers on the horizontal axis."""
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
    """Returns a round cost as people write it: 20 k, 1 M, 5 ms, 10 s."""
    if of == "time":
        return f"{cost:g} s" if cost >= 1 else f"{1e3 * cost:g} ms" if cost >= 1e-3 else f"{1e6 * cost:g} µs"
    return f"{cost / 1e6:g} M" if cost >= 1e6 else f"{cost / 1e3:g} k" if cost >= 1e3 else f"{cost:g}"


def _add_key(axes: Axes, of: Cost, largest: float) -> None:
    """Shows what three areas mean."""
    power = 10.0 ** math.floor(math.log10(largest))
    round_cost = next((step * power for step in (5, 2) if step * power <= largest), power)
    for share in (1.0, 0.5, 0.1):
        area = _area(share * round_cost, largest)
        axes.scatter([], [], s=area, color=GREY, alpha=0.4, label=_in_words(share * round_cost, of))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, fontsize=SMALL, frameon=False, borderaxespad=0.0,
        borderpad=1.0, columnspacing=2.5,
    )  # fmt: skip


def _write_names(
    figure: Figure,
    axes: Axes,
    bubbles: Sequence[Bubble],
    points: Sequence[tuple[float, float]],
    areas: Sequence[float],
    corners: Sequence[tuple[float, float]],
) -> None:
    """Writes every name near its bubble where it covers no other name, bubble or line, as far as there is room."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]  # settles the layout,
    figure.set_layout_engine("none")  # which must not move any more
    renderer, dots = canvas.get_renderer(), figure.dpi / 72  # type: ignore[no-untyped-call]
    labels = [
        axes.annotate(
            plain(bubble.name), point, xytext=(0, 0), textcoords="offset points", ha="center", va="center",
            fontsize=LABEL if bubble.is_ours else SMALL, fontweight="bold" if bubble.is_ours else "normal",
            color=BLACK, zorder=5, path_effects=[withStroke(linewidth=2, foreground="white")],
        )
        for bubble, point in zip(bubbles, points, strict=True)
    ]  # fmt: skip
    extents = [label.get_window_extent(renderer) for label in labels]
    names = _Names(
        room=np.array(axes.bbox.extents),
        dots=dots,
        centres=axes.transData.transform(points),
        radii=dots * np.sqrt(np.array(areas) / math.pi),
        halves=np.array([[extent.width, extent.height] for extent in extents]) / 2,
        steps=axes.transData.transform(np.reshape(corners, (-1, 2))),
    )
    for label, offset, lead in zip(labels, *names.settle(), strict=True):
        label.set_position((float(offset[0]), float(offset[1])))
        if lead is not None:
            axes.plot(*axes.transData.inverted().transform(lead).T, color=GREY, linewidth=0.6, zorder=4)


class _Names:
    """Names that look for places near their bubbles. All in dots; a box is left, bottom, right, top.

    Args:
        room: the box where names may be.
        dots: that a point has.
        centres: of the bubbles.
        radii: of the bubbles.
        halves: half the width and height of each name.
        steps: corners of the Pareto line, none where there is no line.
    """

    def __init__(
        self, room: Numbers, dots: float, centres: Numbers, radii: Numbers, halves: Numbers, steps: Numbers
    ) -> None:
        self._room, self._dots, self._centres, self._radii, self._halves = room, dots, centres, radii, halves
        self._bubbles = np.concatenate([centres - radii[:, None], centres + radii[:, None]], axis=1)
        self._steps = _stacked(
            {place: np.linspace(*ends, _SAMPLES) for place, ends in enumerate(pairwise(steps))}, (_SAMPLES, 2)
        )
        self._boxes: dict[int, Numbers] = {}
        self._leads: dict[int, Numbers] = {}

    def settle(self) -> tuple[list[Numbers], list[Numbers | None]]:
        """Returns how far from its bubble the middle of each name is, in points, and the ends of its line if it is far.

        Every name takes the place in least trouble, several times, since those after it may have made way.
        """
        places = range(len(self._centres))
        for _ in range(_ROUNDS):
            for place in places:
                self._boxes.pop(place, None)
                self._leads.pop(place, None)
                candidates = [(distance, angle) for distance in _DISTANCES for angle in _DIRECTIONS]
                tried = [self._try(place, *candidate) for candidate in candidates]
                _, self._boxes[place], lead = min(tried, key=lambda outcome: outcome[0])
                if lead is not None:
                    self._leads[place] = lead
        middles = [(self._boxes[place][:2] + self._boxes[place][2:]) / 2 for place in places]
        offsets = [(middle - centre) / self._dots for middle, centre in zip(middles, self._centres, strict=True)]
        return offsets, [self._leads[place][[0, -1]] if place in self._leads else None for place in places]

    def _try(self, place: int, distance: float, angle: float) -> tuple[float, Numbers, Numbers | None]:
        """Returns the trouble that a name has at a place, its box there, and points on its line if it is far."""
        centre, radius, half = self._centres[place], self._radii[place], self._halves[place]
        toward = np.array([math.cos(angle), math.sin(angle)])
        middle = centre + toward * (radius + distance * self._dots + half * np.abs(toward))
        box = np.concatenate([middle - half, middle + half])
        trouble = self._trouble(box) + _PER_POINT * distance
        if distance < _FAR:
            return trouble, box, None
        near = np.clip(centre, middle - half, middle + half)
        edge = centre + (near - centre) * radius / max(float(np.hypot(*(near - centre))), radius)
        lead = np.linspace(near, edge, _SAMPLES)
        return trouble + self._trouble_of_lead(place, lead), box, lead

    def _trouble(self, box: Numbers) -> float:
        """Returns how bad a place of a name is: outside or on others, on bubbles, on lines, in falling order."""
        wide, area = box + self._dots * np.array([-1, -1, 1, 1]), float((box[2:] - box[:2]).prod())
        outside = area - _shared(box, self._room[None]).sum()
        covered = [_shared(wide, others) for others in (_stacked(self._boxes, (4,)), self._bubbles)]
        shares, (names, bubbles) = sum(map(np.sum, covered)) / area, (int((part > 0).sum()) for part in covered)
        crossed = 2 * _count(_stacked(self._leads, (_SAMPLES, 2)), wide[None]) + 0.5 * _count(self._steps, wide[None])
        return float(20 * outside / area + 8 * names + 4 * bubbles + shares + crossed)

    def _trouble_of_lead(self, place: int, lead: Numbers) -> float:
        """Returns how bad the line of a name is: across names or other such lines, a little across other bubbles."""
        names = _count(lead[None], _stacked(self._boxes, (4,)))
        bubbles = _count(lead[None], np.delete(self._bubbles, place, axis=0))
        return 2 * names + sum(_do_cross(lead, other) for other in self._leads.values()) + 0.2 * bubbles


def _stacked(arrays: Mapping[int, Numbers], shape: tuple[int, ...]) -> Numbers:
    return np.stack(list(arrays.values())) if arrays else np.empty((0, *shape))


def _do_cross(one: Numbers, other: Numbers) -> bool:
    """Returns whether two straight lines cross, each given by points on it."""

    def is_between(ends: Numbers, line: Numbers) -> bool:
        along, to_ends = line[-1] - line[0], ends - line[0]
        sides = along[0] * to_ends[:, 1] - along[1] * to_ends[:, 0]
        return bool(sides[0] * sides[1] < 0)

    return is_between(one[[0, -1]], other) and is_between(other[[0, -1]], one)


def _shared(box: Numbers, others: Numbers) -> Numbers:
    """Returns the area that a box shares with each of others."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    areas: Numbers = np.maximum(sides, 0).prod(axis=1)
    return areas


def _count(lines: Numbers, boxes: Numbers) -> int:
    """Returns how many pairs there are of a line, given by points on it, and a box that it crosses."""
    points = lines[:, None]  # line, box, point, coordinate
    is_inside = (points >= boxes[:, None, :2]) & (points <= boxes[:, None, 2:])
    return int(is_inside.all(axis=-1).any(axis=-1).sum())


def _table(bubbles: Sequence[Bubble], line: Sequence[int]) -> pd.DataFrame:
    rows = [
        {
            "model": bubble.name,
            _ERRORS[bubble.metric].replace(" ", "_"): bubble.error,
            "seeds": bubble.seeds,
            "parameters": bubble.parameters,
            "inference_seconds": bubble.seconds,
            "is_on_pareto_line": place in line,
        }
        for place, bubble in enumerate(bubbles)
    ]
    return pd.DataFrame(rows)
