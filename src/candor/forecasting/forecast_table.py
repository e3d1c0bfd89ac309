"""A forecast as rows of time, sensor and step, with intervals and probabilities: as JSON, CSV or Parquet."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import atomic_file
from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.data.times import TimeAxis
from candor.forecasting.forecaster import Forecaster


@dataclass(frozen=True, eq=False)
class ForecastTable:
    """A forecast of all sensors; its rows are ordered by step, then by sensor.

    Args:
        times: the steps.
        sensors: ids.
        columns: step x sensor, in the sensors' units: `forecast`, and where the forecaster is calibrated `lower`,
            `upper` and, if asked for, `probability`.
    """

    times: TimeAxis
    sensors: tuple[str, ...]
    columns: dict[str, NDArray[np.float32]]

    def __post_init__(self) -> None:
        steps, sensors = self.times.length, len(self.sensors)
        for name, column in self.columns.items():
            if column.shape != (steps, sensors):
                raise ValueError(f"{name} has shape {column.shape}; expected are {steps} steps x {sensors} sensors")
            if not np.isfinite(column).all():
                raise ValueError(f"{name} holds numbers that are not finite")

    @property
    def has_intervals(self) -> bool:
        """Whether the forecaster is calibrated."""
        return "lower" in self.columns

    def to_json(self) -> list[dict[str, Any]]:
        """Return the rows as content of JSON: local times with their offset, numbers with seven digits."""
        numbers = [plain_numbers(column.ravel()) for column in self.columns.values()]
        return [dict(zip(self._names, row, strict=True)) for row in self._rows(self.times.iso, numbers)]

    def write(self, path: Path) -> None:
        """Write the rows as CSV or Parquet, by the ending of the path, all or nothing."""
        check_table_path(path)
        with atomic_file(path) as temporary:
            (self._write_parquet if path.suffix == ".parquet" else self._write_csv)(temporary)

    @property
    def _names(self) -> tuple[str, ...]:
        return ("time", "sensor", "step", *self.columns)

    def _rows(self, time_of: Callable[[int], Any], numbers: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
        """Yield time, sensor, step and the numbers of each row."""
        times = [time_of(step) for step in range(self.times.length)]
        places = ((time, sensor, step) for step, time in enumerate(times, start=1) for sensor in self.sensors)
        for place, *row in zip(places, *numbers, strict=True):
            yield *place, *row

    def _write_csv(self, path: Path) -> None:
        # numpy writes the shortest digits that give every number back.
        numbers = [column.ravel().astype(str) for column in self.columns.values()]
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self._names)
            writer.writerows(self._rows(self.times.at, numbers))

    def _write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        count, steps = len(self.sensors), np.arange(1, self.times.length + 1)
        places = self.times.local.repeat(count), self.sensors * len(steps), steps.repeat(count)
        columns = [pa.array(column) for column in (*places, *(column.ravel() for column in self.columns.values()))]
        pq.write_table(pa.table(columns, names=list(self._names)), path)


@dataclass(frozen=True)
class ForecastOptions:
    """What is asked for beside the forecast: intervals of a coverage, the probability of readings below or above."""

    coverage: float = 0.9
    below: float | None = None
    above: float | None = None

    def __post_init__(self) -> None:
        if self.below is not None and self.above is not None:
            raise InputError("below and above are two questions", hint="ask one of them at a time")
        if not 0 < self.coverage < 1:
            raise InputError(f"a coverage must lie between 0 and 1, not {self.coverage}", hint="give 0.9 for 90 %")

    @property
    def threshold(self) -> float | None:
        """What readings are compared with, in the sensors' unit; None if no probability is asked for."""
        return self.above if self.below is None else self.below

    def forecast(self, forecaster: Forecaster, recent: Panel) -> ForecastTable:
        """Return the forecast after the last row, with intervals and probabilities."""
        return self.table(forecaster, recent, forecaster.predict(recent)[0])

    def table(self, forecaster: Forecaster, recent: Panel, forecast: NDArray[np.float32]) -> ForecastTable:
        """Return a forecast that was made already, with intervals and probabilities.

        Args:
            forecaster: whose forecast it is.
            recent: the readings before it.
            forecast: step x sensor, in the sensors' units.
        """
        calibration, columns = forecaster.calibration_, {"forecast": forecast}
        if self.threshold is not None:
            calibration = forecaster.known_errors()
        if calibration is not None:
            lower, upper = calibration.interval(forecast[None], self.coverage)
            columns |= {"lower": lower[0].astype(np.float32), "upper": upper[0].astype(np.float32)}
            if self.threshold is not None:
                probability = calibration.probability_below(forecast[None], self.threshold)[0]
                columns["probability"] = (probability if self.below is not None else 1 - probability).astype("float32")
        times = recent.times
        steps = times.slice(times.length, times.length + len(forecast))
        return ForecastTable(steps, recent.sensor_ids, columns)

    def report_short_intervals(self, forecaster: Forecaster, findings: Findings) -> None:
        """Add a warning where so few errors of a model are known that intervals cannot reach the coverage."""
        if forecaster.calibration_ is None:
            return
        borrowing = forecaster.calibration_.borrowing(self.coverage)
        if borrowing.beyond_reach:
            findings.warning(
                f"too few errors of the model are known for intervals of {100 * self.coverage:g} %: they hold less",
                f"{borrowing.beyond_reach:,} of {borrowing.cells:,} pairs of step and sensor",
                hint="ask for less (--coverage), or train on a longer record",
            )


def check_table_path(path: Path) -> None:
    """Refuse a file for a table that would be neither CSV nor Parquet."""
    if path.suffix not in {".csv", ".parquet"}:
        raise InputError(
            "tables are written as CSV or Parquet", where=str(path), hint="give a name that ends in .csv or .parquet"
        )


def plain_numbers(values: Iterable[float]) -> list[float | None]:
    """Return numbers as JSON has them: seven digits, and null for NaN."""
    return [None if value != value else rounded(float(value)) for value in values]


def rounded(value: float) -> float:
    """Return a number with the seven digits that single precision has."""
    return float(f"{value:.7g}")
