"""What is chosen for somebody's data, with the reasons, and how settings written by hand find their place."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from candor.data.panel import Panel
from candor.data.protocol import Protocol, Task, suggest_protocol
from candor.data.times import in_words
from candor.errors import InputError
from candor.forecasting.forecaster import forecasters
from candor.model.settings import LossWeights, ModelSettings
from candor.presets import load_preset, merge
from candor.settings import parse_settings
from candor.training.recipe import NetworkRecipe, Recipe
from candor.training.settings import TrainingSettings

_STEPS_OF_TRAINING = 600
_TWO_YEARS = timedelta(days=730)
_SECTIONS: dict[str, Any] = {"training": TrainingSettings, "model": ModelSettings, "loss": LossWeights}


def choose_protocol(panel: Panel, preset: str | None, overrides: Mapping[str, Any]) -> tuple[Protocol, dict[str, Any]]:
    """Returns the protocol of the preset, or one that fits the panel, with overrides; and the overrides left over."""
    protocol = load_preset(preset).protocol if preset else suggest_protocol(panel)
    for_protocol = {key: value for key, value in overrides.items() if key in Protocol.model_fields}
    rest = {key: value for key, value in overrides.items() if key not in Protocol.model_fields}
    return parse_settings(Protocol, protocol.model_dump() | for_protocol, "settings"), rest


def choose_settings(
    model: str, task: Task, preset: str | None, overrides: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Returns the settings of a model for a task, beside those that follow from the protocol, and why in sentences."""
    if model == "candor":
        recipe, reasons = choose_recipe(task, preset, overrides)
        return {"recipe": recipe.model_dump()}, reasons
    own: dict[str, Any] = {field.name: field.default for field in fields(forecasters.get(model))}
    if "sizes" not in own:
        return dict(overrides), []
    settled = load_preset(preset).recipe if preset else None
    shared = {} if settled is None else settled.model_dump(include=set(NetworkRecipe.model_fields) - {"training"})
    sections: dict[str, Any] = {"sizes": own["sizes"].model_dump()}
    homes: dict[str, tuple[str, ...]] = {"sizes": ("sizes",)}
    if "recipe" in own:
        sections["recipe"] = own["recipe"].model_dump() | shared
        homes |= {"training": ("recipe", "training"), "recipe": ("recipe",)}
    placed: dict[str, Any] = {}
    for key, value in overrides.items():
        section, dot, name = key.partition(".")
        if not dot:
            name = key
            section = next((home for home, path in homes.items() if key in _at(sections, path)), "")
        target: dict[str, Any] = placed
        for step in homes.get(section, ()):
            target = target.setdefault(step, {})
        target[name] = value
    return merge(sections, placed), [f"sizes and training: those of {model}, see candor.baselines"]


def _at(content: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    for step in path:
        content = content[step]
    return content


def choose_recipe(task: Task, preset: str | None, overrides: Mapping[str, Any]) -> tuple[Recipe, list[str]]:
    """Returns how CANDOR is trained on a task, and what was chosen and why in plain sentences."""
    settled = load_preset(preset).recipe if preset else None
    if settled is not None:
        chosen, reasons = settled.model_dump(), [f"sizes and training: those of the preset {preset}"]
    else:
        chosen, reasons = _fitting(task)
    if overrides:
        reasons = [*reasons, f"your own settings go before these: {', '.join(overrides)}"]
    return parse_settings(Recipe, merge(chosen, _in_sections(overrides)), "settings"), reasons


def _fitting(task: Task) -> tuple[dict[str, Any], list[str]]:
    """Returns a recipe for data nobody has settled one for, from interval, horizon and length of the record."""
    history, horizon, windows = task.protocol.history, task.protocol.horizon, len(task.split.train)
    interval = task.panel.times.interval
    trained_on = task.split.train_end * interval
    batch = 64 if windows >= 2000 else 32
    epochs = min(40, max(8, _STEPS_OF_TRAINING * batch // max(windows, 1)))
    growth = -(-horizon // max(1, epochs // 3))
    milestones = sorted({epochs // 2, 3 * epochs // 4, 9 * epochs // 10})
    training = {
        "epochs": epochs, "batch": batch, "learning_rate": 1e-3, "curriculum": growth, "milestones": milestones,
        "patience": max(4, epochs // 3),
    }  # fmt: skip
    sizes = Recipe().model_settings(1, history, horizon)
    reasons = [
        f"history {in_words(history * interval)}, horizon {in_words(horizon * interval)}: usual for readings every "
        f"{in_words(interval)}",
        f"patches of {sizes.patch_length} steps, one every {sizes.patch_stride}: a third of the history each, "
        "overlapping by half",
        f"batches of {batch} windows, {epochs} epochs: {epochs * -(-windows // batch):,} steps on {windows:,} windows",
        f"the first {growth} steps of the horizon first, all of them after {epochs // 3} epochs: near steps are easier",
        "small size, and the last reading as an anchor: on Klamath's short record that beat the simple rules",
    ]
    chosen: dict[str, Any] = {"anchor": True, "training": training}
    if trained_on >= _TWO_YEARS:  # in a single year the weather of a week would pass for its season
        chosen["model"] = {"season": True}
        reasons.append(
            f"the week of the year in the calendar: {in_words(trained_on)} of training hold every season at least twice"
        )
    return chosen, reasons


def _in_sections(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings under the section they belong to: `epochs` and `training.epochs` mean the same."""
    placed: dict[str, Any] = {}
    for key, value in overrides.items():
        section, dot, name = key.partition(".")
        if dot and section in _SECTIONS:
            placed.setdefault(section, {})[name] = value
        elif key in Recipe.model_fields:
            placed[key] = merge(placed.get(key, {}), value) if isinstance(value, Mapping) else value
        elif home := next((name for name in ("training", "model") if key in _SECTIONS[name].model_fields), None):
            placed.setdefault(home, {})[key] = value
        else:
            names = [*Protocol.model_fields, *Recipe.model_fields, *TrainingSettings.model_fields]
            raise InputError(f"there is no setting called {key!r}", mend=f"known: {', '.join(names)}, loss.TERM, ...")
    return placed
