"""What own and neighbours' deviations say about the next steps: ridge regression, direct for every step of the horizon.

    d[t + h] = d[t] + constant[h] + sum over lags l of own[l, h] d[t - l]
                    + sum over links e and lags l of kernel[e, l, h] d_sender(e)[t - l]

Nothing learned is the last deviation. Own lags and lags of edges have penalties of their own. Gaps among the inputs are
filled before; a missing target counts for nothing: it is put where the regression itself expects it, which leaves the
solution of the observed ones. Windows count as the reciprocal of how far they are off, for least absolute errors.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from candor.account.usual import Values
from candor.core.arrays import Doubles, Floats, Integers

_MOST_ROUNDS = 30  # of putting missing targets where they are expected
_CONVERGED = 1e-7
_ROBUST_ROUNDS = 2  # of weighing windows anew
_LEAST_ERROR = 0.3  # of the median one; windows that are better count no more than those
_RIDGE_OF_ROUNDING = 1e-9  # share of the largest moment, so that equal columns can be told apart


@dataclass(frozen=True)
class Penalties:
    """Of squared weights, in units of one window whose inputs stand one robust spread from the usual."""

    own: float
    edges: float | None
    """None leaves the edges out."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Which lags of which series the regression of one sensor reads; lag 0 is the newest row before the origin."""

    series: Integers
    lag: Integers
    is_own: NDArray[np.bool_]

    def read(self, deviations: Values, origins: Integers) -> Values:
        """Return what is read before each origin, with a one at the end: window x (column + 1)."""
        seen = np.ones((len(origins), len(self.series) + 1), deviations.dtype)
        seen[:, :-1] = deviations[origins[:, None] - 1 - self.lag, self.series]
        return seen

    def penalty(self, penalties: Penalties) -> Doubles:
        """Return the penalty of each column and of the constant, which has next to none."""
        columns = np.where(self.is_own, penalties.own, penalties.edges or 0.0)
        return np.append(columns, min(penalties.own, 1.0))


class Moments:
    """The products of inputs and targets from which a regression is solved for any penalties.

    Args:
        inputs: window x column.
        targets: window x step, NaN where missing.
        weights: of the windows; None counts all alike.
    """

    def __init__(self, inputs: Floats, targets: Floats, weights: Doubles | None = None) -> None:
        known = ~np.isnan(targets)
        kept = known.any(axis=1)
        known, x = known[kept], inputs[kept].astype(np.float64)
        y = np.where(known, targets[kept], 0.0).astype(np.float64)
        if weights is not None:
            root = np.sqrt(weights[kept])[:, None]
            x, y = x * root, y * root
        self.gram, self.cross = x.T @ x, x.T @ y
        is_gappy = ~known.all(axis=1)
        self._gappy, self._missing = x[is_gappy], ~known[is_gappy]

    def solve(self, penalty: Doubles) -> Doubles:
        """Return the weights, column x step, given the penalty of each column."""
        rounding = _RIDGE_OF_ROUNDING * max(float(self.gram.diagonal().max(initial=0.0)), 1e-30)
        factor = cho_factor(self.gram + np.diag(penalty + rounding), overwrite_a=True, check_finite=False)
        weights: Doubles = cho_solve(factor, self.cross, check_finite=False)
        for _ in range(_MOST_ROUNDS if len(self._gappy) else 0):
            expected = np.where(self._missing, self._gappy @ weights, 0.0)
            better: Doubles = cho_solve(factor, self.cross + self._gappy.T @ expected, check_finite=False)
            change, weights = float(np.abs(better - weights).max()), better
            if change <= _CONVERGED * max(1.0, float(np.abs(weights).max())):
                break
        return weights


def regress(inputs: Floats, targets: Floats, penalty: Doubles, rounds: int = _ROBUST_ROUNDS) -> Doubles:
    """Return the weights, column x step, of a regression in which windows that are far off count less.

    Args:
        inputs: window x column.
        targets: window x step, NaN where missing.
        penalty: of each column.
        rounds: of weighing windows anew; none is least squares.
    """
    weights = Moments(inputs, targets).solve(penalty)
    for _ in range(rounds):
        weights = Moments(inputs, targets, _weights_of(targets - inputs @ weights)).solve(penalty)
    return weights


def _weights_of(errors: Floats) -> Doubles:
    """Return how much each window counts, one on average, by the root mean square of its known errors."""
    known = ~np.isnan(errors)
    squares = np.where(known, errors, 0.0) ** 2
    size = np.sqrt(squares.sum(axis=1) / np.maximum(known.sum(axis=1), 1))
    counted = size[known.any(axis=1)]
    least = _LEAST_ERROR * float(np.median(counted)) if len(counted) else 0.0
    if least <= 0:  # half of them are met exactly
        return np.ones(len(size))
    found: Doubles = 1 / np.maximum(size, least)
    found /= found.mean()
    return found


def moves_of(known: Values, filled: Values, origins: Integers, horizon: int, sensor: int) -> Values:
    """Return how far a sensor's deviation moves from the last one before each origin: window x step, NaN if missing."""
    rows = origins[:, None] + np.arange(horizon)
    moved: Values = known[rows, sensor] - filled[origins - 1, sensor][:, None]
    return moved
