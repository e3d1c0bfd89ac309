"""Which sensors the functional branch relates beyond the topology: those that no walk of the physical branch connects.

The physical branch hears along up to K_s edges, and against up to K_s of them. Two sensors without such a walk between
them are beyond the topology. The weight of a peer is the sum over relation channels, mean over windows; the weights of
all peers of a sensor sum to one. Weights say what helps to predict; who behaves alike is said by the resemblance of
backgrounds: the cosine of their descriptors, mean over windows, from -1 to 1.
"""

from dataclasses import dataclass

import numpy as np

from candor.core.arrays import Booleans, Doubles, Integers
from candor.core.text import counted, rounded_percent, sensor_label, significant
from candor.data.panel import Panel
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import RelationPicture
from candor.explain.places import sensors_of
from candor.graph import downstream_pairs, great_circle_km
from candor.nets.candor.functional import resemblances

NAME, TITLE = "relations", "Which sensors are related beyond the edges?"
_LONGEST_NAME = 52
_MOST_SENTENCES = 3


@dataclass(frozen=True, eq=False)
class FunctionalWeights:
    """Mean weights between sensors."""

    weight: Doubles  # what the sensor of the row hears from that of the column, sensor x sensor
    is_beyond: Booleans  # where two sensors are not connected within the orders of the physical branch
    resemblance: Doubles  # of the backgrounds of both, sensor x sensor

    @property
    def share_beyond(self) -> float:
        """The share of all weight that is of pairs beyond the topology; 0 if there are no peers at all."""
        return float(self.weight[self.is_beyond].sum() / max(self.weight.sum(), 1e-300))

    @property
    def share_of_pairs(self) -> float:
        """The share of all ordered pairs of sensors that are beyond the topology: what chance would give."""
        count = len(self.weight)
        return float(self.is_beyond.sum()) / max(1, count * (count - 1))

    def beyond(self) -> tuple[Integers, Integers, Doubles]:
        """Return who hears, from whom and how much, of all pairs beyond the topology with a weight, heaviest first."""
        return _largest_first(self.weight, self.is_beyond & (self.weight > 0))

    def alike(self) -> tuple[Integers, Integers, Doubles]:
        """Return the pairs beyond the topology, each once, and their resemblance, most alike first."""
        return _largest_first(self.resemblance, np.triu(self.is_beyond, k=1))


def _largest_first(values: Doubles, chosen: Booleans) -> tuple[Integers, Integers, Doubles]:
    """Return row, column and value of the chosen entries of a matrix, in order of value."""
    row, column = np.nonzero(chosen)
    order = np.argsort(-values[row, column], kind="stable")
    return row[order], column[order], values[row[order], column[order]]


def connected_within(panel: Panel, orders: int) -> Booleans:
    """Return which sensors have a walk of at most so many edges from the one to the other, either way; or are one."""
    count, edges = len(panel.sensors), panel.edges
    begin, end, _ = downstream_pairs(edges.source, edges.target, np.ones(len(edges)), count, limit=float(orders))
    is_connected = np.eye(count, dtype=np.bool_)
    is_connected[begin, end] = True
    return is_connected | is_connected.T


def functional_weights(states: WindowStates, panel: Panel) -> FunctionalWeights:
    """Return the mean weights of peers and which of them are beyond the topology."""
    assert states.functional is not None
    count = len(panel.sensors)
    peers, weights = states.functional.neighbour.numpy(), states.functional.weights.double().numpy()
    total = np.zeros((count, count))
    np.add.at(total, (np.broadcast_to(np.arange(count)[:, None], peers.shape), peers), weights)
    return FunctionalWeights(
        weight=total / len(states.origins),
        is_beyond=~connected_within(panel, states.network.settings.spatial_orders),
        resemblance=resemblances(states.functional.descriptor.double()).mean(dim=0).numpy(),
    )


def find_relations(states: WindowStates, panel: Panel) -> ModelFinding:
    """Return the functional relations beyond the topology."""
    if states.functional is None:
        return ModelFinding(
            NAME, TITLE, ("This network has no functional branch: it relates no sensors beyond the edges.",)
        )
    if not states.functional.neighbour.shape[-1]:
        lacking = "There is a single sensor." if len(panel.sensors) == 1 else "This network has no relation channels."
        return ModelFinding(NAME, TITLE, (f"{lacking} Nothing can be related.",))
    found, orders = functional_weights(states, panel), states.network.settings.spatial_orders
    names = [sensor_label(sensor.id, sensor.name) for sensor in panel.sensors]
    receiver, peer, weight = found.beyond()
    places = np.array([(sensor.latitude, sensor.longitude) for sensor in panel.sensors], np.float64).reshape(-1, 2)
    distance = great_circle_km(*places[receiver].T, *places[peer].T)  # NaN where a place is unknown
    steps = counted(orders, "edge")
    sentences = [
        f"{rounded_percent(found.share_beyond)} of the functional weight joins sensors that no walk of up to {steps} "
        f"connects; {rounded_percent(found.share_of_pairs)} of all pairs are such, so that much would be chance."
    ]
    for hearing, heard, share, far in list(zip(receiver, peer, weight, distance, strict=True))[:_MOST_SENTENCES]:
        away = "" if np.isnan(far) else f", {significant(far, 2)} km away"
        sentences.append(f"{names[hearing]} gets {rounded_percent(float(share))} from {names[heard]}{away}.")
    if not len(weight):
        sentences.append("No sensor gets anything from another one beyond the edges.")
    sentences.append("A functional relation helps to predict; it is no evidence of a path between the two.")
    pairs = [
        f"{names[one]} and {names[other]} ({resemblance:.2f})"
        for one, other, resemblance in list(zip(*found.alike(), strict=True))[:_MOST_SENTENCES]
    ]
    if pairs:
        sentences.append(f"Most alike in their background, of 1 at most: {'; '.join(pairs)}.")
    numbers = {
        "share_beyond": found.share_beyond,
        "share_of_pairs": found.share_of_pairs,
        "spatial_orders": orders,
        "relations_beyond": len(weight),
    }
    picture = RelationPicture(
        **sensors_of(panel, _LONGEST_NAME),
        edges=(panel.edges.source, panel.edges.target),
        receiver=receiver,
        peer=peer,
        weight=weight,
        resemblance=found.resemblance[receiver, peer],
        distance=None if np.isnan(distance).any() else distance,
        note=f"Arrows lead to the sensor that hears; widths are mean weights over {len(states.origins):,} windows. "
        f"No walk of up to {steps} joins the two.",
    )
    return ModelFinding(NAME, TITLE, tuple(sentences), numbers, {NAME: picture})
