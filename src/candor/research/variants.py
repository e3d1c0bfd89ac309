"""The paper's ablations, interventions and sweeps: each a named change of the settings and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from candor.core.errors import InputError
from candor.core.settings import NOT_YAML, parse_settings
from candor.presets import load_preset
from candor.research.results import cells_in
from candor.research.suites import Contender, Suite, SuiteTask

FULL = "candor"
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

FURTHER: Mapping[str, tuple[str, dict[str, Any]]] = {
    "one-relation": ("One relation", {"model.relations": 1}),
}
"""The same for what the paper does not try: one kind of relation, R_rel = 1, in place of several or none."""

INTERVENTIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "rain-added": ("RainAdd", {"model.rain": "added"}),
    "rain-alone": ("RainOnly", {"model.rain": "alone"}),
}
"""The same for data with rain: whether the shock component gains by it, or is no more than it."""

CHANGES = {**VARIANTS, **FURTHER, **INTERVENTIONS}

SWEEPS: Mapping[str, tuple[Any, ...]] = {
    "temporal_span": (1, 2, 3, 4),
    "spatial_orders": (1, 2, 3),
    "pairs": (4, 8, 16, 32),
}
"""Settings that the paper varies one at a time: K_t, K_s and k."""


def ablation(preset: str, variants: Sequence[str], settings: Mapping[str, Any], **limits: Any) -> Suite:
    """Returns the grid of the full model and its variants on a preset.

    Args:
        preset: names dataset and protocol.
        variants: names of variants.
        settings: shared by all of them, e.g. `size: small`.
        limits: seeds and budget of the suite.
    """
    for name in variants:
        if name not in CHANGES:
            raise InputError(f"there is no variant called {name!r}", hint=f"known: {', '.join(CHANGES)}")
    chosen: dict[str, dict[str, Any]] = {FULL: {}} | {name: CHANGES[name][1] for name in variants}
    contenders = [Contender(name=name, model=FULL, settings={**settings, **own}) for name, own in chosen.items()]
    return _suite("ablations", f"Ablations of CANDOR on {preset}", preset, contenders, limits)


def sweep(preset: str, setting: str, values: Sequence[Any], settings: Mapping[str, Any], **limits: Any) -> Suite:
    """Returns the grid of the model with one setting varied; a value that is given twice counts once."""
    chosen = {f"{setting}={value}": value for value in values}
    contenders = [
        Contender(name=name, model=FULL, settings={**settings, setting: value}) for name, value in chosen.items()
    ]
    return _suite("sweep", f"{setting} of CANDOR on {preset}", preset, contenders, limits)


def parse_values(text: str) -> tuple[str, list[Any]]:
    """Returns a setting and its values from e.g. `pairs=4,8` or `milestones=[1,2],[3]`; bare names have the paper's.

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
    """Returns values of a setting with those that were ever tried in a folder: numbers by size, others as they come."""
    tried = [cell.contender.settings.get(setting) for cell in cells_in(grid) if cell.suite == "sweep"]
    found = [*values, *(value for value in tried if value is not None)]
    return sorted(found) if all(isinstance(value, int | float) for value in found) else found


def _suite(name: str, title: str, preset: str, contenders: list[Contender], limits: Mapping[str, Any]) -> Suite:
    content: dict[str, Any] = {
        "name": name,
        "title": title,
        "tasks": [SuiteTask(preset=preset)],
        "models": contenders,
        "has_rivals": False,
        "metric": "mse" if load_preset(preset).protocol.is_river else "mae",
    }
    given = {key: value for key, value in limits.items() if value is not None}
    if "seeds" in given:
        given["seeds"] = tuple(dict.fromkeys(given["seeds"]))
    return parse_settings(Suite, content | given, name)
