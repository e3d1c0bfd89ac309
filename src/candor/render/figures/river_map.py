"""The map of a directed network: where the sensors are, which way the water goes, and what they are called."""

from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from candor.core.arrays import Doubles
from candor.explain.pictures import RiverMapPicture
from candor.explain.places import moved_apart, on_a_map
from candor.render.figures.map_labels import MapPage, place_labels
from candor.render.figures.style import BLACK, BLUE, DOTS_PER_INCH, GREY, SMALL, Drawing, new_figure, plain

_SAME_PLACE = 0.012  # of the longer side of the map: sensors this near share a mark and a label
_MOST_NAMES, _LETTERS = 40, 30  # sensors that are named; letters in a line of a label
_LETTERS_IN_NOTE = 120
_MARK = 4.5  # radius in points
_APART = 0.42  # inches: two marks, and an arrow between them that can be seen
_BESIDE, _ABOVE, _STRIP = 1.6, 0.65, 0.42  # inches: room for labels, and for the key at the bottom
_WIDE, _LOWEST, _TALLEST = 7.6, 3.4, 9.0  # inches
_POINTS_PER_INCH = 72.0
_COLOURS = {"no sensor upstream": "white", "on the way": BLUE, "no sensor downstream": BLACK, "no connection": GREY}


@dataclass(frozen=True, eq=False)
class _Network:
    """What is drawn: places (place x 2, in km on a map), the sensors at each, and arrows between places."""

    places: Doubles
    members: list[list[int]]
    arrows: list[tuple[int, int]]
    is_map: bool

    def kind_of(self, place: int) -> str:
        """Returns which of the marks a place has."""
        has_upstream = any(end == place for _, end in self.arrows)
        has_downstream = any(start == place for start, _ in self.arrows)
        if has_upstream and has_downstream:
            return "on the way"
        return "no sensor downstream" if has_upstream else "no sensor upstream" if has_downstream else "no connection"


def draw_river_map(picture: RiverMapPicture) -> Drawing:
    """Returns the map of a panel with an arrow to the next sensor downstream, and the table of all edges.

    Edges that only sum up a way over other sensors are left to the table. Where the edges lead in a circle there is no
    next sensor, and all are drawn. Where places are unknown it is a plan instead, water from left to right.
    """
    network = _joined(picture)
    for growth in (1.0, 1.4):  # a taller page where names find no room
        figure, is_whole = _draw(picture, network, growth)
        if is_whole:
            break
    else:
        figure, _ = _draw(picture, network, growth, "Names that found no room are left out.")
    return Drawing(figure, _table(picture))


def _draw(picture: RiverMapPicture, network: _Network, growth: float, remark: str = "") -> tuple[Figure, bool]:
    """Returns the figure and whether every label found room in it."""
    has_names = len(picture.sensors) <= _MOST_NAMES
    size = 1.0 if has_names else 0.4  # of marks and arrows
    east, north = np.ptp(network.places, axis=0)
    inner = _WIDE - 2 * (_BESIDE if has_names else 0.3)
    tall = growth * float(np.clip(inner * north / (east or 1.0) + 2 * _ABOVE + _STRIP, _LOWEST, _TALLEST))
    room = np.array([inner, tall - 2 * _ABOVE - _STRIP])
    per_inch = float((np.ptp(network.places, axis=0) / room).max()) or 1.0
    shown = replace(network, places=moved_apart(network.places, size * _APART * per_inch))
    per_inch = max(per_inch, float((np.ptp(shown.places, axis=0) / room).max()))
    notes = [*_notes(picture, shown, is_moved=shown.places is not network.places), remark]
    note = "\n".join(wrap(" ".join(notes), _LETTERS_IN_NOTE))
    figure = new_figure(f"The network of {picture.name or 'the sensors'}", note, tall + 0.8)
    axes = figure.subplots()
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#d0d0d0")
    figure.canvas.draw()  # settles how large the axes are
    page = np.array(axes.get_window_extent().size) / DOTS_PER_INCH
    middle = (shown.places.min(axis=0) + shown.places.max(axis=0)) / 2
    corner = middle - per_inch * (page + np.array([0, _STRIP])) / 2
    axes.set_xlim(corner[0], corner[0] + per_inch * page[0])
    axes.set_ylim(corner[1], corner[1] + per_inch * page[1])
    _draw_arrows(axes, shown, size)
    _draw_marks(axes, shown, size)
    if shown.is_map:
        _draw_scale(axes, per_inch, corner)
    if not has_names:
        return figure, True
    places = (shown.places - corner) / per_inch
    clear_of = MapPage(
        frame=(0.05, _STRIP, page[0] - 0.05, page[1] - 0.05),
        places=places,
        radius=_MARK / _POINTS_PER_INCH,
        lines=np.array([places[[start, end]] for start, end in shown.arrows]).reshape(-1, 2, 2),
    )
    return figure, _write_labels(axes, clear_of, [_label(picture, members) for members in shown.members])


def _draw_arrows(axes: Axes, network: _Network, size: float) -> None:
    arrows, away = set(network.arrows), size * _MARK + 1
    head = f"-|>,head_length={7 * size:.1f},head_width={3.2 * size:.1f}"
    for start, end in network.arrows:
        bend = 0.15 if (end, start) in arrows else 0.0  # two that lead to and fro must not lie on one another
        axes.add_artist(
            FancyArrowPatch(
                tuple(network.places[start]), tuple(network.places[end]), connectionstyle=f"arc3,rad={bend}",
                arrowstyle=head, shrinkA=away, shrinkB=away, linewidth=1.6 * size, color=BLUE, zorder=2,
            )
        )  # fmt: skip


def _draw_marks(axes: Axes, network: _Network, size: float) -> None:
    kinds = [network.kind_of(place) for place in range(len(network.places))]
    for kind, colour in _COLOURS.items():
        own = network.places[[found == kind for found in kinds]]
        axes.scatter(
            own[:, 0], own[:, 1], s=(2 * size * _MARK) ** 2, color=colour, edgecolors=BLACK, linewidths=size, zorder=3
        )
    key = [
        Line2D([], [], linestyle="none", marker="o", markersize=7, color=colour, markeredgecolor=BLACK, label=kind)
        for kind, colour in _COLOURS.items()
        if kind in kinds
    ]
    axes.legend(handles=key, loc="lower right", ncols=len(key), fontsize=SMALL, frameon=False, borderaxespad=0.2)


def _draw_scale(axes: Axes, km_per_inch: float, corner: Doubles) -> None:
    """Draws a bar of a round length, and where north is."""
    longest = 1.2 * km_per_inch
    power = 10.0 ** np.floor(np.log10(longest))
    length = max(step * power for step in (1, 2, 5) if step * power <= longest)
    left, bottom = corner + km_per_inch * np.array([0.15, 0.16])
    axes.plot([left, left + length], [bottom, bottom], color=BLACK, linewidth=2.0, solid_capstyle="butt")
    axes.annotate(
        f"{length:g} km, north is up", (left + length, bottom), (6, 0), textcoords="offset points", va="center",
        fontsize=SMALL, color=BLACK,
    )  # fmt: skip


def _write_labels(axes: Axes, page: MapPage, labels: list[str]) -> bool:
    """Writes the labels where there is room, joined to their places, and returns whether there was for all."""
    look: dict[str, Any] = {"fontsize": SMALL, "color": BLACK, "ha": "center", "va": "center", "zorder": 5}
    paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    texts = [axes.text(0, 0, label, bbox=paper, **look) for label in labels]
    extents = [text.get_window_extent() for text in texts]
    sizes = [(extent.width / DOTS_PER_INCH, extent.height / DOTS_PER_INCH) for extent in extents]
    to_data, origin = axes.transData.inverted(), axes.get_window_extent().min
    middles = place_labels(page, sizes)
    for text, size, place, middle in zip(texts, sizes, page.places, middles, strict=True):
        if middle is None:
            text.remove()
            continue
        rim = np.clip(place, middle - np.array(size) / 2, middle + np.array(size) / 2)
        points = to_data.transform(np.array([middle, place, rim]) * DOTS_PER_INCH + origin)
        text.set_position((points[0, 0], points[0, 1]))
        axes.plot(points[1:, 0], points[1:, 1], color=GREY, linewidth=0.7, zorder=1)
    return all(middle is not None for middle in middles)


def _label(picture: RiverMapPicture, members: list[int]) -> str:
    """Returns the names of the sensors at one place, each on lines of its own."""
    return plain("\n".join(line for member in members for line in wrap(picture.names[member], _LETTERS)))


def _notes(picture: RiverMapPicture, network: _Network, is_moved: bool) -> list[str]:
    """Returns what has to be said about the picture."""
    drawn, edges = int(picture.is_direct.sum()), len(picture.is_direct)
    others = f"{drawn} of {edges} edges lead to the next sensor and are drawn; the others pass over sensors."
    said = {
        "Arrows point along the edges." if picture.has_cycle else "Arrows point downstream.": drawn > 0,
        others: drawn < edges,
        "Sensors at one place share a mark.": len(network.members) < len(picture.sensors),
        "Near neighbours are moved apart a little.": is_moved and network.is_map,
        "A plan, not a map: places are not known.": not network.is_map,
        f"More than {_MOST_NAMES} sensors are not named.": len(picture.sensors) > _MOST_NAMES,
    }
    return [sentence for sentence, is_true in said.items() if is_true]


def _joined(picture: RiverMapPicture) -> _Network:
    """Returns the network with sensors that nearly lie on one another joined to one place."""
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
    places = np.array([points[group].mean(axis=0) for group in members]).reshape(-1, 2)
    return _Network(places, members, list(arrows), picture.places is not None)


def _table(picture: RiverMapPicture) -> pd.DataFrame:
    ids = picture.sensors
    table = pd.DataFrame({"from": [ids[i] for i in picture.source], "to": [ids[i] for i in picture.target]})
    if picture.distance is not None:
        table[f"distance_{picture.distance_unit}" if picture.distance_unit else "distance"] = picture.distance
    table["is_drawn"] = picture.is_direct
    return table
