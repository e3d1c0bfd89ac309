"""Answers to a question whose truth is known, and what they score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from candor.research.rotation import Numbers

RANDOM = "random numbers"
_DRAWS = 20

Measure = Callable[[Numbers], float | None]
"""Takes an answer and returns its score, or None where the truth does not allow one."""
Draw = Callable[[np.random.Generator, tuple[int, ...]], Numbers]
"""Takes a source of chance and a shape, and returns a random answer."""


def draw_numbers(chance: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    """Returns random numbers between 0 and 1."""
    return chance.random(shape)


@dataclass(frozen=True, eq=False)
class Answer:
    """Numbers that answer a question.

    Args:
        name: where they come from.
        values: as many as the question has cases.
        is_ours: whether they come from CANDOR, or from a rule that is its rival.
    """

    name: str
    values: Numbers
    is_ours: bool = False


@dataclass(frozen=True)
class Score:
    """What one answer scores by one measure.

    Args:
        question: what was asked.
        measure: how the answer was judged.
        answer: where it comes from.
        is_ours: whether it comes from CANDOR.
        value: the score; None where the truth does not allow one.
    """

    question: str
    measure: str
    answer: str
    is_ours: bool
    value: float | None


def judge(
    question: str,
    measures: Mapping[str, Measure],
    answers: Sequence[Answer],
    chance: np.random.Generator,
    draw: Draw = draw_numbers,
) -> list[Score]:
    """Returns the score of every answer by every measure, and the mean score of random numbers in their place.

    Args:
        question: what was asked.
        measures: by name.
        answers: at least one; all of the same shape.
        chance: where the random numbers come from.
        draw: how they are drawn.
    """
    shape = answers[0].values.shape
    for answer in answers:
        if answer.values.shape != shape:
            raise ValueError(f"the answer {answer.name!r} has shape {answer.values.shape}, others have {shape}")
        if not np.isfinite(answer.values).all():
            raise ValueError(f"the answer {answer.name!r} to {question!r} holds something that is not a number")
    draws = [draw(chance, shape) for _ in range(_DRAWS)]
    found = []
    for name, measure in measures.items():
        found += [Score(question, name, one.name, one.is_ours, measure(one.values)) for one in answers]
        by_chance = [score for drawn in draws if (score := measure(drawn)) is not None]
        found.append(Score(question, name, RANDOM, False, mean(by_chance) if by_chance else None))
    return found
