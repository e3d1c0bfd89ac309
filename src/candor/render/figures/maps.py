"""Maps of sensors: what was learned about pairs of them, and which way a directed network leads.

Sensors stand where they are if all places are known, else on a circle or a plan.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from candor.core.arrays import Doubles, Floats, Integers
from candor.explain.pictures import EdgePicture, RelationPicture, RiverMapPicture, WeightedEdges
from candor.explain.places import moved_apart, on_a_circle, on_a_map
from candor.render.figures import style
from candor.render.figures.labels import write_labels
from candor.render.figures.style import Drawing, add_key, new_figure, plain

_MOST_NUMBERS, _MOST_EDGES, _MOST_RELATIONS = 30, 400, 16
_QUIET = "#c4c4c4"
_WIDEST_EDGE, _WIDEST_RELATION = 4.0, 3.2  # points
_PANEL, _MAP, _LINE = 3.9, 7.2, 0.16  # inches: width of a direction, of a whole map, and height of a line of the key

# Of river maps:
_SAME_PLACE = 0.012  # of the longer side of the map: sensors this near share a mark and a label
_MOST_NAMES, _LETTERS = 40, 30  # sensors that are named; letters in a line of a label
_MARK = 4.5  # radius in points
_APART = 0.42  # inches: two marks, and an arrow between them that can be seen
_BESIDE, _ABOVE, _STRIP = 1.6, 0.65, 0.42  # inches: room for labels, and for the key at the bottom
_WIDE, _LOWEST, _TALLEST = 7.6, 3.4, 9.0  # inches
# By whether arrows lead there and whether they lead away: what a mark stands for, and its colour.
_MARKS = {
    (False, True): ("no sensor upstream", "white"),
    (True, True): ("on the way", style.BLUE),
    (True, False): ("no sensor downstream", style.BLACK),
    (False, False): ("no connection", style.GREY),
}


def draw_edges(picture: EdgePicture) -> Drawing:
    """Draw the weights of edges, both directions side by side: wide arrows weigh much, and point to the receiver."""
    names = picture.names if len(picture.sensors) <= _MOST_NUMBERS else ()
    is_cut = any(len(_between(edges)) > _MOST_EDGES for edges in picture.edges.values())
    note = picture.note + (f" Only the heaviest {_MOST_EDGES} edges are shown." if is_cut else "")
    points, remark = _place(picture.places, len(picture.sensors), 0.1 if names else 0.0)
    tall, key = _PANEL * _tallness(points, 0.4, 1.2), _LINE * max(-(-len(names) // 2), 1)
    figure = new_figure("How much sensors hear from one another", note + remark, height=1.1 + tall + key)
    parts = figure.subplot_mosaic([list(style.DIRECTIONS), ["key", "key"]], height_ratios=(tall, key))
    for direction, title in style.DIRECTIONS.items():
        parts[direction].set_axis_off()
        if direction in picture.edges:
            parts[direction].set_title(
                title, fontsize=style.SMALL + 1.5, color=style.DIRECTION_COLOURS[direction], loc="left"
            )
            _draw_weights(
                parts[direction], points, picture.edges[direction], style.DIRECTION_COLOURS[direction], bool(names)
            )
    _list_names(parts["key"], names)
    table = [
        (direction, picture.sensors[sender], picture.sensors[receiver], weight)
        for direction, edges in picture.edges.items()
        for sender, receiver, weight in zip(edges.sender, edges.receiver, edges.weight, strict=True)
    ]
    return Drawing(figure, pd.DataFrame(table, columns=["direction", "from", "to", "mean_weight"]))


def _between(edges: WeightedEdges) -> Integers:
    """Return the edges that can be drawn: not those from a sensor to itself."""
    return np.flatnonzero(edges.sender != edges.receiver)


def _draw_weights(axes: Axes, points: Doubles, edges: WeightedEdges, colour: str, has_numbers: bool) -> None:
    between = _between(edges)
    size, scale = (6.5, 1.0) if has_numbers else (1.2, 0.3)  # radius in points; many arrows must be thin
    for edge in between[np.argsort(edges.weight[between])][-_MOST_EDGES:]:  # the heaviest on top
        share, ends = float(edges.weight[edge]), (edges.sender[edge], edges.receiver[edge])
        head, width = (scale * (2.5 + 4 * share), scale * (1.2 + 2 * share)), 0.3 + scale * _WIDEST_EDGE * share
        _add_arrow(axes, points, ends, size, head, bend=0.18, color=colour, linewidth=width, alpha=0.25 + 0.6 * share)
    _draw_sensors(axes, points, size, has_numbers)


def draw_relations(picture: RelationPicture) -> Drawing:
    """Draw physical edges in grey, and the heaviest relations beyond them in colour."""
    names = picture.names if len(picture.sensors) <= _MOST_NUMBERS else ()
    points, remark = _place(picture.places, len(picture.sensors), 0.07 if names else 0.0)
    note, count = picture.note, len(picture.weight)
    if count > _MOST_RELATIONS:
        note += f" The heaviest {_MOST_RELATIONS} of {count:,} are shown."
    if picture.places is None:
        remark = " Places are not known: sensors stand on a circle."
    tall, key = _MAP * _tallness(points, 0.35, 0.8), max(_LINE * -(-len(names) // 2), 0.01)
    figure = new_figure("Relations beyond the edges", note + remark, height=1.6 + tall + key)
    parts = figure.subplot_mosaic([["words"], ["map"], ["key"]], height_ratios=(0.3, tall, key))
    _draw_relations(parts["map"], picture, points, bool(names))
    look: dict[str, Any] = {"color": style.GREY, "linestyle": "none", "label": "no relations beyond them"}
    if count:
        words = f"related beyond them; the widest has a weight of {picture.weight[0]:.2f}"
        look = {"color": style.PURPLE, "linewidth": 4, "alpha": 0.75, "label": words}
    physical = Line2D([], [], color=_QUIET, linewidth=1.5, label="physical edges")
    add_key(parts["words"], [physical, Line2D([], [], **look)], 2)
    _list_names(parts["key"], names)
    columns: dict[str, object] = {
        "sensor": [picture.sensors[place] for place in picture.receiver],
        "hears_from": [picture.sensors[place] for place in picture.peer],
        "mean_weight": picture.weight,
        "resemblance": picture.resemblance,
    }
    if picture.distance is not None:
        columns["distance_km"] = picture.distance
    return Drawing(figure, pd.DataFrame(columns))


def _draw_relations(axes: Axes, picture: RelationPicture, points: Doubles, has_numbers: bool) -> None:
    axes.set_axis_off()
    size = 6.5 if has_numbers else 1.4  # radius of a mark in points
    source, target = picture.edges
    if has_numbers:
        for ends in zip(source.tolist(), target.tolist(), strict=True):
            if ends[0] != ends[1]:
                _add_arrow(axes, points, ends, size, (3.5, 1.5), linewidth=0.8, color=_QUIET, zorder=2)
    else:  # among many sensors heads of arrows would hide the rest
        lines = list(np.stack([points[source], points[target]], axis=1))
        axes.add_collection(LineCollection(lines, colors=_QUIET, linewidths=0.6, zorder=2))
    largest = float(picture.weight[:1].max(initial=1e-9))
    for place in reversed(range(min(len(picture.weight), _MOST_RELATIONS))):  # the heaviest on top
        width = 0.6 + _WIDEST_RELATION * float(picture.weight[place]) / largest
        ends, head = (picture.peer[place], picture.receiver[place]), (3 + 0.6 * width, 1.2 + 0.35 * width)
        _add_arrow(axes, points, ends, size, head, bend=0.22, linewidth=width, color=style.PURPLE, alpha=0.75, zorder=3)
    _draw_sensors(axes, points, size, has_numbers)


def _place(degrees: Floats | None, count: int, apart: float) -> tuple[Doubles, str]:
    """Return where sensors stand, in km on a map, and what has to be said if neighbours were moved apart.

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
    """Return height through width of points, within bounds."""
    east, north = np.ptp(points, axis=0)
    return float(np.clip(north / (east or 1.0), least, most))


def _add_arrow(
    axes: Axes,
    points: Doubles,
    ends: tuple[int, int],
    size: float,
    head: tuple[float, float],
    bend: float = 0.0,
    **look: Any,
) -> None:
    """Draw an arrow between two marks with a radius of `size` points; its head has length and width."""
    start, end = (tuple(points[int(place)]) for place in ends)
    form = f"-|>,head_length={head[0]:.2f},head_width={head[1]:.2f}"
    look |= {"connectionstyle": f"arc3,rad={bend}", "arrowstyle": form, "shrinkA": size, "shrinkB": size}
    axes.add_artist(FancyArrowPatch(start, end, clip_on=False, **look))


def _draw_sensors(axes: Axes, points: Doubles, size: float, has_numbers: bool) -> None:
    """Draw the marks of sensors, with their numbers where there are names to look up, and leave room around them."""
    axes.set_aspect("equal")
    colour = "white" if has_numbers else style.BLACK
    axes.scatter(points[:, 0], points[:, 1], s=4 * size**2, color=colour, edgecolors=style.BLACK, zorder=4)
    for number, point in enumerate(points if has_numbers else (), start=1):
        axes.annotate(
            str(number), tuple(point), ha="center", va="center", fontsize=style.SMALL - 1, color=style.BLACK, zorder=5
        )
    low, high = points.min(axis=0), points.max(axis=0)
    room = 0.07 * max(*(high - low), 1e-6)
    axes.set(xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room))


def _list_names(axes: Axes, names: Sequence[str]) -> None:
    """Write the numbers and names of sensors in two columns."""
    axes.set_axis_off()
    rows = -(-len(names) // 2)
    look: dict[str, Any] = {
        "fontsize": style.SMALL - 1,
        "color": style.BLACK,
        "va": "center",
        "transform": axes.transAxes,
    }
    for place, name in enumerate(names):
        column, row = divmod(place, rows)
        axes.text(0.02 + 0.5 * column, 1 - (row + 0.5) / rows, plain(f"{place + 1}  {name}"), **look)


def draw_river_map(picture: RiverMapPicture) -> Drawing:
    """Draw a panel with an arrow to the next sensor downstream; the table has all edges.

    Edges that only sum up a way over other sensors are left to the table. Where the edges lead in a circle there is no
    next sensor, and all are drawn. Where places are unknown it is a plan instead, water from left to right.
    """
    network = _joined(picture)
    for growth in (1.0, 1.4):  # a taller page where names find no room
        figure, is_whole = _draw_river(picture, network, growth)
        if is_whole:
            break
    else:
        figure, _ = _draw_river(picture, network, growth, "Names that found no room are left out.")
    ids = picture.sensors
    table = pd.DataFrame({"from": [ids[i] for i in picture.source], "to": [ids[i] for i in picture.target]})
    if picture.distance is not None:
        table[f"distance_{picture.distance_unit}" if picture.distance_unit else "distance"] = picture.distance
    table["is_drawn"] = picture.is_direct
    return Drawing(figure, table)


class _River(NamedTuple):
    """What is drawn of a network."""

    places: Doubles  # in km on a map, place x 2
    members: list[list[int]]  # the sensors that (nearly) lie at each place
    arrows: list[tuple[int, int]]  # between places


def _joined(picture: RiverMapPicture) -> _River:
    """Return places with arrows between them; sensors that nearly lie on one another share a place."""
    points = np.asarray(picture.plan, np.float64) if picture.places is None else on_a_map(picture.places)
    near = _SAME_PLACE * float(np.ptp(points, axis=0).max())
    members: list[list[int]] = []
    for position, point in enumerate(points):
        home = next((m for m in members if np.linalg.norm(points[m[0]] - point) <= near), None)
        if home is None:
            members.append([position])
        else:
            home.append(position)
    place_of = {position: place for place, group in enumerate(members) for position in group}
    ends = zip(picture.source[picture.is_direct].tolist(), picture.target[picture.is_direct].tolist(), strict=True)
    arrows = dict.fromkeys((place_of[start], place_of[end]) for start, end in ends if place_of[start] != place_of[end])
    return _River(np.array([points[group].mean(axis=0) for group in members]), members, list(arrows))


def _draw_river(picture: RiverMapPicture, river: _River, growth: float, remark: str = "") -> tuple[Figure, bool]:
    """Return the figure and whether every label found room in it."""
    places, members, arrows = river
    has_names = len(picture.sensors) <= _MOST_NAMES
    size = 1.0 if has_names else 0.4  # of marks and arrows
    east, north = np.ptp(places, axis=0)
    inner = _WIDE - 2 * (_BESIDE if has_names else 0.3)
    tall = growth * float(np.clip(inner * north / (east or 1.0) + 2 * _ABOVE + _STRIP, _LOWEST, _TALLEST))
    room = np.array([inner, tall - 2 * _ABOVE - _STRIP])
    per_inch = float((np.ptp(places, axis=0) / room).max()) or 1.0
    points = moved_apart(places, size * _APART * per_inch)
    per_inch = max(per_inch, float((np.ptp(points, axis=0) / room).max()))
    note = " ".join([*_notes(picture, len(members), is_moved=points is not places), remark])
    figure = new_figure(f"The network of {picture.name or 'the sensors'}", note, tall + 0.8)
    axes = figure.subplots()
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color("#d0d0d0")
    figure.draw_without_rendering()  # settles how large the axes are
    page = np.array(axes.get_window_extent().size) / style.DOTS_PER_INCH
    corner = (points.min(axis=0) + points.max(axis=0) - per_inch * (page + np.array([0, _STRIP]))) / 2
    end = corner + per_inch * page
    axes.set(xlim=(corner[0], end[0]), ylim=(corner[1], end[1]))
    head, away = (7 * size, 3.2 * size), size * _MARK + 1
    for arrow in arrows:
        bend = 0.15 if arrow[::-1] in arrows else 0.0  # two that lead to and fro must not lie on one another
        _add_arrow(axes, points, arrow, away, head, bend=bend, linewidth=1.6 * size, color=style.BLUE, zorder=2)
    _draw_marks(axes, points, arrows, size)
    if picture.places is not None:
        _draw_scale(axes, per_inch, corner)
    if not has_names:
        return figure, True
    paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    look: dict[str, Any] = {"fontsize": style.SMALL, "color": style.BLACK, "ha": "center", "va": "center", "zorder": 5}
    names = ["\n".join(line for one in group for line in wrap(picture.names[one], _LETTERS)) for group in members]
    texts = [axes.text(0, 0, plain(name), bbox=paper, **look) for name in names]
    radii, lines = np.full(len(points), _MARK / 72), points[np.reshape(arrows, (-1, 2)).astype(int)]
    return figure, write_labels(axes, texts, points, radii, lines, bottom=_STRIP)


def _draw_marks(axes: Axes, points: Doubles, arrows: Sequence[tuple[int, int]], size: float) -> None:
    starts, ends = {start for start, _ in arrows}, {end for _, end in arrows}
    kinds = [_MARKS[place in ends, place in starts] for place in range(len(points))]
    key = []
    for kind, colour in _MARKS.values():
        own = points[[found == kind for found, _ in kinds]]
        look: dict[str, Any] = {"color": colour, "edgecolors": style.BLACK, "linewidths": size, "zorder": 3}
        axes.scatter(own[:, 0], own[:, 1], s=(2 * size * _MARK) ** 2, **look)
        if len(own):
            look = {"linestyle": "none", "marker": "o", "markersize": 7, "markeredgecolor": style.BLACK}
            key.append(Line2D([], [], color=colour, label=kind, **look))
    axes.legend(handles=key, loc="lower right", ncols=len(key), fontsize=style.SMALL, frameon=False, borderaxespad=0.2)


def _draw_scale(axes: Axes, km_per_inch: float, corner: Doubles) -> None:
    """Draw a bar of a round length, and where north is."""
    longest = 1.2 * km_per_inch
    power = 10.0 ** np.floor(np.log10(longest))
    length = max(step * power for step in (1, 2, 5) if step * power <= longest)
    left, bottom = corner + km_per_inch * np.array([0.15, 0.16])
    axes.plot([left, left + length], [bottom, bottom], color=style.BLACK, linewidth=2.0, solid_capstyle="butt")
    look: dict[str, Any] = {
        "textcoords": "offset points",
        "va": "center",
        "fontsize": style.SMALL,
        "color": style.BLACK,
    }
    axes.annotate(f"{length:g} km, north is up", (left + length, bottom), (6, 0), **look)


def _notes(picture: RiverMapPicture, places: int, is_moved: bool) -> list[str]:
    """Return what has to be said about the picture."""
    drawn, edges, count = int(picture.is_direct.sum()), len(picture.is_direct), len(picture.sensors)
    others = f"{drawn} of {edges} edges lead to the next sensor and are drawn; the others pass over sensors."
    said = {
        "Arrows point along the edges." if picture.has_cycle else "Arrows point downstream.": drawn > 0,
        others: drawn < edges,
        "Sensors at one place share a mark.": places < count,
        "Near neighbours are moved apart a little.": is_moved and picture.places is not None,
        "A plan, not a map: places are not known.": picture.places is None,
        f"More than {_MOST_NAMES} sensors are not named.": count > _MOST_NAMES,
    }
    return [sentence for sentence, is_true in said.items() if is_true]
