"""The weighted graph of a panel: given weights, or a Gaussian of the distances, or all edges alike."""

import numpy as np
from scipy.sparse import csr_array

from candor.data.panel import Panel
from candor.graph import adjacency, gaussian_weights


def adjacency_of(panel: Panel, sigma: float | None = None, threshold: float | None = None) -> csr_array:
    """Returns J, sensor x sensor, where J[i, j] > 0 is the weight of the edge from i to j.

    Args:
        panel: the sensors and their edges; none is legal.
        sigma: width of the Gaussian of distances, in their unit; None takes their standard deviation.
        threshold: edges lighter than this are left out; None keeps all.
    """
    edges = panel.edges
    source, target = edges.source, edges.target
    if edges.weight is not None:
        weight = edges.weight
        kept = np.ones(len(edges), bool) if threshold is None else weight >= threshold
        weight = weight[kept]
    elif edges.distance is not None:
        weight, kept = gaussian_weights(edges.distance, sigma, threshold)
    else:
        weight, kept = np.ones(len(edges), np.float32), np.ones(len(edges), bool)
    return adjacency(source[kept], target[kept], weight, len(panel.sensors))
