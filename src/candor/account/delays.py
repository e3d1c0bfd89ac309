"""How long deviations travel along each edge: found first, so that what they carry can be fitted after.

    receiver's reading = own + sum over its senders j of share_j x (what j holds, delay_j steps ago) + noise

What a sender holds is its smoothed storage and shock: regressed on noisy readings, shares shrink and senders that
move together are taken for one another. Both sides are whitened by the autoregression c of what the receiver has of
its own, so that a jump counts where it arrives and not for as long as it lasts; the receiver's own jumps are clipped.
For given delays the shares are least squares, and all of it needs sums of lagged products only:

    gain(delays, shares) = 2 r'a - a'G a      r: receiver with senders at their lags, G: senders with one another

The delays are those of the largest gain with shares above zero, first edge by edge, strongest first, then two
edges of a receiver at a time, all lags of both: edges that join often carry the same weather, and then neither delay can
be told without the other. Arrivals are subtracted, the receiver is whitened anew, and the search is repeated.

An edge's interval comes from drawing blocks of time with replacement: its products with what the other edges leave,
block by block, whose largest sum gives the delay again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.account.lagged import lagged_products
from candor.account.storage import fit_laws, read_states
from candor.core.arrays import Booleans, Doubles, Floats, Integers

LONGEST = 12
"""Steps that are tried at first where nobody says how many."""
_MOST = 96  # steps that are tried at last
_CLIP = 5.0  # robust standard deviations
_ROUNDS = 3
_MOST_PAIRS = 60_000  # of senders to one receiver that are searched together
_BLOCKS, _DRAWS, _EDGES_AT_ONCE = 32, 200, 512
_FEWEST_ROWS = 48
_TAIL = 0.05  # of the draws, on either side of an interval
_FEWEST_ERRORS = 4.0  # standard errors by which an effect must differ from none
_RIDGE = 1e-6  # share of the power of the senders


@dataclass(frozen=True, eq=False)
class Delays:
    """What is known of every edge, in the order of the edges.

    Where `is_told` is false the delay cannot be told: the rest is a best guess, or the shortest delay and a share of 0
    where there is not even that.
    """

    steps: NDArray[np.int64]  # the delay
    earliest: NDArray[np.int64]  # from here
    latest: NDArray[np.int64]  # to here it lies, nine times in ten
    share: Doubles  # of what the sender holds that arrives, in the units of the deviations
    strength: Doubles  # share of the variance of the receiver's innovations that the edge explains, 0 to 1
    is_told: Booleans  # whether the effect differs from none and the interval is narrow


def find_delays(
    deviations: Floats,
    source: Integers,
    target: Integers,
    *,
    shortest: int = 1,
    longest: int | None = None,
    held: Floats | None = None,
) -> Delays:
    """Return the delay of every edge with its interval.

    Args:
        deviations: readings minus what is usual on the rows to learn from, time x sensor, NaN where missing.
        source: the sensor at which each edge begins.
        target: the sensor to which it leads.
        shortest: the shortest delay in steps. What happens at both ends at once may have one cause and no path, so
            that 0 is left to those who know that deviations travel faster than readings are taken.
        longest: the longest delay in steps; None begins with a dozen and doubles while delays are found near the end.
        held: what each sensor holds without noise, as smoothed by `read_states`; None does so here.
    """
    rows, steps = len(deviations), np.full(len(source), shortest, np.int64)
    none = np.zeros(len(source))
    nothing = Delays(steps, steps, steps, none, none, np.zeros(len(source), bool))
    is_searched = source != target
    if not is_searched.any() or rows < _FEWEST_ROWS:
        return nothing
    if held is None:
        states = read_states(deviations, fit_laws(deviations))
        held = states.storage + states.shock
    most = max(min(_MOST, rows // 16), shortest)
    lags = max(min(longest or LONGEST, rows // 4), shortest)
    ends = source[is_searched], target[is_searched]
    found = _Search(deviations, held, *ends, shortest, lags).find()
    while longest is None and lags < most and _are_late(found, lags):
        lags = min(2 * lags, most)
        found = _Search(deviations, held, *ends, shortest, lags).find()
    for field in fields(Delays):
        getattr(nothing, field.name)[is_searched] = getattr(found, field.name)
    return nothing


def delayed(series: Floats, steps: int) -> Floats:
    """Return a series (time last) as it was some steps ago, 0 before its beginning."""
    moved = np.zeros_like(series)
    moved[..., steps:] = series[..., : series.shape[-1] - steps]
    return moved


def _are_late(found: Delays, lags: int) -> bool:
    """Return whether some of the delays lie so near the longest lag that others may lie beyond."""
    late = found.steps[found.is_told] > 0.75 * lags
    return bool(late.size and late.mean() > 0.02)


class _Search:
    """All edges of a network, searched together; series are sensor x time here, so that one sensor's are neighbours."""

    def __init__(
        self, deviations: Floats, held: Floats, source: Integers, target: Integers, shortest: int, longest: int
    ) -> None:
        self._deviations = np.ascontiguousarray(deviations.T)
        self._held = np.ascontiguousarray(held.T)
        self._source, self._target = source, target
        self._shortest, self._longest = shortest, longest
        self._steps = np.full(len(source), shortest, np.int64)
        self._shares = np.zeros(len(source))
        each = np.arange(len(self._held))
        self._powers = self._products_of_held((each, each))  # of each sensor with itself

    def find(self) -> Delays:
        """Return the delays, after some rounds of searching and subtracting what arrives."""
        groups: list[_Group] = []
        for _ in range(_ROUNDS):
            left, memory = self._left_over()
            products = _whitened(self._products_with(left), memory[self._target])
            if not groups:
                groups = self._groups(products)
            known = np.isfinite(left).mean(axis=1)
            for group in groups:
                self._search(group, products, memory, known)
        return self._told(*self._left_over())

    def _left_over(self) -> tuple[Floats, Doubles]:
        """Return what arrivals leave, whitened and clipped, sensor x time, and the retention that whitens it."""
        own = self._deviations.copy()
        for edge in np.flatnonzero(self._shares):
            arrived = self._shares[edge] * delayed(self._held[self._source[edge]], self._steps[edge])
            own[self._target[edge]] -= arrived.astype(own.dtype)
        memory = np.zeros(len(own))
        for sensor, series in enumerate(own):
            is_pair = np.isfinite(series[1:]) & np.isfinite(series[:-1])
            before = np.where(is_pair, series[:-1], 0.0).astype(np.float64)
            power = float(before @ before)
            memory[sensor] = float(before @ np.where(is_pair, series[1:], 0.0)) / power if power > 0 else 0.0
            memory[sensor] = min(max(memory[sensor], -_MOST_MEMORY), _MOST_MEMORY)
            own[sensor, 1:] = series[1:] - memory[sensor] * series[:-1]
            own[sensor, 0] = np.nan
            known = np.abs(own[sensor][np.isfinite(own[sensor])])
            limit = _CLIP * 1.4826 * float(np.median(known)) if known.size else 0.0
            own[sensor] = own[sensor].clip(-limit, limit) if limit > 0 else own[sensor] * 0.0
        return own, memory

    def _products_with(self, left: Floats, blocks: int = 1) -> Doubles:
        """Return the products of what is left at each edge's target with what its source held, edge x block x lag."""
        return lagged_products(left.T, self._held.T, (self._target, self._source), self._longest + 1, blocks)

    def _products_of_held(self, pairs: tuple[Integers, Integers], blocks: int = 1) -> Doubles:
        """Return the products of what pairs of sensors hold, pair x block x lag from minus to plus the longest."""
        held, lags = self._held.T, self._longest + 1
        later = lagged_products(held, held, pairs, lags, blocks)
        if pairs[0] is pairs[1]:
            return np.concatenate([later[..., :0:-1], later], axis=-1)
        earlier = lagged_products(held, held, pairs[::-1], lags, blocks)
        return np.concatenate([earlier[..., :0:-1], later], axis=-1)
