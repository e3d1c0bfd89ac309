"""What each sensor's deviation is made of: what arrives along edges, storage, shock, and a rest.

    deviation = sum over incoming edges of share x (what the sender holds, `delay` steps ago) + storage + shock + rest

Delays are found first (`delays.py`). What a sender holds is its smoothed storage and shock, whoever sent it, so that a
deviation travels on from sensor to sensor. The shares are a robust regression of the receiver on its senders, not below
zero, both whitened by the autoregression of what the receiver has of its own; jumps of its own count little. What the
arrivals leave is split into storage and shock (`storage.py`), and what that leaves is the rest. Everything is in the
unit of the deviations, and the parts sum to them.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from candor.account.delays import Delays, delayed, find_delays
from candor.account.storage import Laws, fit_laws, read_states
from candor.core.arrays import Doubles, Floats, Integers

_ROUNDS = 5
_LIMIT = 3.0  # robust spreads beyond which an innovation weighs less
_MOST_ROWS = 20_000  # the latest, for shares


@dataclass(frozen=True, eq=False, kw_only=True)
class Flow:
    """What is fitted: how long and how much travels along each edge, and the laws of the sensors."""

    source: Integers
    target: Integers
    delays: Delays
    shares: Doubles  # of what the sender holds that arrives, in the units of the deviations, per edge
    whole: Laws  # of all that a sensor holds
    own: Laws  # of what arrivals leave


@dataclass(frozen=True, eq=False, kw_only=True)
class Parts:
    """The parts of the deviations, time x sensor, in their unit; arrivals, storage, shock and rest sum to them."""

    arrivals: Floats  # of all edges together
    storage: Floats
    shock: Floats
    rest: Floats  # NaN where the deviation is missing
    jump_score: Floats  # standard errors by which a shock that begins at this row differs from none
    held: Floats  # what each sensor holds, as its receivers are sent it
    flow: Flow

    def arriving(self, edge: int) -> Floats:
        """Return what arrives along one edge, by time."""
        sent = delayed(self.held[:, self.flow.source[edge]], int(self.flow.delays.steps[edge]))
        brought: Floats = self.flow.shares[edge] * sent
        return brought


def fit_flow(
    deviations: Floats, source: Integers, target: Integers, *, shortest: int = 1, longest: int | None = None
) -> Flow:
    """Return how deviations travel and fade, from the rows to learn from.

    Args:
        deviations: readings minus what is usual, time x sensor, NaN where missing.
        source: the sensor at which each edge begins.
        target: the sensor to which it leads.
        shortest: the shortest delay in steps.
        longest: the longest delay in steps; None lets the data say, as in `find_delays`.
    """
    whole = fit_laws(deviations)
    held = _held(deviations, whole, causal=False)
    delays = find_delays(deviations, source, target, shortest=shortest, longest=longest, held=held)
    shares = _shares(deviations[-_MOST_ROWS:], held[-_MOST_ROWS:], source, target, delays)
    own = fit_laws(deviations - _arrivals(held, source, target, delays, shares))
    return Flow(source=source, target=target, delays=delays, shares=shares, whole=whole, own=own)


def decompose(deviations: Floats, flow: Flow, *, causal: bool = False) -> Parts:
    """Return the parts of deviations (time x sensor, NaN where missing).

    Args:
        deviations: in the unit of those that the flow was fitted to.
        flow: how they travel and fade.
        causal: whether every number may depend on its own row and those before only, as a forecast needs it.
    """
    held = _held(deviations, flow.whole, causal=causal)
    arrivals = _arrivals(held, flow.source, flow.target, flow.delays, flow.shares)
    own = deviations - arrivals
    states = read_states(own, flow.own, causal=causal)
    return Parts(
        arrivals=arrivals,
        storage=states.storage,
        shock=states.shock,
        rest=own - states.storage - states.shock,
        jump_score=states.jump_score,
        held=held,
        flow=flow,
    )


def _held(deviations: Floats, laws: Laws, *, causal: bool) -> Floats:
    states = read_states(deviations, laws, causal=causal)
    return states.storage + states.shock


def _arrivals(held: Floats, source: Integers, target: Integers, delays: Delays, shares: Doubles) -> Floats:
    """Return what arrives at each sensor, time x sensor."""
    by_sensor = np.ascontiguousarray(held.T)
    arrived = np.zeros_like(by_sensor)
    for edge in np.flatnonzero(shares):
        arrived[target[edge]] += shares[edge] * delayed(by_sensor[source[edge]], int(delays.steps[edge]))
    return np.ascontiguousarray(arrived.T)


def _shares(deviations: Floats, held: Floats, source: Integers, target: Integers, delays: Delays) -> Doubles:
    """Return the share of what its sender holds that each edge brings, receiver by receiver."""
    shares = np.zeros(len(source))
    is_known = delays.share > 0
    by_sensor = np.ascontiguousarray(held.T)
    for receiver in np.unique(target[is_known]):
        edges = np.flatnonzero(is_known & (target == receiver))
        series_sent = [delayed(by_sensor[source[edge]], int(delays.steps[edge])) for edge in edges]
        sent = np.stack(series_sent, axis=1).astype(np.float64)
        series = deviations[:, receiver].astype(np.float64)
        shares[edges] = _robust_shares(series, sent, delays.share[edges])
    return shares


def _robust_shares(series: Doubles, sent: Doubles, shares: Doubles) -> Doubles:
    """Return the shares of what is sent (time x sender) in a series, beginning with a first guess.

    Innovations beyond the limit weigh by its share in them (Huber), so that jumps of the receiver's own tell little.
    """
    for _ in range(_ROUNDS):
        own = series - sent @ shares
        is_pair = np.isfinite(own[1:]) & np.isfinite(own[:-1])
        before, after = own[:-1][is_pair], own[1:][is_pair]
        memory = float(before @ after) / max(float(before @ before), 1e-300)
        innovations = np.abs(after - memory * before)
        spread = 1.4826 * float(np.median(innovations)) if innovations.size else 0.0
        if spread <= 0:
            return shares
        roots = np.sqrt(1 / np.maximum(1, innovations / (_LIMIT * spread)))
        inputs = (sent[1:] - memory * sent[:-1])[is_pair] * roots[:, None]
        shares, _ = nnls(inputs, (series[1:] - memory * series[:-1])[is_pair] * roots)
    return shares
