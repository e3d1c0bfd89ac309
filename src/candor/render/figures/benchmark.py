"""The figures of grids and profiles: what parts are worth, what a setting does, accuracy against cost."""

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from statistics import fmean

import pandas as pd

from candor.render.figures.bubbles import Bubble, draw_bubbles
from candor.render.figures.heat import HeatCell, draw_changes
from candor.render.figures.style import Drawing
from candor.render.figures.sweeps import count_seeds, draw_sweep
from candor.research.ablations import CHANGES, Change
from candor.research.grid import ALL_STEPS
from candor.research.profiling import Errors, Profile
from candor.research.tables import is_ours

_TITLES = {False: "CANDOR without its parts", True: "CANDOR that is given rain"}
"""Of heat maps, by whether they show interventions."""


def draw_ablations(changes: Sequence[Change], task: str) -> Drawing:
    """Returns the heat map of the changes on a task, under the names that the paper gives to variants.

    Args:
        changes: at least one, as `paired_changes` gives them; all of them parts taken away, or all interventions.
        task: what the variants were trained on.
    """
    rows: dict[str, dict[str, HeatCell]] = {}
    for change in changes:
        rows.setdefault(paper_name(change.variant), {})[change.metric] = _heat(change)
    seeds = count_seeds([change.seeds for change in changes])
    note = f"Mean over {seeds} of the paired relative change. Dot: beyond twice the full model's spread."
    return draw_changes(rows, f"{_TITLES[changes[0].is_intervention]}, {task}", note)


def _heat(change: Change) -> HeatCell:
    return HeatCell(change.relative, change.is_beyond_chance, change.parameters)


def draw_ablations_together(changes: Mapping[str, Sequence[Change]]) -> Drawing:
    """Returns the heat map of variants by task and metric; variants that a task lacks are left out.

    Args:
        changes: by task, as `paired_changes` gives them; at least one variant must be in all. All of them parts taken
            away, or all interventions.
    """
    first, *others = ({one.variant: one for one in found} for found in changes.values())
    shared = [variant for variant in first if all(variant in other for other in others)]
    rows: dict[str, dict[str, HeatCell]] = {paper_name(variant): {} for variant in shared}
    for task, found in changes.items():
        for change in found:
            if change.variant in shared:
                rows[paper_name(change.variant)][f"{task}, {change.metric}"] = _heat(change)
    note = "Mean over seeds of the paired relative change. Dot: beyond twice the full model's spread."
    return draw_changes(rows, _TITLES[first[shared[0]].is_intervention], note)


def paper_name(variant: str) -> str:
    """Returns what the paper calls a variant."""
    return CHANGES[variant][0] if variant in CHANGES else variant


def draw_setting(results: pd.DataFrame, setting: str, task: str) -> Drawing:
    """Returns the errors by value of a setting, from the results of a sweep on one task."""
    errors = errors_by_value(results, setting)
    return draw_sweep(errors, setting, f"{setting} of CANDOR, {task}", str(results["unit"].iloc[0] or ""))


def errors_by_value(results: pd.DataFrame, setting: str) -> dict[str, list[float]]:
    """Returns the mean absolute errors over all steps by value of a setting, one per seed."""
    chosen = results[(results["step"] == ALL_STEPS) & (results["metric"] == "mae")]
    found: dict[str, list[float]] = {}
    for model, value in zip(chosen["model"].tolist(), chosen["value"].tolist(), strict=True):
        found.setdefault(str(model).removeprefix(f"{setting}="), []).append(float(value))
    return found


def draw_costs(profile: Profile, errors: Errors) -> dict[str, Drawing]:
    """Returns errors against parameters and against time, by the names of their files; none if no model has both."""
    bubbles, at = bubbles_of(profile, errors), profile.circumstances
    if not bubbles:
        return {}
    title = f"Accuracy and cost on {at.preset}"
    return {
        "accuracy-parameters": draw_bubbles(bubbles, "parameters", title, errors.unit, at.batch),
        "accuracy-time": draw_bubbles(bubbles, "time", title, errors.unit, at.batch),
    }


def bubbles_of(profile: Profile, errors: Errors) -> list[Bubble]:
    """Returns the networks with costs and with errors that are numbers, smallest first."""
    return [
        Bubble(
            name=model.label,
            error=fmean(errors.by_model[model.name]),
            seeds=len(errors.by_model[model.name]),
            parameters=model.parameters,
            seconds=model.inference_seconds,
            is_ours=is_ours(model.name),
            is_reconstruction=model.is_reconstruction,
            metric=errors.metric,
        )
        for model in profile.models
        if model.parameters is not None and isfinite(fmean(errors.by_model.get(model.name, [nan])))
    ]
