"""The contract of everything that predicts.

The constructor only stores its arguments; `fit` learns and returns the forecaster; `predict` never changes it. Learned
numbers live in `state_`, a mapping of names to arrays, so that saving and loading is the same for every model: settings
as JSON, numbers as safetensors, nothing that could execute.

The validation part has two uses, each with its own half in time: the first half chooses between states of a model while
it learns, the second measures how far the forecasts of the chosen one are off (`calibration_`), for intervals and
probabilities.
"""

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, NonNegativeInt, PositiveInt, TypeAdapter
from pydantic.dataclasses import dataclass
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from candor.core.errors import InputError, NotFittedError
from candor.core.files import atomic_folder, check_version, read_json, write_json
from candor.core.progress import Report, silent
from candor.core.registry import Registry
from candor.core.settings import parse_settings
from candor.data.alignment import KnownPanel
from candor.data.panel import Panel
from candor.data.protocol import Origins, Split
from candor.forecasting.intervals import Calibration, calibrate

FORMAT_VERSION = 1
REFUSE_UNKNOWN = ConfigDict(extra="forbid")
State = dict[str, NDArray[Any]]
_MODEL, _STATE, _CALIBRATION = "model.json", "state.safetensors", "calibration.safetensors"
_NUMBERS_PER_BATCH = 4_000_000
_MOST_RESIDUALS = 50_000_000  # 200 MB
_LEAST_WINDOWS = 1_000  # a calibration keeps 999 of each step and sensor

forecasters: Registry[type["Forecaster"]] = Registry("model")
openers: list[Callable[[Path], "Forecaster"]] = []
"""What else `Forecaster.load` opens than folders of `save`: `candor.runs` adds run directories and bundles."""


def label_of(model: str) -> str:
    """Return the name of a model as people are shown it, which says of a reconstruction that it is one."""
    return f"{model} (reconstruction)" if forecasters.get(model).is_reconstruction else model


@dataclasses.dataclass(frozen=True, eq=False)
class IntervalForecast:
    """Forecasts with the ends of their intervals, each origin x horizon x sensor, in the sensors' units."""

    forecast: NDArray[np.float32]
    lower: NDArray[np.float32]
    upper: NDArray[np.float32]


@dataclass(config=REFUSE_UNKNOWN)
class Forecaster(ABC):
    """Anything that forecasts all sensors of a panel `horizon` steps ahead.

    Args:
        history: steps that are read before each forecast; models that keep to a window read just these.
        horizon: steps that are forecast.
        seed: of the random generators, for models that use any.
    """

    name: ClassVar[str]
    is_reconstruction: ClassVar[bool] = False
    """Whether it was rebuilt without its authors' code; everything that shows it says so."""

    history: PositiveInt
    horizon: PositiveInt
    seed: NonNegativeInt = 0

    def fit(
        self,
        panel: Panel,
        split: Split | None = None,
        report: Report = silent,
        *,
        budget_seconds: float | None = None,
    ) -> Self:
        """Learn from the training part of the panel, or from all of it when there is no split.

        Args:
            panel: the readings.
            split: which origins are for training and for validation.
            report: progress callback.
            budget_seconds: after which a model that learns step by step ends; None lets it come to its own end.
        """
        if panel.times.length < self.history + self.horizon:
            raise InputError(
                f"the panel has {panel.times.length} rows; a history of {self.history} and a horizon of "
                f"{self.horizon} steps need {self.history + self.horizon}",
                where=panel.name,
                hint="give a longer record, or a shorter history or horizon",
            )
        split = self._own_split(panel) if split is None else split
        began = time.monotonic()
        self._deadline = inf if budget_seconds is None else began + budget_seconds
        self.state_: State = self._learn(panel, self.selection(split), report)
        self.learning_seconds_ = time.monotonic() - began
        self._remember(panel, split)
        self._calibrate(panel, split, report)
        return self

    def selection(self, split: Split) -> Split:
        """Return the split with those validation origins that choose between states of the model while it learns.

        By default the first half, so that the second measures errors of a model that was not chosen by it.
        """
        return dataclasses.replace(split, validation=halve_validation(split, self.horizon)[0])

    def _own_split(self, panel: Panel) -> Split:
        """Return the split where `fit` is given none: by default it trains on everything."""
        origins = np.arange(self.history, panel.times.length - self.horizon + 1, dtype=np.int64)
        return Split(origins, origins[:0], origins[:0], panel.times.length)

    def _remember(self, panel: Panel, split: Split) -> None:
        """Store what other panels are compared with later."""
        self.fingerprint_: str = panel.fingerprint
        self.trained_on_ = KnownPanel.of(panel, split.train_end, self.quantities_read())

    @property
    def is_additive(self) -> bool:
        """Whether forecasts are sums of parts with a unit, which a method `break_down` gives."""
        return False

    @property
    def rows_needed(self) -> int:
        """Rows before an origin that a forecast needs: by default the history."""
        return self.history

    @property
    def rows_read(self) -> int:
        """Rows before an origin that a forecast can rest on at most."""
        return self.rows_needed

    def quantities_read(self) -> tuple[str, ...]:
        """Return the names of the panel's covariates that the forecaster reads; by default none."""
        return ()

    def _calibrate(self, panel: Panel, split: Split, report: Report) -> None:
        """Learn how far forecasts are off from the second half of validation; if nothing is there, `None`."""
        self.calibration_: Calibration | None = None
        _, origins = halve_validation(split, self.horizon)
        most = max(_LEAST_WINDOWS, _MOST_RESIDUALS // (self.horizon * len(panel.sensors)))
        if len(origins) > most:
            origins = origins[np.linspace(0, len(origins) - 1, most).round().astype(np.int64)]
        residuals = np.empty((len(origins), self.horizon, len(panel.sensors)), np.float32)
        done = 0
        for batch, forecast in self.predict_in_batches(panel, origins):
            targets = panel.values[batch[:, None] + np.arange(self.horizon)]
            residuals[done : done + len(batch)] = targets - forecast  # NaN where nothing was observed
            done += len(batch)
            report(f"calibrating {self.name}", done / len(origins))
        if not np.isnan(residuals).all():
            self.calibration_ = calibrate(residuals)

    def predict(self, panel: Panel, origins: Origins | None = None) -> NDArray[np.float32]:
        """Return forecasts in the sensors' units, origin x horizon x sensor.

        Args:
            panel: readings of the sensors the forecaster was fitted on; for a given origin only rows before it are
                used, and no row from it on has to exist.
            origins: rows of the first forecast steps; None means the row after the last one.
        """
        self._check_fitted()
        self._check_same_sensors(panel)
        if origins is None:
            origins = np.array([panel.times.length])
        origins = np.asarray(origins, dtype=np.int64)
        if len(origins) and (origins.min() < self.history or origins.max() > panel.times.length):
            raise InputError(
                f"a forecast needs {self.history} rows of history; the panel has {panel.times.length} rows and the "
                f"forecasts asked for start at rows {origins.min()} to {origins.max()}",
                where=panel.name,
                hint="give more history",
            )
        panel = panel.in_zone(self.trained_on_.panel.times.zone)  # by whose clock the model knows days and weeks
        return refuse_unbounded(self._forecast(panel, origins), panel.name)

    def predict_in_batches(self, panel: Panel, origins: Origins) -> Iterator[tuple[Origins, NDArray[np.float32]]]:
        """Yield origins and their forecasts, origin x horizon x sensor, so many at a time as memory should hold."""
        windows = max(1, _NUMBERS_PER_BATCH // ((self.history + self.horizon) * len(panel.sensors)))
        for first in range(0, len(origins), windows):
            batch = origins[first : first + windows]
            yield batch, self.predict(panel, batch)

    def predict_interval(
        self, panel: Panel, origins: Origins | None = None, coverage: ArrayLike = 0.9
    ) -> IntervalForecast:
        """Return forecasts with intervals that hold the observation with a probability of `coverage`.

        Args:
            panel: as for `predict`.
            origins: as for `predict`.
            coverage: between 0 and 1; a number, or an array that can be spread over the forecasts.
        """
        calibration = self.known_errors()
        forecast = self.predict(panel, origins)
        lower, upper = calibration.interval(forecast, coverage)
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            raise ValueError(f"{self.name} made an interval that has no end")
        return IntervalForecast(forecast, lower.astype(np.float32), upper.astype(np.float32))

    def probability_below(
        self, panel: Panel, threshold: ArrayLike, origins: Origins | None = None
    ) -> NDArray[np.float64]:
        """Return the probability that the observation lies below a threshold, origin x horizon x sensor.

        Args:
            panel: as for `predict`.
            threshold: in the sensors' units; a number, or an array that can be spread over the forecasts.
            origins: as for `predict`.
        """
        return self.known_errors().probability_below(self.predict(panel, origins), threshold)

    @abstractmethod
    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        """Return what is learned from the training part."""

    @abstractmethod
    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        """Return finite forecasts, origin x horizon x sensor, from the rows before each origin."""

    def settings(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain content, such as JSON holds."""
        content: dict[str, Any] = TypeAdapter(type(self)).dump_python(self, mode="json")
        return content

    def save(self, folder: Path | str) -> None:
        """Write the fitted forecaster to a folder, all or nothing; a folder with anything but a model is refused."""
        self._check_fitted()
        folder = Path(folder)
        there = folder.iterdir() if folder.is_dir() else [folder] if folder.exists() else []
        if others := sorted({path.name for path in there} - {_MODEL, _STATE, _CALIBRATION}):  # all would be replaced
            raise InputError(
                f"there is something else than a model in this place, such as {others[0]}",
                where=str(folder),
                hint="name a folder of its own, which need not be there yet",
            )
        calibration = None if self.calibration_ is None else self.calibration_.to_state()
        with atomic_folder(folder) as temporary:
            for name, arrays in ((_STATE, self.state_), (_CALIBRATION, calibration)):
                if arrays is not None:
                    save_file({key: np.ascontiguousarray(array) for key, array in arrays.items()}, temporary / name)
            content = {
                "format": "candor-model",
                "format_version": FORMAT_VERSION,
                "name": self.name,
                "settings": self.settings(),
                "is_calibrated": calibration is not None,
                "trained_on": {"fingerprint": self.fingerprint_, "panel": self.trained_on_.to_json()},
            }
            write_json(temporary / _MODEL, content)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Return the fitted forecaster at a path; one of another kind is refused, `Forecaster.load` takes them all.

        Args:
            path: a folder written by `save`, a run directory, or a bundle, as a folder or as one file.
        """
        path = Path(path)
        if not path.exists():
            what, hint = "there is no such file or folder", "name a run directory, a bundle or a folder of save()"
            raise InputError(what, where=str(path), hint=hint)
        found = read_model(path) if (path / _MODEL).is_file() or not openers else openers[-1](path)
        if not isinstance(found, cls):
            what = f"this is a model of {type(found).__name__} ({found.name}), not of {cls.__name__}"
            hint = f"call {type(found).__name__}.load, or Forecaster.load, which takes models of every kind"
            raise InputError(what, where=str(path), hint=hint)
        return found

    def _check_fitted(self) -> None:
        if not hasattr(self, "state_"):
            raise NotFittedError(f"this {self.name} forecaster is not fitted yet", hint="call fit(panel) first")

    def known_errors(self) -> Calibration:
        """Return the calibration; without one there are no intervals and no probabilities."""
        self._check_fitted()
        if self.calibration_ is None:
            raise NotFittedError(
                f"this {self.name} forecaster does not know how far its forecasts are off: it was fitted without a "
                "validation part, or nothing was measured in it",
                hint="fit it with a split that has a validation part",
            )
        return self.calibration_

    def _check_same_sensors(self, panel: Panel) -> None:
        known = self.trained_on_.panel
        ids, known_ids = set(panel.sensor_ids), set(known.sensor_ids)
        unknown, lacking = len(ids - known_ids), len(known_ids - ids)
        for word, given, expected in (
            ("sensors", panel.sensor_ids, known.sensor_ids),
            ("interval", panel.times.interval, known.times.interval),
            ("unit", panel.unit, known.unit),
            ("units", [sensor.unit for sensor in panel.sensors], [sensor.unit for sensor in known.sensors]),
        ):
            if given != expected:
                difference = f"{given} instead of {expected}"
                if word == "sensors":
                    difference = f"{unknown} unknown, {lacking} lacking" if unknown or lacking else "their order"
                raise InputError(
                    f"the {word} of the panel differ from those the model was fitted on: {difference}",
                    where=panel.name,
                    hint="give the same sensors in the same order (panel.select), interval and unit",
                )


def halve_validation(split: Split, horizon: int) -> tuple[Origins, Origins]:
    """Return the validation origins that choose between states of a model, and those that measure its errors.

    The validation part is cut in the middle. No target of the second half is one of the test part, which matters where
    windows were cut and neighbours share targets. Windows of the first half whose targets reach into the second are
    left out, so that no reading serves both; but where windows are so few that this would take more than half of them,
    they stay, and the two halves share the targets that neighbouring windows share.
    """
    blind = split.validation
    if len(split.test):
        blind = blind[blind + horizon <= split.test[0]]
    middle = (len(blind) + 1) // 2
    first, second = split.validation[:middle], blind[middle:]
    if not len(second):
        return split.validation, second
    apart = first[first + horizon <= second[0]]
    return (apart if 2 * len(apart) >= len(first) else first), second


def refuse_unbounded(forecast: NDArray[np.float32], where: str = "readings") -> NDArray[np.float32]:
    """Return the forecast; one that is not finite is refused."""
    if not np.isfinite(forecast).all():
        raise InputError(
            "the forecast is not a number: readings are out of all proportion, or the model is damaged",
            where=where,
            hint="leave out what is not a measurement",
        )
    return forecast


def load_forecaster(path: Path | str) -> Forecaster:
    """Return the fitted forecaster at a path, of whatever kind: see `Forecaster.load`."""
    return Forecaster.load(path)


def read_model(folder: Path) -> Forecaster:
    """Return the fitted forecaster that `save` wrote to a folder."""
    content, where = read_json(folder / _MODEL), str(folder / _MODEL)
    if not isinstance(content, dict) or content.get("format") != "candor-model":
        raise InputError("this is not a saved candor model", where=where)
    hint = "use the version of candor that made it, or train again with this one"
    check_version(content.get("format_version"), FORMAT_VERSION, "model", where, hint)
    kind = forecasters.get(str(content.get("name")))
    forecaster = parse_settings(kind, content.get("settings"), where)
    try:
        forecaster.state_ = load_file(folder / _STATE)
        forecaster.fingerprint_ = str(content["trained_on"]["fingerprint"])
        forecaster.trained_on_ = KnownPanel.from_json(content["trained_on"]["panel"], where)
        forecaster.calibration_ = None
        if content["is_calibrated"]:
            forecaster.calibration_ = Calibration.from_state(load_file(folder / _CALIBRATION))
            cells = (forecaster.horizon, len(forecaster.trained_on_.panel.sensors))
            if forecaster.calibration_.counts.shape != cells:
                raise ValueError("the calibration is of other steps or sensors")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"the saved model is damaged ({error})", where=str(folder)) from None
    return forecaster
