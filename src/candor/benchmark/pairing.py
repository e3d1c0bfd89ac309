"""Changes against the full model, paired by seed: how much worse a variant is, and whether that is more than chance."""

from dataclasses import dataclass
from statistics import mean, stdev

import pandas as pd

from candor.benchmark.results import ALL_STEPS


@dataclass(frozen=True)
class Change:
    """How a variant's error differs from the full model's.

    Args:
        variant: its name.
        metric: which error, over all steps.
        relative: mean over seeds of the paired relative change; 0.1 is ten percent worse.
        seeds: how many pairs there are.
        is_beyond_chance: whether it exceeds twice the relative deviation of the full model over seeds (ddof 1).
    """

    variant: str
    metric: str
    relative: float
    seeds: int
    is_beyond_chance: bool


def paired_changes(results: pd.DataFrame, full: str, metrics: tuple[str, ...] = ("mae", "rmse", "mse")) -> list[Change]:
    """Returns the changes of all variants in the results of one task; seeds that one of both lacks are left out."""
    found = []
    for metric in metrics:
        errors = _by_seed(results, metric)
        reference = errors.pop(full, {})
        values = list(reference.values())
        spread = stdev(values) / mean(values) if len(values) > 1 else float("nan")
        for variant, others in errors.items():
            pairs = [(others[seed], reference[seed]) for seed in reference if seed in others]
            if not pairs:
                continue
            relative = mean(other / own - 1 for other, own in pairs)
            found.append(Change(variant, metric, relative, len(pairs), abs(relative) > 2 * spread))
    return found


def _by_seed(results: pd.DataFrame, metric: str) -> dict[str, dict[int, float]]:
    chosen = results[(results["step"] == ALL_STEPS) & (results["metric"] == metric)]
    found: dict[str, dict[int, float]] = {}
    columns = (chosen[name].tolist() for name in ("model", "seed", "value"))
    for model, seed, value in zip(*columns, strict=True):
        found.setdefault(model, {})[seed] = value
    return found
