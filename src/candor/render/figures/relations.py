"""Functional relations beyond the topology on the map: who hears from whom though no short walk joins them."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from candor.render.figures.map_points import Points, moved_apart, on_a_circle, on_a_map
from candor.render.figures.style import BLACK, GREY, PURPLE, SMALL, Drawing, new_figure, plain

_MOST_NAMES, _MOST_RELATIONS = 30, 16
_WIDEST = 3.2  # points
_APART = 0.07  # of the wider side of the map
_MAP, _LINE = 7.2, 0.16  # inches: width of the map, height of a line of the key
_LETTERS = 118
_QUIET = "#c4c4c4"


@dataclass(frozen=True, eq=False)
class RelationPicture:
    """Functional relations beyond the topology, the heaviest first.

    Args:
        sensors: ids.
        names: what people call them.
        places: longitude and latitude in degrees, sensor x 2; None where some are unknown.
        edges: sources and targets of the physical edges.
        receiver: position of the sensor that hears, by relation.
        peer: position of the sensor it hears from.
        weight: share of what it hears from all peers, 0 to 1.
        resemblance: of the backgrounds of both, -1 to 1.
        distance: straight, in km; None where places are unknown.
        note: what the weights are.
    """

    sensors: Sequence[str]
    names: Sequence[str]
    places: NDArray[np.floating] | None
    edges: tuple[NDArray[np.integer], NDArray[np.integer]]
    receiver: NDArray[np.integer]
    peer: NDArray[np.integer]
    weight: NDArray[np.floating]
    resemblance: NDArray[np.floating]
    distance: NDArray[np.floating] | None = None
    note: str = ""


def draw_relations(picture: RelationPicture) -> Drawing:
    """Returns the figure: physical edges in grey, the heaviest relations beyond them in colour."""
    count = len(picture.sensors)
    has_names = count <= _MOST_NAMES
    points = on_a_circle(count) if picture.places is None else on_a_map(picture.places)
    wide = float(np.ptp(points, axis=0).max()) or 1.0
    moved = moved_apart(points, _APART * wide) if has_names else points
    note = picture.note
    if len(picture.weight) > _MOST_RELATIONS:
        note += f" The heaviest {_MOST_RELATIONS} of {len(picture.weight):,} are shown."
    if picture.places is None:
        note += " Places are not known: sensors stand on a circle."
    elif not np.allclose(moved, points, atol=1e-3 * wide):
        note += " Neighbours are moved apart a little."
    east, north = np.ptp(moved, axis=0)
    tall = _MAP * float(np.clip(north / (east or 1.0), 0.35, 0.8))
    key = _LINE * -(-count // 2) if has_names else 0.01
    figure = new_figure("Relations beyond the edges", fill(note, _LETTERS), height=1.6 + tall + key)
    parts = figure.subplot_mosaic([["words"], ["map"], ["key"]], height_ratios=(0.3, tall, key))
    _draw_map(parts["map"], picture, moved, has_names)
    _draw_words(parts["words"], picture)
    parts["key"].set_axis_off()
    if has_names:
        _write_key(parts["key"], picture.names)
    return Drawing(figure, _table(picture))


def _draw_map(axes: Axes, picture: RelationPicture, points: Points, has_names: bool) -> None:
    axes.set_axis_off()
    axes.set_aspect("equal")
    size = 6.5 if has_names else 1.4  # radius of a mark in points
    _draw_edges(axes, picture, points, size, has_heads=has_names)
    shown = min(len(picture.weight), _MOST_RELATIONS)
    largest = float(picture.weight[:1].max(initial=1e-9))
    for place in reversed(range(shown)):  # the heaviest on top
        width = 0.6 + _WIDEST * float(picture.weight[place]) / largest
        ends = int(picture.peer[place]), int(picture.receiver[place])
        axes.add_artist(_arrow(points, *ends, size, width, PURPLE, bend=0.22))
    axes.scatter(
        points[:, 0], points[:, 1], s=4 * size**2, color="white" if has_names else BLACK, edgecolors=BLACK, zorder=4
    )
    if has_names:
        for number, point in enumerate(points, start=1):
            axes.annotate(str(number), tuple(point), ha="center", va="center", fontsize=SMALL - 1, zorder=5)
    (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
    room = 0.06 * max(right - left, top - bottom, 1e-6)
    axes.set_xlim(left - room, right + room)
    axes.set_ylim(bottom - room, top + room)


def _draw_edges(axes: Axes, picture: RelationPicture, points: Points, size: float, *, has_heads: bool) -> None:
    """Draws the physical edges; among many sensors their heads would hide the rest."""
    source, target = picture.edges
    if not has_heads:
        ends = np.stack([points[source], points[target]], axis=1)
        axes.add_collection(LineCollection(list(ends), colors=_QUIET, linewidths=0.6, zorder=2))
        return
    for start, end in zip(source.tolist(), target.tolist(), strict=True):
        if start != end:
            axes.add_artist(_arrow(points, start, end, size, 0.8, _QUIET, bend=0.0))


def _arrow(
    points: Points, start: int, end: int, size: float, width: float, colour: str, bend: float
) -> FancyArrowPatch:
    head = f"-|>,head_length={3 + 0.6 * width:.2f},head_width={1.2 + 0.35 * width:.2f}"
    return FancyArrowPatch(
        tuple(points[start]), tuple(points[end]), connectionstyle=f"arc3,rad={bend}", arrowstyle=head, shrinkA=size,
        shrinkB=size, linewidth=width, color=colour, alpha=0.75 if bend else 1.0, clip_on=False,
        zorder=3 if bend else 2,
    )  # fmt: skip


def _draw_words(axes: Axes, picture: RelationPicture) -> None:
    axes.set_axis_off()
    handles = [Line2D([], [], color=_QUIET, linewidth=1.5, label="physical edges")]
    if len(picture.weight):
        heaviest = f"related beyond them; the widest has a weight of {picture.weight[0]:.2f}"
        handles.append(Line2D([], [], color=PURPLE, linewidth=4, alpha=0.75, label=heaviest))
    else:
        handles.append(Line2D([], [], color=GREY, linestyle="none", label="no relations beyond them"))
    axes.legend(handles=handles, loc="center left", ncols=2, fontsize=SMALL, frameon=False)


def _write_key(axes: Axes, names: Sequence[str]) -> None:
    """Writes the numbers and names of the sensors in two columns."""
    rows = -(-len(names) // 2)
    for place, name in enumerate(names):
        column, row = divmod(place, rows)
        axes.text(
            0.01 + 0.5 * column, 1 - (row + 0.5) / rows, plain(f"{place + 1}  {name}"), fontsize=SMALL - 1, color=BLACK,
            va="center", transform=axes.transAxes,
        )  # fmt: skip


def _table(picture: RelationPicture) -> pd.DataFrame:
    columns: dict[str, object] = {
        "sensor": [picture.sensors[place] for place in picture.receiver],
        "hears_from": [picture.sensors[place] for place in picture.peer],
        "mean_weight": picture.weight,
        "resemblance": picture.resemblance,
    }
    if picture.distance is not None:
        columns["distance_km"] = picture.distance
    return pd.DataFrame(columns)
