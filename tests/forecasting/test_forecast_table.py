"""A forecast as rows: it begins where the record ends, and CSV, Parquet and JSON hold the same numbers."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.core.errors import InputError
from candor.data.times import TimeAxis
from candor.forecasting.forecast_table import ForecastTable

HOUR = timedelta(hours=1)
SENSORS = ("a", 'the "old", weir')
# The first step is the hour before the clocks go back.
TIMES = TimeAxis(datetime(2020, 11, 1, 8, tzinfo=UTC), HOUR, 4, "America/Los_Angeles")
FORECAST = np.arange(8, dtype=np.float32).reshape(4, 2) + np.float32(0.1)


@pytest.mark.parametrize("file", ["forecast.csv", "forecast.parquet"])
def test_times_are_on_the_local_clock_and_rows_ordered_by_step(tmp_path: Path, file: str) -> None:
    path = tmp_path / file
    ForecastTable(TIMES, SENSORS, {"forecast": FORECAST}).write(path)
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    assert list(table.columns) == ["time", "sensor", "step", "forecast"]
    first = datetime(2020, 11, 1, 1, tzinfo=ZoneInfo("America/Los_Angeles")).astimezone(UTC)
    moments = [first + step * HOUR for step in range(4) for _ in SENSORS]
    assert pd.to_datetime(table["time"], utc=True).tolist() == moments
    assert [str(time)[11:16] for time in table["time"]] == ["01:00"] * 4 + ["02:00"] * 2 + ["03:00"] * 2
    assert table["sensor"].tolist() == list(SENSORS) * 4
    assert table["step"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    np.testing.assert_array_equal(table["forecast"].to_numpy(np.float32), FORECAST.ravel())


@given(arrays(np.float32, (2, 2), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_csv_gives_every_number_back_and_is_what_pandas_writes(tmp_path_factory, forecast: np.ndarray) -> None:
    times = TIMES.slice(0, 2)
    path = tmp_path_factory.mktemp("tables") / "forecast.csv"
    ForecastTable(times, SENSORS, {"forecast": forecast, "lower": forecast}).write(path)
    with path.open(newline="") as file:
        read = [np.float32(row["forecast"]) for row in csv.DictReader(file)]
    np.testing.assert_array_equal(read, forecast.ravel())
    columns = {"time": times.local.repeat(2), "sensor": SENSORS * 2, "step": [1, 1, 2, 2]}
    table = pd.DataFrame(columns | {"forecast": forecast.ravel(), "lower": forecast.ravel()})
    assert path.read_text() == table.to_csv(index=False)


def test_json_has_offsets_and_seven_digits() -> None:
    rows = ForecastTable(TIMES, SENSORS, {"forecast": FORECAST, "lower": FORECAST - 1}).to_json()
    assert rows[2] == {"time": "2020-11-01T01:00:00-08:00", "sensor": "a", "step": 2, "forecast": 2.1, "lower": 1.1}


def test_a_forecast_of_other_sensors_is_a_programming_mistake() -> None:
    with pytest.raises(ValueError, match="2 sensors"):
        ForecastTable(TIMES, SENSORS, {"forecast": np.zeros((4, 3), np.float32)})


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["forecast", "lower"])
def test_what_is_not_a_number_is_never_written(wrong: float, name: str) -> None:
    with pytest.raises(ValueError, match="not finite"):
        ForecastTable(TIMES, SENSORS, {"forecast": FORECAST, name: FORECAST + wrong})


def test_a_table_is_csv_or_parquet_and_nothing_else(tmp_path: Path) -> None:
    table = ForecastTable(TIMES, SENSORS, {"forecast": FORECAST})
    with pytest.raises(InputError, match="CSV or Parquet"):
        table.write(tmp_path / "table.xlsx")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="could not be written"):
        table.write(tmp_path / "folder.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]
