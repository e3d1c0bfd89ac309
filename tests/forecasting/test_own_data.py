"""What is chosen for somebody's data follows from interval, horizon, length and their own settings, and is said."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from tiny import PROTOCOL

from candor.core.errors import InputError
from candor.data.panel import Panel, Sensor
from candor.data.protocol import Protocol, Task, make_task
from candor.data.times import TimeAxis
from candor.forecasting.contract import sample_panel
from candor.forecasting.forecaster import forecasters
from candor.forecasting.own_data import choose_protocol, choose_recipe, choose_settings
from candor.nets.candor.recipe import Recipe
from candor.presets import load_preset


def days(count: int, history: int = 28, horizon: int = 14) -> Task:
    times = TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(days=1), count)
    panel = Panel(np.zeros((count, 1), np.float32), times, (Sensor("gauge"),))
    return make_task(panel, Protocol(history=history, horizon=horizon))


def test_what_is_chosen_can_be_overruled_and_is_said() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    recipe, reasons = choose_recipe(task, None, {"epochs": 3, "training.batch": 7, "hidden": 16, "loss.branch": 0.5})
    assert (recipe.training.epochs, recipe.training.batch, recipe.loss.branch) == (3, 7, 0.5)
    assert recipe.model == {"hidden": 16, "patch_length": 4, "patch_stride": 2, "season": False} and recipe.anchor
    assert any("patches of 4 steps, one every 2: a third" in reason for reason in reasons)
    assert f"batches of 7 windows, 3 epochs: 150 steps on {len(task.split.train)} windows" in reasons
    assert (
        reasons[-1] == "as you set, before all that was chosen: epochs=3, training.batch=7, hidden=16, loss.branch=0.5"
    )
    with pytest.raises(InputError) as refused:
        choose_recipe(task, None, {"seasons": True})
    assert refused.value.hint.startswith("did you mean season? known: ") and ", pairs, " in refused.value.hint
    for wrong in ({"wings": 2}, {"epochs": "many"}, {"training": 3}):
        with pytest.raises(InputError):
            choose_recipe(task, None, wrong)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("candor", {"training": "x", "epochs": 3}),
        ("candor", {"model": None, "pairs": 4}),
        ("candor", {"loss": 3, "loss.branch": 0.5}),
        ("stid", {"sizes": 3, "width": 8}),
        ("stid", {"training": "x", "epochs": 3}),
        ("stid", {"recipe.training": "x", "epochs": 3}),
    ],
)
def test_one_value_for_a_group_of_settings_is_refused(model: str, settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match="is a group of settings") as refused:
        choose_settings(model, make_task(sample_panel(), PROTOCOL), None, settings)
    assert refused.value.hint == f"name one of them: {next(iter(settings))}.NAME=VALUE"


@pytest.mark.parametrize("model", ["candor", "stid", "linear"])
def test_a_model_or_seed_that_is_named_as_a_setting_is_asked_for_by_its_option(model: str) -> None:
    for setting, hint in (({"model": "dlinear"}, "--model dlinear?"), ({"seed": 5}, "--seed 5, or --seeds of a grid?")):
        with pytest.raises(InputError) as refused:
            choose_settings(model, make_task(sample_panel(), PROTOCOL), None, setting | {"pairs": 4})
        assert refused.value.hint == f"did you mean {hint}"


@pytest.mark.parametrize(
    ("count", "batch", "epochs"), [(200, 32, 40), (1000, 32, 34), (3000, 32, 10), (4000, 64, 16), (40_000, 64, 8)]
)
def test_short_records_are_read_often_and_long_ones_in_larger_batches(count: int, batch: int, epochs: int) -> None:
    training = choose_recipe(days(count), None, {})[0].training
    assert (training.batch, training.epochs) == (batch, epochs)
    steps = training.epochs * -(-len(days(count).split.train) // batch)
    assert 540 < steps < 660 or epochs in (8, 40)


@pytest.mark.parametrize("epochs", [None, 1, 2, 3, 5, 12, 40])
@pytest.mark.parametrize("horizon", [1, 7, 48])
def test_schedules_end_within_the_epochs_that_there_are(epochs: int | None, horizon: int) -> None:
    task = days(1000, horizon=horizon)
    training = choose_recipe(task, None, {} if epochs is None else {"epochs": epochs})[0].training
    prefixes = [training.prefix(epoch, horizon) for epoch in range(training.epochs)]
    # All steps are learned together for two thirds of the time at least.
    assert prefixes.index(horizon) <= max(0, training.epochs // 3 - 1)
    assert all(0 < milestone < training.epochs for milestone in training.milestones if training.epochs > 1)
    assert training.rate(0) == 1e-3
    assert training.epochs == 1 or training.rate(training.epochs - 1) < 1e-3


def test_reasons_are_given_for_what_was_chosen_and_not_for_what_somebody_set() -> None:
    panel = days(1000).panel
    for own, words in (
        ({}, "history 28 d, horizon 14 d: usual for readings every 1 d"),
        ({"horizon": 7}, "history 28 d: usual for readings every 1 d; horizon 7 d: your choice"),
        ({"history": 9, "horizon": 7}, "history 9 d: your choice; horizon 7 d: your choice"),
    ):
        protocol, rest = choose_protocol(panel, None, own)
        assert choose_recipe(make_task(panel, protocol), None, rest)[1][0] == words
    near = choose_recipe(days(1000, history=28, horizon=2), None, {})[1]
    assert near[1] == "patches of 4 steps, one every 2: twice the horizon each, overlapping by half"
    reasons = choose_recipe(days(2000), None, {"patch_length": 6, "anchor": False, "curriculum": 5, "season": True})[1]
    assert reasons[1] == "patches of 6 steps, one every 4"
    unread = "the newest 2 of the 28 steps that are read lie in no patch"
    assert any(reason.startswith(unread) for reason in reasons)
    assert not any("in no patch" in reason for reason in choose_recipe(days(2000, history=25), None, {})[1])
    assert "the first 5 steps of the horizon first, all of them from epoch 3 on: near steps are easier" in reasons
    assert not any("anchor:" in reason or "week of the year" in reason for reason in reasons)
    assert any("week of the year" in reason for reason in choose_recipe(days(2000), None, {})[1])
    whole = choose_recipe(days(2000), None, {"curriculum": 0})[1]
    assert not any("of the horizon first" in reason for reason in whole)


def test_what_is_chosen_does_not_change_when_it_is_read_again() -> None:
    task = days(2000, horizon=7)
    recipe, _ = choose_recipe(task, None, {})
    again = Recipe.model_validate_json(recipe.model_dump_json())
    assert again == recipe
    sizes = again.model_settings(1, 28, 7)
    assert (sizes.patch_length, sizes.patch_stride, sizes.season) == (8, 4, True)
    assert recipe.model == {"patch_length": 8, "patch_stride": 4, "season": True}


def test_a_preset_without_a_recipe_says_whose_history_and_horizon_it_takes() -> None:
    panel = replace(sample_panel(), name="synthetic-river")
    protocol, _ = choose_protocol(panel, "synthetic-river", {})
    reasons = choose_recipe(make_task(panel, protocol), "synthetic-river", {})[1]
    assert reasons[0].endswith(": as in the preset synthetic-river")


def test_the_level_is_kept_for_horizons_as_long_as_the_history_in_records_of_years() -> None:
    told = "the level of the readings beside the anchor"
    for count, horizon, keeps in ((2000, 28, True), (2000, 27, False), (700, 28, False)):
        recipe, reasons = choose_recipe(days(count, 28, horizon), None, {})
        assert recipe.anchor and recipe.keeps_level == keeps
        assert any(reason.startswith(told) for reason in reasons) == keeps
    recipe, reasons = choose_recipe(days(2000, 28, 28), None, {"keeps_level": False})
    assert not recipe.keeps_level and not any(reason.startswith(told) for reason in reasons)


def test_the_level_is_kept_only_beside_an_anchor() -> None:
    task = days(2000, 28, 28)
    for preset, own in (("metr-la", {}), (None, {"anchor": False})):
        with pytest.raises(InputError, match="there is no anchor"):
            choose_recipe(task, preset, {"keeps_level": True, **own})
    assert choose_recipe(task, "metr-la", {"keeps_level": True, "anchor": True})[0].keeps_level
    assert not choose_recipe(task, None, {"anchor": False})[0].keeps_level  # which was chosen for it with the anchor


def test_steps_beyond_the_horizon_are_refused_where_somebody_set_them() -> None:
    panel = days(1000).panel
    for own in ({"steps": [100]}, {"steps": [1, 8], "horizon": 7}):
        with pytest.raises(InputError, match="beyond the horizon") as refused:
            choose_protocol(panel, "klamath-daily", own)
        assert "or a longer horizon" in refused.value.hint
    assert choose_protocol(panel, "klamath-daily", {"steps": [100], "horizon": 100})[0].reported_steps() == (100,)
    assert choose_protocol(panel, "klamath-daily", {"horizon": 7})[0].reported_steps() == (1, 3, 7)


@pytest.mark.parametrize(
    ("preset", "of_st_ssdl", "of_stid"),
    [(None, "original", "scores"), ("klamath-daily", "original", "scores"), ("metr-la", "original", "original")],
)
def test_a_preset_changes_of_another_model_only_what_it_states(
    preset: str | None, of_st_ssdl: str, of_stid: str
) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    for model, space in (("st-ssdl", of_st_ssdl), ("stid", of_stid)):
        recipe = choose_settings(model, task, preset, {})[0]["recipe"]
        assert recipe["loss_space"] == space
        assert (recipe["scaler"], recipe["selection"]) == (
            ("windows", "whole") if preset == "metr-la" else ("rows", "half")
        )


def test_a_reconstruction_is_called_one_where_its_settings_are_told() -> None:
    ((_, (reason,)), (_, (other,))) = (
        choose_settings(model, make_task(sample_panel(), PROTOCOL), None, {}) for model in ("msthg", "stid")
    )
    assert "those of msthg (reconstruction)," in reason and "those of stid," in other


@pytest.mark.parametrize("model", ["autostf", "d2stgnn", "st-ssdl", "staeformer", "testam"])
def test_what_was_published_for_a_dataset_takes_the_place_of_defaults_and_can_be_overruled(model: str) -> None:
    task, published = make_task(sample_panel(), PROTOCOL), load_preset("pems-bay").baselines[model]
    by_default, chosen = (choose_settings(model, task, preset, {})[0] for preset in ("metr-la", "pems-bay"))
    forecasters.get(model)(history=12, horizon=12, **chosen)  # refuses what it does not know
    ours, theirs = (made["sizes"] | made["recipe"]["training"] for made in (chosen, by_default))
    assert {key for key in ours if ours[key] != theirs[key]} == set(published)
    key, value = next(iter(published.items()))
    overruled = choose_settings(model, task, "pems-bay", {key: 7})[0]
    assert 7 in (overruled["sizes"].get(key), overruled["recipe"]["training"].get(key)) and value != 7
    assert "as published for pems-bay" in choose_settings(model, task, "pems-bay", {})[1][0]


@pytest.mark.parametrize(("preset", "epochs"), [("metr-la", 2), ("metr-la", 10), ("basin180102", 10), ("metr-la", 160)])
def test_schedules_of_a_preset_follow_the_epochs_that_are_set(preset: str, epochs: int) -> None:
    task = days(2000)
    horizon, settled = task.protocol.horizon, load_preset(preset).recipe
    assert settled is not None
    training = choose_recipe(task, preset, {"epochs": epochs})[0].training
    assert training.epochs == epochs and training.prefix(epochs - 1, horizon) == horizon
    assert training.rate(epochs) == pytest.approx(settled.training.rate(settled.training.epochs))
    assert choose_recipe(task, preset, {"epochs": epochs, "milestones": [1]})[0].training.milestones == (1,)


def test_schedules_of_a_preset_follow_a_longer_horizon() -> None:
    task = make_task(sample_panel(), Protocol(history=24, horizon=24))
    training = choose_recipe(task, "metr-la", {})[0].training
    assert training.prefix(training.epochs - 1, 24) == 24
    settled = load_preset("metr-la").recipe
    near = make_task(sample_panel(), Protocol(history=12, horizon=12))
    assert choose_recipe(near, "metr-la", {})[0] == settled
