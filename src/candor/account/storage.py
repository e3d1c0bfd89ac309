"""A sensor's own deviation as slow storage, sudden shocks that fade, and noise: a Kalman filter of three states.

    inflow(t)  = i inflow(t - 1) + w(t)                   w ~ N(0, q)
    store(t)   = s store(t - 1) + inflow(t)
    shock(t)   = k shock(t - 1) + jump(t)                 jump ~ N(0, J) with a chance of one in a million, else none
    reading(t) = store(t) + shock(t) + noise(t)           noise ~ N(0, R)

A shock is told from the rest as it comes: how likely a jump makes the innovation, against what it would be without one,
is the weight with which its variance is let in. The chance is so small because inflow comes in bursts: were jumps
frequent, they would take the bursts for themselves. Without the smoother every number depends on the past alone,
which is what forecasts need; for reading the past the smoother uses what came later too.

| symbol | code | unit |
|---|---|---|
| s, i, k | store_retention, inflow_retention, shock_retention | share left after a step |
| q, J, R | inflow_variance, jump_variance, noise_variance | unit of the deviations, squared |

Everything is done for all sensors at once, step by step, in groups of sensors so that memory stays bounded. A gap
leaves the states to themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from candor.core.arrays import Booleans, Doubles, Floats, Integers

_JUMP_CHANCE = 1e-6  # a jump is let in where the innovation exceeds about six of its spreads
_SENSORS_AT_ONCE = 256
_MOST_READINGS_FITTED = 400_000
_FEWEST_ROWS_FITTED, _MOST_ROWS_FITTED = 1_000, 4_000
_GRIDS = {  # variances as shares of half the (robust) variance of changes from row to row
    "inflow_variance": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3),
    "noise_variance": (0.03, 0.1, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2),
    "inflow_retention": (0.0, 0.5, 0.75, 0.85, 0.92, 0.96),
    "store_retention": (0.8, 0.87, 0.92, 0.96, 0.98, 0.99),
    "shock_retention": (0.6, 0.75, 0.84, 0.89, 0.92, 0.96, 0.98),
    "jump_variance": (30.0, 100.0, 300.0, 1000.0),
}
_ORDER = (*_GRIDS, "inflow_variance", "noise_variance")  # the first two depend on all that follow


@dataclass(frozen=True, eq=False, kw_only=True)
class Laws:
    """What moves the states of each sensor; see the table above."""

    store_retention: Doubles
    inflow_retention: Doubles
    shock_retention: Doubles
    inflow_variance: Doubles
    noise_variance: Doubles
    jump_variance: Doubles

    def of(self, sensors: slice | Integers) -> Self:
        """Return the laws of some sensors, or of the same one many times."""
        return replace(self, **{field.name: getattr(self, field.name)[sensors] for field in fields(self)})


@dataclass(frozen=True, eq=False)
class States:
    """What each sensor holds, time x sensor, in the unit of the deviations."""

    storage: Floats
    shock: Floats
    jump_score: Floats  # how many standard errors a jump at this row would lie from none


Covariance = tuple[Doubles, Doubles, Doubles, Doubles, Doubles, Doubles]
"""Of store, inflow and shock: the upper triangle, row by row."""


def read_states(deviations: Floats, laws: Laws, *, causal: bool = False) -> States:
    """Return storage and shocks of deviations (time x sensor, NaN where missing).

    Args:
        deviations: what each sensor has of its own, in any unit, which is that of the answer and of the laws.
        laws: of each sensor.
        causal: whether every number may depend on its own row and those before only.
    """
    parts = [np.empty(deviations.shape, deviations.dtype) for _ in range(3)]
    for first in range(0, deviations.shape[1], _SENSORS_AT_ONCE):
        some = slice(first, first + _SENSORS_AT_ONCE)
        forward = _Forward(deviations[:, some].astype(np.float64), laws.of(some), keeps=True)
        found = forward.filtered() if causal else forward.smoothed()
        for part, values in zip(parts, found, strict=True):
            part[:, some] = values
    return States(*parts)


def fit_laws(deviations: Floats) -> Laws:
    """Return the laws under which deviations are most likely, each sensor by itself, one law after another on a grid.

    The latest rows are used, as many as some hundred thousand readings allow.
    """
    sensors = deviations.shape[1]
    rows = int(np.clip(_MOST_READINGS_FITTED // max(sensors, 1), _FEWEST_ROWS_FITTED, _MOST_ROWS_FITTED))
    latest = deviations[-rows:]
    found = [
        _fit_group(latest[:, first : first + _SENSORS_AT_ONCE].astype(np.float64))
        for first in range(0, sensors, _SENSORS_AT_ONCE)
    ] or [_first_laws(np.ones(0))]
    return Laws(**{field.name: np.concatenate([getattr(laws, field.name) for laws in found]) for field in fields(Laws)})


def _fit_group(deviations: Doubles) -> Laws:
    scale = _change_variance(deviations)
    laws = _first_laws(scale)
    for name in _ORDER:
        tried = np.array(_GRIDS[name])
        unit = scale if name.endswith("variance") else np.ones_like(scale)
        candidates = unit[:, None] * tried
        each = np.repeat(np.arange(len(scale)), len(tried))
        likelihood = _Forward(deviations[:, each], replace(laws.of(each), **{name: candidates.ravel()})).likelihood
        best = likelihood.reshape(len(scale), len(tried)).argmax(axis=1)
        laws = replace(laws, **{name: candidates[np.arange(len(scale)), best]})
    return laws


def _first_laws(scale: Doubles) -> Laws:
    """Return laws in the middle of the grids; they are good enough to tell jumps from noise."""
    ones = np.ones_like(scale)
    return Laws(
        store_retention=0.95 * ones,
        inflow_retention=0.9 * ones,
        shock_retention=0.92 * ones,
        inflow_variance=0.01 * scale,
        noise_variance=0.8 * scale,
        jump_variance=100.0 * scale,
    )


def _change_variance(deviations: Doubles) -> Doubles:
    """Return half the variance of changes from row to row without the largest ones; 1 where nothing changes."""
    changes = np.abs(np.diff(deviations, axis=0))
    known = np.isfinite(changes).any(axis=0) if len(changes) else np.zeros(deviations.shape[1], bool)
    middle = np.ones(deviations.shape[1])
    middle[known] = np.nanmedian(changes[:, known], axis=0)
    # Readings that are rounded, or stand still half the time, have a median change of zero.
    still = known & (middle <= 0)
    middle[still] = np.nanmean(changes[:, still], axis=0)
    return np.where(middle > 0, (1.4826 * middle) ** 2 / 2, 1.0)


class _Forward:
    """The filter run over deviations (time x sensor), with what the way back needs if it `keeps` it."""

    def __init__(self, deviations: Doubles, laws: Laws, *, keeps: bool = False) -> None:
        rows, sensors = deviations.shape
        self._laws = laws
        self.likelihood = np.zeros(sensors)  # logarithm, up to a constant
        self._states = np.empty((rows if keeps else 0, 3, sensors))  # as predicted
        self._covariances = np.empty((rows if keeps else 0, 6, sensors))
        self._innovations = np.empty((rows if keeps else 0, sensors))
        self._precisions = np.empty((rows if keeps else 0, sensors))  # of innovations, zero at gaps
        self._jumps = np.empty((rows if keeps else 0, sensors))  # the variance that was let in
        for row, moment in enumerate(self._run(deviations)):
            if keeps:
                self._states[row], self._covariances[row] = moment[:2]
                self._innovations[row], self._precisions[row], self._jumps[row] = moment[2:]

    def _run(self, deviations: Doubles) -> Iterator[tuple[Doubles, ...]]:
        """Yield prediction, its covariance with jumps let in, innovation, its precision and the jumps of each row."""
        laws, sensors = self._laws, deviations.shape[1]
        state, covariance = np.zeros((3, sensors)), _at_rest(laws)
        is_known = np.isfinite(deviations)
        filled = np.where(is_known, deviations, 0.0)
        for values, known in zip(filled, is_known, strict=True):
            state, covariance = _predicted(state, covariance, laws)
            innovation = np.where(known, values - state[0] - state[2], 0.0)
            variance = covariance[0] + 2 * covariance[2] + covariance[5] + laws.noise_variance
            jump = self._let_in(innovation, variance, known)
            covariance = (*covariance[:5], covariance[5] + jump)
            precision = known / (variance + jump)
            yield state, np.stack(covariance), innovation, precision, jump
            state, covariance = _updated(state, covariance, innovation, precision)

    def _let_in(self, innovation: Doubles, variance: Doubles, known: Booleans) -> Doubles:
        """Return the variance that jumps add at this row, and add its likelihood."""
        with_jump = variance + self._laws.jump_variance
        squared = innovation**2
        calm = np.log(1 - _JUMP_CHANCE) - 0.5 * (squared / variance + np.log(variance))
        jumped = np.log(_JUMP_CHANCE) - 0.5 * (squared / with_jump + np.log(with_jump))
        either = np.logaddexp(calm, jumped)
        self.likelihood += known * either
        added: Doubles = known * self._laws.jump_variance * np.exp(jumped - either)
        return added

    def filtered(self) -> tuple[Doubles, Doubles, Doubles]:
        """Return storage, shock and the score of a jump as they are known at their own row."""
        covariances = self._covariances
        pull = self._innovations * self._precisions
        storage = self._states[:, 0] + (covariances[:, 0] + covariances[:, 2]) * pull
        shock = self._states[:, 2] + (covariances[:, 2] + covariances[:, 5]) * pull
        calm = self._precisions / (1 - self._jumps * self._precisions)
        return storage, shock, self._innovations * np.sqrt(calm)

    def smoothed(self) -> tuple[Doubles, Doubles, Doubles]:
        """Return storage, shock and the score of a jump as they are known at the end.

        The way back carries, for each state, how much all later innovations pull at it, and the precision of that
        (Bryson and Frazier); no covariance has to be inverted. The pull at the shock is what tells of a jump there:
        over its standard deviation it is the t-value of a jump at this row (Harvey and Koopman), here as if none had
        been let in at this row.
        """
        laws = self._laws
        pull, precision = np.zeros((3, self._states.shape[2])), np.zeros((6, self._states.shape[2]))
        storage, shock, score = (np.empty_like(self._innovations) for _ in range(3))
        for row in range(len(self._states) - 1, -1, -1):
            covariance, certainty = self._covariances[row], self._precisions[row]
            gain = _observed(covariance) * certainty
            pull = _pulled_back(pull, laws)
            pull[::2] += self._innovations[row] * certainty - (gain * pull).sum(axis=0)
            precision = _precision_back(precision, laws, gain, certainty)
            states = self._states[row]
            storage[row] = states[0] + (covariance[:3] * pull).sum(axis=0)
            shock[row] = states[2] + covariance[2] * pull[0] + covariance[4] * pull[1] + covariance[5] * pull[2]
            unsettled = precision[5] * (1 - self._jumps[row] * precision[5])
            score[row] = pull[2] / np.sqrt(np.maximum(unsettled, 1e-300))
        return storage, shock, score


def _at_rest(laws: Laws) -> Covariance:
    """Return the covariance of states that nobody has looked at yet."""
    s, i, zero = laws.store_retention, laws.inflow_retention, np.zeros_like(laws.store_retention)
    inflow = laws.inflow_variance / (1 - i**2)
    both = inflow / (1 - s * i)
    store = (inflow + 2 * s * i * both) / (1 - s**2)
    return store, both, zero, inflow, zero, zero


def _predicted(state: Doubles, covariance: Covariance, laws: Laws) -> tuple[Doubles, Covariance]:
    """Return state and covariance one step later."""
    s, i, k, new = laws.store_retention, laws.inflow_retention, laws.shock_retention, laws.inflow_variance
    store_store, store_inflow, store_shock, inflow_inflow, inflow_shock, shock_shock = covariance
    inflow = i * state[1]
    inflow_inflow = i * i * inflow_inflow + new
    inflow_shock = i * k * inflow_shock
    carried = s * i * store_inflow
    return np.stack((s * state[0] + inflow, inflow, k * state[2])), (
        s * s * store_store + 2 * carried + inflow_inflow,
        carried + inflow_inflow,
        s * k * store_shock + inflow_shock,
        inflow_inflow,
        inflow_shock,
        k * k * shock_shock,
    )


def _observed(covariance: Covariance | Doubles) -> Doubles:
    """Return the covariance of each state with the reading, which is the sum of store and shock."""
    return np.stack((covariance[0] + covariance[2], covariance[1] + covariance[4], covariance[2] + covariance[5]))


def _updated(
    state: Doubles, covariance: Covariance, innovation: Doubles, precision: Doubles
) -> tuple[Doubles, Covariance]:
    """Return state and covariance after a look at the reading."""
    store, inflow, shock = seen = _observed(covariance)
    gain = seen * precision
    return state + gain * innovation, (
        covariance[0] - store * gain[0],
        covariance[1] - store * gain[1],
        covariance[2] - store * gain[2],
        covariance[3] - inflow * gain[1],
        covariance[4] - inflow * gain[2],
        covariance[5] - shock * gain[2],
    )


def _pulled_back(pull: Doubles, laws: Laws) -> Doubles:
    """Return the pull at the states one step before."""
    return np.stack(
        (laws.store_retention * pull[0], laws.inflow_retention * (pull[0] + pull[1]), laws.shock_retention * pull[2])
    )


def _precision_back(precision: Doubles, laws: Laws, gain: Doubles, certainty: Doubles) -> Doubles:
    """Return the precision of the pull one step before: F' L F, with what the reading there says of it taken in."""
    s, i, k = laws.store_retention, laws.inflow_retention, laws.shock_retention
    a = s * s * precision[0]
    b = s * i * (precision[0] + precision[1])
    c = s * k * precision[2]
    d = i * i * (precision[0] + 2 * precision[1] + precision[3])
    e = i * k * (precision[2] + precision[4])
    f = k * k * precision[5]
    by_store = a * gain[0] + b * gain[1] + c * gain[2]
    by_inflow = b * gain[0] + d * gain[1] + e * gain[2]
    by_shock = c * gain[0] + e * gain[1] + f * gain[2]
    seen = gain[0] * by_store + gain[1] * by_inflow + gain[2] * by_shock + certainty
    return np.stack(
        (
            a - 2 * by_store + seen,
            b - by_inflow,
            c - by_store - by_shock + seen,
            d,
            e - by_inflow,
            f - 2 * by_shock + seen,
        )
    )
