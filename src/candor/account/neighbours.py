"""Which sensors a sensor's account reads besides itself: along edges and against them, each so many steps back."""

from dataclasses import dataclass

import numpy as np

from candor.account.delays import Delays
from candor.account.regression import Columns
from candor.core.arrays import Booleans, Integers
from candor.data.panel import Edges

_LAGS_BEYOND_DELAY = 2  # a deviation that spreads out on its way arrives a little before and after
_LAGS_AGAINST = 3  # what travels against an edge, such as congestion, is read this far back
_MOST_SENDERS = 16  # of one sensor in each direction; those whose deviations arrive most strongly


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of sensors of which the first is read for the second, sorted by the second.

    Args:
        sender: of each link.
        receiver: of each link, ascending.
        is_reverse: whether the link runs against the edge that it stands for.
        lags: how many of the newest lags of the sender are read.
    """

    sender: Integers
    receiver: Integers
    is_reverse: Booleans
    lags: Integers

    def __len__(self) -> int:
        return len(self.sender)

    def columns_of(self, sensor: int, history: int) -> Columns:
        """Return what the regression of one sensor reads: its own history, and the lags of its links."""
        mine = slice(*np.searchsorted(self.receiver, [sensor, sensor + 1]))
        series = np.concatenate([np.full(history, sensor), np.repeat(self.sender[mine], self.lags[mine])])
        lag = np.concatenate([np.arange(history), *(np.arange(count) for count in self.lags[mine])])
        return Columns(series, lag, np.arange(len(series)) < history)


def links_of(edges: Edges, delays: Delays, history: int) -> Links:
    """Return the links along all edges, with as many lags as deviations need on the way, and against them.

    Each pair of sensors once, loops left out, and at most so many of each direction for a receiver: the strongest.
    """
    source, target = edges.source.astype(np.int64), edges.target.astype(np.int64)
    sender, receiver = np.concatenate([source, target]), np.concatenate([target, source])
    is_reverse = np.arange(len(sender)) >= len(source)
    strength = np.tile(delays.strength, 2)
    lags = np.where(is_reverse, _LAGS_AGAINST, np.tile(delays.steps, 2) + 1 + _LAGS_BEYOND_DELAY)
    place = np.flatnonzero(sender != receiver)
    place = place[np.lexsort((is_reverse[place], sender[place], receiver[place]))]
    pairs = np.stack([receiver[place], sender[place]])
    place = place[np.append(True, (np.diff(pairs) != 0).any(axis=0))[: len(place)]]  # an edge before its own reverse
    order = place[np.lexsort((-strength[place], is_reverse[place], receiver[place]))]
    group = receiver[order] * 2 + is_reverse[order]
    rank = np.arange(len(order)) - np.searchsorted(group, group)
    kept = np.sort(np.flatnonzero(rank < _MOST_SENDERS))
    chosen = order[kept]
    return Links(sender[chosen], receiver[chosen], is_reverse[chosen], np.minimum(lags[chosen], history))


def no_links() -> Links:
    """Return the links of a network whose sensors are read alone."""
    nothing = np.empty(0, np.int64)
    return Links(nothing, nothing, nothing.astype(bool), nothing)
