"""Changes against the full model, paired by seed: how much worse a variant is, and whether that is more than chance."""

from dataclasses import dataclass
from math import isfinite
from statistics import mean, stdev

import pandas as pd

from candor.research.results import ALL_STEPS, METRICS


@dataclass(frozen=True)
class Change:
    """How a variant's error differs from the full model's.

    Args:
        variant: its name.
        metric: which error, over all steps.
        relative: mean over seeds of the paired relative change; 0.1 is ten percent worse.
        seeds: how many pairs there are.
        is_beyond_chance: whether it exceeds twice the relative deviation of the full model over seeds (ddof 1).
        parameters: of the variant; None where the results do not state them.
    """

    variant: str
    metric: str
    relative: float
    seeds: int
    is_beyond_chance: bool
    parameters: int | None = None


def paired_changes(results: pd.DataFrame, full: str, metrics: tuple[str, ...] = METRICS) -> list[Change]:
    """Returns the changes of all variants in the results of one task; seeds without a number in both are left out."""
    found, sizes = [], parameters_of(results)
    for metric in metrics:
        errors = _by_seed(results, metric)
        reference = errors.pop(full, {})
        values = list(reference.values())
        spread = stdev(values) / mean(values) if len(values) > 1 and any(values) else float("nan")
        for variant, others in errors.items():
            pairs = [(others[seed], own) for seed, own in reference.items() if seed in others and own]
            if not pairs:
                continue
            relative = mean(other / own - 1 for other, own in pairs)
            is_beyond_chance = abs(relative) > 2 * spread
            found.append(Change(variant, metric, relative, len(pairs), is_beyond_chance, sizes.get(variant)))
    return found


def parameters_of(results: pd.DataFrame) -> dict[str, int]:
    """Returns the number of parameters by model, of those whose results state it."""
    if "parameters" not in results:
        return {}
    stated = results.dropna(subset="parameters")
    return {str(model): int(size) for model, size in zip(stated["model"], stated["parameters"], strict=True)}


def _by_seed(results: pd.DataFrame, metric: str) -> dict[str, dict[int, float]]:
    chosen = results[(results["step"] == ALL_STEPS) & (results["metric"] == metric)]
    found: dict[str, dict[int, float]] = {}
    columns = (chosen[name].tolist() for name in ("model", "seed", "value"))
    for model, seed, value in zip(*columns, strict=True):
        if isfinite(value):
            found.setdefault(model, {})[seed] = value
    return found
