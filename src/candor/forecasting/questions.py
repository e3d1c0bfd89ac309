"""What is asked besides a forecast, and the answer as a table: intervals, and how likely an event is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.data.writers import forecast_table
from candor.forecasting.forecaster import Forecaster


@dataclass(frozen=True)
class Question:
    """What is asked besides the forecast: how wide the intervals are, and the chance of which event.

    Args:
        coverage: chance that an interval holds the reading, between 0 and 1.
        below: ask how likely readings are below this, in the sensors' unit.
        above: ask how likely readings are above this, in the sensors' unit.
    """

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
        """What readings are compared with, in the sensors' unit; None if no chance is asked for."""
        return self.above if self.below is None else self.below

    def answer(self, forecaster: Forecaster, recent: Panel) -> pd.DataFrame:
        """Returns the forecast after the last row as a table, with what can be said of its errors."""
        return self.describe(forecaster, recent, forecaster.predict(recent)[0])

    def describe(self, forecaster: Forecaster, recent: Panel, forecast: NDArray[np.float32]) -> pd.DataFrame:
        """Returns a forecast that was made already as a table, with what can be said of its errors.

        Args:
            forecaster: whose forecast it is.
            recent: the readings before it.
            forecast: step x sensor, in the sensors' units.
        """
        calibration, columns = forecaster.calibration_, dict[str, Any]()
        if calibration is None and self.threshold is not None:
            raise InputError(
                f"this {forecaster.name} forecaster does not know how far its forecasts are off, and so no chances",
                hint="fit it with a split that has a validation part",
            )
        if calibration is not None:
            lower, upper = calibration.interval(forecast[None], self.coverage)
            columns = {"lower": lower[0].astype(np.float32), "upper": upper[0].astype(np.float32)}
            if self.threshold is not None:
                probability = calibration.probability_below(forecast[None], self.threshold)[0]
                columns["probability"] = (probability if self.below is not None else 1 - probability).astype("float32")
        return forecast_table(recent, forecast, **columns)

    def report_short_intervals(self, forecaster: Forecaster, findings: Findings) -> None:
        """Adds a warning where so few errors of a model are known that intervals cannot hold what is asked of them."""
        if forecaster.calibration_ is None:
            return
        borrowing = forecaster.calibration_.borrowing(self.coverage)
        if borrowing.beyond_reach:
            findings.warning(
                f"too few errors of the model are known for intervals of {100 * self.coverage:g} %: they hold less",
                f"{borrowing.beyond_reach:,} of {borrowing.cells:,} pairs of step and sensor",
                hint="ask for less (--coverage), or train on a longer record",
            )


def forecast_rows(made: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns the rows of a forecast as content of JSON, times with their offset."""
    columns = {str(name): [rounded(value) for value in made[name].tolist()] for name in made}
    columns["time"] = [moment.isoformat() for moment in columns["time"]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rounded(value: Any) -> Any:
    """Returns a number with the seven digits that single precision has; anything else as it is."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


def plain_numbers(values: Iterable[float]) -> list[float | None]:
    """Returns numbers as JSON has them: seven digits, and null for NaN."""
    return [None if value != value else rounded(float(value)) for value in values]
