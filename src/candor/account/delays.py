"""How long deviations travel along each edge: found first, so that what they carry can be fitted after.

    receiver's reading = own + sum over its senders j of share_j x (what j holds, delay_j steps ago) + noise

What a sender holds is its smoothed storage and shock: regressed on noisy readings, shares shrink and senders that
move together are taken for one another. Both sides are whitened by the autoregression c of what the receiver has of
its own, so that a jump counts where it arrives and not for as long as it lasts; the receiver's own jumps are clipped.
For given delays the shares are least squares, and all of it needs sums of lagged products only:

    gain(delays, shares) = 2 r'a - a'G a      r: receiver with senders at their lags, G: senders with one another

The delays are those of the largest gain with shares above zero, first edge by edge, strongest first, then two
edges of a receiver at a time, all lags of both: edges that join often carry the same weather, and then neither delay
can be told without the other. Arrivals are subtracted, the receiver is whitened anew, and the search is repeated.

An edge's interval comes from drawing blocks of time with replacement: its products with what the other edges leave,
block by block, whose largest sum gives the delay again.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from candor.account.lagged import lagged_products
from candor.account.storage import fit_laws, read_states
from candor.core.arrays import Booleans, Doubles, Floats, Integers

LONGEST = 12
"""Steps that are tried at first where nobody says how many."""
_MOST = 96  # steps that are tried at last
_CLIP = 5.0  # robust standard deviations
_ROUNDS = 3
_MOST_MEMORY = 0.999
_MOST_PAIRS = 60_000  # of senders to one receiver that are searched together
_BLOCKS, _DRAWS, _EDGES_AT_ONCE = 32, 200, 512
_FEWEST_ROWS = 48
_TAIL = 0.05  # of the draws, on either side of an interval
_FEWEST_ERRORS = 3.0  # standard errors by which an effect must differ from none
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
    share: Doubles  # of what the sender holds that arrives: a low guess, since clipped jumps tell less (see flow.py)
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
    rows = len(deviations)
    steps, none = np.full((3, len(source)), shortest, np.int64), np.zeros((2, len(source)))
    answer = Delays(steps[0], steps[1], steps[2], none[0], none[1], np.zeros(len(source), bool))
    is_searched = source != target
    if not is_searched.any() or rows < _FEWEST_ROWS:
        return answer
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
        getattr(answer, field.name)[is_searched] = getattr(found, field.name)
    return answer


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

    def _groups(self, products: Doubles) -> "list[_Group]":
        """Return the edges in groups that lead to one sensor, strongest first, with what their senders share.

        A group has as many edges as a bound on all pairs allows; edges that are left over have groups of their own.
        """
        peaks = products[:, 0, self._shortest :].max(axis=1)
        power = self._powers[self._source, 0, self._longest + 1]
        strength = np.where(power > 0, peaks / np.sqrt(np.maximum(power, 1e-300)), 0.0)
        order = np.lexsort((-strength, self._target))
        by_receiver = np.split(order, np.flatnonzero(np.diff(self._target[order])) + 1)
        degrees = np.array([len(edges) for edges in by_receiver])
        size = int(degrees.max())
        while size > 1 and (np.minimum(degrees, size) * (np.minimum(degrees, size) - 1) // 2).sum() > _MOST_PAIRS:
            size -= 1
        parts = [[edges[:size], *edges[size:, None]] for edges in by_receiver]
        together = [np.triu_indices(len(edges[0]), k=1) for edges in parts]
        pairs = [
            np.concatenate([self._source[edges[0][ends[side]]] for edges, ends in zip(parts, together, strict=True)])
            for side in (0, 1)
        ]
        shared = self._products_of_held((pairs[0], pairs[1]))[:, 0]
        groups, first = [], 0
        for edges, ends in zip(parts, together, strict=True):
            leftovers = max(len(edges) - 1, 1)
            last = first + len(ends[0])
            groups.append(_Group(edges[0], ends, shared[first:last], 1.0))
            groups += [_Group(edge, np.triu_indices(1, k=1), shared[:0], 1 / leftovers) for edge in edges[1:]]
            first = last
        return groups

    def _search(self, group: "_Group", products: Doubles, memory: Doubles, known: Doubles) -> None:
        """Settle delays and shares of the edges of a group, given what all other edges leave."""
        edges, receiver = group.edges, self._target[group.edges[0]]
        own = self._powers[self._source[edges], 0]
        overlap = known[receiver] * group.overlaps(own, float(memory[receiver]))
        joint = _Joint(products[edges, 0], overlap, self._shortest)
        joint.take(self._steps[edges], self._shares[edges])
        joint.search()
        self._steps[edges], self._shares[edges] = joint.steps, joint.shares * group.caution

    def _told(self, left: Floats, memory: Doubles) -> Delays:
        """Return the delays with their intervals, from products by blocks of time."""
        blocks = max(min(_BLOCKS, left.shape[1] // (4 * self._longest + 4)), 2)
        products = _whitened(self._products_with(left, blocks), memory[self._target])
        senders, place = np.unique(self._source, return_inverse=True)
        powers = self._products_of_held((senders, senders), blocks)
        generator = np.random.default_rng(0)
        draws = generator.multinomial(blocks, np.full(blocks, 1 / blocks), _DRAWS).astype(np.float64)
        errors, strength = (np.zeros(len(products)) for _ in range(2))
        ends = np.zeros((2, len(products)), np.int64)
        noise = np.square(np.nan_to_num(left), dtype=np.float64).sum(axis=1)[self._target]
        for begin in range(0, len(products), _EDGES_AT_ONCE):
            some = slice(begin, begin + _EDGES_AT_ONCE)
            steps, each = self._steps[some], np.arange(len(self._steps[some]))
            power = _of_whitened(powers[place[some]], memory[self._target[some]])
            # What the edge itself brings was subtracted: added again.
            lags = self._longest + np.arange(self._longest + 1) - steps[:, None]
            brought = np.take_along_axis(power, np.broadcast_to(lags[:, None], (*power.shape[:2], lags.shape[1])), 2)
            effects = products[some] + self._shares[some, None, None] * brought
            peaks = self._shortest + (draws @ effects)[..., self._shortest :].argmax(axis=2)
            ends[:, some] = np.quantile(peaks, (_TAIL, 1 - _TAIL), axis=1, method="nearest")
            at_delay = effects[each, :, steps]
            total, spread = at_delay.sum(axis=1), at_delay.std(axis=1, ddof=1) * np.sqrt(blocks)
            errors[some] = np.where(spread > 0, total / np.where(spread > 0, spread, 1.0), 0.0)
            explained = total**2 / np.maximum(power[:, :, self._longest].sum(axis=1), 1e-300)
            strength[some] = explained / np.maximum(explained + noise[some], 1e-300)
        ends = np.stack([np.minimum(ends[0], self._steps), np.maximum(ends[1], self._steps)])
        is_narrow = ends[1] - ends[0] <= max(1, self._longest // 6)
        is_told = is_narrow & (errors >= _FEWEST_ERRORS) & (self._shares > 0)
        return Delays(self._steps, ends[0], ends[1], self._shares, strength, is_told)


@dataclass(frozen=True, eq=False)
class _Group:
    """Edges that lead to one sensor, strongest first, and the products of what their senders hold."""

    edges: NDArray[np.int64]
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]]  # of places in `edges`, the earlier first
    shared: Doubles  # pair x lag from minus to plus the longest, and one more on either side
    caution: float  # share of its effect that is believed, where others were not searched with it

    def overlaps(self, own: Doubles, memory: float) -> Doubles:
        """Return the products of whitened senders, sender x sender x lag from minus to plus the longest."""
        count = len(self.edges)
        overlap = np.empty((count, count, own.shape[1]))
        overlap[np.arange(count), np.arange(count)] = own
        overlap[self.pairs] = self.shared
        overlap[self.pairs[::-1]] = self.shared[:, ::-1]
        return _of_whitened(overlap, np.full(count, memory))


class _Joint:
    """Delays and shares of some edges of a receiver, of the largest gain.

    `seen[j, k]` is the product of the receiver with sender j at lag k; `overlap[j, l, longest + k]` that of sender j
    with sender l, which is read k steps before it.
    """

    def __init__(self, seen: Doubles, overlap: Doubles, shortest: int) -> None:
        self._seen, self._overlap, self._shortest = seen.copy(), overlap, shortest
        self._longest = seen.shape[1] - 1
        self._powers = np.array([overlap[sender, sender, self._longest] for sender in range(len(seen))])
        self._is_alive = self._powers > 1e-9 * max(float(self._powers.max(initial=0.0)), 1e-300)
        self.steps = np.full(len(seen), shortest, np.int64)
        self.shares = np.zeros(len(seen))

    def take(self, steps: NDArray[np.int64], shares: Doubles) -> None:
        """Begin with a solution that was subtracted from the receiver: what it brings is added again."""
        self.steps, self.shares = steps.copy(), shares.copy()
        for sender in range(len(shares)):
            self._seen += self._brought_by(sender)

    def search(self) -> None:
        """Find delays edge by edge, then two edges at a time, and the shares of all."""
        senders = np.flatnonzero(self._is_alive).tolist()
        for sender in senders:
            self._settle_one(sender)
        for first in senders:
            for second in senders:
                if first < second:
                    self._settle_two(first, second)
        self._settle_shares(senders)

    def _brought_by(self, sender: int) -> Doubles:
        """Return what a sender adds to `seen`, sender x lag."""
        if not self.shares[sender]:
            return np.zeros_like(self._seen)
        begin = self._longest - self.steps[sender]
        brought: Doubles = self.shares[sender] * self._overlap[sender, :, begin : begin + self._longest + 1]
        return brought

    def _without(self, *senders: int) -> Doubles:
        """Return what is seen but for what all other senders bring, of some senders, sender x lag."""
        rest = self._seen[list(senders)].copy()
        for other in range(len(self.shares)):
            if other not in senders:
                rest -= self._brought_by(other)[list(senders)]
        return rest

    def _settle_one(self, sender: int) -> None:
        (alone,) = self._without(sender)
        best = self._shortest + int(alone[self._shortest :].argmax())
        self.steps[sender], self.shares[sender] = best, max(alone[best], 0.0) / self._powers[sender]

    def _settle_two(self, first: int, second: int) -> None:
        """Take the delays of the largest gain of two edges, whose shares are least squares and not below zero."""
        one, other = self._without(first, second)[:, self._shortest :]
        lags = np.arange(len(one))
        between = self._overlap[first, second][self._longest + lags[None, :] - lags[:, None]]
        power, other_power = self._powers[first], self._powers[second]
        determinant = np.maximum(power * other_power - between**2, _RIDGE * power * other_power)
        share = (one[:, None] * other_power - other * between) / determinant
        other_share = (other * power - one[:, None] * between) / determinant
        gain = np.where((share > 0) & (other_share > 0), one[:, None] * share + other * other_share, -np.inf)
        best, other_best = np.unravel_index(gain.argmax(), gain.shape)
        alone = max(one.max(initial=0.0) ** 2 / power, other.max(initial=0.0) ** 2 / other_power)
        if gain[best, other_best] > alone:
            self.steps[[first, second]] = self._shortest + best, self._shortest + other_best
            self.shares[[first, second]] = share[best, other_best], other_share[best, other_best]

    def _settle_shares(self, senders: list[int]) -> None:
        """Take the least squares of all shares together, none below zero."""
        if not senders:
            return
        steps, count, size = self.steps[senders], np.arange(len(senders)), np.sqrt(self._powers[senders])
        lags = self._longest + steps[None, :] - steps[:, None]
        likeness = self._overlap[senders][:, senders][count[:, None], count, lags] / np.outer(size, size)
        values, vectors = np.linalg.eigh((likeness + likeness.T) / 2)
        root = np.sqrt(np.maximum(values, _RIDGE))
        wanted = vectors.T @ (self._seen[senders, steps] / size) / root
        self.shares[senders] = nnls((vectors * root).T, wanted)[0] / size


def _whitened(products: Doubles, memory: Doubles) -> Doubles:
    """Return products with senders that are whitened too, edge x block x lag: one lag fewer than were given."""
    whitened: Doubles = products[..., :-1] - memory[:, None, None] * products[..., 1:]
    return whitened


def _of_whitened(products: Doubles, memory: Doubles) -> Doubles:
    """Return products of senders of which both are whitened: a lag fewer on either side than were given."""
    by_row = memory.reshape(-1, *[1] * (products.ndim - 1))
    sides = products[..., 2:] + products[..., :-2]
    whitened: Doubles = (1 + by_row**2) * products[..., 1:-1] - by_row * sides
    return whitened
