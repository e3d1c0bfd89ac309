"""The learned weights of edges, on a map where the places of sensors are known, else on a circle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from candor.render.figures.map_points import moved_apart, on_a_circle, on_a_map
from candor.render.figures.style import BLACK, BLUE, SMALL, VERMILION, Drawing, new_figure, plain

_COLOURS = {"forward": BLUE, "reverse": VERMILION}
_TITLES = {"forward": "Forward: along the edges", "reverse": "Reverse: against the edges"}
_MOST_NAMES, _MOST_EDGES = 30, 400
_WIDEST_ARROW = 4.0  # points
_APART = 0.1  # of the wider side of the map
_PANEL, _LINE = 3.9, 0.16  # inches: width of a direction, height of a line of the key


@dataclass(frozen=True, eq=False)
class WeightedEdges:
    """Edges of one direction: from a sender to a receiver (positions of sensors), with mean weights 0 to 1."""

    sender: NDArray[np.integer]
    receiver: NDArray[np.integer]
    weight: NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class EdgePicture:
    """What the model learned about edges.

    Args:
        sensors: ids of the sensors.
        names: what people call them.
        places: longitude and latitude in degrees, sensor x 2; None where some are unknown.
        edges: by direction, forward and reverse.
        note: what the weights are means over.
    """

    sensors: Sequence[str]
    names: Sequence[str]
    places: NDArray[np.floating] | None
    edges: Mapping[str, WeightedEdges]
    note: str = ""


def draw_edges(picture: EdgePicture) -> Drawing:
    """Returns the figure of both directions side by side: wide arrows weigh much, and point to the receiver."""
    has_names = len(picture.sensors) <= _MOST_NAMES
    is_cut = any(len(_between(edges)) > _MOST_EDGES for edges in picture.edges.values())
    note = picture.note + (f" Only the heaviest {_MOST_EDGES} edges are shown." if is_cut else "")
    points = on_a_circle(len(picture.sensors)) if picture.places is None else on_a_map(picture.places)
    if picture.places is not None and has_names:
        moved = moved_apart(points, _APART * (float(np.ptp(points, axis=0).max()) or 1.0))
        note += " Neighbours on the map are moved apart a little." if moved is not points else ""
        points = moved
    east, north = np.ptp(points, axis=0)
    tall = _PANEL * float(np.clip(north / (east or 1.0), 0.4, 1.2))
    key = _LINE * -(-len(picture.sensors) // 2) if has_names else _LINE
    figure = new_figure("How much sensors hear from one another", note, height=1.1 + tall + key)
    parts = figure.subplot_mosaic([["forward", "reverse"], ["key", "key"]], height_ratios=(tall, key))
    for direction in _TITLES:
        if direction in picture.edges:
            _draw_direction(parts[direction], direction, points, picture.edges[direction], has_names)
        else:
            parts[direction].set_axis_off()
    parts["key"].set_axis_off()
    if has_names:
        _write_key(parts["key"], picture)
    return Drawing(figure, _table(picture))


def _between(edges: WeightedEdges) -> NDArray[np.int64]:
    """Returns the edges that can be drawn: not those from a sensor to itself."""
    return np.flatnonzero(edges.sender != edges.receiver)


def _draw_direction(
    axes: Axes, direction: str, points: NDArray[np.float64], edges: WeightedEdges, has_names: bool
) -> None:
    axes.set_title(_TITLES[direction], fontsize=SMALL + 1.5, color=_COLOURS[direction], loc="left")
    axes.set_axis_off()
    axes.set_aspect("equal")
    between = _between(edges)
    shown = between[np.argsort(edges.weight[between])][-_MOST_EDGES:]  # the heaviest on top
    size, scale = (6.5, 1.0) if has_names else (1.2, 0.3)  # radius in points; many arrows must be thin
    for edge in shown:
        start, end = int(edges.sender[edge]), int(edges.receiver[edge])
        share = float(edges.weight[edge])
        head = f"head_length={scale * (2.5 + 4 * share):.2f},head_width={scale * (1.2 + 2 * share):.2f}"
        arrow = FancyArrowPatch(
            tuple(points[start]), tuple(points[end]), connectionstyle="arc3,rad=0.18", shrinkA=size, shrinkB=size,
            arrowstyle=f"-|>,{head}", linewidth=0.3 + scale * _WIDEST_ARROW * share, color=_COLOURS[direction],
            alpha=0.25 + 0.6 * share, clip_on=False,
        )  # fmt: skip
        axes.add_artist(arrow)
    axes.scatter(
        points[:, 0], points[:, 1], s=4 * size**2, color="white" if has_names else BLACK, edgecolors=BLACK, zorder=3
    )
    if has_names:
        for number, point in enumerate(points, start=1):
            axes.annotate(
                str(number), tuple(point), ha="center", va="center", fontsize=SMALL - 1, color=BLACK, zorder=4
            )
    (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
    room = 0.08 * max(right - left, top - bottom, 1e-6)
    axes.set_xlim(left - room, right + room)
    axes.set_ylim(bottom - room, top + room)


def _write_key(axes: Axes, picture: EdgePicture) -> None:
    """Writes the numbers and names of the sensors in two columns."""
    rows = -(-len(picture.sensors) // 2)
    for place, name in enumerate(picture.names):
        column, row = divmod(place, rows)
        axes.text(
            0.02 + 0.5 * column, 1 - (row + 0.5) / rows, plain(f"{place + 1}  {name}"), fontsize=SMALL - 1, color=BLACK,
            va="center", transform=axes.transAxes,
        )  # fmt: skip


def _table(picture: EdgePicture) -> pd.DataFrame:
    parts = [
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
    return pd.concat(parts, ignore_index=True)
