"""Maps of a report: sensors and directed edges on plain axes, without a background that would need the network."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from candor.data.panel import Edges
from candor.explain.pictures import WeightedEdges
from candor.render.figures.style import BLUE, GREY, VERMILION
from candor.render.report.charts import Chart, new_figure, plain
from candor.render.report.places import ARROW, Places, bent_lines

MOST_EDGES = 4_000
_MOST_NUMBERS = 40  # sensors that carry their number
_CLASSES = (0.05, 0.15, 0.3, 0.5)  # of weights: each class has a width of its own
_COLOURS = {"forward": BLUE, "reverse": VERMILION}


def draw_network(places: Places, edges: Edges, names: Sequence[str], errors: Sequence[float | None] | None) -> Chart:
    """Returns the map of sensors with the edges of the panel, coloured by mean absolute error where that is known."""
    figure = _new_map(places)
    many = len(names) > _MOST_NUMBERS
    apart = np.flatnonzero(edges.source != edges.target)[:MOST_EDGES]
    lines = edges.source[apart], edges.target[apart]
    _add_edges(figure, places, *lines, GREY, 0.8 if many else 1.2, 5 if many else 11)
    _add_sensors(figure, places, names, errors)
    return Chart(figure, 460, "Map of the sensors with their directed edges", aspect=places.aspect)


def draw_learned(places: Places, edges: WeightedEdges, direction: str, names: Sequence[str]) -> Chart:
    """Returns the map of how much sensors hear from one another in one direction: wide lines weigh much."""
    figure = _new_map(places)
    apart = np.flatnonzero(edges.sender != edges.receiver)
    shown = apart[np.argsort(edges.weight[apart])[-MOST_EDGES:]]
    classes = np.searchsorted(_CLASSES, edges.weight[shown])
    scale = 0.5 if len(names) > _MOST_NUMBERS else 1.0
    for rank in np.unique(classes):  # the heaviest last, on top
        chosen = shown[classes == rank]
        width, arrow = scale * (0.6 + 1.3 * rank), scale * (9 + 3 * rank)
        lines = edges.sender[chosen], edges.receiver[chosen]
        _add_edges(figure, places, *lines, _COLOURS[direction], width, arrow, opacity=0.35 + 0.15 * float(rank))
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
    """Adds all edges as one line that is lifted between them, with an arrow past the middle of each."""
    if not len(source):
        return
    across, up = bent_lines(places, source, target)
    sizes = np.zeros(across.shape, np.float32)
    sizes[:, ARROW] = arrow
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
