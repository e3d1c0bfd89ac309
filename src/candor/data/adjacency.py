"""The weighted graph of a panel: given weights, or a Gaussian of the distances, or all edges alike."""

import numpy as np
from scipy.sparse import csr_array

from candor.data.panel import Panel
from candor.graph import adjacency, gaussian_weights


def adjacency_of(panel: Panel) -> csr_array:
    """Returns J, sensor x sensor, where J[i, j] > 0 is the weight of the edge from i to j; no edges are legal."""
    edges = panel.edges
    weight = edges.weight
    if weight is None and edges.distance is not None:
        weight, _ = gaussian_weights(edges.distance)
    if weight is None:
        weight = np.ones(len(edges), np.float32)
    return adjacency(edges.source, edges.target, weight, len(panel.sensors))
