"""What was learned about pairs of sensors, on a map where their places are known, else on a circle."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from candor.core.arrays import Doubles, Floats, Integers
from candor.explain.pictures import EdgePicture, RelationPicture, WeightedEdges
from candor.explain.places import moved_apart, on_a_circle, on_a_map
from candor.render.figures.style import (
    BLACK,
    BLUE,
    DIRECTIONS,
    GREY,
    PURPLE,
    SMALL,
    VERMILION,
    Drawing,
    add_key,
    new_figure,
    plain,
)

_MOST_NAMES, _MOST_EDGES, _MOST_RELATIONS = 30, 400, 16
_COLOURS: Mapping[str, str] = {"forward": BLUE, "reverse": VERMILION}
_QUIET = "#c4c4c4"
_WIDEST_EDGE, _WIDEST_RELATION = 4.0, 3.2  # points
_PANEL, _MAP, _LINE = 3.9, 7.2, 0.16  # inches: width of a direction, of a whole map, and height of a line of the key


def draw_edges(picture: EdgePicture) -> Drawing:
    """Returns the weights of edges, both directions side by side: wide arrows weigh much, and point to the receiver."""
    count = len(picture.sensors)
    has_names = count <= _MOST_NAMES
    is_cut = any(len(_between(edges)) > _MOST_EDGES for edges in picture.edges.values())
    note = picture.note + (f" Only the heaviest {_MOST_EDGES} edges are shown." if is_cut else "")
    points, remark = _place(picture.places, count, 0.1 if has_names else 0.0)
    tall = _PANEL * _tallness(points, 0.4, 1.2)
    key = _LINE * -(-count // 2) if has_names else _LINE
    figure = new_figure("How much sensors hear from one another", note + remark, height=1.1 + tall + key)
    parts = figure.subplot_mosaic([list(DIRECTIONS), ["key", "key"]], height_ratios=(tall, key))
    for direction, title in DIRECTIONS.items():
        parts[direction].set_axis_off()
        if direction in picture.edges:
            parts[direction].set_title(title, fontsize=SMALL + 1.5, color=_COLOURS[direction], loc="left")
            _draw_weights(parts[direction], direction, points, picture.edges[direction], has_names)
    _write_names(parts["key"], picture.names if has_names else ())
    tables = [
        pd.DataFrame(
            {
                "direction": direction,
                "from": [picture.sensors[i] for i in edges.sender],
                "to": [picture.sensors[i] for i in edges.receiver],
                "mean_weight": edges.weight,
            }
        )
        for direction, edges in picture.edges.items()
    ]
    return Drawing(figure, pd.concat(tables, ignore_index=True))


def _between(edges: WeightedEdges) -> Integers:
    """Returns the edges that can be drawn: not those from a sensor to itself."""
    return np.flatnonzero(edges.sender != edges.receiver)


def _draw_weights(axes: Axes, direction: str, points: Doubles, edges: WeightedEdges, has_names: bool) -> None:
    between = _between(edges)
    size, scale = (6.5, 1.0) if has_names else (1.2, 0.3)  # radius in points; many arrows must be thin
    for edge in between[np.argsort(edges.weight[between])][-_MOST_EDGES:]:  # the heaviest on top
        share = float(edges.weight[edge])
        _add_arrow(
            axes, points, (edges.sender[edge], edges.receiver[edge]), size, bend=0.18,
            head=(scale * (2.5 + 4 * share), scale * (1.2 + 2 * share)), color=_COLOURS[direction],
            linewidth=0.3 + scale * _WIDEST_EDGE * share, alpha=0.25 + 0.6 * share,
        )  # fmt: skip
    _draw_sensors(axes, points, size, has_names)


def draw_relations(picture: RelationPicture) -> Drawing:
    """Returns the figure: physical edges in grey, the heaviest relations beyond them in colour."""
    count = len(picture.sensors)
    has_names = count <= _MOST_NAMES
    points, remark = _place(picture.places, count, 0.07 if has_names else 0.0)
    note = picture.note
    if len(picture.weight) > _MOST_RELATIONS:
        note += f" The heaviest {_MOST_RELATIONS} of {len(picture.weight):,} are shown."
    if picture.places is None:
        remark = " Places are not known: sensors stand on a circle."
    tall = _MAP * _tallness(points, 0.35, 0.8)
    key = _LINE * -(-count // 2) if has_names else 0.01
    figure = new_figure("Relations beyond the edges", note + remark, height=1.6 + tall + key)
    parts = figure.subplot_mosaic([["words"], ["map"], ["key"]], height_ratios=(0.3, tall, key))
    _draw_relations(parts["map"], picture, points, has_names)
    heaviest = f"related beyond them; the widest has a weight of {picture.weight[:1].sum():.2f}"
    beyond = (
        Line2D([], [], color=PURPLE, linewidth=4, alpha=0.75, label=heaviest)
        if len(picture.weight)
        else Line2D([], [], color=GREY, linestyle="none", label="no relations beyond them")
    )
    add_key(parts["words"], [Line2D([], [], color=_QUIET, linewidth=1.5, label="physical edges"), beyond], 2)
    _write_names(parts["key"], picture.names if has_names else ())
    columns: dict[str, object] = {
        "sensor": [picture.sensors[place] for place in picture.receiver],
        "hears_from": [picture.sensors[place] for place in picture.peer],
        "mean_weight": picture.weight,
        "resemblance": picture.resemblance,
    }
    if picture.distance is not None:
        columns["distance_km"] = picture.distance
    return Drawing(figure, pd.DataFrame(columns))


def _draw_relations(axes: Axes, picture: RelationPicture, points: Doubles, has_names: bool) -> None:
    axes.set_axis_off()
    size = 6.5 if has_names else 1.4  # radius of a mark in points
    source, target = picture.edges
    if has_names:
        for ends in zip(source.tolist(), target.tolist(), strict=True):
            if ends[0] != ends[1]:
                _add_arrow(axes, points, ends, size, head=(3.5, 1.5), linewidth=0.8, color=_QUIET, zorder=2)
    else:  # among many sensors heads of arrows would hide the rest
        lines = list(np.stack([points[source], points[target]], axis=1))
        axes.add_collection(LineCollection(lines, colors=_QUIET, linewidths=0.6, zorder=2))
    largest = float(picture.weight[:1].max(initial=1e-9))
    for place in reversed(range(min(len(picture.weight), _MOST_RELATIONS))):  # the heaviest on top
        width = 0.6 + _WIDEST_RELATION * float(picture.weight[place]) / largest
        _add_arrow(
            axes, points, (picture.peer[place], picture.receiver[place]), size, bend=0.22,
            head=(3 + 0.6 * width, 1.2 + 0.35 * width), linewidth=width, color=PURPLE, alpha=0.75, zorder=3,
        )  # fmt: skip
    _draw_sensors(axes, points, size, has_names)


def _place(degrees: Floats | None, count: int, apart: float) -> tuple[Doubles, str]:
    """Returns where sensors stand, in km on a map, and what has to be said if neighbours were moved apart.

    Args:
        degrees: longitude and latitude, sensor x 2; None where some are unknown.
        count: of the sensors.
        apart: least distance on a map, as a share of its wider side.
    """
    if degrees is None:
        return on_a_circle(count), ""
    points = on_a_map(degrees)
    moved = moved_apart(points, apart * (float(np.ptp(points, axis=0).max()) or 1.0)) if apart else points
    return moved, "" if moved is points else " Neighbours on the map are moved apart a little."


def _tallness(points: Doubles, least: float, most: float) -> float:
    """Returns height through width of points, within bounds."""
    east, north = np.ptp(points, axis=0)
    return float(np.clip(north / (east or 1.0), least, most))


def _add_arrow(
    axes: Axes,
    points: Doubles,
    ends: tuple[int, int],
    size: float,
    *,
    head: tuple[float, float],
    bend: float = 0.0,
    **look: Any,
) -> None:
    """Draws an arrow between two sensors whose marks have a radius of `size` points; a head has length and width."""
    start, end = (tuple(points[int(place)]) for place in ends)
    style = f"-|>,head_length={head[0]:.2f},head_width={head[1]:.2f}"
    arrow = FancyArrowPatch(
        start, end, connectionstyle=f"arc3,rad={bend}", arrowstyle=style, shrinkA=size, shrinkB=size, clip_on=False,
        **look,
    )  # fmt: skip
    axes.add_artist(arrow)


def _draw_sensors(axes: Axes, points: Doubles, size: float, has_names: bool) -> None:
    """Draws the marks of sensors, with their numbers where there are names to look up, and leaves room around them."""
    axes.set_aspect("equal")
    colour = "white" if has_names else BLACK
    axes.scatter(points[:, 0], points[:, 1], s=4 * size**2, color=colour, edgecolors=BLACK, zorder=4)
    for number, point in enumerate(points if has_names else (), start=1):
        axes.annotate(str(number), tuple(point), ha="center", va="center", fontsize=SMALL - 1, color=BLACK, zorder=5)
    (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
    room = 0.07 * max(right - left, top - bottom, 1e-6)
    axes.set_xlim(left - room, right + room)
    axes.set_ylim(bottom - room, top + room)


def _write_names(axes: Axes, names: Sequence[str]) -> None:
    """Writes the numbers and names of the sensors in two columns."""
    axes.set_axis_off()
    rows = -(-len(names) // 2)
    for place, name in enumerate(names):
        column, row = divmod(place, rows)
        axes.text(
            0.02 + 0.5 * column, 1 - (row + 0.5) / rows, plain(f"{place + 1}  {name}"), fontsize=SMALL - 1, color=BLACK,
            va="center", transform=axes.transAxes,
        )  # fmt: skip
