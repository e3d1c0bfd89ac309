"""How far a forecast may be off: intervals and probabilities by conformal quantiles of past residuals.

Of one step of one sensor, n past residuals (observed - forecast) that the forecaster did not learn from are sorted:
r(1) <= .. <= r(n). With a miss rate of a and k = floor((n + 1) a / 2), a new observation lies between forecast + r(k)
and forecast + r(n + 1 - k), the ceil((n + 1)(1 - a / 2))-th smallest. If the new residual could as well have been any
of the old ones (exchangeability), its probability to fall below is k / (n + 1) <= a / 2, and above it is the same: the
coverage is at least 1 - a and less than 1 - a + 2 / (n + 1), whatever the model and the law of its errors (Vovk,
Gammerman and Shafer, 2005; Lei et al., 2018). Residuals keep their sign and each side gets half of the misses because
errors are often lopsided: a river that rises in a storm is missed by far more upwards than downwards.

A step of a sensor with too few residuals for the coverage asked borrows those of the same sensor at all steps, and if
these are too few as well, those of all sensors. What is borrowed is divided by the typical size of residuals where it
comes from and multiplied by that where it goes, and never makes an interval narrower than the own residuals reach.

Errors that change over time are not exchangeable: `AdaptiveCoverage` follows them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from candor.core.arrays import Floats
from candor.core.errors import InputError

Ends = tuple[Floats, Floats]

# With 999 or 99 residuals (n + 1) a / 2 is whole for the usual miss rates: the coverage is just what was asked.
_MOST_RESIDUALS, _LEAST_RESIDUALS = 999, 99
_MOST_NUMBERS = 5_000_000  # over all steps and sensors
_ROUNDING = 1e-9  # keeps 1000 x (1 - 0.9) / 2 from being 49


@dataclass(frozen=True)
class Borrowing:
    """How many of the `cells` (steps x sensors) have too few residuals of their own for a coverage."""

    cells: int  # steps x sensors
    from_sensor: int  # cells that borrow from the other steps of their sensor
    from_network: int  # cells that borrow from all sensors
    # those among `from_network` for which all residuals together are too few: their interval reaches as far as the
    # residuals do, and promises less than was asked
    beyond_reach: int


@dataclass(frozen=True, eq=False)
class _Pool:
    """Sorted residuals that several cells may share, divided by the `size` (step x sensor) of each cell they serve.

    `values` is step x sensor x rank, with a length of 1 where all steps or sensors share; after `count` of them
    (step x sensor in the same way) comes +inf.
    """

    values: Floats
    count: NDArray[np.int64]
    size: Floats | None = None

    def ends(self, tail: NDArray[np.float64]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the residuals that leave out a share `tail` on each side, and whether there are enough for it.

        Where there are too few these are the extremes, and +inf and -inf where there is none.
        """
        whole = np.floor((self.count + 1) * tail + _ROUNDING).astype(np.int64)
        rank = np.maximum(whole, 1)
        cell = np.ogrid[: self.count.shape[0], : self.count.shape[1]]
        lower = self.values[*cell, rank - 1]
        upper = np.where(self.count > 0, self.values[*cell, self.count - rank], self.values.dtype.type(-np.inf))
        if self.size is not None:
            lower, upper = lower * self.size, upper * self.size
        return lower, upper, np.broadcast_to(whole >= 1, lower.shape)

    def shares_below(self, step: int, sensor: int, residual: NDArray[np.float64]) -> tuple[Floats, Floats]:
        """Return bounds of the probability that a new residual of one cell lies below those given.

        Both are the same among the residuals of the pool: linear between two of them, the middle of the jump at one.
        """
        cell = min(step, self.count.shape[0] - 1), min(sensor, self.count.shape[1] - 1)
        count = int(self.count[cell])
        values = self.values[cell][:count]
        size = 1.0 if self.size is None else float(self.size[step, sensor])
        with np.errstate(over="ignore"):  # what overflows lies beyond the extremes, as it should
            sought = (residual / size).astype(values.dtype)
        below, upto = (np.searchsorted(values, sought, side) for side in ("left", "right"))
        least, greatest = below.astype(np.float64), upto + 1.0
        among = (below > 0) & (upto < count) & (below == upto)
        left, right = (values[below[among] + shift].astype(np.float64) for shift in (-1, 0))
        least[among] = greatest[among] = below[among] + (sought[among] - left) / (right - left)
        at_one = below < upto
        least[at_one] = greatest[at_one] = (below + upto + 1)[at_one] / 2
        return least / (count + 1), greatest / (count + 1)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What past residuals say about the errors to come, made by `calibrate`.

    Args:
        residuals: observed - forecast in the sensor's unit, step x sensor x rank, rising, then +inf where a cell has
            fewer than others.
        counts: how many residuals each cell has, step x sensor.
    """

    residuals: Floats
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.residuals.ndim != 3 or self.counts.shape != self.residuals.shape[:2]:
            raise ValueError(f"residuals of shape {self.residuals.shape} do not fit counts of {self.counts.shape}")
        if not np.issubdtype(self.counts.dtype, np.integer) or not self.counts.any():
            raise ValueError("the counts are not whole numbers, or all zero")
        if not (np.isfinite(self.residuals).sum(-1) == self.counts).all():
            raise ValueError("the counts are not those of the residuals")
        if not (self.residuals[..., 1:] >= self.residuals[..., :-1]).all() or (self.residuals == -np.inf).any():
            raise ValueError("the residuals are not sorted")

    def interval(self, forecast: Floats, coverage: ArrayLike = 0.9) -> Ends:
        """Return the lower and upper ends of intervals that hold the observation with a probability of `coverage`.

        Args:
            forecast: origin x step x sensor, in the sensor's unit; so are the ends.
            coverage: between 0 and 1; a number, or an array that broadcasts against the forecasts.
        """
        self._check(forecast)
        lower, upper, _ = self._ends(coverage)
        return forecast + lower, forecast + upper

    def probability_below(self, forecast: Floats, threshold: ArrayLike) -> NDArray[np.float64]:
        """Return the probability, between 0 and 1 and neither of them, that the observation lies below a threshold.

        It never falls as the threshold rises; at an interval's ends it is half the miss rate from either side.

        Args:
            forecast: origin x step x sensor, in the sensor's unit.
            threshold: in the sensor's unit; a number, or an array that broadcasts against the forecasts.
        """
        self._check(forecast)
        limit = np.asarray(threshold, np.float64)
        if not np.isfinite(limit).all():
            raise InputError("a threshold must be a finite number", hint="give it in the unit of the sensor")
        residual = np.broadcast_to(limit, forecast.shape) - forecast
        probability = np.empty(forecast.shape)
        for step, sensor in np.ndindex(self.counts.shape):
            probability[:, step, sensor] = self._share_below(step, sensor, residual[:, step, sensor])
        return probability

    def borrowing(self, coverage: float = 0.9) -> Borrowing:
        """Return how many cells need residuals of others for a coverage."""
        _, _, rung = self._ends(coverage)
        sensor, network, beyond = (int((rung == number).sum()) for number in (1, 2, 3))
        return Borrowing(self.counts.size, sensor, network + beyond, beyond)

    def to_state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `from_state` makes the same calibration."""
        return {"residuals": self.residuals, "counts": self.counts}

    @staticmethod
    def from_state(state: Mapping[str, NDArray[Any]]) -> "Calibration":
        """Return the calibration that was turned into these arrays."""
        try:
            return Calibration(state["residuals"], state["counts"])
        except (KeyError, ValueError) as error:
            raise InputError(f"the saved calibration is damaged ({error})", hint="calibrate again") from None

    def _ends(self, coverage: ArrayLike) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Return the residuals at both ends, and which pool was enough: 0 own, 1 sensor, 2 network, 3 none."""
        tail = (1.0 - _checked(coverage)) / 2
        lower, upper, is_enough = self._own.ends(tail)
        rung = np.where(is_enough, 0, 1)
        for pool in self._lenders():
            if is_enough.all():
                break
            # Never inside what narrower pools reached, so that more coverage never is a narrower interval.
            low, high, is_enough_now = pool.ends(tail)
            lower = np.where(is_enough, lower, np.minimum(lower, low))
            upper = np.where(is_enough, upper, np.maximum(upper, high))
            is_enough = is_enough | is_enough_now
            rung += ~is_enough
        return lower, upper, rung

    def _share_below(self, step: int, sensor: int, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability that a new residual of one cell lies below each of those given."""
        least, greatest = self._own.shares_below(step, sensor, residual)
        for pool in self._lenders():
            # Beyond the extremes of a pool only bounds are known; a wider pool says more.
            is_open = least < greatest
            if not is_open.any():
                break
            wider = pool.shares_below(step, sensor, residual[is_open])
            bounds = least[is_open], greatest[is_open]
            least[is_open], greatest[is_open] = (np.clip(share, *bounds) for share in wider)
        return (least + greatest) / 2

    @cached_property
    def _own(self) -> _Pool:
        return _Pool(self.residuals, self.counts)

    def _lenders(self) -> Iterator[_Pool]:
        """Yield the pools a cell may borrow from, the nearest first; each is made when it is first needed."""
        yield self._of_sensors
        yield self._of_network

    @cached_property
    def _of_sensors(self) -> _Pool:
        size = _typical_sizes(self.residuals, self.counts)
        scaled = self.residuals / size[..., None]
        steps_together = scaled.swapaxes(0, 1).reshape(1, self.counts.shape[1], -1)
        return _Pool(np.sort(steps_together), self.counts.sum(0, keepdims=True), size)

    @cached_property
    def _of_network(self) -> _Pool:
        everything = np.sort(self._of_sensors.values, axis=None)[: self.counts.sum()]
        return _Pool(everything[None, None], self.counts.sum(keepdims=True), self._of_sensors.size)

    def _check(self, forecast: Floats) -> None:
        steps, sensors = self.counts.shape
        if forecast.ndim != 3 or forecast.shape[1:] != (steps, sensors):
            raise ValueError(
                f"the forecast has shape {forecast.shape}; expected are origins x {steps} steps x {sensors} sensors"
            )
        if not np.isfinite(forecast).all():
            raise ValueError("the forecasts hold numbers that are not finite")


def _checked(coverage: ArrayLike) -> NDArray[np.float64]:
    shares = np.asarray(coverage, np.float64)
    if not ((shares > 0) & (shares < 1)).all():  # so that NaN is refused as well
        raise InputError(f"a coverage must lie between 0 and 1, not {shares}", hint="give 0.9 for 90 %")
    return shares


def calibrate(residuals: Floats) -> Calibration:
    """Return the calibration that follows from residuals of windows the forecaster did not learn from.

    Of each step and sensor at most 999 residuals are kept, evenly spread over the windows in which there is one; fewer,
    but at least 99, where there would be more than five million in all. The choice does not depend on their values, so
    what is kept is as exchangeable as the whole.

    Args:
        residuals: observed - forecast in the sensor's unit, window x step x sensor, windows in order of time; NaN
            where nothing was observed.
    """
    if residuals.ndim != 3:
        raise ValueError(f"residuals are window x step x sensor, not of shape {residuals.shape}")
    if np.isinf(residuals).any():
        raise ValueError("the residuals hold infinite numbers; what is missing must be NaN")
    is_observed = ~np.isnan(residuals)
    if not is_observed.any():
        raise InputError(
            "nothing was observed in the windows set aside for calibration, so nothing is known of the errors",
            hint="set aside a period in which sensors report",
        )
    _, steps, sensors = residuals.shape
    most = int(np.clip(_MOST_NUMBERS // (steps * sensors), _LEAST_RESIDUALS, _MOST_RESIDUALS))
    counts = np.minimum(is_observed.sum(0), most)
    kept = np.empty((steps, sensors, counts.max()), np.result_type(residuals, np.float32))
    for step in range(steps):
        number = np.cumsum(is_observed[:, step], axis=0)  # of each residual among those of its column
        total = np.maximum(number[-1], 1)
        wanted = np.minimum(total, most)
        chosen = is_observed[:, step] & (number * wanted // total > (number - 1) * wanted // total)
        column = np.where(chosen, residuals[:, step], np.inf).astype(kept.dtype)
        kept[step] = np.sort(column.T)[:, : counts.max()]
    return Calibration(kept, counts)


def _typical_sizes(residuals: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return the typical size of residuals, step x sensor, in the sensor's unit and greater than zero.

    It is the mean absolute residual of the sensor, times how much larger residuals are at this step for all sensors,
    because a cell may have too few residuals of its own.
    """
    total = np.abs(residuals, where=np.isfinite(residuals), out=np.zeros_like(residuals)).sum(-1, dtype=np.float64)
    of_step = np.ones(len(counts))
    # Each factor follows from the other; where sensors lack different steps, a few rounds bring both into line.
    for _ in range(5):
        of_sensor = _known_or_nan(total.sum(0), (counts * of_step[:, None]).sum(0))
        if np.isnan(of_sensor).all():
            return np.ones(counts.shape, residuals.dtype)  # all residuals are zero
        # Relative to the sensor, so that one in another unit weighs no more than others.
        relative = np.nan_to_num(total / of_sensor)
        of_step = _known_or_nan(relative.sum(1), (counts * ~np.isnan(of_sensor)).sum(1))
        known = np.flatnonzero(~np.isnan(of_step))
        of_step = np.interp(np.arange(len(of_step)), known, of_step[known])
    of_sensor = np.where(np.isnan(of_sensor), np.nanmedian(of_sensor), of_sensor)
    size: Floats = (of_step[:, None] * of_sensor).astype(residuals.dtype)
    return np.maximum(size, np.finfo(size.dtype).tiny)


def _known_or_nan(total: NDArray[Any], count: NDArray[Any]) -> NDArray[np.float64]:
    """Return total / count, NaN where either is zero: no size follows from nothing, or from zeros alone."""
    quotient = np.full(total.shape, np.nan)
    np.divide(total, count, out=quotient, where=(total > 0) & (count > 0))
    return quotient


class AdaptiveCoverage:
    """Intervals that keep the coverage while errors drift: adaptive conformal inference (Gibbs and Candes, 2021).

    After a miss more coverage is asked of the calibration, after a hit a little less, so that the share of hits comes
    back to what is wanted. Every step of every sensor has its own level, so that one that goes astray widens no other
    interval. The interval still reaches no further than the residuals of the calibration do.

    Forecasts and readings are given in order of time, so that a reading can only change the intervals of forecasts
    made once it is known: step h (from 1) of the forecast at origin t those from origin t + h on.

    Args:
        calibration: the residuals the intervals are made of.
        coverage: the share of observations the intervals shall hold in the long run.
        rate: by how much a miss or a hit changes the level; larger follows faster and wavers more.

    `asked` is the coverage asked of the calibration next, step x sensor. It stays between a hundredth of the wanted
    coverage and a hundredth of the wanted miss rate from 1; a missing reading leaves it alone.
    """

    def __init__(self, calibration: Calibration, coverage: float = 0.9, rate: float = 0.005) -> None:
        _checked(coverage)
        if not 0 < rate < 1:
            raise InputError(f"the rate of adaption must lie between 0 and 1, not {rate}", hint="try 0.005")
        self.calibration = calibration
        self.coverage = coverage
        self.rate = rate
        self.asked = np.full(calibration.counts.shape, float(coverage))
        self._pending: dict[int, Ends] = {}  # by origin, the intervals some reading of which is still to come
        self._last_row: int | None = None

    def interval(self, origin: int, forecast: Floats) -> Ends:
        """Return the lower and upper ends, step x sensor, for the forecast whose first target is row `origin`."""
        if self._last_row is not None and origin <= self._last_row:
            raise ValueError(f"the forecast for row {origin} on comes after the reading of row {self._last_row}")
        lower, upper = self.calibration.interval(forecast[None], self.asked)
        self._pending[origin] = lower[0].copy(), upper[0].copy()
        return lower[0], upper[0]

    def observe(self, row: int, reading: Floats) -> None:
        """Learn from the readings of all sensors at one row, NaN where missing; rows come in order of time."""
        if self._last_row is not None and row <= self._last_row:
            raise ValueError(f"the reading of row {row} comes after that of row {self._last_row}")
        self._last_row = row
        steps = len(self.asked)
        for origin, (lower, upper) in self._pending.items():
            if 0 <= (step := row - origin) < steps:
                is_miss = (reading < lower[step]) | (reading > upper[step])
                change = self.rate * (is_miss - (1.0 - self.coverage))
                self.asked[step] += np.where(np.isnan(reading), 0.0, change)
        np.clip(self.asked, self.coverage / 100, 1 - (1 - self.coverage) / 100, out=self.asked)
        self._pending = {origin: ends for origin, ends in self._pending.items() if origin + steps > row + 1}

    def walk(self, origins: NDArray[np.int64], forecast: Floats, readings: Floats) -> Ends:
        """Return the lower and upper ends of all forecasts, origin x step x sensor, made one after the other.

        Args:
            origins: row of the first target of each forecast, rising.
            forecast: origin x step x sensor, in the sensor's unit.
            readings: row x sensor, NaN where missing, in the sensor's unit; rows from the last origin on are not used.
        """
        if np.any(np.diff(origins) <= 0):
            raise ValueError("the origins must rise")
        ends = np.empty((2, *forecast.shape), np.result_type(forecast, self.calibration.residuals))
        row = int(origins[0]) if len(origins) else 0
        for origin, one, at in zip(origins.tolist(), forecast, ends.swapaxes(0, 1), strict=True):
            for known in range(row, origin):
                self.observe(known, readings[known])
            row = origin
            at[:] = self.interval(origin, one)
        return ends[0], ends[1]
