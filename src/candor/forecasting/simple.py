"""The simple rules that every model is compared with.

All of them learn from the training part only, use no reading from a forecast's origin on, and always give a number: a
sensor without recent readings falls back to its training mean, and one without any to the mean of all sensors.
"""

from datetime import timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass

from candor.core.progress import Report
from candor.data.panel import Panel
from candor.data.preprocessing import Scaler, fill, fit_scaler
from candor.data.protocol import Origins, Split
from candor.data.times import DAY, TimeAxis
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State, forecasters

_MOST_SEASONS_BACK = 4


def training_means(panel: Panel, split: Split) -> NDArray[np.float32]:
    """Return each sensor's mean over the training period, or that of all sensors, or zero."""
    values = panel.values[: split.train_end].astype(np.float64)
    count, total = np.count_nonzero(~np.isnan(values), axis=0), np.nansum(values, axis=0)
    overall = total.sum() / count.sum() if count.sum() else 0.0
    return np.where(count > 0, total / np.maximum(count, 1), overall).astype(np.float32)


@forecasters.register("last-value")
@dataclass(config=REFUSE_UNKNOWN)
class LastValue(Forecaster):
    """Tomorrow is like now: the last reading of each sensor, however long ago it was."""

    name = "last-value"

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        return {"mean": training_means(panel, split)}

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        filled = fill(panel.values, "last", self.state_["mean"])
        return np.repeat(filled[origins - 1][:, None, :], self.horizon, axis=1)


@forecasters.register("seasonal-naive")
@dataclass(config=REFUSE_UNKNOWN)
class SeasonalNaive(Forecaster):
    """Next time is like last time: the reading one season earlier, or up to four where that is missing.

    Args:
        season: steps of a season; None takes a day, a week or a year (365 days), whichever had the smaller error in
            training. It looks back further than `history`, as the rule is used in practice.
    """

    season: PositiveInt | None = None

    name = "seasonal-naive"

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        season = self.season or self._best_season(panel, split)
        return {"mean": training_means(panel, split), "season": np.array([season], np.int64)}

    @property
    def rows_needed(self) -> int:
        """A season: steps beyond one repeat it."""
        return max(self.history, self._season)

    @property
    def rows_read(self) -> int:
        """The seasons that are tried where readings are missing."""
        return max(self.history, _MOST_SEASONS_BACK * self._season)

    @property
    def _season(self) -> int:
        self._check_fitted()
        return int(self.state_["season"][0])

    def _best_season(self, panel: Panel, split: Split) -> int:
        values = panel.values[: split.train_end]
        seasons = [span // panel.times.interval for span in (DAY, 7 * DAY, 365 * DAY)]
        seasons = [season for season in seasons if season >= 2 and self._back(season)[-1] * 2 <= len(values)]
        errors = {season: self._error(values, season) for season in seasons}
        known = [season for season in seasons if not np.isnan(errors[season])]
        return min(known, key=errors.__getitem__, default=1)

    def _error(self, values: NDArray[np.float32], season: int) -> float:
        """Return the mean error over all steps of the horizon, NaN where a step met no pair of readings."""
        lags, steps = np.unique(self._back(season), return_counts=True)
        differences = [np.abs(values[lag:] - values[:-lag]) for lag in lags]
        if any(np.isnan(difference).all() for difference in differences):
            return float("nan")
        return float(np.average([np.nanmean(difference) for difference in differences], weights=steps))

    def _back(self, season: int) -> NDArray[np.int64]:
        """Return for every step of the horizon how far back the reading lies that is repeated."""
        return (np.arange(self.horizon) // season + 1) * season

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        season = self._season
        steps, back = np.arange(self.horizon), self._back(season)
        forecast = np.full((len(origins), self.horizon, len(panel.sensors)), np.nan, np.float32)
        for _ in range(_MOST_SEASONS_BACK):
            rows = origins[:, None] + steps - back
            earlier = panel.values[np.maximum(rows, 0)]
            forecast = np.where(np.isnan(forecast) & (rows >= 0)[..., None], earlier, forecast)
            back = back + season
        return np.where(np.isnan(forecast), self.state_["mean"], forecast)


@forecasters.register("historical-average")
@dataclass(config=REFUSE_UNKNOWN)
class HistoricalAverage(Forecaster):
    """Mondays at eight are like other Mondays at eight: the training mean at the same time of the week."""

    name = "historical-average"

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        values = panel.values[: split.train_end].astype(np.float64)
        slots = _time_of_week(panel.times.slice(0, len(values)))
        means = pd.DataFrame(values).groupby(slots).mean().reindex(range(7 * _slots_per_day(panel.times.interval)))
        return {"profile": np.where(means.isna(), training_means(panel, split), means).astype(np.float32)}

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        slots = _time_of_week(panel.times.slice(0, panel.times.length + self.horizon))
        return np.asarray(self.state_["profile"][slots[origins[:, None] + np.arange(self.horizon)]])


def _slots_per_day(interval: timedelta) -> int:
    return max(1, -(-DAY // interval))


def _time_of_week(times: TimeAxis) -> NDArray[np.int64]:
    """Return the slot of the week, one per interval (per day for daily data), on the local clock."""
    local, interval = times.local, times.interval.total_seconds()
    seconds = np.asarray(local.hour * 3600 + local.minute * 60 + local.second)
    return np.asarray(local.day_of_week) * _slots_per_day(times.interval) + (seconds // interval).astype(np.int64)


@forecasters.register("linear")
@dataclass(config=REFUSE_UNKNOWN)
class Linear(Forecaster):
    """Each step ahead is a weighted sum of the sensor's own window: ridge regression, in closed form.

    The penalty pulls towards the last value. Gaps in the window hold the last reading before them, whatever the
    protocol feeds to networks.

    Args:
        penalty: ridge penalty on weights of z-scored readings, in units of one training sample of unit variance.
    """

    penalty: PositiveFloat = 1.0

    name = "linear"

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        means = training_means(panel, split)
        scaler = fit_scaler(panel.values[: split.train_end])
        inputs = scaler.scale(fill(panel.values, "last", means))
        targets = scaler.scale(panel.values)
        rows = split.train[:, None] + np.arange(self.horizon)
        weights = np.zeros((len(panel.sensors), self.horizon, self.history + 1))
        for sensor in range(len(panel.sensors)):
            windows = self._windows(inputs[:, sensor], split.train).astype(np.float64)
            weights[sensor] = _ridge(windows, targets[:, sensor][rows].astype(np.float64), self.penalty)
            report(f"fitting {self.name}", (sensor + 1) / len(panel.sensors))
        scale = np.array([scaler.mean, scaler.deviation])
        return {"weights": weights.astype(np.float32), "mean": means, "scale": scale}

    def _windows(self, series: NDArray[np.float32], origins: Origins) -> NDArray[np.float32]:
        """Return the windows before the origins with a one at the end of each: origin x (history + 1) (x sensor)."""
        windows = series[origins[:, None] + np.arange(-self.history, 0)]
        return np.concatenate([windows, np.ones_like(windows[:, :1])], axis=1)

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        scaler = Scaler(*map(float, self.state_["scale"]))
        inputs = scaler.scale(fill(panel.values, "last", self.state_["mean"]))
        # sensor x origin x window, so that one batched product serves all sensors
        windows = np.ascontiguousarray(self._windows(inputs, origins).transpose(2, 0, 1))
        forecast = windows @ self.state_["weights"].transpose(0, 2, 1)
        return np.ascontiguousarray(scaler.unscale(forecast).transpose(1, 2, 0))


def _ridge(windows: NDArray[np.float64], targets: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """Return the weights of every step, step x window; a window counts for the steps whose target was measured.

    The penalty pulls towards the last value of the window, so that few or no samples give the last-value rule.
    """
    last = windows.shape[1] - 2  # the one at the end is the constant
    targets = targets - windows[:, [last]]
    observed = ~np.isnan(targets)
    whole = observed.all(axis=1)
    shared = windows[whole].T @ windows[whole] + penalty * np.eye(windows.shape[1])
    cross = targets[whole].T @ windows[whole]
    rest, rest_targets, rest_observed = windows[~whole], targets[~whole], observed[~whole]
    weights = np.empty_like(cross)
    for step in range(targets.shape[1]):
        known = rest[rest_observed[:, step]]
        moments = cross[step] + rest_targets[rest_observed[:, step], step] @ known
        weights[step] = np.linalg.solve(shared + known.T @ known, moments)
    weights[:, last] += 1.0
    return weights
