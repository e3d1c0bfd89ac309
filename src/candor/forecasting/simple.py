"""The simple rules that every later number is compared with.

All of them learn from the training part only, use no reading from a forecast's origin on, and always give a number: a
sensor that was silent falls back to its training mean, and one that never spoke to the mean of all sensors.
"""

from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeFloat
from pydantic.dataclasses import dataclass

from candor.data.missing import Fill, fill
from candor.data.panel import Panel
from candor.data.scaling import fit_scaler
from candor.data.splits import Origins, Split
from candor.data.times import DAY, TimeAxis
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State, forecasters

_MOST_SEASONS_BACK = 4


def training_means(panel: Panel, split: Split) -> NDArray[np.float32]:
    """Returns each sensor's mean over the training period, or that of all sensors, or zero."""
    values = panel.values[: split.train_end].astype(np.float64)
    observed = ~np.isnan(values)
    count, total = observed.sum(axis=0), np.where(observed, values, 0.0).sum(axis=0)
    overall = total.sum() / count.sum() if count.sum() else 0.0
    return np.where(count > 0, total / np.maximum(count, 1), overall).astype(np.float32)


@forecasters.register("last-value")
@dataclass(config=REFUSE_UNKNOWN)
class LastValue(Forecaster):
    """Tomorrow is like now: the last reading of each sensor, however long ago it was."""

    name = "last-value"

    def _learn(self, panel: Panel, split: Split) -> State:
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

    season: int | None = None

    name = "seasonal-naive"

    def _learn(self, panel: Panel, split: Split) -> State:
        season = self.season or self._best_season(panel, split)
        return {"mean": training_means(panel, split), "season": np.array([season], np.int64)}

    def _best_season(self, panel: Panel, split: Split) -> int:
        values, interval = panel.values[: split.train_end], panel.times.interval
        errors: dict[int, float] = {}
        for span in (DAY, 7 * DAY, 365 * DAY):
            season = span // interval
            lag = season * -(-self.horizon // season) if season else 0
            if season < 2 or lag * 2 > len(values):
                continue
            error = np.abs(values[lag:] - values[:-lag])
            if (~np.isnan(error)).any():
                errors[season] = float(np.nanmean(error))
        return min(errors, key=lambda season: errors[season]) if errors else 1

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        season = int(self.state_["season"][0])
        steps = np.arange(self.horizon)
        back = (steps // season + 1) * season
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

    def _learn(self, panel: Panel, split: Split) -> State:
        values = panel.values[: split.train_end].astype(np.float64)
        slots = _time_of_week(panel.times.slice(0, len(values)))
        observed = ~np.isnan(values)
        shape = (7 * _slots_per_day(panel.times.interval), values.shape[1])
        count, total = np.zeros(shape), np.zeros(shape)
        np.add.at(count, slots, observed)
        np.add.at(total, slots, np.where(observed, values, 0.0))
        means = np.where(count > 0, total / np.maximum(count, 1), training_means(panel, split))
        return {"profile": means.astype(np.float32)}

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        slots = _time_of_week(panel.times.slice(0, panel.times.length + self.horizon))
        profile: NDArray[np.float32] = self.state_["profile"]
        return profile[slots[origins[:, None] + np.arange(self.horizon)]]


def _slots_per_day(interval: timedelta) -> int:
    return max(1, -(-DAY // interval))


def _time_of_week(times: TimeAxis) -> NDArray[np.int64]:
    """Returns the slot of the week, one per interval (per day for daily data), on the local clock."""
    local, interval = times.local, times.interval.total_seconds()
    seconds = np.asarray(local.hour * 3600 + local.minute * 60 + local.second)
    return np.asarray(local.dayofweek) * _slots_per_day(times.interval) + (seconds // interval).astype(np.int64)


@forecasters.register("linear")
@dataclass(config=REFUSE_UNKNOWN)
class Linear(Forecaster):
    """Each step ahead is a weighted sum of the window: ridge regression, in closed form.

    The window is taken relative to its last value and one set of weights serves all sensors, so that a short record
    suffices and a drifting level does no harm.

    Args:
        penalty: ridge penalty, in units of one training sample of unit variance.
        fill: how gaps in the window are filled.
    """

    penalty: NonNegativeFloat = 1.0
    fill: Fill = "last"

    name = "linear"

    def _learn(self, panel: Panel, split: Split) -> State:
        means = training_means(panel, split)
        inputs = fill(panel.values, self.fill, means)
        deviation = fit_scaler(panel.values[: split.train_end]).deviation
        size = self.history + 1
        gram = np.zeros((self.horizon, size, size))
        cross = np.zeros((self.horizon, size))
        rows_at_a_time = max(1, 4_000_000 // (len(panel.sensors) * (self.history + self.horizon)))
        for first in range(0, len(split.train), rows_at_a_time):
            origins = split.train[first : first + rows_at_a_time]
            features, level = self._features(inputs, origins, deviation)
            targets = panel.values[origins[:, None] + np.arange(self.horizon)].transpose(0, 2, 1)
            targets = ((targets - level[..., None]) / deviation).reshape(-1, self.horizon).astype(np.float64)
            _add_normal_equations(gram, cross, features.reshape(-1, size).astype(np.float64), targets)
        ridge = self.penalty * np.eye(size)
        weights = (
            np.linalg.solve(gram + ridge, cross[..., None])[..., 0]
            if self.penalty
            else np.stack([np.linalg.lstsq(g, c, rcond=None)[0] for g, c in zip(gram, cross, strict=True)])
        )
        return {"weights": weights.astype(np.float32), "mean": means, "deviation": np.array([deviation], np.float32)}

    def _features(
        self, inputs: NDArray[np.float32], origins: Origins, deviation: float
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns the windows relative to their last values, origin x sensor x (history + 1), and those values."""
        windows = inputs[origins[:, None] + np.arange(-self.history, 0)].transpose(0, 2, 1)
        level = windows[..., -1]
        relative = (windows - level[..., None]) / np.float32(deviation)
        return np.concatenate([relative, np.ones((*level.shape, 1), np.float32)], axis=-1), level

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        deviation = float(self.state_["deviation"][0])
        inputs = fill(panel.values, self.fill, self.state_["mean"])
        features, level = self._features(inputs, origins, deviation)
        change = features @ self.state_["weights"].T
        return np.ascontiguousarray((level[..., None] + deviation * change).transpose(0, 2, 1))


def _add_normal_equations(
    gram: NDArray[np.float64], cross: NDArray[np.float64], features: NDArray[np.float64], targets: NDArray[np.float64]
) -> None:
    """Adds a block's products for every step; a sample counts for the steps whose target was measured."""
    observed = ~np.isnan(targets)
    whole = observed.all(axis=1)
    gram += features[whole].T @ features[whole]
    cross += targets[whole].T @ features[whole]
    for step in range(targets.shape[1]):
        partly = observed[:, step] & ~whole
        gram[step] += features[partly].T @ features[partly]
        cross[step] += targets[partly, step] @ features[partly]
