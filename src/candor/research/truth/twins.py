"""Do functional relations find the sensors that were made to behave alike?"""

from functools import partial

import numpy as np

from candor.data.synthetic import Truth
from candor.research.patterns import pair_correlations
from candor.research.rotation import Numbers
from candor.research.truth.ranking import share_found
from candor.research.truth.scores import Answer, Score, judge
from candor.research.truth.told import Told

QUESTION = "twins"


def score_twins(
    truth: Truth, told: Told, readings: Numbers, usual: Numbers, chance: np.random.Generator
) -> list[Score]:
    """Returns how often the planted twin of a sensor is the first, or among the first three, of all others.

    A sensor has one twin: the share of firsts is the precision of the first, and the second tells of near misses.

    Args:
        truth: who is whose twin.
        told: what the model says.
        readings: of the test windows, time x sensor.
        usual: what is usual for each time of the week, time x sensor, of any rows.
        chance: where random numbers come from.
    """
    answers = [
        Answer("functional relations", told.likeness, is_ours=True),
        Answer("resemblance of backgrounds", told.resemblance, is_ours=True),
        Answer("raw correlation", np.nan_to_num(pair_correlations(readings))),
        Answer("correlation of usual weeks", np.nan_to_num(pair_correlations(usual))),
    ]
    measures = {
        "precision of the first": partial(share_found, truth.twins, 1),
        "found among three": partial(share_found, truth.twins, 3),
    }
    return judge(QUESTION, measures, answers, chance)
