"""Which sensors the functional branch relates beyond the topology: those that no walk of the physical branch connects.

The physical branch hears along up to K_s edges, and against up to K_s of them. Two sensors without such a walk between
them are beyond the topology. The weight of a peer is the sum over relation channels, mean over windows; the weights of
all peers of a sensor sum to one. Weights say what helps to predict; who behaves alike is said by the resemblance of
backgrounds: the cosine of their descriptors, mean over windows, from -1 to 1.
"""

from dataclasses import dataclass

import numpy as np

from candor.core.arrays import Booleans, Doubles, Integers
from candor.core.text import rounded_percent, sensor_label, significant
from candor.data.panel import Panel
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import Finding
from candor.explain.pictures import RelationPicture
from candor.explain.places import known_places
from candor.graph import downstream_pairs, great_circle_km
from candor.nets.candor.functional import resemblances

NAME, TITLE = "relations", "Which sensors are related beyond the edges?"
_LONGEST_NAME = 52
_MOST_SENTENCES = 3


@dataclass(frozen=True, eq=False)
class FunctionalWeights:
    """Mean weights between sensors.

    Args:
        weight: what the sensor of the row hears from that of the column, sensor x sensor.
        is_beyond: where two sensors are not connected within the orders of the physical branch.
        share_beyond: of all weight, that of pairs beyond the topology; 0 if there are no peers at all.
        share_of_pairs: of all ordered pairs of sensors, those beyond: what chance would give.
        resemblance: of the backgrounds of both, sensor x sensor.
    """

    weight: Doubles
    is_beyond: Booleans
    share_beyond: float
    share_of_pairs: float
    resemblance: Doubles

    def beyond(self) -> tuple[Integers, Integers, Doubles]:
        """Returns who hears, from whom and how much, of all pairs beyond the topology with a weight, heaviest first."""
        receiver, peer = np.nonzero(self.is_beyond & (self.weight > 0))
        weight = self.weight[receiver, peer]
        order = np.argsort(-weight, kind="stable")
        return receiver[order], peer[order], weight[order]

    def alike(self) -> tuple[Integers, Integers, Doubles]:
        """Returns the pairs beyond the topology, each once, and their resemblance, most alike first."""
        one, other = np.nonzero(np.triu(self.is_beyond, k=1))
        resemblance = self.resemblance[one, other]
        order = np.argsort(-resemblance, kind="stable")
        return one[order], other[order], resemblance[order]


def connected_within(panel: Panel, orders: int) -> Booleans:
    """Returns which sensors have a walk of at most so many edges from the one to the other, either way; or are one."""
    count, edges = len(panel.sensors), panel.edges
    begin, end, _ = downstream_pairs(edges.source, edges.target, np.ones(len(edges)), count, limit=float(orders))
    is_connected = np.eye(count, dtype=np.bool_)
    is_connected[begin, end] = True
    return is_connected | is_connected.T


def functional_weights(states: WindowStates, panel: Panel) -> FunctionalWeights:
    """Returns the mean weights of peers and which of them are beyond the topology."""
    assert states.functional is not None
    count = len(panel.sensors)
    peers, weights = states.functional.neighbour.numpy(), states.functional.weights.double().numpy()
    total = np.zeros((count, count))
    receivers = np.broadcast_to(np.arange(count)[:, None], peers.shape)
    np.add.at(total, (receivers, peers), weights)
    is_beyond = ~connected_within(panel, states.network.settings.spatial_orders)
    whole = float(total.sum())
    return FunctionalWeights(
        weight=total / len(states.origins),
        is_beyond=is_beyond,
        share_beyond=float(total[is_beyond].sum()) / whole if whole else 0.0,
        share_of_pairs=float(is_beyond.sum()) / max(1, count * (count - 1)),
        resemblance=resemblances(states.functional.descriptor.double()).mean(dim=0).numpy(),
    )


def find_relations(states: WindowStates, panel: Panel) -> Finding:
    """Returns the functional relations beyond the topology."""
    if states.functional is None:
        return Finding(NAME, TITLE, ("This network has no functional branch: it relates no sensors beyond the edges.",))
    if not states.functional.neighbour.shape[-1]:
        lacking = "There is a single sensor." if len(panel.sensors) == 1 else "This network has no relation channels."
        return Finding(NAME, TITLE, (f"{lacking} Nothing can be related.",))
    found, orders = functional_weights(states, panel), states.network.settings.spatial_orders
    receiver, peer, weight = found.beyond()
    steps = f"{orders} edge{'' if orders == 1 else 's'}"
    sentences = [
        f"{rounded_percent(found.share_beyond)} of the functional weight joins sensors that no walk of up to {steps} "
        f"connects; {rounded_percent(found.share_of_pairs)} of all pairs are such, so that much would be chance."
    ]
    distance = _distances(panel, receiver, peer)
    for place in range(min(_MOST_SENTENCES, len(weight))):
        far = "" if np.isnan(distance[place]) else f", {significant(distance[place], 2)} km away"
        sentences.append(
            f"{_name(panel, int(receiver[place]))} gets {rounded_percent(float(weight[place]))} from "
            f"{_name(panel, int(peer[place]))}{far}."
        )
    if not len(weight):
        sentences.append("No sensor gets anything from another one beyond the edges.")
    sentences.append("A functional relation helps to predict; it is no evidence of a path between the two.")
    sentences += _alike_in_words(panel, found)
    shares = {"share_beyond": found.share_beyond, "share_of_pairs": found.share_of_pairs}
    numbers = shares | {"spatial_orders": orders, "relations_beyond": len(weight)}
    note = (
        f"Arrows lead to the sensor that hears; widths are mean weights over {len(states.origins):,} windows. "
        f"No walk of up to {steps} joins the two."
    )
    return Finding(NAME, TITLE, tuple(sentences), numbers, {NAME: _picture(panel, found, distance, note)})


def _alike_in_words(panel: Panel, found: FunctionalWeights) -> list[str]:
    one, other, resemblance = found.alike()
    pairs = [
        f"{_name(panel, int(one[place]))} and {_name(panel, int(other[place]))} ({resemblance[place]:.2f})"
        for place in range(min(_MOST_SENTENCES, len(one)))
    ]
    return [f"Most alike in their background, of 1 at most: {'; '.join(pairs)}."] if pairs else []


def _picture(panel: Panel, found: FunctionalWeights, distance: Doubles, note: str) -> RelationPicture:
    receiver, peer, weight = found.beyond()
    return RelationPicture(
        sensors=panel.sensor_ids,
        names=[sensor_label(sensor.id, sensor.name, _LONGEST_NAME) for sensor in panel.sensors],
        places=known_places(panel),
        edges=(panel.edges.source, panel.edges.target),
        receiver=receiver,
        peer=peer,
        weight=weight,
        resemblance=found.resemblance[receiver, peer],
        distance=None if np.isnan(distance).any() else distance,
        note=note,
    )


def _distances(panel: Panel, one: Integers, other: Integers) -> Doubles:
    """Returns straight distances in km, NaN where a place is unknown."""
    places = np.array([(sensor.latitude, sensor.longitude) for sensor in panel.sensors], np.float64).reshape(-1, 2)
    return great_circle_km(*places[one].T, *places[other].T)


def _name(panel: Panel, column: int) -> str:
    return sensor_label(panel.sensors[column].id, panel.sensors[column].name)
