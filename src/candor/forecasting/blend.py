"""The last word: forecasts of several members blended so that none of them alone would have done better.

    forecast[h] = sum over members m of weight[h, m] forecast_m[h],   weights >= 0, summing to one

The weights have the least mean absolute error on the windows that choose. They are found for all steps together and for
a few stretches of the horizon, and each stretch is pulled to the common ones: the fewer windows, the more.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Doubles

_STRETCHES = 8
_WINDOWS_OF_COMMON = 60.0  # windows apart by a horizon, with which a stretch counts as much as all steps together
_ROUNDS = 20  # of weighing errors anew
_LEAST_ERROR = 0.05  # of the median one, below which errors are weighed alike
_MOST_CASES = 200_000  # of all windows, steps and sensors, evenly spread

Forecasts = NDArray[np.float32]


def fit_blend(members: Sequence[Forecasts], truth: Forecasts, horizons: float) -> Doubles:
    """Return the weights, step x member; they are never worse than the best member alone.

    Args:
        members: forecasts, each window x step x sensor.
        truth: what was measured, NaN where it was not.
        horizons: for how many windows that share no target the given ones stand.
    """
    steps = truth.shape[1]
    best = _best_alone(members, truth)
    common = _least_errors(members, truth, slice(0, steps), best)
    share = horizons / (horizons + _WINDOWS_OF_COMMON)
    weights = np.empty((steps, len(members)))
    bounds = np.unique(np.linspace(0, steps, min(steps, _STRETCHES) + 1).round().astype(int))
    for first, last in pairwise(bounds.tolist()):
        own = _least_errors(members, truth, slice(first, last), common)
        weights[first:last] = share * own + (1 - share) * common
    alone = np.tile(best, (steps, 1))
    return weights if error_of(weights, members, truth) <= error_of(alone, members, truth) else alone


def blended(weights: Doubles, members: Sequence[Forecasts]) -> Forecasts:
    """Return the blend of forecasts, window x step x sensor."""
    total = np.zeros_like(members[0])
    for column, member in enumerate(members):
        total += weights[:, column, None].astype(np.float32) * member
    return total


def error_of(weights: Doubles, members: Sequence[Forecasts], truth: Forecasts) -> float:
    """Return the mean absolute error of a blend over what was measured; zero if nothing was."""
    errors = np.abs(blended(weights, members) - truth)
    known = ~np.isnan(errors)
    return float(errors[known].mean(dtype=np.float64)) if known.any() else 0.0


def _best_alone(members: Sequence[Forecasts], truth: Forecasts) -> Doubles:
    """Return the weights that leave the best member alone; of equal ones the first."""
    steps, ones = truth.shape[1], np.eye(len(members))
    errors = [error_of(np.tile(one, (steps, 1)), members, truth) for one in ones]
    chosen: Doubles = ones[int(np.argmin(errors))]
    return chosen


def _least_errors(members: Sequence[Forecasts], truth: Forecasts, steps: slice, start: Doubles) -> Doubles:
    """Return the weights with the least mean absolute error over some steps, or those to start with if none is better.

    Squares are weighed by the reciprocal of the last round's errors, which makes them absolute errors.
    """
    cases = np.stack([member[:, steps].ravel() for member in members], axis=1)
    wanted = truth[:, steps].ravel()
    known = np.flatnonzero(~np.isnan(wanted))
    known = known[np.linspace(0, len(known) - 1, min(len(known), _MOST_CASES)).round().astype(int)]
    if not len(known):
        return start
    # Around the truth, so that a blend's error is the blend of errors.
    misses = (cases[known] - wanted[known, None]).astype(np.float64)
    weights: Doubles = start
    best: Doubles = start
    least = float(np.abs(misses @ start).mean())
    for _ in range(_ROUNDS):
        size = np.abs(misses @ weights)
        floor = max(_LEAST_ERROR * float(np.median(size)), 1e-12)
        weights = _smallest_square(misses.T @ (misses / np.maximum(size, floor)[:, None]))
        error = float(np.abs(misses @ weights).mean())
        if error < least:
            gain, least, best = least - error, error, weights
            if gain < 1e-5 * least:
                break
    return best


def _smallest_square(gram: Doubles) -> Doubles:
    """Return the weights w >= 0 with sum one for which w' gram w is smallest: the best of all sets of members."""
    count = len(gram)
    scale = float(np.trace(gram)) / count or 1.0
    gram = gram / scale + 1e-9 * np.eye(count)
    best: Doubles = np.eye(count)[0]
    least = np.inf
    for size in range(1, count + 1):
        for chosen in map(list, combinations(range(count), size)):
            found = np.linalg.solve(gram[np.ix_(chosen, chosen)], np.ones(size))
            if (found < 0).any() or not found.sum() > 0:
                continue
            weights: Doubles = np.zeros(count)
            weights[chosen] = found / found.sum()
            square = float(weights @ gram @ weights)
            if square < least:
                best, least = weights, square
    return best
