"""The links of a water network and what flows in them: who carries water always, where to, and how long it takes.

A parcel that enters a link at time t leaves it when as much water as the link holds has followed:

    V(exit) - V(t) = volume,    V(t) = water that has entered until t
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Booleans, Doubles

_LEAST_FLOW = 1e-6  # m3/s; a tap that drips
_TRICKLE = 1e-9  # m3/s; keeps the order of the parcels where nothing flows
_ALWAYS = 0.99  # share of the moments at which a node must get water, to be called wet
_ONE_WAY = 0.95  # share of the water that must go the same way, for a link to keep its direction


@dataclass(frozen=True, eq=False, kw_only=True)
class Pipework:
    """Nodes, links and flows; a link's flow is positive from its start to its end."""

    nodes: tuple[str, ...]
    is_junction: Booleans  # by node; the others are tanks and reservoirs
    places: Doubles  # node x 2, in the units of the file
    start: NDArray[np.int64]  # by link, position of a node
    end: NDArray[np.int64]
    length: Doubles  # by link, m; zero for pumps and valves
    volume: Doubles  # by link, m3
    flow: Doubles  # moment x link, m3/s
    supply: Doubles  # moment x node, m3/s: what junctions get from outside the network
    seconds: int  # between two moments

    @cached_property
    def direction(self) -> NDArray[np.int64]:
        """By link: 1 or -1 where the water goes forward or backward, 0 where it stands or goes both ways."""
        net, moved = self.flow.sum(axis=0), np.abs(self.flow).sum(axis=0)
        keeps = (np.abs(net) >= _ONE_WAY * moved) & (moved > _LEAST_FLOW * len(self.flow))
        return np.where(keeps, np.sign(net), 0).astype(np.int64)

    @cached_property
    def inflow(self) -> Doubles:
        """What flows into each node, from links and from outside, moment x node, m3/s."""
        flow = self.supply.copy()
        for link in range(len(self.start)):
            flow[:, self.end[link]] += np.maximum(self.flow[:, link], 0)
            flow[:, self.start[link]] += np.maximum(-self.flow[:, link], 0)
        return flow

    @cached_property
    def sender(self) -> NDArray[np.int64]:
        """By link, the node that water comes from where its direction is kept."""
        return np.where(self.direction >= 0, self.start, self.end)

    @cached_property
    def receiver(self) -> NDArray[np.int64]:
        """By link, the node that water goes to where its direction is kept."""
        return np.where(self.direction >= 0, self.end, self.start)

    @cached_property
    def share(self) -> Doubles:
        """By link, which part of what flows into its receiver comes along it; zero where the direction is not kept."""
        arriving = np.maximum(self.flow * self.direction, 0).sum(axis=0)
        received = self.inflow.sum(axis=0)[self.receiver]
        return np.where(self.direction != 0, arriving / np.where(received > 0, received, 1.0), 0.0)

    def always_wet(self) -> Booleans:
        """Return which nodes water always flows into."""
        wet: Booleans = (self.inflow > _LEAST_FLOW).mean(axis=0) >= _ALWAYS
        return wet

    def travel_times(self, links: tuple[int, ...]) -> Doubles:
        """Return how many steps the water that enters a chain of links half a step before each moment needs.

        NaN where the record ends before.
        """
        moments = np.arange(len(self.flow) + 1, dtype=np.float64)
        times = moments[:-1]
        for link in links:
            # The flow of a moment lasts from half a step before it; while it goes the wrong way, water waits.
            forward = np.maximum(self.flow[:, link] * self.direction[link], _TRICKLE)
            passed = np.concatenate([[0.0], np.cumsum(forward)])
            entered = np.interp(times, moments, passed, right=np.nan)
            times = np.interp(entered + self.volume[link] / self.seconds, passed, moments, right=np.nan)
        travelled: Doubles = times - moments[:-1]
        return travelled
