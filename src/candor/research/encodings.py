"""What CANDOR makes of the histories of many windows, some windows at a time."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from candor.core.progress import Report
from candor.data.panel import Panel
from candor.forecasting.candor import Candor
from candor.forecasting.inference import infer
from candor.nets.candor.candor import Encoding
from candor.nets.candor.trainable import CandorTrainable, rain_in


def encode_histories(
    candor: Candor, panel: Panel, origins: NDArray[np.int64], report: Report, what: str
) -> Iterator[tuple[NDArray[np.int64], Encoding]]:
    """Yield the first rows of the history patches, window x patch, and what the network makes of these windows.

    Origins are the first rows after the histories; `what` names the work for the progress callback.
    """
    trainable, windows = candor.trained(), candor.windows(panel, origins)
    settings = trainable.network.settings
    rows = origins[:, None] - settings.history + np.array(settings.history_starts)

    def encode(replica: CandorTrainable, batch: dict[str, Tensor]) -> Encoding:
        values, _ = replica.anchored(batch)
        clock = batch["time_of_day"], batch["day_of_week"]
        # A forecast of one step is the shortest there is: callers look at the history only.
        return replica.network.encode(values, *clock, 1, batch["week_of_year"], rain_in(batch))

    first = 0
    for encoding in infer(trainable, windows, encode, report, what):
        count = len(encoding.embedded)
        yield rows[first : first + count], encoding
        first += count
