"""Rank correlation of learned shocks with rain over lags, tested against rotations of the rain.

For every station, T hours of activity a[t] and of rain r[t], some of them missing. Both series are followed by M
missing hours, M being the longest lag, which makes N = T + M.

rank         Every value is replaced by its rank among all values of its series, equal ones by their mean rank, once.
lag L        pairs a[t] with r[(t - L) mod N]: positive means activity after rain. The missing hours at the end are all
             that could come round from the other end, so the pairs are those of the plain overlap.
shift c      rotates the rain of all stations by c hours: r_c[t] = r[(t - c) mod N]. Shift 0 is what happened.
correlation  Pearson's of the ranks over the pairs of which both are there (Spearman's, with ranks given once); a
             station with too few pairs, or whose ranks hardly change over them, does not count there (`patterns`).
curve        for a horizon: the mean over stations, then over its checkpoints (seeds), at every lag.
statistic    the largest value of the curve over lags, then the mean over horizons.
null         the statistic of shifts drawn with replacement from 1 to N - 1 (where it exists).
p            (1 + shifts whose statistic is at least that of what happened) / (1 + shifts).

Shifts smaller than twice the longest lag leave pairs that really happened within reach of the lags. They keep the test
honest (p is uniform if nothing is associated; the lags cover a share of the ring, and so large a peak must lie
somewhere), and they keep p from falling much below the share of shifts that reach the peak, about lags / N. Leaving
them out (`least_shift`) removes that floor, but then small p come too often.

Lag and shift both only rotate the rain: the correlation depends on L + c alone, and one FFT gives it for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from candor.core.arrays import Doubles
from candor.core.errors import InputError
from candor.research.patterns import correlations, spectra_of

SHIFTS = 20_000
_ROUNDING = 1e-9  # two statistics this close are equal


@dataclass(frozen=True, eq=False)
class ModelActivity:
    """The shock activity of one trained model."""

    name: str  # what people call it
    horizon: int  # steps it forecasts
    seed: int  # where its training began
    activity: NDArray[np.floating[Any]]  # time x station, NaN where no patch covers the hour


@dataclass(frozen=True, eq=False)
class ShockRain:
    """What the comparison found."""

    lags: NDArray[np.int64]  # in steps, positive where activity follows rain
    horizons: tuple[int, ...]  # steps of the forecasts, ascending
    checkpoints: tuple[tuple[int, int], ...]  # horizon and seed of each model
    by_checkpoint: Doubles  # checkpoint x lag: mean correlation over stations
    by_station: Doubles  # station x lag: mean correlation over checkpoints, NaN if it never counts
    curves: Doubles  # horizon x lag
    null: Doubles  # the statistic of every shift
    null_curves: Doubles  # shift x lag: mean over horizons, of the first shifts only, for figures
    least_shift: int  # the smallest shift, either way, in steps
    rotations: int  # how many rotations of the record there are

    @cached_property
    def selected(self) -> NDArray[np.int64]:
        """The lag of each horizon at which its curve is largest, in steps."""
        places: NDArray[np.int64] = np.nanargmax(self.curves, axis=1)
        return self.lags[places]

    @property
    def rho(self) -> float:
        """The statistic of what happened."""
        return float(np.nanmax(self.curves, axis=1).mean())

    @property
    def p(self) -> float:
        """The probability of such a statistic if rain and activity had nothing to do with one another."""
        return float((np.count_nonzero(self.null >= self.rho - _ROUNDING) + 1) / (len(self.null) + 1))

    @property
    def p_floor(self) -> float:
        """The share of shifts after which every horizon finds its own lag again, and p is above that."""
        lags, selected = set(self.lags.tolist()), self.selected.tolist()
        reached = [
            shift
            for shift in (selected[0] - lag for lag in lags)
            if abs(shift) >= self.least_shift and all(lag - shift in lags for lag in selected)
        ]
        return len(reached) / (self.rotations - 2 * self.least_shift + 1)

    @property
    def at_selected(self) -> Doubles:
        """The correlation of each checkpoint at the lag selected for its horizon; its sign is the checkpoint's."""
        lag_of = dict(zip(self.horizons, self.selected.tolist(), strict=True))
        places = [self.lags.tolist().index(lag_of[horizon]) for horizon, _ in self.checkpoints]
        return self.by_checkpoint[np.arange(len(places)), places]


def compare_with_rain(
    checkpoints: Sequence[ModelActivity],
    rain: NDArray[np.floating[Any]],
    lags: Sequence[int],
    shifts: int = SHIFTS,
    seed: int = 0,
    *,
    least_shift: int = 1,
    curves_kept: int = 1_000,
) -> ShockRain:
    """Return the comparison of shock activity with rain.

    Args:
        checkpoints: trained models, at least one, on the stations and hours of `rain`.
        rain: time x station, NaN where unknown.
        lags: in steps, positive where activity follows rain.
        shifts: how many rotations of the rain are drawn.
        seed: where the drawing of shifts begins.
        least_shift: the smallest shift, either way, in steps.
        curves_kept: of how many shifts the whole curve is kept.
    """
    known_lags = np.array(lags, np.int64)
    _check(checkpoints, rain, known_lags)
    margin = int(np.abs(known_lags).max())
    of_rain = spectra_of(_ranks(rain, margin))
    horizons = tuple(sorted({checkpoint.horizon for checkpoint in checkpoints}))
    by_checkpoint, by_station = [], []
    for checkpoint in checkpoints:
        found = correlations(spectra_of(_ranks(checkpoint.activity, margin)), of_rain)  # rotation station
        by_checkpoint.append(_mean_of_known(found, axis=1))
        by_station.append(found[known_lags].T)  # negative lags count from the end, as rotations do
    whole = np.stack(by_checkpoint)  # checkpoint rotation
    members = [[c.horizon == horizon for c in checkpoints] for horizon in horizons]
    curves = np.stack([_mean_of_known(whole[chosen], axis=0) for chosen in members])  # horizon rotation
    largest = np.full_like(curves, np.nan)
    for lag in lags:
        largest = np.fmax(largest, np.roll(curves, -lag, axis=1))  # entry c is the curve at lag + c
    statistics: Doubles = largest.mean(axis=0)  # by shift; NaN where a horizon has none
    drawn = _draw_shifts(statistics, least_shift, shifts, seed)
    shown = (drawn[:curves_kept, None] + known_lags) % whole.shape[1]
    return ShockRain(
        lags=known_lags,
        horizons=horizons,
        checkpoints=tuple((checkpoint.horizon, checkpoint.seed) for checkpoint in checkpoints),
        by_checkpoint=whole[:, known_lags],
        by_station=_mean_of_known(np.stack(by_station), axis=0),
        curves=curves[:, known_lags],
        null=statistics[drawn],
        null_curves=_mean_of_known(curves, axis=0)[shown],
        least_shift=least_shift,
        rotations=whole.shape[1],
    )


def _mean_of_known(values: Doubles, axis: int) -> Doubles:
    """Return the mean over an axis of what is not NaN, NaN where all of it is."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    mean: Doubles = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean


def lags_in_steps(longest: float, step: float, interval: float) -> list[int]:
    """Return the lags from -longest to longest, in steps of a record; all three arguments in hours. 0 is one lag."""
    stride, reach = step / interval, longest / interval
    if not (stride >= 1 and abs(stride - round(stride)) < 1e-9 and (longest >= step or longest == 0)):
        raise InputError(
            f"lags every {step:g} h up to {longest:g} h do not fit readings every {interval:g} h",
            hint="give a lag step that is a multiple of the interval, and a longest lag that is not below it",
        )
    most = int(reach / round(stride) + 1e-9)
    return [round(stride) * place for place in range(-most, most + 1)]


def _ranks(series: NDArray[np.floating[Any]], margin: int) -> Doubles:
    """Return mean ranks of what is known of each series, followed by `margin` missing steps."""
    ranks: Doubles = rankdata(series, axis=0, nan_policy="omit")
    return np.pad(ranks, ((0, margin), (0, 0)), constant_values=np.nan)


def _draw_shifts(statistics: Doubles, least: int, shifts: int, seed: int) -> NDArray[np.int64]:
    if np.isnan(statistics[0]):
        raise InputError(
            "activity and rain cannot be compared: no station has enough hours with both, in which both change",
            hint="give rain of the test part, and a longer record",
        )
    allowed = np.arange(least, len(statistics) - least + 1)
    allowed = allowed[~np.isnan(statistics[allowed])]
    if not len(allowed):
        raise InputError(
            f"the record is too short for shifts of at least {least} steps either way",
            hint="give a longer record, or a smaller least shift",
        )
    return np.random.default_rng(seed).choice(allowed, size=shifts)


def _check(checkpoints: Sequence[ModelActivity], rain: NDArray[np.floating[Any]], lags: NDArray[np.int64]) -> None:
    if not len(checkpoints) or not len(lags):
        raise ValueError("at least one checkpoint and one lag are needed")
    if wrong := [c.name for c in checkpoints if c.activity.shape != rain.shape]:
        raise ValueError(f"the activity of {wrong} is not on the hours and stations of the rain")
    if np.abs(lags).max() >= len(rain):
        raise InputError(
            f"the longest lag, {np.abs(lags).max()} steps, is not shorter than the record of {len(rain)} steps",
            hint="give a longer record, or a shorter longest lag",
        )
