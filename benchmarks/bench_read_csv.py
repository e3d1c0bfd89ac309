"""Reading a CSV of half a gigabyte, wide and long: peak memory over the size of the float32 panel, beside pandas.

The promise: at most twice the panel plus a constant. Data: made-up readings, written by this script.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from candor.data.readers.panels import read_panel
from measure import MEGABYTE, cost_of, report

SENSORS = 1_000
ROWS = 85_000
BLOCK = 5_000


def write_wide(path: Path) -> Path:
    """Writes ROWS x SENSORS readings with a time column, about half a gigabyte."""
    generator = np.random.default_rng(0)
    times = pd.date_range("2020-01-01", periods=ROWS, freq="5min").strftime("%Y-%m-%d %H:%M:%S").to_numpy()
    names = [f"s{i}" for i in range(SENSORS)]
    with path.open("wb") as file:
        file.write((",".join(["time", *names]) + "\n").encode())
        for first in range(0, ROWS, BLOCK):
            values = np.round(generator.normal(60, 10, (BLOCK, SENSORS)), 2)
            columns = [pa.array(times[first : first + BLOCK]), *(pa.array(values[:, i]) for i in range(SENSORS))]
            table = pa.table(columns, names=["time", *names])
            pa_csv.write_csv(table, file, pa_csv.WriteOptions(include_header=False))
    return path


def write_long(path: Path) -> Path:
    """Writes the columns time, sensor and value, a row per reading, about half a gigabyte."""
    generator = np.random.default_rng(0)
    sensors, rows = 100, 150_000
    times = pd.date_range("2020-01-01", periods=rows, freq="5min").strftime("%Y-%m-%d %H:%M:%S").to_numpy()
    names = np.array([f"sensor-{i:03d}" for i in range(sensors)])
    with path.open("wb") as file:
        file.write(b"time,sensor,value\n")
        for first in range(0, rows, BLOCK):
            part = times[first : first + BLOCK]
            values = np.round(generator.normal(60, 10, len(part) * sensors), 2)
            columns = {"time": np.repeat(part, sensors), "sensor": np.tile(names, len(part)), "value": values}
            pa_csv.write_csv(pa.table(columns), file, pa_csv.WriteOptions(include_header=False))
    return path


def with_candor(path: str) -> object:
    """Returns the panel."""
    return read_panel(path)


def with_pandas(path: str) -> object:
    """Returns the wide float32 frame the usual way, pivoted if long."""
    frame = pd.read_csv(path, parse_dates=["time"])
    if "sensor" in frame.columns:
        return frame.pivot(index="time", columns="sensor", values="value").astype(np.float32)
    return frame.set_index("time").astype(np.float32)


if __name__ == "__main__":
    costs, ratios = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for form, write in (("wide", write_wide), ("long", write_long)):
            path = write(Path(folder) / f"{form}.csv")
            size = path.stat().st_size / MEGABYTE
            panel = read_panel(path).values.nbytes / MEGABYTE
            ours = costs[f"{form}, {size:.0f} MB, candor"] = cost_of(with_candor, str(path), repeats=1)
            theirs = costs[f"{form}, {size:.0f} MB, pandas"] = cost_of(with_pandas, str(path), repeats=1)
            ratios[f"{form}: peak over the {panel:.0f} MB panel"] = ours.megabytes / panel
            ratios[f"{form}: pandas' memory over ours"] = theirs.megabytes / ours.megabytes
            ratios[f"{form}: pandas' time over ours"] = theirs.seconds / ours.seconds
            path.unlink()
    report("Reading half a gigabyte of CSV", costs, ratios)
