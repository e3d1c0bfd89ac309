"""Windows by index into shared arrays: nothing is copied until a batch is asked for."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from candor.data.panel import Panel
from candor.data.protocol import Origins
from candor.data.times import calendar_of


@dataclass(frozen=True)
class Batch:
    """Some windows: inputs as models read them, targets as they were measured.

    Shapes: inputs and input_mask batch x history x node, targets and target_mask batch x horizon x node, calendar
    positions batch x (history + horizon). Targets are NaN where missing. Covariates, where a model reads any, are
    batch x history x node x quantity.
    """

    inputs: NDArray[np.float32]
    input_mask: NDArray[np.bool_]
    targets: NDArray[np.float32]
    target_mask: NDArray[np.bool_]
    time_of_day: NDArray[np.int16]
    day_of_week: NDArray[np.int16]
    week_of_year: NDArray[np.int16]
    covariates: NDArray[np.float32] | None = None


class Windows:
    """The windows of a panel, whose readings are the targets, at given origins.

    Args:
        panel: where the targets come from.
        inputs: what models read, time x sensor, filled and if wanted scaled; shared, never copied.
        origins: the rows of the first targets, each with all `history` rows before it and all of its `horizon`.
        covariates: further quantities that models read, time x sensor x quantity, filled and scaled.
    """

    def __init__(
        self,
        panel: Panel,
        inputs: NDArray[np.float32],
        origins: Origins,
        history: int,
        horizon: int,
        covariates: NDArray[np.float32] | None = None,
    ) -> None:
        if inputs.shape != panel.values.shape:
            raise ValueError(f"inputs have shape {inputs.shape}, the panel {panel.values.shape}")
        if len(origins) and (origins.min() < history or origins.max() > len(inputs) - horizon):
            raise ValueError("an origin lacks its history or its horizon")
        self.origins, self.history, self.horizon = origins, history, horizon
        past = {"inputs": inputs, "input_mask": panel.mask, "covariates": covariates}
        self._past = {name: _views(part, history) for name, part in past.items() if part is not None}
        self._past |= {name: _views(part, history + horizon) for name, part in vars(calendar_of(panel.times)).items()}
        future = {"targets": panel.values, "target_mask": panel.mask}
        self._future = {name: _views(part, horizon) for name, part in future.items()}

    def __len__(self) -> int:
        return len(self.origins)

    def batch(self, indices: NDArray[np.integer] | slice) -> Batch:
        """Return the windows at `indices` (places in `origins`) as one batch."""
        origins = self.origins[indices]
        first = origins - self.history
        past = {name: views[first] for name, views in self._past.items()}
        return Batch(**past, **{name: views[origins] for name, views in self._future.items()})


def future_windows(
    panel: Panel,
    inputs: NDArray[np.float32],
    origins: Origins,
    history: int,
    horizon: int,
    covariates: NDArray[np.float32] | None = None,
) -> Windows:
    """Return windows to forecast from, see `Windows`: nothing from an origin on has to exist, targets are missing."""
    ahead = replace(
        panel,
        values=np.concatenate([panel.values, np.full((horizon, len(panel.sensors)), np.nan, np.float32)]),
        times=panel.times.slice(0, panel.times.length + horizon),
        covariates={},
    )
    longer = np.concatenate([inputs, np.zeros((horizon, len(panel.sensors)), np.float32)])
    return Windows(ahead, longer, origins, history, horizon, covariates)


def count_inputs(origins: Origins, history: int, length: int) -> NDArray[np.int64]:
    """Return for each of `length` rows how many of the windows at `origins` read it."""
    change = np.zeros(length + 1, np.int64)
    np.add.at(change, origins - history, 1)
    np.add.at(change, origins, -1)
    return np.cumsum(change)[:length]


def _views(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return all stretches of `rows` rows as a view: stretch x row (x sensor x ...)."""
    if len(array) < rows:
        return np.empty((0, rows, *array.shape[1:]), array.dtype)
    return np.moveaxis(sliding_window_view(array, rows, axis=0), -1, 1)
