"""From readings to an account: what is left open is chosen by cross-validation, then everything is fitted to all of it.

The training part is cut into blocks of time. What is to be chosen is fitted without one block and tried on it, in turn,
and last on the validation windows that may choose; what has the smallest mean absolute error over all of them is taken.
A season that two years merely happened to have does not outlast that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from candor.account.account import Account
from candor.account.deviations import Deviations
from candor.account.flow import Flow, fit_flow
from candor.account.neighbours import Links, links_of, no_links
from candor.account.regression import Columns, Moments, Penalties, moves_of, regress
from candor.account.settings import AccountSettings
from candor.account.usual import Season, Values, fit_usual, seasons_of, spread_of
from candor.core.arrays import Doubles, Integers
from candor.core.progress import Report, silent
from candor.data.panel import Panel
from candor.data.preprocessing import fill
from candor.data.protocol import Origins, Split
from candor.data.times import calendar_of

_BLOCKS = 4
_SENSORS_THAT_CHOOSE = 16
_WINDOWS_THAT_FIT, _WINDOWS_THAT_TRY = 6_000, 600  # of each block, where something is chosen
_MOST_WINDOWS = 10_000  # that the account is fitted to; neighbouring ones say nearly the same
_READINGS_OF_DELAYS, _FEWEST_ROWS_OF_DELAYS = 1_000_000, 4_000
_WINDOWS_OF_ALL = 40_000  # and sensors, from which the kernel of all sensors is learned
_OWN_PENALTIES = (1.0, 100.0, 3_000.0, 100_000.0)
_EDGE_PENALTIES = (100.0, 3_000.0, 100_000.0)
_WORTHWHILE = 0.998  # of the error of what is simpler
_WORTHWHILE_YEAR = 0.98  # the same of a wave over the year: what a few years had in common seldom comes back as it was


@dataclass(frozen=True, eq=False)
class Fold:
    """Windows to fit to and windows to try on, with deviations that know nothing of the second.

    Deviations are known ones, with NaN, and filled ones, each time x sensor.
    """

    deviations: Deviations
    known: Values
    filled: Values
    fitting: Origins
    trying: Origins
    kernel: Doubles
    """Own lags and constant of all sensors together, (lag + 1) x step, from which each sensor's begin."""

    def left(self, origins: Origins, horizon: int, column: int) -> Doubles:
        """Return what the kernel of all sensors leaves of the moves of one, window x step, NaN where missing."""
        alone = no_links().columns_of(column, len(self.kernel) - 1)
        moves = moves_of(self.known, self.filled, origins, horizon, column)
        left: Doubles = moves - alone.read(self.filled, origins) @ self.kernel
        return left


class Fitting:
    """The fitting of one account.

    Args:
        panel: the readings.
        split: its training part is learned from, and its validation part helps to choose.
        history: rows that are read before each forecast.
        horizon: rows that are forecast.
        report: progress callback.
    """

    def __init__(self, panel: Panel, split: Split, history: int, horizon: int, report: Report = silent) -> None:
        self._panel, self._split, self._history, self._horizon = panel, split, history, horizon
        self._calendar, self._report = calendar_of(panel.times), report

    def fit(self, settings: AccountSettings) -> tuple[Account, AccountSettings]:
        """Return the account and the settings with everything chosen."""
        columns = self._sensors_that_choose()
        season = self._choose_season(settings, columns)
        whole = self._fold(season, slice(0, 0), self._split.train, self._split.validation, None)
        flow = self._flow(whole.known)
        links = links_of(self._panel.edges, flow.delays, self._history)
        if "arrivals" not in settings.parts:
            links = no_links()
        parts, penalties = settings.parts, Penalties(0.0, None)
        if "own" in parts:
            penalties = self._choose_penalties(settings, season, links, columns)
        if penalties.edges is None:
            links, parts = no_links(), tuple(part for part in parts if part != "arrivals")
        chosen = {
            "parts": parts, "cycle": season.cycle, "year": season.year,
            "own_penalty": penalties.own, "edge_penalty": penalties.edges,
        }  # fmt: skip
        return self._solve(whole, links, flow, penalties, "own" in parts), settings.model_copy(update=chosen)

    def _sensors_that_choose(self) -> Integers:
        """Return some sensors, evenly spread, that have readings in training."""
        known = np.flatnonzero(self._panel.mask[: self._split.train_end].any(axis=0))
        return _spread_evenly(known, _SENSORS_THAT_CHOOSE)

    def _choose_season(self, settings: AccountSettings, columns: Integers) -> Season:
        """Return which cycles to tell apart: those with which the sensor's own past forecasts best."""
        if "usual" not in settings.parts:
            return Season("none", False)
        there = seasons_of(self._panel.times.interval, self._split.train_end)
        wanted = [
            season
            for season in there
            if settings.cycle in (None, season.cycle) and settings.year in (None, season.year)
        ] or [Season(settings.cycle or "none", settings.year or False)]
        if len(wanted) == 1:
            return wanted[0]
        penalties, errors = [Penalties(settings.own_penalty or _OWN_PENALTIES[1], None)], []
        for done, season in enumerate(wanted):
            error = float(self._errors(season, no_links(), penalties, columns)[0])
            errors.append(error / _WORTHWHILE_YEAR if season.year else error)
            self._report("account: choosing what is usual", (done + 1) / len(wanted))
        return wanted[_simplest_of_the_best(errors)]

    def _choose_penalties(
        self, settings: AccountSettings, season: Season, links: Links, columns: Integers
    ) -> Penalties:
        """Return the penalties, and whether edges are read at all."""
        own = _OWN_PENALTIES if settings.own_penalty is None else (settings.own_penalty,)
        edges: list[float | None] = [None]
        if len(links):
            edges = [None, *reversed(_EDGE_PENALTIES)] if settings.edge_penalty is None else [settings.edge_penalty]
        wanted = [Penalties(*pair) for pair in product(reversed(own), edges)]
        if len(wanted) == 1:
            return wanted[0]
        self._report("account: choosing penalties", None)
        errors = self._errors(season, links, wanted, columns)
        alone = [place for place, one in enumerate(wanted) if one.edges is None or len(edges) == 1]
        best_alone = alone[int(np.argmin(errors[alone]))]
        best = int(np.argmin(errors))
        return wanted[best if errors[best] < _WORTHWHILE * errors[best_alone] else best_alone]

    def _errors(self, season: Season, links: Links, wanted: Sequence[Penalties], columns: Integers) -> Doubles:
        """Return the mean absolute error of each of some penalties over all folds, in the sensors' units."""
        by_fold = []
        for fold in self._folds(season, columns if not len(links) else None):
            sums, count = np.zeros(len(wanted)), 0
            for place, sensor in enumerate(columns):
                column = int(sensor) if len(links) else place
                reading = links.columns_of(column, self._history)
                if wanted == [one for one in wanted if one.edges is None]:
                    reading = no_links().columns_of(column, self._history)
                found, known = self._tried(fold, reading, wanted, column)
                sums, count = sums + found, count + known
            by_fold.append(sums / max(count, 1))
        # The newest windows count as much as all that came before: what is to be forecast is newer still.
        return (
            np.mean([np.mean(by_fold[:-1] or by_fold, axis=0), by_fold[-1]], axis=0)
            if by_fold
            else np.zeros(len(wanted))
        )

    def _tried(self, fold: Fold, reading: Columns, wanted: Sequence[Penalties], column: int) -> tuple[Doubles, int]:
        """Return the sum of absolute errors of one sensor in a fold by penalties, and of how many errors it is."""
        moves = fold.left(fold.fitting, self._horizon, column)
        inputs, tried = reading.read(fold.filled, fold.fitting), reading.read(fold.filled, fold.trying)
        truth = fold.left(fold.trying, self._horizon, column)
        known = ~np.isnan(truth)
        own = slice(None, self._history), slice(-1, None)
        moments = {True: Moments(inputs, moves)}
        if any(one.edges is None for one in wanted) and not reading.is_own.all():
            moments[False] = Moments(np.concatenate([inputs[:, part] for part in own], axis=1), moves)
        sums = []
        for one in wanted:
            is_whole = one.edges is not None or bool(reading.is_own.all())
            penalty = reading.penalty(one)
            penalty = penalty if is_whole else np.concatenate([penalty[part] for part in own])
            read = tried if is_whole else np.concatenate([tried[:, part] for part in own], axis=1)
            errors = np.abs(truth - read @ moments[is_whole].solve(penalty))
            sums.append(float(errors[known].sum()) * float(fold.deviations.spread[column]))
        return np.array(sums), int(known.sum())

    def _folds(self, season: Season, columns: Integers | None) -> Iterator[Fold]:
        """Yield the folds: each block of the training part left out in turn, and last the validation windows."""
        train, horizon, history = self._split.train, self._horizon, self._history
        bounds = np.linspace(0, self._split.train_end, _BLOCKS + 1).astype(int)
        for first, last in pairwise(bounds.tolist()):
            trying = train[(train >= first) & (train + horizon <= last)]
            fitting = train[(train + horizon <= first) | (train - history >= last)]
            if len(trying) and len(fitting):
                yield self._fold(season, slice(first, last), fitting, trying, columns)
        if len(self._split.validation):
            yield self._fold(season, slice(0, 0), train, self._split.validation, columns)

    def _fold(self, season: Season, block: slice, fitting: Origins, trying: Origins, columns: Integers | None) -> Fold:
        """Return a fold whose deviations are told by the training part without a block of rows."""
        values = self._panel.values if columns is None else self._panel.values[:, columns]
        rows = np.delete(np.arange(self._split.train_end), block)
        calendar = self._calendar.take(rows)
        usual = fit_usual(values[rows], calendar, self._panel.times.interval, season)
        deviations = Deviations(usual, spread_of(values[rows] - usual.at(calendar), values[rows]))
        known = deviations.of(values, self._calendar)
        filled = fill(known, "last")
        some, tried = _spread_evenly(fitting, _WINDOWS_THAT_FIT), _spread_evenly(trying, _WINDOWS_THAT_TRY)
        return Fold(deviations, known, filled, some, tried, self._kernel_of_all(known, filled, some))

    def _kernel_of_all(self, known: Values, filled: Values, origins: Origins) -> Doubles:
        """Return the regression of some sensors' moves on their own lags, as if they were one: (lag + 1) x step."""
        there = np.flatnonzero(~np.isnan(known[: self._split.train_end]).all(axis=0))
        sensors = _spread_evenly(there, _SENSORS_THAT_CHOOSE)
        origins = _spread_evenly(origins, max(1, _WINDOWS_OF_ALL // max(len(sensors), 1)))
        reading = [no_links().columns_of(int(sensor), self._history) for sensor in sensors]
        if not reading:
            return np.zeros((self._history + 1, self._horizon))
        inputs = np.concatenate([one.read(filled, origins) for one in reading])
        moves = np.concatenate([moves_of(known, filled, origins, self._horizon, int(sensor)) for sensor in sensors])
        return regress(inputs, moves, reading[0].penalty(Penalties(_OWN_PENALTIES[1], None)))

    def _flow(self, known: Values) -> Flow:
        """Return how deviations travel, from the latest rows of the training part, as many as seconds allow."""
        sensors = len(self._panel.sensors)
        rows = max(_FEWEST_ROWS_OF_DELAYS, _READINGS_OF_DELAYS // max(sensors, 1))
        latest = known[: self._split.train_end][-rows:]
        self._report("account: delays along edges", None)
        return fit_flow(latest, self._panel.edges.source, self._panel.edges.target)

    def _solve(self, whole: Fold, links: Links, flow: Flow, penalties: Penalties, keeps_last: bool) -> Account:
        """Return the account that is fitted to the whole training part."""
        history, horizon, sensors = self._history, self._horizon, len(self._panel.sensors)
        own = np.zeros((sensors, history, horizon), np.float32)
        kernels = np.zeros((len(links), int(links.lags.max(initial=0)), horizon), np.float32)
        constant = np.zeros((sensors, horizon), np.float32)
        origins = _spread_evenly(self._split.train, _MOST_WINDOWS)
        for sensor in range(sensors if keeps_last else 0):
            reading = links.columns_of(sensor, history)
            left = whole.left(origins, horizon, sensor)
            weights = regress(reading.read(whole.filled, origins), left, reading.penalty(penalties))
            own[sensor], constant[sensor] = weights[:history] + whole.kernel[:-1], weights[-1] + whole.kernel[-1]
            place = history
            for link in range(*np.searchsorted(links.receiver, [sensor, sensor + 1])):
                lags = int(links.lags[link])
                kernels[link, :lags] = weights[place : place + lags]
                place += lags
            self._report("account: own and arrivals", (sensor + 1) / sensors)
        return Account(whole.deviations, own, links, kernels, constant, keeps_last, flow)


def _simplest_of_the_best(errors: Sequence[float]) -> int:
    """Return the place of the smallest error, or of an earlier one that is hardly larger."""
    good = min(errors) / _WORTHWHILE
    return next(place for place, error in enumerate(errors) if error <= good)


def _spread_evenly(origins: Origins, most: int) -> Origins:
    """Return at most so many origins, evenly spread."""
    if len(origins) <= most:
        return origins
    return origins[np.linspace(0, len(origins) - 1, most).round().astype(np.int64)]
