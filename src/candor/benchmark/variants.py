"""The paper's ablations: each a named change of the settings and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

from candor.benchmark.suites import Contender, Suite, SuiteTask
from candor.errors import InputError
from candor.settings import parse_settings

FULL = "candor"
_ROLES = ("role_background", "role_accumulation", "role_release")

VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "without-decomposition": ("w/o Decomp.", {"model.decomposition": False}),
    "without-auxiliary-losses": (
        "w/o Aux. loss",
        {"loss.reconstruction": 0.0} | {f"loss.{role}": 0.0 for role in _ROLES},
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

CHANGES = {**VARIANTS, **INTERVENTIONS}

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
            raise InputError(f"there is no variant called {name!r}", mend=f"known: {', '.join(CHANGES)}")
    chosen: dict[str, dict[str, Any]] = {FULL: {}} | {name: CHANGES[name][1] for name in variants}
    contenders = [Contender(name=name, model=FULL, settings={**settings, **own}) for name, own in chosen.items()]
    return _suite("ablations", f"Ablations of CANDOR on {preset}", preset, contenders, limits)


def sweep(preset: str, setting: str, values: Sequence[Any], settings: Mapping[str, Any], **limits: Any) -> Suite:
    """Returns the grid of the model with one setting varied."""
    contenders = [
        Contender(name=f"{setting}={value}", model=FULL, settings={**settings, setting: value}) for value in values
    ]
    return _suite("sweep", f"{setting} of CANDOR on {preset}", preset, contenders, limits)


def _suite(name: str, title: str, preset: str, contenders: list[Contender], limits: Mapping[str, Any]) -> Suite:
    tasks = [SuiteTask(preset=preset)]
    content = {"name": name, "title": title, "tasks": tasks, "models": contenders, "has_rivals": False}
    given = {key: value for key, value in limits.items() if value is not None}
    return parse_settings(Suite, content | given, name)
