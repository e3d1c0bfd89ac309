"""The contract of everything that predicts.

The constructor only stores its arguments; `fit` learns and returns the forecaster; `predict` never changes it. Learned
numbers live in `state_`, a mapping of names to arrays, so that saving and loading is the same for every model: settings
as JSON, numbers as safetensors, nothing that could execute.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, PositiveInt
from pydantic.dataclasses import dataclass
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from candor.data.panel import Panel
from candor.data.splits import Origins, Split
from candor.errors import InputError, NotFittedError
from candor.files import atomic_folder, read_json, write_json
from candor.progress import Report, silent
from candor.registry import Registry
from candor.settings import parse_settings

FORMAT_VERSION = 1
REFUSE_UNKNOWN = ConfigDict(extra="forbid")
State = dict[str, NDArray[Any]]

forecasters: Registry[type["Forecaster"]] = Registry("model")


@dataclass(config=REFUSE_UNKNOWN)
class Forecaster(ABC):
    """Anything that forecasts all sensors of a panel `horizon` steps ahead.

    Args:
        history: steps that are read before each forecast; models that keep to a window read just these.
        horizon: steps that are forecast.
        seed: where chance begins, for models that use it.
    """

    name: ClassVar[str]

    history: PositiveInt
    horizon: PositiveInt
    seed: int = 0

    def fit(self, panel: Panel, split: Split | None = None, report: Report = silent) -> Self:
        """Learns from the training part of the panel, or from all of it when there is no split.

        Args:
            panel: the readings.
            split: which origins are for training and for validation.
            report: is told how far the learning has come.
        """
        if panel.times.length < self.history + self.horizon:
            raise InputError(
                f"the panel has {panel.times.length} rows; a history of {self.history} and a horizon of "
                f"{self.horizon} steps need {self.history + self.horizon}",
                where=panel.name,
                mend="give a longer record, or a shorter history or horizon",
            )
        if split is None:
            origins = np.arange(self.history, panel.times.length - self.horizon + 1, dtype=np.int64)
            split = Split(origins, origins[:0], origins[:0], panel.times.length)
        self.state_: State = self._learn(panel, split, report)
        self.trained_on_: dict[str, Any] = _description(panel)
        return self

    def predict(self, panel: Panel, origins: Origins | None = None) -> NDArray[np.float32]:
        """Returns forecasts in the sensors' units, origin x horizon x sensor.

        Args:
            panel: readings of the sensors the forecaster was fitted on; for a given origin only rows before it are
                used, and no row from it on has to exist.
            origins: rows of the first forecast steps; None means the row after the last one.
        """
        if not hasattr(self, "state_"):
            raise NotFittedError(f"this {self.name} forecaster is not fitted yet", mend="call fit(panel) first")
        self._check_same_sensors(panel)
        if origins is None:
            origins = np.array([panel.times.length])
        origins = np.asarray(origins, dtype=np.int64)
        if len(origins) and (origins.min() < self.history or origins.max() > panel.times.length):
            raise InputError(
                f"a forecast needs {self.history} rows of history; the panel has {panel.times.length} rows and the "
                f"forecasts asked for start at rows {origins.min()} to {origins.max()}",
                where=panel.name,
                mend="give more history",
            )
        forecast = self._forecast(panel, origins)
        if not np.isfinite(forecast).all():
            raise ValueError(f"{self.name} made a forecast that is not a number")
        return forecast

    @abstractmethod
    def _learn(self, panel: Panel, split: Split, report: Report) -> State:
        """Returns what is learned from the training part."""

    @abstractmethod
    def _forecast(self, panel: Panel, origins: Origins) -> NDArray[np.float32]:
        """Returns finite forecasts, origin x horizon x sensor, from the rows before each origin."""

    def settings(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def save(self, folder: Path | str) -> None:
        """Writes the fitted forecaster to a folder, all or nothing."""
        if not hasattr(self, "state_"):
            raise NotFittedError(f"this {self.name} forecaster is not fitted yet", mend="call fit(panel) first")
        with atomic_folder(Path(folder)) as temporary:
            save_file(
                {key: np.ascontiguousarray(array) for key, array in self.state_.items()},
                temporary / "state.safetensors",
            )
            write_json(
                temporary / "model.json",
                {
                    "format": "candor-model",
                    "format_version": FORMAT_VERSION,
                    "name": self.name,
                    "settings": asdict(self),
                    "trained_on": self.trained_on_,
                },
            )

    def _check_same_sensors(self, panel: Panel) -> None:
        given = _description(panel)
        for key, word in (("sensors", "sensors"), ("interval_seconds", "interval"), ("unit", "unit")):
            if given[key] != self.trained_on_[key]:
                raise InputError(
                    f"the {word} of the panel differ from those the model was fitted on: "
                    f"{_difference(given, self.trained_on_, key)}",
                    where=panel.name,
                    mend="give the same sensors in the same order (panel.select), interval and unit",
                )


def _description(panel: Panel) -> dict[str, Any]:
    return {
        "fingerprint": panel.fingerprint,
        "sensors": list(panel.sensor_ids),
        "interval_seconds": panel.times.interval.total_seconds(),
        "unit": panel.unit,
    }


def _difference(given: Mapping[str, Any], known: Mapping[str, Any], key: str) -> str:
    if key != "sensors":
        return f"{given[key]!r} instead of {known[key]!r}"
    extra = [sensor for sensor in given[key] if sensor not in set(known[key])]
    lacking = [sensor for sensor in known[key] if sensor not in set(given[key])]
    return f"{len(extra)} unknown, {len(lacking)} lacking" if extra or lacking else "their order"


def load_forecaster(folder: Path | str) -> Forecaster:
    """Returns the fitted forecaster that was saved in a folder."""
    folder = Path(folder)
    content = read_json(folder / "model.json")
    where = str(folder / "model.json")
    if not isinstance(content, dict) or content.get("format") != "candor-model":
        raise InputError("this is not a saved candor model", where=where)
    if content.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"the model has format version {content.get('format_version')}; "
            f"this version of candor reads {FORMAT_VERSION}",
            where=where,
        )
    kind = forecasters.get(str(content.get("name")))
    forecaster = parse_settings(kind, content.get("settings"), where)
    try:
        forecaster.state_ = load_file(folder / "state.safetensors")
        forecaster.trained_on_ = dict(content["trained_on"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"the saved model is damaged ({error})", where=str(folder)) from None
    return forecaster
