"""The account as a whole: parts with a unit that sum to the forecast.

    forecast = usual + own + arrivals + rest

own       what the sensor's own deviations say of its next steps, the last one included
arrivals  what deviations of neighbours say beyond that, a part for each link
rest      what is left over on average

Every part is linear in the deviations of the window, so that whatever these are made of, such as storage and shock, has
its own share of each part.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.account.delays import Delays
from candor.account.deviations import Deviations
from candor.account.flow import Flow
from candor.account.neighbours import Links
from candor.account.storage import Laws
from candor.account.usual import Usual, Values
from candor.core.arrays import Integers

State = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of forecasts in the sensors' units, window x step x sensor; but arrivals link x window x step."""

    usual: Values
    own: Values
    arrivals: Values
    rest: Values
    receiver: Integers

    def total_arrivals(self) -> Values:
        """Return what arrives along all links together: window x step x sensor."""
        total = np.zeros_like(self.own)
        if len(self.receiver):
            firsts = np.flatnonzero(np.diff(self.receiver, prepend=-1))
            total[:, :, self.receiver[firsts]] = np.moveaxis(np.add.reduceat(self.arrivals, firsts, axis=0), 0, -1)
        return total

    def forecast(self) -> Values:
        """Return the sum of all parts."""
        return self.usual + self.own + self.total_arrivals() + self.rest


@dataclass(frozen=True, eq=False)
class Account:
    """A fitted account.

    Args:
        deviations: the way from readings to deviations.
        own: weights of own lags beside the last one, sensor x lag x step, lag 0 the newest.
        links: which neighbours are read.
        kernels: their weights, link x lag x step, zero beyond the lags of a link.
        constant: sensor x step.
        keeps_last: whether forecasts begin with the last deviation; they do unless they are the usual alone.
        flow: how deviations travel along the edges of the panel and fade, for explanations.
    """

    deviations: Deviations
    own: Values
    links: Links
    kernels: Values
    constant: Values
    keeps_last: bool
    flow: Flow

    @property
    def history(self) -> int:
        """Rows that are read before each forecast."""
        return int(self.own.shape[1])

    def parts(self, seen: Values, ahead: Values) -> Parts:
        """Return the parts of forecasts.

        Args:
            seen: filled deviations of the history, window x row x sensor, oldest first.
            ahead: what is usual at the steps that are forecast, in the sensors' units, window x step x sensor.
        """
        newest_first = seen[:, ::-1]
        own = np.moveaxis(np.moveaxis(newest_first, 2, 0) @ self.own, 0, 2)
        if self.keeps_last:
            own = own + newest_first[:, :1]
        lags = self.kernels.shape[1]
        arrived = np.moveaxis(newest_first[:, :lags, self.links.sender], 2, 0) @ self.kernels
        spread = self.deviations.spread
        rest = np.broadcast_to(self.constant.T * spread, ahead.shape)
        return Parts(ahead, own * spread, arrived * spread[self.links.receiver, None, None], rest, self.links.receiver)

    def to_state(self) -> State:
        """Return all that was learned as named arrays."""
        links, usual = self.links, self.deviations.usual
        return {
            "usual/profile": usual.profile, "usual/year": usual.year, "spread": self.deviations.spread,
            "own": self.own, "kernels": self.kernels, "constant": self.constant,
            "keeps_last": np.array([self.keeps_last]),
            "links/sender": links.sender, "links/receiver": links.receiver, "links/is_reverse": links.is_reverse,
            "links/lags": links.lags, **_flow_state(self.flow),
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: State) -> "Account":
        """Return the account that `to_state` wrote down."""
        links = Links(*(state[f"links/{name}"] for name in ("sender", "receiver", "is_reverse", "lags")))
        deviations = Deviations(Usual(state["usual/profile"], state["usual/year"]), state["spread"])
        keeps_last = bool(state["keeps_last"][0])
        flow = _flow_in(state)
        return cls(deviations, state["own"], links, state["kernels"], state["constant"], keeps_last, flow)


def _flow_state(flow: Flow) -> State:
    """Return how deviations travel as named arrays."""
    parts = {"delays": flow.delays, "whole": flow.whole, "held": flow.own}
    found = {f"flow/{name}/{key}": array for name, part in parts.items() for key, array in vars(part).items()}
    return found | {f"flow/{name}": getattr(flow, name) for name in ("source", "target", "shares")}


def _flow_in(state: State) -> Flow:
    """Return what `_flow_state` wrote down."""

    def named(prefix: str) -> State:
        return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}

    return Flow(
        source=state["flow/source"], target=state["flow/target"], delays=Delays(**named("flow/delays/")),
        shares=state["flow/shares"], whole=Laws(**named("flow/whole/")), own=Laws(**named("flow/held/")),
    )  # fmt: skip
