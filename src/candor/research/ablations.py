"""The paper's ablations, interventions and sweeps: named changes of the settings, and how errors change with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from candor.core.errors import InputError
from candor.core.settings import NOT_YAML, parse_settings
from candor.presets import load_preset
from candor.research.grid import METRICS, cells_in, overall_errors, unique
from candor.research.suites import Contender, Suite, SuiteTask

FULL = "candor"
PUBLISHED: Mapping[str, Any] = {"stages": ["network"]}
"""What all variants are variants of; commands need not say it."""
_ROLES = ("role_background", "role_accumulation", "role_release")

VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "without-decomposition": ("w/o Decomp.", {"model.decomposition": False}),
    "without-auxiliary-losses": (
        "w/o Aux. loss",
        {"loss.reconstruction": 0.0, "model.roles": False} | {f"loss.{role}": 0.0 for role in _ROLES},
    ),
    "without-physical": ("w/o Physical", {"model.branches": ["functional"]}),
    "without-functional": ("w/o Functional", {"model.branches": ["forward", "reverse"]}),
    "forward-only": ("Forward only", {"model.branches": ["functional", "forward"]}),
    "reverse-only": ("Reverse only", {"model.branches": ["functional", "reverse"]}),
    "raw-adjacency": ("Raw adjacency", {"model.learned_operator": False}),
    "without-relation": ("w/o Relation", {"model.relations": 0}),
    "mean-fusion": ("avg Fusion", {"model.learned_fusion": False}),
}
"""By name: what the paper calls it, and the settings it changes."""

INTERVENTIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "rain-added": ("RainAdd", {"model.rain": "added"}),
    "rain-alone": ("RainOnly", {"model.rain": "alone"}),
}
"""The same for data with rain: whether the shock component gains by it, or is no more than it."""

# What the paper does not try stands between them: one kind of relation, R_rel = 1, in place of several or none.
CHANGES = {**VARIANTS, "one-relation": ("One relation", {"model.relations": 1}), **INTERVENTIONS}

SWEEPS: Mapping[str, tuple[Any, ...]] = {
    "temporal_span": (1, 2, 3, 4),
    "spatial_orders": (1, 2, 3),
    "pairs": (4, 8, 16, 32),
}
"""Settings that the paper varies one at a time: K_t, K_s and k."""


def ablation(preset: str, variants: Sequence[str], settings: Mapping[str, Any], **limits: Any) -> Suite:
    """Return the grid of the full model and its variants on a preset.

    Args:
        preset: names dataset and protocol.
        variants: names of variants.
        settings: shared by all of them, e.g. `size: small`.
        limits: seeds and budget of the suite.
    """
    for name in variants:
        if name not in CHANGES:
            raise InputError(f"there is no variant called {name!r}", hint=f"known: {', '.join(CHANGES)}")
    own: dict[str, dict[str, Any]] = {FULL: {}} | {name: CHANGES[name][1] for name in variants}
    return _suite("ablations", f"Ablations of CANDOR on {preset}", preset, own, settings, limits)


def sweep(preset: str, setting: str, values: Sequence[Any], settings: Mapping[str, Any], **limits: Any) -> Suite:
    """Return the grid of the model with one setting varied; a value that is given twice counts once."""
    own = {f"{setting}={value}": {setting: value} for value in values}
    return _suite("sweep", f"{setting} of CANDOR on {preset}", preset, own, settings, limits)


def _suite(
    name: str,
    title: str,
    preset: str,
    own: Mapping[str, Mapping[str, Any]],
    shared: Mapping[str, Any],
    limits: Mapping[str, Any],
) -> Suite:
    content: dict[str, Any] = {
        "name": name,
        "title": title,
        "tasks": [SuiteTask(preset=preset)],
        "models": [
            Contender(name=model, model=FULL, settings={**PUBLISHED, **shared, **some}) for model, some in own.items()
        ],
        "has_rivals": False,
        "metric": "mse" if load_preset(preset).protocol.is_river else "mae",
    }
    given = {key: value for key, value in limits.items() if value is not None}
    if "seeds" in given:
        given["seeds"] = tuple(dict.fromkeys(given["seeds"]))
    return parse_settings(Suite, content | given, name)


def parse_values(text: str) -> tuple[str, list[Any]]:
    """Return a setting and its values from e.g. `pairs=4,8` or `milestones=[1,2],[3]`; bare names have the paper's.

    Values are YAML, so that commas within brackets belong to a value.
    """
    setting, equals, listed = text.partition("=")
    try:
        values = list(yaml.safe_load(f"[{listed}]")) if equals else list(SWEEPS.get(setting, ()))
    except NOT_YAML:
        what = f"the values of {setting!r} cannot be read: {listed[:60]!r}"
        raise InputError(what, hint="write e.g. pairs=4,8,16,32; brackets come in pairs") from None
    if not setting.strip() or not values:
        raise InputError(f"{text!r} names no values", hint="write e.g. pairs=4,8,16,32")
    return setting.strip(), values


def values_in(grid: Path, setting: str, values: Sequence[Any]) -> list[Any]:
    """Return values of a setting with those that were ever tried in a folder: numbers by size, others as they come."""
    tried = [cell.contender.settings.get(setting) for cell in cells_in(grid) if cell.suite == "sweep"]
    found = [*values, *(value for value in tried if value is not None)]
    return sorted(found) if all(isinstance(value, int | float) for value in found) else found


@dataclass(frozen=True)
class Change:
    """How a variant's error differs from the full model's."""

    variant: str  # its name
    metric: str  # which error, over all steps
    relative: float  # mean over seeds of the paired change; 0.1 is ten percent worse
    seeds: int  # how many pairs there are
    is_beyond_chance: bool  # beyond twice the relative deviation of the full model over seeds (ddof 1)
    parameters: int | None = None  # of the variant; None where the results do not state them

    @property
    def is_intervention(self) -> bool:
        """Whether the variant was given something, unlike those that a part was taken from."""
        return self.variant in INTERVENTIONS


def paired_changes(results: pd.DataFrame, metrics: tuple[str, ...] = METRICS) -> list[Change]:
    """Return the changes of all variants in the results of one task; seeds without a number in both are left out."""
    overall, sizes, found = overall_errors(results), parameters_of(results), []
    for metric in metrics:
        errors = overall[overall["metric"] == metric].pivot_table("value", "seed", "model", aggfunc="last")
        if FULL not in errors:
            continue
        full = errors[FULL]
        spread = float(full.std() / full.mean())  # ddof 1; not a number for one seed
        for variant in unique(overall, "model"):
            if variant == FULL or variant not in errors:
                continue
            changes = (errors[variant] / full - 1)[full != 0].dropna()
            if len(changes):
                mean = float(changes.mean())
                found.append(Change(variant, metric, mean, len(changes), abs(mean) > 2 * spread, sizes.get(variant)))
    return found


def split_changes(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """Return the changes by what they are about, `ablations` and `interventions`; what there is none of is absent."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault("interventions" if change.is_intervention else "ablations", []).append(change)
    return found


def parameters_of(results: pd.DataFrame) -> dict[str, int]:
    """Return the number of parameters by model, of those whose results state it."""
    if "parameters" not in results:
        return {}
    stated = results.dropna(subset="parameters")
    return {str(model): int(size) for model, size in zip(stated["model"], stated["parameters"], strict=True)}
