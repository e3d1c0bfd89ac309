"""Positions of sensors on the page's map: by coordinates where all are known, else by the number of edges between."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from candor.data.panel import Edges, Panel
from candor.explain.places import Points, known_places, on_a_circle, on_a_map

_ROUNDS = 60
_MOST_BY_EDGES = 1_500  # all pairs are compared; more sensors are drawn on a circle


def has_coordinates(panel: Panel) -> bool:
    """Return whether it is known of all sensors where they are."""
    return known_places(panel) is not None


def map_positions(panel: Panel) -> Points:
    """Return a position for each sensor, sensor x 2, from 0 to 1: x to the east, y to the north."""
    count, degrees = len(panel.sensors), known_places(panel)
    if degrees is not None:
        points = on_a_map(degrees)
    elif len(panel.edges) and count <= _MOST_BY_EDGES:
        points = _by_edges(panel.edges, count)
    else:
        points = on_a_circle(count)
    return _within_one(points)


def _within_one(points: Points) -> Points:
    """Return the points scaled to fit between 0 and 1, centred and with their proportions."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max())
    return np.asarray(np.clip(0.5 + (points - (low + high) / 2) / (size or 1.0), 0.0, 1.0))


def _by_edges(edges: Edges, count: int) -> Points:
    """Return points about as far apart as there are edges between them (stress majorisation).

    Each round moves every point to the weighted mean of where its distances to the others would put it.
    """
    graph = coo_array((np.ones(len(edges)), (edges.source, edges.target)), shape=(count, count))
    wanted = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    is_apart = ~np.isfinite(wanted)
    wanted[is_apart] = np.max(wanted, where=~is_apart, initial=1.0) + 1.0  # unconnected parts
    weight = 1.0 / np.maximum(wanted, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    total = np.maximum(weight.sum(axis=1), 1e-12)
    # A dented circle: on a perfect one, symmetric points would stay together.
    points = on_a_circle(count) * (wanted.max() / 2 * (1 + 0.01 * np.sin(3 + np.arange(count)))[:, None])
    for _ in range(_ROUNDS):
        length = np.hypot(*(points[:, None, axis] - points[None, :, axis] for axis in (0, 1)))
        pull = weight * wanted / np.maximum(length, 1e-9)
        np.fill_diagonal(pull, 0.0)
        points = (weight @ points + points * pull.sum(axis=1)[:, None] - pull @ points) / total[:, None]
    return np.asarray(points)
