"""What one forecast of one sensor took from other sensors: along which edges, from when, and from which peers."""

import numpy as np
from numpy.typing import NDArray

from candor.core.text import rounded_percent, sensor_label
from candor.explain.forecast import Told
from candor.explain.relations import connected_within
from candor.forecasting.explanation import Contribution
from candor.render.explanation_page import PageSection, PageTable
from candor.render.figures.arrivals import ArrivalPicture, Senders, draw_arrivals
from candor.render.figures.peers import PeerPicture, draw_peers

_WAYS = {"forward": "Along the edges", "reverse": "Against the edges"}
_MOST_NAMED = 3
_LONGEST_IN_FIGURE = 44


def tell_arrivals(told: Told) -> PageSection:
    """Returns the section about what arrived along which edge, and from when."""
    title, settings = "What arrived along the edges", told.reading.network.settings
    if not settings.directions:
        return PageSection(title, ["This network has no physical branch: nothing travels along edges."])
    found: dict[str, Senders | None] = {direction: _senders(told, direction) for direction in settings.directions}
    patches = _positions(told)
    sentences = [
        _from_whom(told, direction, senders)
        if senders is not None
        else f"{_WAYS[direction]} nothing arrives: there is no edge that leads here this way."
        for direction, senders in found.items()
    ]
    if found.get("reverse") is not None:
        sentences.append("What comes against the edges is context for the forecast; nothing is carried backwards.")
    arrived = {direction: _named(told, senders) for direction, senders in found.items() if senders is not None}
    if not arrived:
        return PageSection(title, sentences)
    drawing = draw_arrivals(ArrivalPicture(told.name, patches, arrived))
    return PageSection(title, sentences, {"forecast-arrivals": drawing}, _arrival_table(told))


def _senders(told: Told, direction: str) -> Senders | None:
    """Returns the ids of senders, the largest first, and what part of all that arrived is theirs by position."""
    sizes: dict[str, NDArray[np.float64]] = {}
    span = told.reading.network.settings.temporal_span
    for one in told.found.contributions:
        if one.direction == direction:
            sizes.setdefault(one.sensor, np.zeros(span))[one.position] += one.size
    if not sizes:
        return None
    total = float(sum(size.sum() for size in sizes.values())) or 1.0
    order = sorted(sizes, key=lambda sensor: float(sizes[sensor].sum()), reverse=True)
    return Senders(order, np.array([sizes[sensor] for sensor in order]) / total)


def _positions(told: Told) -> list[str]:
    """Returns in words what the positions of a sender's window speak of, the oldest first."""
    spans = {one.position: one.patch for one in told.found.contributions}
    return [told.span(spans[position]) for position in sorted(spans)]


def _from_whom(told: Told, direction: str, senders: Senders) -> str:
    """Returns the sentence about the largest senders; of when it is cannot be told, since positions mix patches."""
    named = [
        f"{rounded_percent(float(shares.sum()))} from {_name(told, sensor)}"
        for sensor, shares in list(zip(senders.names, senders.shares, strict=True))[:_MOST_NAMED]
    ]
    others = len(senders.names) - len(named)
    rest = f"; {others} more sensor{'' if others == 1 else 's'} sent the rest" if others else ""
    return f"{_WAYS[direction]} arrived: {'; '.join(named)}{rest}."


def _named(told: Told, senders: Senders) -> Senders:
    return Senders([_short_name(told, sensor) for sensor in senders.names], senders.shares)


def _arrival_table(told: Told) -> PageTable:
    head = ["from", "way", "position of", "weight", "shared score", "score of this window", "size"]
    rows = [
        [
            _name(told, one.sensor),
            _WAYS[one.direction].lower(),
            told.span(one.patch),
            f"{one.weight:.3f}",
            *_scores(one),
        ]
        for one in told.found.contributions
    ]
    return PageTable("All that arrived", head, rows, words=3)


def _scores(one: Contribution) -> list[str]:
    scores = ("–" if score is None else f"{score:+.3f}" for score in (one.shared_score, one.sample_score))
    return [*scores, f"{one.size:.4f}"]


def tell_peers(told: Told) -> PageSection:
    """Returns the section about the sensors that are listened to wherever they stand."""
    title = "Which sensors it listens to"
    if told.reading.relations is None:
        return PageSection(title, ["This network has no functional branch: it listens to nobody beyond the edges."])
    if not told.found.peers:
        return PageSection(title, ["There are no peers: this network relates no sensors, or there is only this one."])
    weights: dict[str, float] = {}
    alike = {peer.sensor: peer.resemblance for peer in told.found.peers}
    for peer in told.found.peers:
        weights[peer.sensor] = weights.get(peer.sensor, 0.0) + peer.weight
    order = sorted(weights, key=weights.__getitem__, reverse=True)
    orders, ids = told.reading.network.settings.spatial_orders, told.panel.sensor_ids
    joined = connected_within(told.panel, orders)[told.column]
    is_beyond = [not joined[ids.index(sensor)] for sensor in order]
    beyond = sum(weights[sensor] for sensor, is_far in zip(order, is_beyond, strict=True) if is_far)
    named = "; ".join(f"{rounded_percent(weights[sensor])} to {_name(told, sensor)}" for sensor in order[:_MOST_NAMED])
    steps = f"{orders} edge{'' if orders == 1 else 's'}"
    most = max(alike, key=alike.__getitem__)
    sentences = [
        f"It listens to {len(order)} sensor{'' if len(order) == 1 else 's'}, by weight {named}.",
        f"Of them, the background of {_name(told, most)} resembles its own most: {alike[most]:.2f}, of 1 at most.",
        f"{rounded_percent(beyond)} goes to sensors that no walk of up to {steps} joins to it.",
    ]
    picture = PeerPicture(
        sensor=told.name,
        names=[_short_name(told, sensor) for sensor in order],
        weights=np.array([weights[sensor] for sensor in order]),
        resemblance=np.array([alike[sensor] for sensor in order]),
        is_beyond=is_beyond,
        orders=orders,
    )
    return PageSection(title, sentences, {"forecast-peers": draw_peers(picture)})


def _name(told: Told, sensor: str) -> str:
    name = told.panel.sensors[told.panel.sensor_ids.index(sensor)].name
    return f"{name} ({sensor})" if name else f"sensor {sensor}"


def _short_name(told: Told, sensor: str) -> str:
    return sensor_label(sensor, told.panel.sensors[told.panel.sensor_ids.index(sensor)].name, _LONGEST_IN_FIGURE)
