"""Networks as plain arrays: lengths and weights of edges, nearest neighbours, reachability, and propagation supports.

An edge leads FROM the sensor at position `source` TO the sensor at position `target`; in an adjacency J that edge is
the entry J[source, target] > 0. Nothing here knows panels or files.
"""

from candor.graph.nearest import nearest_neighbours
from candor.graph.reachability import components, downstream_pairs, isolated
from candor.graph.weights import adjacency, directional_supports, gaussian_weights, great_circle_km, row_normalised

__all__ = [
    "adjacency",
    "components",
    "directional_supports",
    "downstream_pairs",
    "gaussian_weights",
    "great_circle_km",
    "isolated",
    "nearest_neighbours",
    "row_normalised",
]
