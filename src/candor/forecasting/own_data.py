"""Protocol, sizes and schedules for data that no preset was made for, with reasons; and settings written by hand."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Literal

from candor.account.settings import AccountSettings
from candor.core.errors import InputError
from candor.core.settings import Settings, parse_settings
from candor.core.text import duration
from candor.data.panel import Panel
from candor.data.protocol import Protocol, Task, suggest_protocol
from candor.forecasting.forecaster import forecasters, label_of
from candor.nets.additive.settings import SharedSizes, SharedTraining
from candor.nets.candor.recipe import Recipe
from candor.nets.candor.settings import LossWeights, ModelSettings
from candor.nets.recipe import NetworkRecipe, TrainingSettings
from candor.presets import load_preset, merge

_STEPS_OF_TRAINING = 600
TWO_YEARS = timedelta(days=730)
StageName = Literal["account", "shared", "network"]
ADDITIVE: tuple[StageName, ...] = ("account", "shared")
"""The stages of CANDOR where no recipe of the published network is settled."""
_STAGES_IN_WORDS = {
    "account": "an account in closed form (usual, own, arrivals)",
    "shared": "a small network for all sensors on what it leaves",
}
_SECTIONS: dict[str, type[Settings]] = {"training": TrainingSettings, "model": ModelSettings, "loss": LossWeights}


def choose_protocol(panel: Panel, preset: str | None, overrides: Mapping[str, Any]) -> tuple[Protocol, dict[str, Any]]:
    """Return the protocol of the preset, or one that fits the panel, with overrides; and the overrides left over."""
    protocol = load_preset(preset).protocol if preset else suggest_protocol(panel)
    rest = dict(overrides)
    for_protocol = {key: rest.pop(key) for key in overrides if key in Protocol.model_fields}
    chosen = parse_settings(Protocol, protocol.model_dump() | for_protocol, "settings")
    if "steps" in for_protocol and any(step > chosen.horizon for step in chosen.steps):
        what = f"steps={list(chosen.steps)} reach beyond the horizon of {chosen.horizon} steps"
        raise InputError(what, hint=f"give steps from 1 to {chosen.horizon}, or a longer horizon")
    return chosen, rest


def choose_settings(
    model: str, task: Task, preset: str | None, overrides: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a model for a task, beside those that follow from the protocol, and why in sentences."""
    if model == "candor":
        return _choose_candor(task, preset, overrides)
    own: dict[str, Any] = {field.name: field.default for field in fields(forecasters.get(model))}
    _refuse_groups(overrides, ("sizes", "recipe", "training", "recipe.training") if "sizes" in own else ())
    if "sizes" not in own:
        return dict(overrides), []
    named = load_preset(preset) if preset else None
    settled = None if named is None else named.recipe
    published = {} if named is None else named.baselines.get(model, {})
    # What a preset leaves open stays the model's own, such as loss weights, which fit the unit of its errors.
    rules = set(NetworkRecipe.model_fields) - {"training"}
    shared = {} if settled is None else settled.model_dump(include=rules, exclude_unset=True)
    sections: dict[str, Any] = {"sizes": own["sizes"].model_dump()}
    homes: dict[str, tuple[str, ...]] = {"sizes": ("sizes",)}
    if "recipe" in own:
        sections["recipe"] = own["recipe"].model_dump() | shared
        homes |= {"training": ("recipe", "training"), "recipe": ("recipe",)}
    placed: dict[str, Any] = {}
    for key, value in (*published.items(), *overrides.items()):
        section, dot, name = key.partition(".")
        if not dot:
            name = key
            section = next((home for home, path in homes.items() if key in _at(sections, path)), "")
        target: dict[str, Any] = placed
        for step in homes.get(section, ()):
            target = target.setdefault(step, {})
        target[name] = value
    whose = f"those of {label_of(model)}" + (f" as published for {preset}" if published else "")
    return merge(sections, placed), [f"sizes and training: {whose}, see candor.nets.baselines"]


def _choose_candor(task: Task, preset: str | None, overrides: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of CANDOR: of the published network where its recipe or its settings ask for it."""
    rest = dict(overrides)
    stages = rest.pop("stages", None)
    is_settled = preset is not None and load_preset(preset).recipe is not None
    if stages is None:
        stages = ["network"] if is_settled or any(_is_of_network(key) for key in rest) else list(ADDITIVE)
    stages = [stages] if isinstance(stages, str) else list(stages)
    if stages == ["network"]:
        recipe, reasons = choose_recipe(task, preset, rest)
        return {"stages": stages, "recipe": recipe.model_dump()}, reasons
    if wrong := next((key for key in rest if _is_of_network(key)), None):
        what = f"{wrong} is a setting of the published network, which is not among the stages"
        raise InputError(what, hint="leave it out, or train the published network alone: stages=network")
    sections: dict[str, Any] = {"account": AccountSettings, "sizes": SharedSizes, "training": SharedTraining}
    alone = {key: rest.pop(key) for key in ("networks", "passes") if key in rest}
    placed = _in_sections(rest, sections, ("account", "training", "sizes"))
    shared = {key: placed[key] for key in ("sizes", "training") if key in placed} | alone
    chosen = {"stages": stages, "account": placed.get("account", {}), "shared": shared}
    reasons = [
        _spans_in_words(task, preset),
        "stages: " + ", then ".join(_STAGES_IN_WORDS[name] for name in stages if name in _STAGES_IN_WORDS),
    ]
    if overrides:
        reasons.append(_as_you_set(overrides))
    return chosen, reasons


def _is_of_network(key: str) -> bool:
    """Return whether a setting belongs to the published network alone."""
    section, dot, _ = key.partition(".")
    if dot:
        return section in ("model", "loss", "recipe")
    return key in Recipe.model_fields.keys() - {"training", "selection"} or key in ModelSettings.model_fields


def _at(content: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    for step in path:
        content = content[step]
    return content


def choose_recipe(task: Task, preset: str | None, overrides: Mapping[str, Any]) -> tuple[Recipe, list[str]]:
    """Return how CANDOR is trained on a task, and what was chosen and why in plain sentences."""
    placed = _in_sections(overrides, _SECTIONS, ("training", "model"), Recipe)
    settled = load_preset(preset).recipe if preset else None
    wanted = placed.get("training") or {}
    followed = None if settled is None else _following(settled, task, wanted)
    chosen = _fitting(task, wanted) if followed is None else followed.model_dump()
    recipe = parse_settings(Recipe, merge(chosen, placed), "settings")
    if recipe.keeps_level and not recipe.anchor:
        if "keeps_level" in placed:
            what = "keeps_level says how the anchor is used, and there is no anchor"
            raise InputError(what, hint="give anchor=true as well, or leave out keeps_level")
        recipe = recipe.model_copy(update={"keeps_level": False})
    if settled is None:
        reasons = _reasons(task, preset, recipe, set(placed) | set(placed.get("model", {})))
    else:
        reasons = [f"sizes and training: those of the preset {preset}"]
        if followed != settled:
            ahead = f"{recipe.training.epochs} epochs and {task.protocol.horizon} steps"
            reasons.append(f"learning rate and curriculum: in proportion to {ahead}")
    if uncovered := recipe.model_settings(1, task.protocol.history, task.protocol.horizon).uncovered:
        reasons.append(
            f"the newest {uncovered} of the {task.protocol.history} steps that are read lie in no patch: take a "
            "history that is longer than patch_length by a multiple of patch_stride"
        )
    if overrides:
        reasons.append(_as_you_set(overrides))
    return recipe, reasons


def _as_you_set(overrides: Mapping[str, Any]) -> str:
    words = ", ".join(f"{name}={value}" for name, value in overrides.items())
    return f"as you set, before all that was chosen: {words}"


def _following(settled: Recipe, task: Task, wanted: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a preset with its schedules in proportion to the epochs and the horizon there are."""
    training, horizon = settled.training, task.protocol.horizon
    epochs = parse_settings(TrainingSettings, wanted, "settings").epochs if "epochs" in wanted else training.epochs
    if epochs == training.epochs and training.prefix(epochs - 1, horizon) == horizon:
        return settled
    return settled.model_copy(update={"training": training.in_epochs(epochs, horizon)})


def _fitting(task: Task, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe that follows from interval, horizon and length of the record.

    The schedules fit the settings of training that are `wanted`.
    """
    history, horizon, windows = task.protocol.history, task.protocol.horizon, len(task.split.train)
    own = parse_settings(TrainingSettings, wanted, "settings")
    batch = own.batch if "batch" in wanted else 64 if windows >= 2000 else 32
    epochs = own.epochs if "epochs" in wanted else min(40, max(8, _STEPS_OF_TRAINING * batch // max(windows, 1)))
    parts = {epochs // 2, 3 * epochs // 4, 9 * epochs // 10} - {0}
    training = {
        "epochs": epochs, "batch": batch, "learning_rate": 1e-3, "milestones": sorted(parts),
        "curriculum": -(-horizon // max(1, epochs // 3)), "patience": max(4, epochs // 3),
    }  # fmt: skip
    sizes = Recipe().model_settings(1, history, horizon)
    # From a single year the network would take the weather of a week for its season.
    season = task.split.train_end * task.panel.times.interval >= TWO_YEARS
    model = {"patch_length": sizes.patch_length, "patch_stride": sizes.patch_stride, "season": season}
    # Long horizons revert to the mean, so the level is kept as an input.
    keeps_level = season and horizon >= history
    return {"anchor": True, "keeps_level": keeps_level, "training": training, "model": model}


def _reasons(task: Task, preset: str | None, recipe: Recipe, own: set[str]) -> list[str]:
    """Return why a recipe is as it is, in sentences; settings given by hand (`own`) need no reason."""
    training, windows, horizon = recipe.training, len(task.split.train), task.protocol.horizon
    sizes = recipe.model_settings(1, task.protocol.history, horizon)
    of_epoch = min(windows, training.epoch_windows or windows)
    steps, some = training.epochs * -(-of_epoch // training.batch), "" if of_epoch == windows else f"{of_epoch:,} of "
    length = "twice the horizon" if horizon < task.protocol.history // 6 else "a third of the history"
    length = f"a little more than {length}" if sizes.patch_length > 2 * sizes.patch_stride else length
    sentences = [
        _spans_in_words(task, preset),
        f"patches of {sizes.patch_length} steps, one every {sizes.patch_stride}"
        + ("" if own & {"patch_length", "patch_stride"} else f": {length} each, overlapping by half"),
        f"batches of {training.batch} windows, {training.epochs} epochs: {steps:,} steps on {some}{windows:,} windows",
    ]
    first = training.prefix(training.warm_up, horizon)
    whole = next((epoch for epoch in range(training.epochs) if training.prefix(epoch, horizon) == horizon), None)
    if first < horizon and training.warm_up == 0:
        grown = f"all of them from epoch {whole + 1} on" if whole is not None else "never all of them"
        sentences.append(f"the first {first} steps of the horizon first, {grown}: near steps are easier")
    if recipe.anchor and recipe.size == "small" and not own & {"anchor", "size"}:
        sentences.append(
            "small size, and the last reading as an anchor: on Klamath's short record that beat the simple rules"
        )
    if recipe.anchor and recipe.keeps_level and not own & {"anchor", "keeps_level"}:
        sentences.append(
            "the level of the readings beside the anchor: a horizon as long as the history reaches to where they "
            "return to what is usual"
        )
    if sizes.season and "season" not in own:
        trained_on = duration(task.split.train_end * task.panel.times.interval)
        sentences.append(
            f"the week of the year in the calendar: {trained_on} of training hold every season at least twice"
        )
    return sentences


def _spans_in_words(task: Task, preset: str | None) -> str:
    """Return a sentence about history and horizon: usual for the interval, those of a preset, or chosen by hand."""
    interval = task.panel.times.interval
    usual = load_preset(preset).protocol if preset else suggest_protocol(task.panel)
    why = f"as in the preset {preset}" if preset else f"usual for readings every {duration(interval)}"
    reasons = {}
    for name in ("history", "horizon"):
        steps = getattr(task.protocol, name)
        reasons[f"{name} {duration(steps * interval)}"] = why if steps == getattr(usual, name) else "your choice"
    if set(reasons.values()) == {why}:
        return f"{', '.join(reasons)}: {why}"
    return "; ".join(f"{span}: {reason}" for span, reason in reasons.items())


def _in_sections(
    overrides: Mapping[str, Any],
    sections: Mapping[str, type[Settings]],
    homes: Sequence[str],
    whole: type[Settings] | None = None,
) -> dict[str, Any]:
    """Return settings under the section they belong to: `epochs` and `training.epochs` mean the same.

    Args:
        overrides: by name.
        sections: settings by the name of their group.
        homes: groups whose settings need no prefix.
        whole: what the groups are a part of, whose own settings need none either.
    """
    _refuse_groups(overrides, sections)
    placed: dict[str, Any] = {}
    known = whole.model_fields if whole else {}
    for key, value in overrides.items():
        section, dot, name = key.partition(".")
        if dot and section in sections:
            placed.setdefault(section, {})[name] = value
        elif key in known or (key in sections and isinstance(value, Mapping)):
            placed[key] = merge(placed.get(key, {}), value) if isinstance(value, Mapping) else value
        elif home := next((name for name in homes if key in sections[name].model_fields), None):
            placed.setdefault(home, {})[key] = value
        else:
            rooms = (Protocol, *((whole,) if whole else ()), *(sections[name] for name in homes))
            names = list(dict.fromkeys(name for one in rooms for name in one.model_fields))
            near = get_close_matches(key.rpartition(".")[2], names, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            groups = ", ".join(f"{name}.NAME" for name in sections if name not in homes)
            hint = f"{meant}known: {', '.join(names)}{', ' + groups if groups else ''}"
            raise InputError(f"there is no setting called {key!r}", hint=hint)
    return placed


def _refuse_groups(overrides: Mapping[str, Any], groups: Collection[str]) -> None:
    """Refuse one value for a group of settings, such as `training=3`, and `model` and `seed`, which are options.

    A seed among the settings would differ from that in the run's record.
    """
    for key, value in overrides.items():
        if key == "model" and isinstance(value, str):
            raise InputError("a model is chosen by an option, not by a setting", hint=f"did you mean --model {value}?")
        if key == "seed":
            what = "a seed is chosen by an option, not by a setting"
            raise InputError(what, hint=f"did you mean --seed {value}, or --seeds of a grid?")
        if key in groups and not isinstance(value, Mapping):
            raise InputError(
                f"{key} is a group of settings and cannot be {value!r}", hint=f"name one of them: {key}.NAME=VALUE"
            )
