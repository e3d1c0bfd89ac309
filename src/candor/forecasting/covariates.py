"""Covariates that a network reads beside the readings, such as rain, as z-scores of the training part."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.forecasting.forecaster import State

Transform = Callable[[NDArray[np.float32]], NDArray[np.float32]]
_KEY = "covariates"


def learn_covariates(panel: Panel, names: Sequence[str], train_end: int, transform: Transform = np.asarray) -> State:
    """Returns mean and deviation of each covariate over all sensors and the rows before `train_end`."""
    if not names:
        return {}
    seen = _stacked(panel, names, transform)[:train_end].astype(np.float64)
    counts = (~np.isnan(seen)).sum(axis=(0, 1))
    if unknown := [name for name, count in zip(names, counts, strict=True) if count == 0]:
        raise InputError(
            f"nothing is known of {unknown[0]!r} in the training part: there is nothing to learn from it",
            where=panel.name,
            hint="leave it out, or begin later: first=DATE",
        )
    means = np.nansum(seen, axis=(0, 1)) / counts
    deviations = np.sqrt(np.nansum((seen - means) ** 2, axis=(0, 1)) / counts)
    return {_KEY: np.stack([means, np.where(deviations > 0, deviations, 1.0)])}


def read_covariates(
    panel: Panel, names: Sequence[str], state: State, transform: Transform = np.asarray
) -> NDArray[np.float32] | None:
    """Returns the covariates as z-scores, time x sensor x quantity; what is unknown counts as usual, zero."""
    if not names:
        return None
    means, deviations = state[_KEY]
    scores: NDArray[np.float64] = (_stacked(panel, names, transform) - means) / deviations
    return np.nan_to_num(scores, nan=0.0).astype(np.float32)


def _stacked(panel: Panel, names: Sequence[str], transform: Transform) -> NDArray[np.float32]:
    if lacking := [name for name in names if name not in panel.covariates]:
        known = ", ".join(panel.covariates) or "none"
        raise InputError(
            f"the panel has no covariate called {lacking[0]!r}", where=panel.name, hint=f"there are: {known}"
        )
    return transform(np.stack([panel.covariates[name].values for name in names], axis=-1))
