"""How active the shock gates of CANDOR are, reading by reading."""

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.progress import Report, silent
from candor.research.encodings import encode_histories
from candor.runs.run import Run


def activity_of(run: Run, report: Report = silent) -> NDArray[np.float64]:
    """Returns the shock activity (g_U + g_V)/2 from 0 to 1, time x sensor on the axis of the run's task.

    A reading gets the mean over all history patches of all windows of the test part that cover it, NaN if none does.

    Args:
        run: of CANDOR.
        report: is told how far it has come.
    """
    candor, task = run.candor(), run.task()
    settings = candor.trained().network.settings
    if not settings.gates_shocks:
        raise InputError(
            "this variant of CANDOR has no shock gates",
            where=str(run.folder),
            hint="give a run of the full model",
        )
    begun = np.zeros((task.panel.times.length, len(task.panel.sensors)))  # sum over patches by first reading
    patches = np.zeros(task.panel.times.length)
    for rows, encoding in encode_histories(candor, task.panel, task.split.test, report, "asking the shock gates"):
        found = encoding.components.shock_activity
        assert found is not None  # variants without were refused
        np.add.at(begun, rows, found.transpose(1, 2).double().numpy())
        np.add.at(patches, rows, 1)
    return _spread(begun, patches, settings.patch_length)


def _spread(begun: NDArray[np.float64], patches: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Returns the mean over the patches that cover each row, from sums over the patches that begin there."""
    total, covering = np.zeros_like(begun), np.zeros_like(patches)
    for offset in range(min(length, len(begun))):
        total[offset:] += begun[: len(begun) - offset]
        covering[offset:] += patches[: len(patches) - offset]
    mean: NDArray[np.float64] = np.where(covering[:, None] > 0, total / np.maximum(covering, 1)[:, None], np.nan)
    return mean
