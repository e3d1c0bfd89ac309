"""The operator of the physical branch edge by edge: what the map says, what all windows share, what a window adds.

The weight of an edge at a position of the window is a softmax over all that a sensor hears from: of the logarithm of
the support (the edges that were given), plus a score that all windows share and that depends on the position, plus a
score of the window at hand. Leaving scores out one after the other gives what each of them changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from candor.core.arrays import Booleans, Doubles, Integers
from candor.core.progress import Report, silent
from candor.core.text import rounded_percent
from candor.data.panel import Panel
from candor.data.protocol import Origins
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import AnyPicture, EdgePicture, OperatorPicture, OperatorWeights, WeightedEdges
from candor.explain.places import sensors_of
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states
from candor.forecasting.inference import infer
from candor.nets.candor.physical_operator import DirectionalSupport
from candor.nets.candor.trainable import CandorTrainable

NAME, TITLE = "operator", "How do sensors hear from one another along the edges?"
_LONGEST_IN_KEY = 52
_DIRECTIONS = {"forward": "along the edges", "reverse": "against the edges"}


@dataclass(frozen=True, eq=False)
class OperatorParts:
    """Weights of one direction, each position x edge if not said otherwise."""

    sender: Integers  # by edge
    receiver: Integers  # by edge
    support: Doubles  # by the given edges alone
    with_shared: Doubles  # by those and the shared scores
    whole: Doubles  # by all scores, window x position x edge
    shared_scores: Doubles | None  # without their mean over the edges into one sensor; None if nothing is learned
    sample_scores: Doubles | None  # the same by window, window x edge

    @property
    def has_choice(self) -> Booleans:
        """Which edges share their receiver with another one; a single edge always weighs 1."""
        several: Booleans = np.bincount(self.receiver, minlength=1)[self.receiver] > 1
        return several

    def moved(self) -> dict[str, float]:
        """Return shares of what a sensor hears that scores move from some senders to others, 0 to 1.

        They are means over positions and sensors with a choice, and over windows: `by_shared` scores from the weights
        of the given edges, `by_window` from those, `between_windows` from the mean over windows to a single one.
        """
        receivers = max(1, len(np.unique(self.receiver[self.has_choice])))

        def share(one: Doubles, other: Doubles) -> float:
            moved = np.abs(one - other)[..., self.has_choice].sum(axis=-1) / 2  # what one edge gains another loses
            return float(moved.mean() / receivers)

        return {
            "by_shared": share(self.with_shared, self.support),
            "by_window": share(self.whole, self.with_shared),
            "between_windows": share(self.whole, self.whole.mean(axis=0)),
        }


def operator_parts(states: WindowStates, direction: str) -> OperatorParts:
    """Return the parts of the operator of one direction."""
    support, path = states.physical.support(direction), states.paths[direction]
    log_support = support.log_support.double().expand(support.positions, -1)
    shared, sample = path.shared_scores, path.sample_scores
    with_shared = log_support if shared is None else log_support + shared.double()
    return OperatorParts(
        sender=support.sender.numpy(),
        receiver=support.receiver.numpy(),
        support=support.normalise(log_support[None])[0].numpy(),
        with_shared=support.normalise(with_shared[None])[0].numpy(),
        whole=path.weights.double().numpy(),
        shared_scores=None if shared is None else _centred(shared, support),
        sample_scores=None if sample is None else _centred(sample, support),
    )


def _centred(scores: Tensor, support: DirectionalSupport) -> Doubles:
    """Return scores, ... x edge, without their mean over the edges into each sensor: softmax does not see it."""
    scores, receiver = scores.double(), support.receiver.expand_as(scores)
    nodes = scores.new_zeros(*scores.shape[:-1], support.nodes)
    means = nodes.scatter_reduce(-1, receiver, scores, "mean", include_self=False)
    centred: Doubles = (scores - means.gather(-1, receiver)).numpy()
    return centred


def find_operator(states: WindowStates, panel: Panel) -> ModelFinding:
    """Return what the operator learned about edges."""
    if not states.paths:
        return ModelFinding(NAME, TITLE, ("This network has no physical branch: it does not use the edges.",))
    parts = {direction: operator_parts(states, direction) for direction in states.paths}
    if not any(len(part.sender) for part in parts.values()):
        return ModelFinding(NAME, TITLE, ("There are no edges, so there is no operator on them.",))
    is_learned = all(part.shared_scores is not None for part in parts.values())
    sentences: list[str] = []
    numbers: dict[str, dict[str, float]] = {}
    for direction, part in parts.items():
        choices = int(part.has_choice.sum())
        numbers[direction] = {"edges": len(part.sender), "edges_with_a_choice": choices}
        if not choices:
            sentences.append(f"{_DIRECTIONS[direction].capitalize()} every sensor hears from one at most.")
        elif is_learned:
            moved = part.moved()
            numbers[direction] |= moved
            shares = {name: rounded_percent(share) for name, share in moved.items()}
            sentences.append(
                f"{_DIRECTIONS[direction].capitalize()}, the scores that all windows share move {shares['by_shared']} "
                f"of what a sensor hears to other senders than the given edges say; the scores of a window move "
                f"{shares['by_window']} more, and from window to window {shares['between_windows']} changes."
            )
    if not is_learned:
        sentences.append(
            "This network takes the weights of the given edges as they are: nothing about them is learned."
        )
    windows = len(states.origins)
    weights = {direction: _weights(part) for direction, part in parts.items() if len(part.sender)}
    means = {
        direction: WeightedEdges(part.sender, part.receiver, part.whole.mean(axis=(0, 1)))
        for direction, part in parts.items()
    }
    pictures: dict[str, AnyPicture] = {
        NAME: OperatorPicture(panel.sensor_ids, weights, windows),
        "edges": picture_edges(means, panel, windows),
    }
    return ModelFinding(NAME, TITLE, tuple(sentences), numbers, pictures)


def _weights(part: OperatorParts) -> OperatorWeights:
    low, high = np.quantile(part.whole, (0.1, 0.9), axis=0)
    sample = part.sample_scores
    return OperatorWeights(
        sender=part.sender,
        receiver=part.receiver,
        has_choice=part.has_choice,
        support=part.support,
        with_shared=part.with_shared,
        mean=part.whole.mean(axis=0),
        low=low,
        high=high,
        shared_scores=part.shared_scores,
        sample_mean=None if sample is None else sample.mean(axis=0),
        sample_deviation=None if sample is None else sample.std(axis=0),
    )


def mean_edge_weights(
    candor: Candor, panel: Panel, origins: Origins, report: Report = silent
) -> dict[str, WeightedEdges]:
    """Return the weights of edges by direction, means over the windows at `origins` and over positions."""
    trainable = candor.trained()
    physical = trainable.network.physical
    if physical is None:
        return {}

    def weights_of(replica: CandorTrainable, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        states, _ = network_states(replica, batch)
        return {direction: path.weights.mean(dim=1).sum(dim=0) for direction, path in states.paths.items()}

    found = list(infer(trainable, candor.windows(panel, origins), weights_of, report, "reading weights of edges"))
    means: dict[str, WeightedEdges] = {}
    for direction in trainable.network.settings.directions:
        support = physical.support(direction)
        total = torch.stack([batch[direction] for batch in found]).sum(dim=0)
        means[direction] = WeightedEdges(
            support.sender.numpy(), support.receiver.numpy(), (total / len(origins)).numpy()
        )
    return means


def picture_edges(edges: Mapping[str, WeightedEdges], panel: Panel, windows: int) -> EdgePicture:
    """Return mean weights of edges over so many windows, on the map of the panel where places are known."""
    return EdgePicture(
        **sensors_of(panel, _LONGEST_IN_KEY),
        edges=edges,
        note=f"Width: share among all a sensor hears from, mean over {windows:,} windows.",
    )
