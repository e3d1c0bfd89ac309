"""Pairs of distant sensors that will behave alike although nothing flows between them."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from candor.core.errors import InputError
from candor.data.synthetic.network import Network
from candor.data.synthetic.recipe import Recipe

_SENSORS_PER_PAIR = 8
_MOST_PAIRS = 64


def choose_twins(network: Network, recipe: Recipe) -> tuple[tuple[int, int], ...]:
    """Returns pairs of sensor positions, no sensor in two pairs, without a path either way.

    The second of a pair is one of the farther half of the sensors that the first could have. A
    network too small for the default number has fewer pairs, or none; a number that was asked for
    and does not fit is refused.
    """
    generator = recipe.stream("twins")
    count = len(network.sensors)
    wanted = recipe.twin_pairs
    most = min(max(1, count // _SENSORS_PER_PAIR), _MOST_PAIRS) if wanted is None else wanted
    downstream = csr_array(
        (np.ones(len(network.edges)), (network.edges.source, network.edges.target)),
        shape=(count, count),
    )
    upstream = downstream.T.tocsr()
    is_free = np.ones(count, bool)
    pairs: list[tuple[int, int]] = []
    for first in generator.permutation(count).tolist():
        if len(pairs) == most:
            break
        if not is_free[first]:
            continue
        can_be = is_free.copy()
        for graph in (downstream, upstream):
            can_be[breadth_first_order(graph, first, return_predecessors=False)] = False
        if not can_be.any():
            continue
        second = int(generator.choice(_farther_half(np.flatnonzero(can_be), first, network)))
        is_free[[first, second]] = False
        pairs.append((first, second))
    if wanted is not None and len(pairs) < wanted:
        raise InputError(
            f"there is room for {len(pairs)} pairs of twins, not for {wanted}",
            where="synthetic network",
            hint="ask for more sensors, or for fewer twin_pairs",
        )
    return tuple(pairs)


def _farther_half(candidates: NDArray[np.intp], sensor: int, network: Network) -> NDArray[np.intp]:
    away = np.linalg.norm(network.places[candidates] - network.places[sensor], axis=1)
    farther: NDArray[np.intp] = candidates[away >= np.median(away)]
    return farther
