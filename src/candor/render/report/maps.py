"""Maps of a report: sensors and directed edges on plain axes, without a background that would need the network.

Sensors stand at longitude and latitude where all are known, else on a circle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from candor.data.panel import Edges, Panel
from candor.explain.pictures import WeightedEdges
from candor.explain.places import Points, known_places, moved_apart, on_a_circle, shrinking_of, unwrapped
from candor.render.figures import style
from candor.render.report.charts import Chart, new_figure, plain

MOST_EDGES = 4_000
_MOST_NUMBERS = 40  # sensors that carry their number
_CLASSES = (0.05, 0.15, 0.3, 0.5)  # of weights: each class has a width of its own
_BEND = 0.12  # how far an edge swings out, of its length: edges along one river would lie on one another
_STATIONS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])  # of the way, where the bent line has its corners
_ARROW = 3  # the corner that carries the arrow
_LEAST_APART = 0.06  # of the wider side of the map
_MOST_APART = 60  # sensors; among more there is less room


@dataclass(frozen=True, eq=False)
class Places:
    """Points of the sensors."""

    points: Points  # sensor x 2, longitude and latitude in degrees, or on a circle around zero
    is_map: bool  # whether they are longitude and latitude
    stretch: float  # how much longer a degree of latitude is than one of longitude; 1 on a circle
    is_parted: bool = False  # whether sensors that lie on one another were drawn apart

    @property
    def aspect(self) -> float:
        """Width through height of what is drawn, on the ground."""
        across, up = np.ptp(self.points * np.array([1.0, self.stretch]), axis=0)
        return float(np.clip(across / up, 0.5, 3.0)) if across and up else 1.0


def find_places(panel: Panel) -> Places:
    """Return where the sensors of a panel are drawn."""
    points = known_places(panel)
    if points is None:
        return Places(on_a_circle(len(panel.sensors)), is_map=False, stretch=1.0)
    points, stretch = unwrapped(points), 1.0 / shrinking_of(points)
    scale = np.array([1.0, stretch])
    flat = points * scale
    share = _LEAST_APART if len(points) <= _MOST_APART else _LEAST_APART / 10
    parted = moved_apart(flat, share * (float(np.ptp(flat, axis=0).max()) or 1.0))
    is_parted = parted is not flat
    return Places(parted / scale if is_parted else points, is_map=True, stretch=stretch, is_parted=is_parted)


def bent_lines(places: Places, source: NDArray[np.integer], target: NDArray[np.integer]) -> tuple[Points, Points]:
    """Return the corners of a line for every edge, edge x corner, across and up; the last is NaN, where the pen lifts.

    Lines swing out to the left of their way, so that there and back are two lines.
    """
    scale = np.array([1.0, places.stretch])
    start, end = (places.points[ends] * scale for ends in (source, target))
    way = end - start
    left = np.stack([-way[:, 1], way[:, 0]], axis=1)
    share = _STATIONS[:, None]
    swing = _BEND * 4 * share * (1 - share)
    corners = (start[:, None] + share * way[:, None] + swing * left[:, None]) / scale
    lifted = np.concatenate([corners, np.full((len(corners), 1, 2), np.nan)], axis=1)
    return lifted[..., 0], lifted[..., 1]


def draw_network(places: Places, edges: Edges, names: Sequence[str], errors: Sequence[float | None] | None) -> Chart:
    """Return the map of sensors with the edges of the panel, coloured by mean absolute error where that is known."""
    figure = _new_map(places)
    many = len(names) > _MOST_NUMBERS
    apart = np.flatnonzero(edges.source != edges.target)[:MOST_EDGES]
    lines = edges.source[apart], edges.target[apart]
    _add_edges(figure, places, *lines, style.GREY, 0.8 if many else 1.2, 5 if many else 11)
    _add_sensors(figure, places, names, errors)
    return Chart(figure, 460, "Map of the sensors with their directed edges", aspect=places.aspect)


def draw_learned(places: Places, edges: WeightedEdges, direction: str, names: Sequence[str]) -> Chart:
    """Return the map of how much sensors hear from one another in one direction: wide lines weigh much."""
    figure = _new_map(places)
    apart = np.flatnonzero(edges.sender != edges.receiver)
    shown = apart[np.argsort(edges.weight[apart])[-MOST_EDGES:]]
    classes = np.searchsorted(_CLASSES, edges.weight[shown])
    scale = 0.5 if len(names) > _MOST_NUMBERS else 1.0
    for rank in np.unique(classes):  # the heaviest last, on top
        chosen = shown[classes == rank]
        width, arrow = scale * (0.6 + 1.3 * rank), scale * (9 + 3 * rank)
        lines = edges.sender[chosen], edges.receiver[chosen]
        _add_edges(
            figure, places, *lines, style.DIRECTION_COLOURS[direction], width, arrow, opacity=0.35 + 0.15 * float(rank)
        )
    _add_sensors(figure, places, names, None)
    return Chart(figure, 420, f"Map of learned weights of edges, {direction}", aspect=places.aspect)


def _new_map(places: Places) -> go.Figure:
    across, up = ("longitude [°]", "latitude [°]") if places.is_map else ("", "")
    figure = new_figure(across, up, showlegend=False)
    axis: dict[str, Any] = {"showgrid": places.is_map, "showticklabels": places.is_map, "nticks": 6}
    figure.update_xaxes(**axis)
    figure.update_yaxes(scaleanchor="x", scaleratio=places.stretch, **axis)
    return figure


def _add_edges(
    figure: go.Figure,
    places: Places,
    source: NDArray[np.integer],
    target: NDArray[np.integer],
    colour: str,
    width: float,
    arrow: float,
    opacity: float = 0.7,
) -> None:
    """Add all edges as one line that is lifted between them, with an arrow past the middle of each."""
    if not len(source):
        return
    across, up = bent_lines(places, source, target)
    sizes = np.zeros(across.shape, np.float32)
    sizes[:, _ARROW] = arrow
    figure.add_scatter(
        x=across.ravel().astype(np.float32), y=up.ravel().astype(np.float32), mode="lines+markers", hoverinfo="skip",
        line={"color": colour, "width": width, "shape": "spline"}, opacity=opacity,
        marker={
            "symbol": "arrow", "angleref": "previous", "size": sizes.ravel(), "color": colour, "opacity": 1,
            "line": {"width": 0},
        },
    )  # fmt: skip


def _add_sensors(
    figure: go.Figure, places: Places, names: Sequence[str], errors: Sequence[float | None] | None
) -> None:
    many = len(names) > _MOST_NUMBERS
    marker: dict[str, Any] = {"size": 7 if many else 19, "color": "#f4f4f4", "line": {"width": 1, "color": "#444444"}}
    hover = [plain(name) for name in names]
    if errors is not None:
        known = [np.nan if error is None else error for error in errors]
        bar = {"title": {"text": "MAE"}, "thickness": 10, "len": 0.8, "outlinewidth": 0}
        pale_to_dark = [[0, "#fff7d6"], [0.5, "#f5b041"], [1, "#d35400"]]
        marker |= {"color": np.array(known, np.float32), "colorscale": pale_to_dark, "colorbar": bar, "showscale": True}
        hover = [
            f"{name}<br>MAE {'unknown' if error is None else f'{error:.4g}'}"
            for name, error in zip(hover, errors, strict=True)
        ]
    figure.add_scatter(
        x=places.points[:, 0], y=places.points[:, 1], customdata=hover, hovertemplate="%{customdata}<extra></extra>",
        mode="markers" if many else "markers+text", marker=marker, meta="sensors",
        text=None if many else [str(place + 1) for place in range(len(names))],
        textfont={"size": 10, "color": "#222222"},
    )  # fmt: skip
