"""LightGBM: gradient-boosted trees (Ke et al., NeurIPS 2017), what many would pick instead of any network.

Idea: one forest for all sensors and steps. It reads a sensor's recent readings, those of its neighbours, the calendar
of the step that is forecast and how far ahead it lies, and learns how far the target is from the last reading.

Read: the documentation of the library, which grows the trees (extra `trees`). Rows are drawn from all windows, sensors
and steps; the number of trees is that with the smallest error on rows drawn from the validation part.

Changed: nothing within the library. Around it, errors are absolute ones, as in the evaluation, instead of the usual
squared ones; it works on one thread and deterministically, so that a seed always grows the same forest; and where a
budget of time is given, no tree is begun after its end.
"""

import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt
from pydantic.dataclasses import dataclass

from candor.core.optional import needing_packages
from candor.core.progress import Report
from candor.core.settings import Settings
from candor.data.panel import Panel, adjacency_of
from candor.data.preprocessing import Fill, fill
from candor.data.protocol import Origins, Split
from candor.data.times import Calendar, calendar_of
from candor.forecasting.forecaster import REFUSE_UNKNOWN, Forecaster, State, forecasters
from candor.forecasting.simple import training_means
from candor.graph import row_normalised

_ROWS_AT_A_TIME = 200_000


class LightGbmSizes(Settings):
    """Sizes of the forest."""

    trees: PositiveInt = 200
    """At most; fewer if the validation part says so."""
    leaves: PositiveInt = 63
    """Of each tree."""
    rate: PositiveFloat = 0.1
    """How much of its correction each tree may make."""
    rows: PositiveInt = 500_000
    """Drawn at random to learn from."""
    patience: PositiveInt = 20
    """Trees without a better validation error after which no more are grown."""


@forecasters.register("lightgbm")
@dataclass(config=REFUSE_UNKNOWN)
class LightGbm(Forecaster):
    """Gradient-boosted trees over windows.

    Args:
        fill: how gaps in what is read are filled.
        sizes: of the forest.
    """

    fill: Fill = "last"
    sizes: LightGbmSizes = LightGbmSizes()

    name = "lightgbm"
    tiny: ClassVar[LightGbmSizes] = LightGbmSizes(trees=5, leaves=8, rows=3000)

    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        library, generator = _library(), np.random.default_rng(self.seed)
        state: State = {"means": training_means(panel, split), "neighbours": _neighbours(panel)}
        table = _Table(self, panel, state)
        report(f"growing {self.name}", None)
        learned = table.draw(split.train, self.sizes.rows, generator)
        data = library.Dataset(*learned, categorical_feature=[table.sensor_column], free_raw_data=False)
        drawn = table.draw(split.validation, self.sizes.rows // 5, generator) if len(split.validation) else None
        if drawn is None or not len(drawn[1]):  # no validation part, or not one reading in it
            drawn = table.draw(split.train, self.sizes.rows // 5, generator)
        validation = data.create_valid(*drawn)
        settings = {
            "objective": "l1", "num_leaves": self.sizes.leaves, "learning_rate": self.sizes.rate, "verbosity": -1,
            "seed": self.seed, "deterministic": True, "force_row_wise": True, "num_threads": 1,
        }  # fmt: skip
        callbacks = [library.early_stopping(self.sizes.patience, verbose=False), self._watch(library, report)]
        booster = library.train(settings, data, self.sizes.trees, valid_sets=[validation], callbacks=callbacks)
        text = booster.model_to_string(num_iteration=booster.best_iteration)
        return state | {"trees": np.frombuffer(text.encode(), np.uint8).copy()}

    def _watch(self, library: Any, report: Report) -> Callable[[Any], None]:
        """Return a callback that reports after every tree, and end the growth at the deadline."""
        errors: list[float] = []

        def after_tree(environment: Any) -> None:
            ((_, _, error, *_),) = environment.evaluation_result_list
            errors.append(error)
            report(f"growing {self.name}", len(errors) / self.sizes.trees)
            if time.monotonic() >= self._deadline:
                raise library.callback.EarlyStopException(int(np.argmin(errors)), environment.evaluation_result_list)

        return after_tree

    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        booster = _library().Booster(model_str=self.state_["trees"].tobytes().decode())
        table, sensors = _Table(self, panel, self.state_), len(panel.sensors)
        forecast = np.empty((len(origins), self.horizon, sensors), np.float32)
        windows_at_a_time = max(1, _ROWS_AT_A_TIME // (self.horizon * sensors))
        for first in range(0, len(origins), windows_at_a_time):
            some = origins[first : first + windows_at_a_time]
            shape = (len(some), self.horizon, sensors)
            window, steps, column = np.indices(shape).reshape(3, -1)
            change = np.asarray(booster.predict(table.features(some[window], steps, column), num_threads=1))
            forecast[first : first + len(some)] = (table.last(some[window], column) + change).reshape(shape)
        return forecast


class _Table:
    """Rows of features for an origin, a step ahead and a sensor."""

    def __init__(self, forecaster: LightGbm, panel: Panel, state: State) -> None:
        self._forecaster, self._targets = forecaster, panel.values
        self._values = fill(panel.values, forecaster.fill, state["means"])
        self._around = self._values @ state["neighbours"].T  # what the senders of each sensor's edges report
        length = panel.times.length + forecaster.horizon
        self._calendar: Calendar = calendar_of(panel.times.slice(0, length))
        self.sensor_column = 2 * forecaster.history + 4

    def last(self, origins: Origins, sensors: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the readings just before the origins."""
        return self._values[origins - 1, sensors]

    def features(self, origins: Origins, steps: NDArray[np.int64], sensors: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a row per triple: history and neighbours around the last reading, step, calendar, level, sensor."""
        seen = origins[:, None] + np.arange(-self._forecaster.history, 0)
        level = self.last(origins, sensors)
        rows = origins + steps
        columns = [
            self._values[seen, sensors[:, None]] - level[:, None],
            self._around[seen, sensors[:, None]] - level[:, None],
            np.stack([steps, self._calendar.time_of_day[rows], self._calendar.day_of_week[rows]], axis=1),
            np.stack([level, sensors], axis=1),
        ]
        return np.concatenate(columns, axis=1).astype(np.float32)

    def draw(
        self, origins: Origins, rows: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return features and targets of observed targets at random windows, steps and sensors."""
        counts = len(origins), self._forecaster.horizon, self._values.shape[1]
        window, steps, sensors = (generator.integers(0, count, rows) for count in counts)
        observed = ~np.isnan(self._targets[origins[window] + steps, sensors])
        at, steps, sensors = origins[window][observed], steps[observed], sensors[observed]
        return self.features(at, steps, sensors), self._targets[at + steps, sensors] - self.last(at, sensors)


def _neighbours(panel: Panel) -> NDArray[np.float32]:
    """Return for each sensor how much the senders of its edges count; a sensor without any counts itself."""
    weights = adjacency_of(panel).toarray().T  # receiver x sender
    np.fill_diagonal(weights, 0.0)
    np.fill_diagonal(weights, weights.sum(axis=1) == 0)
    return np.asarray(row_normalised(weights).toarray())


def _library() -> Any:
    with needing_packages("growing trees", extra="trees"):
        import lightgbm
    return lightgbm
