"""Are shock gates open where a shock was injected? Patch by patch, sensor by sensor."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from candor.data.synthetic import Truth
from candor.research.rotation import Numbers
from candor.research.truth.ranking import area_under_curve, average_precision
from candor.research.truth.rules import over_patches
from candor.research.truth.scores import Answer, Score, judge
from candor.research.truth.told import Told

QUESTION = "shocks"


def shocked_patches(truth: Truth, starts: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Returns whether a shock was injected at the sensor in a row of the patch, patch x sensor.

    What was injected upstream and only passes by is no shock of this sensor.
    """
    injected = np.zeros(truth.components["shock"].shape)
    injected[truth.shocks.time, truth.shocks.sensor] = 1
    is_shocked: NDArray[np.bool_] = over_patches(injected, starts, length).max(axis=1) > 0
    return is_shocked


def score_shocks(truth: Truth, told: Told, residuals: Numbers, chance: np.random.Generator) -> list[Score]:
    """Returns how well gates and rules tell patches with an injected shock from those without.

    Args:
        truth: what was injected.
        told: what the model says.
        residuals: readings minus what is usual, time x sensor, in standard deviations.
        chance: where random numbers come from.
    """
    starts, length = told.starts, told.patch_length
    is_shocked = shocked_patches(truth, starts, length)
    changes = np.abs(np.diff(residuals, axis=0, prepend=residuals[:1]))
    answers = [
        Answer("shock gates", told.by_patch["shock gates"], is_ours=True),
        Answer("size of shock", told.by_patch["shock"], is_ours=True),
        Answer("largest residual", np.abs(over_patches(residuals, starts, length)).max(axis=1)),
        Answer("largest change of the residual", over_patches(changes, starts, length).max(axis=1)),
    ]
    measures = {
        "AUROC": partial(area_under_curve, is_shocked),
        "average precision": partial(average_precision, is_shocked),
    }
    return judge(QUESTION, measures, answers, chance)
