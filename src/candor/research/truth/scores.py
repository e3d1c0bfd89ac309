"""What answers to a question score whose truth is known, beside random answers.

All measures ask how well numbers order things whose true order is known, and stay the same under any rising map of the
numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from candor.core.arrays import Doubles

_FEWEST_RANKED = 3
_FEWEST_PAIRS = 5
RANDOM = "random numbers"
_DRAWS = 20

Measure = Callable[[Doubles], float | None]
"""Takes an answer and returns its score, or None where the truth does not allow one."""
Draw = Callable[[np.random.Generator, tuple[int, ...]], Doubles]
"""Takes a random generator and a shape, and returns a random answer."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Doubles that answer a question, one for each case: CANDOR's, or those of a rule that is its rival."""

    name: str
    values: Doubles
    is_ours: bool = False


@dataclass(frozen=True)
class Score:
    """What one answer scores by one measure; None where the truth does not allow a score."""

    question: str
    measure: str
    answer: str
    is_ours: bool
    value: float | None


def score_answers(
    question: str,
    measures: Mapping[str, Measure],
    answers: Sequence[Answer],
    generator: np.random.Generator,
    draw: Draw = lambda generator, shape: generator.random(shape),
) -> list[Score]:
    """Return the score of every answer by every measure, and the mean score of random numbers in their place.

    There is at least one answer, and all have the same shape; `draw` draws a random one.
    """
    shape = answers[0].values.shape
    for answer in answers:
        if answer.values.shape != shape:
            raise ValueError(f"the answer {answer.name!r} has shape {answer.values.shape}, others have {shape}")
        if not np.isfinite(answer.values).all():
            raise ValueError(f"the answer {answer.name!r} to {question!r} holds something that is not a number")
    draws = [draw(generator, shape) for _ in range(_DRAWS)]
    found = []
    for name, measure in measures.items():
        found += [Score(question, name, one.name, one.is_ours, measure(one.values)) for one in answers]
        of_random = [score for drawn in draws if (score := measure(drawn)) is not None]
        found.append(Score(question, name, RANDOM, False, mean(of_random) if of_random else None))
    return found


def area_under_curve(is_positive: NDArray[np.bool_], scores: Doubles) -> float | None:
    """Return the probability that a random positive scores above a random negative, 0 to 1 (AUROC).

    Equal scores count half. None where there are no positives, or no negatives.
    """
    positives = int(np.count_nonzero(is_positive))
    negatives = is_positive.size - positives
    if positives == 0 or negatives == 0:
        return None
    ranks = rankdata(scores, axis=None).reshape(scores.shape)
    above = float(ranks[is_positive].sum()) - positives * (positives + 1) / 2
    return above / (positives * negatives)


def average_precision(is_positive: NDArray[np.bool_], scores: Doubles) -> float | None:
    """Return the mean over positives of the share of positives among all that score at least as high, 0 to 1.

    None where there are no positives.
    """
    positives = int(np.count_nonzero(is_positive))
    if positives == 0:
        return None
    order = np.argsort(-scores.ravel(), kind="stable")
    found = np.cumsum(is_positive.ravel()[order])
    ordered = scores.ravel()[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True)  # equal scores count as one step
    hits, looked_at = found[is_last], np.flatnonzero(is_last) + 1
    return float((np.diff(hits, prepend=0) * hits / looked_at).sum() / positives)


def rank_correlation(truth: Doubles, scores: Doubles) -> float | None:
    """Return Spearman's correlation, -1 to 1; equal numbers share their mean rank.

    Scores that are all equal order nothing: 0. None where the truth has no order, or fewer than three members.
    """
    if truth.size < _FEWEST_RANKED or np.ptp(truth) == 0:
        return None
    if np.ptp(scores) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(truth), rankdata(scores))[0, 1])


def mean_rank_correlation(truth: Doubles, scores: Doubles) -> float | None:
    """Return the mean over columns of Spearman's correlation along each; columns without an order are left out."""
    found = [rank_correlation(one, other) for one, other in zip(truth.T, scores.T, strict=True)]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else None


def mean_correlation(truth: Doubles, scores: Doubles) -> float | None:
    """Return the mean over columns of Pearson's correlation; constant scores count 0, a constant truth not at all."""
    found = []
    for one, other in zip(truth.T, scores.T, strict=True):
        if len(one) >= _FEWEST_RANKED and np.ptp(one) > 0:
            found.append(float(np.corrcoef(one, other)[0, 1]) if np.ptp(other) > 0 else 0.0)
    return float(np.mean(found)) if found else None


def share_found(pairs: tuple[tuple[int, int], ...], first: int, likeness: Doubles) -> float | None:
    """Return the share of members of pairs whose partner is among the `first` most alike of all others.

    Equal numbers are put in random order: what is returned is the mean over all such orders. None without pairs.

    Args:
        pairs: of rows that belong together.
        first: how many of the most alike count.
        likeness: row x column, how alike the row finds the column; the diagonal is not read.
    """
    shares = []
    for one, partner in (ends for pair in pairs for ends in (pair, pair[::-1])):
        others = np.delete(likeness[one], one)
        better = np.count_nonzero(others > likeness[one, partner])
        equal = np.count_nonzero(others == likeness[one, partner])  # the partner itself is one of them
        shares.append(float(np.clip((first - better) / equal, 0.0, 1.0)))
    return float(np.mean(shares)) if shares else None


def share_in_order(truth: Doubles, group: NDArray[np.integer], scores: Doubles) -> float | None:
    """Return the share of pairs within groups that scores and truth put in the same order; equal scores count half.

    Pairs whose truth is equal do not count. None where fewer than five pairs are left.
    """
    one, other = np.triu_indices(len(truth), k=1)
    counts = (group[one] == group[other]) & (truth[one] != truth[other])
    one, other = one[counts], other[counts]
    if len(one) < _FEWEST_PAIRS:
        return None
    agreement = np.sign(truth[one] - truth[other]) * np.sign(scores[one] - scores[other])
    return float((1 + agreement).mean() / 2)
