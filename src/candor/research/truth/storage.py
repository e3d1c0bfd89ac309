"""Do accumulation and release rise and fall with what is stored? Patch by patch, within each sensor."""

from functools import partial

import numpy as np

from candor.data.synthetic import Truth
from candor.research.rotation import Numbers
from candor.research.truth.ranking import mean_rank_correlation
from candor.research.truth.rules import over_patches
from candor.research.truth.scores import Answer, Score, judge
from candor.research.truth.told import Told


def stored_changes(truth: Truth) -> Numbers:
    """Returns by how much the store of each sensor filled (above zero) or emptied (below) in each step, time x sensor.

    A full store lowers the reading of a road and raises that of a river; filling is what moves it away from empty.
    """
    stored = np.abs(truth.components["storage"].astype(np.float64))
    return np.diff(stored, axis=0, prepend=0.0)


def score_storage(truth: Truth, told: Told, residuals: Numbers, chance: np.random.Generator) -> list[Score]:
    """Returns how components, gates and a rule order the patches of a sensor by what its store took in or gave out.

    Args:
        truth: what was stored.
        told: what the model says.
        residuals: readings minus what is usual, time x sensor, in standard deviations.
        chance: where random numbers come from.
    """
    starts, length = told.starts, told.patch_length
    changes = over_patches(stored_changes(truth), starts, length)
    distance = over_patches(np.abs(residuals), starts, length)
    half = length // 2
    growth = distance[:, length - half :].mean(axis=1) - distance[:, :half].mean(axis=1)
    found = []
    for question, sign in (("accumulation", 1), ("release", -1)):
        amount = np.maximum(sign * changes, 0).sum(axis=1)  # patch sensor
        answers = [
            Answer(f"size of {question}", told.by_patch[question], is_ours=True),
            Answer(f"{question} gate", told.by_patch[f"{question} gate"], is_ours=True),
            Answer("residual grows" if sign > 0 else "residual shrinks", sign * growth),
        ]
        found += judge(question, {"rank correlation": partial(mean_rank_correlation, amount)}, answers, chance)
    return found
