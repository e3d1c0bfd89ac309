"""What CANDOR makes of the histories of many windows, some windows at a time."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from candor.core.progress import Report
from candor.data.panel import Panel
from candor.forecasting.candor import Candor
from candor.nets.candor.candor import Encoding
from candor.nets.candor.trainable import rain_in
from candor.training.batches import micro_batches

_WINDOWS_AT_A_TIME = 64


def encode_histories(
    candor: Candor, panel: Panel, origins: NDArray[np.int64], report: Report, what: str
) -> Iterator[tuple[NDArray[np.int64], Encoding]]:
    """Yields the first rows of the history patches, window x patch, and what the network makes of these windows.

    Args:
        candor: fitted.
        panel: the readings.
        origins: first rows after the histories.
        report: is told how far it has come.
        what: is being done, in words.
    """
    trainable, windows = candor.trained(), candor.windows(panel, origins)
    settings = trainable.network.settings
    starts = np.array(settings.history_starts)
    for places in micro_batches(np.arange(len(origins)), _WINDOWS_AT_A_TIME):
        batch = windows.batch(places).tensors()
        with torch.no_grad():
            values, _ = trainable.anchored(batch)
            clock = batch["time_of_day"], batch["day_of_week"]
            # A forecast of one step is the least that can be asked for: who asks looks at the history only.
            encoding = trainable.network.encode(values, *clock, 1, batch["week_of_year"], rain_in(batch))
        yield origins[places][:, None] - settings.history + starts, encoding
        report(what, (int(places[-1]) + 1) / len(origins))
