"""Whether the four components lie apart from one another: their states in two dimensions, and a score of separation.

The score is the silhouette: of one state, with a the mean distance to the others of its own component and b that to the
nearest other component, (b - a) / max(a, b). It runs from 1 (far apart) over 0 (touching) to -1 (among the others).
"""

from collections.abc import Mapping

import numpy as np
from scipy.spatial.distance import cdist

from candor.core.arrays import Doubles, Integers
from candor.core.text import rounded_percent
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import EmbeddingPicture
from candor.nets.candor.decomposition import COMPONENT_NAMES

NAME, TITLE = "embedding", "Are the four components different things?"
MOST_STATES = 400
"""States of each component that are looked at, drawn at random from all windows, sensors and patches."""
_SCALE = "1 far apart, 0 touching, -1 mixed"


def principal_plane(points: Doubles) -> tuple[Doubles, tuple[float, float]]:
    """Return points (point x feature, at least two features) on their two principal axes, and the variance on these.

    Variances are shares of that of all points. Axes point to where their largest entry is positive, so that the same
    points always give the same picture.
    """
    centred = points - points.mean(axis=0)
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    axes, lengths = axes[:2], np.concatenate([lengths, [0.0, 0.0]])
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    coordinates = np.zeros((len(points), 2))
    coordinates[:, : len(axes)] = centred @ (signs[:, None] * axes).T
    first, second = (lengths[:2] ** 2 / max((lengths**2).sum(), 1e-300)).tolist()
    return coordinates, (first, second)


def silhouettes(points: Doubles, labels: Integers) -> Doubles:
    """Return the silhouette of every point (point x feature); 0 for the only point of its label, of at least two."""
    kinds, places = np.unique(labels, return_inverse=True)
    if len(kinds) < 2:
        raise ValueError("separation needs points of at least two labels")
    is_kind = labels[:, None] == kinds  # point kind
    counts = is_kind.sum(axis=0)
    means = (cdist(points, points) @ is_kind) / np.where(is_kind, np.maximum(counts - 1, 1), counts)  # not to itself
    own, nearest = means[is_kind], np.where(is_kind, np.inf, means).min(axis=1)
    return np.where(counts[places] == 1, 0.0, (nearest - own) / np.maximum(np.maximum(own, nearest), 1e-300))


def sample_states(states: WindowStates) -> dict[str, Doubles]:
    """Return states of each component by name, state x hidden, at the same windows, sensors and patches for all."""
    rows = states.embedded[..., 0].numel()
    chosen = np.sort(np.random.default_rng(0).permutation(rows)[:MOST_STATES])
    return {name: getattr(states.components, name).flatten(0, -2)[chosen].double().numpy() for name in COMPONENT_NAMES}


def separation(states: Mapping[str, Doubles]) -> dict[str, float]:
    """Return the mean silhouette of each component's states, and under `all` that of all of them."""
    labels = np.repeat(np.arange(len(states)), [len(part) for part in states.values()])
    found = silhouettes(np.concatenate(list(states.values())), labels)
    means = {name: float(found[labels == place].mean()) for place, name in enumerate(states)}
    return means | {"all": float(found.mean())}


def find_embedding(before: WindowStates, after: WindowStates) -> ModelFinding:
    """Return how far apart the components are, before training and after it."""
    if after.components is None:
        return ModelFinding(NAME, TITLE, ("This network does not split the past into components.",))
    states = sample_states(after)
    coordinates, shares = principal_plane(np.concatenate(list(states.values())))
    first, last = separation(sample_states(before)), separation(states)
    points = dict(zip(states, np.split(coordinates, len(states)), strict=True))
    count = len(coordinates) // len(states)
    least = min(COMPONENT_NAMES, key=last.__getitem__)
    sentences = (
        f"The separation of the four components (silhouette: {_SCALE}) is {last['all']:.2f}; before training it was "
        f"{first['all']:.2f}. The least apart is {least} with {last[least]:.2f}.",
        f"The two axes of the picture hold {rounded_percent(sum(shares))} of the variance; the separation counts "
        f"{count:,} states of each component at full width.",
    )
    numbers = {"before": first, "after": last, "variance_shares": list(shares), "states_of_each": count}
    note = f"{count:,} states of each component, drawn at random. Separation at full width: {_SCALE}."
    return ModelFinding(NAME, TITLE, sentences, numbers, {NAME: EmbeddingPicture(points, shares, first, last, note)})
