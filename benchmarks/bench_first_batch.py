"""From Parquet to the first batch of 64 windows: windows by index against building all windows as copies.

Data: METR-LA where it is on the machine, else made-up readings of the same shape (34,272 x 207, 5 minutes).
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from candor.data.catalog.registry import find_data
from candor.data.preprocessing import fill, fit_scaler
from candor.data.protocol import split_origins
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.windows import Windows, count_inputs
from measure import cost_of, report

HISTORY = HORIZON = 12


def by_index(path: str) -> object:
    """Returns candor's first training batch, scaled as the traffic protocol says."""
    panel = read_panel(path, options=ReadOptions(missing=(0.0,), zone="UTC-08:00"))
    split = split_origins(panel.times.length, HISTORY, HORIZON, "windows", (0.7, 0.1, 0.2))
    filled = fill(panel.values, "zero")
    scaler = fit_scaler(filled, count_inputs(split.train, HISTORY, len(filled)))
    windows = Windows(panel, scaler.scale(filled), split.train, HISTORY, HORIZON)
    return windows, windows.batch(np.arange(64))


def by_copies(path: str) -> object:
    """Returns the same batch the way the classic training scripts do: every window stacked, with the time of day."""
    frame = pd.read_parquet(path)
    values = frame.to_numpy(np.float32)
    moments = frame.index if isinstance(frame.index, pd.DatetimeIndex) else pd.DatetimeIndex(frame.pop("time"))
    time_of_day = np.asarray(moments.hour * 60 + moments.minute, np.float32) / 1440
    both = np.stack([values, np.repeat(time_of_day[:, None], values.shape[1], axis=1)], axis=-1)
    starts = range(len(values) - HISTORY - HORIZON + 1)
    inputs = np.stack([both[s : s + HISTORY] for s in starts])
    targets = np.stack([both[s + HISTORY : s + HISTORY + HORIZON] for s in starts])
    train = inputs[: round(len(inputs) * 0.7)]
    mean, deviation = train[..., 0].mean(dtype=np.float64), train[..., 0].std(dtype=np.float64)
    inputs[..., 0] = (inputs[..., 0] - mean) / deviation
    return inputs, targets, inputs[:64], targets[:64]


def made_up(folder: Path) -> Path:
    """Returns a Parquet file of METR-LA's shape."""
    generator = np.random.default_rng(0)
    times = pd.date_range("2012-03-01", periods=34_272, freq="5min", name="timestamp")
    values = generator.normal(58, 10, (len(times), 207)).astype(np.float32)
    pd.DataFrame(values, index=times, columns=[str(i) for i in range(207)]).to_parquet(folder / "made-up.parquet")
    return folder / "made-up.parquet"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = find_data("metr-la.parquet") or made_up(Path(folder))
        costs = {"by index": cost_of(by_index, str(path)), "all windows as copies": cost_of(by_copies, str(path))}
    index, copies = costs["by index"], costs["all windows as copies"]
    report(
        f"Parquet to the first batch, {path.name}",
        costs,
        {"times faster": copies.seconds / index.seconds, "times less memory": copies.megabytes / index.megabytes},
    )
