"""Suites name presets and models that exist, and can be cut down on the command line."""

from pathlib import Path
from typing import Any

import pytest
from tiny import PROTOCOL

from candor.core.errors import InputError
from candor.data.protocol import make_task
from candor.forecasting import forecasters
from candor.forecasting.contract import sample_panel
from candor.forecasting.own_data import choose_recipe
from candor.presets import load_preset
from candor.research.grid import cells_of
from candor.research.suites import load_suite, suite_names


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_names_presets_and_models_that_exist(name: str) -> None:
    suite = load_suite(name)
    for task in suite.tasks:
        load_preset(task.preset)
    for contender in suite.contenders:
        assert contender.model in forecasters
    names = [cell.name for cell in cells_of(suite)]
    assert len(set(names)) == len(names) == len(suite.tasks) * len(suite.contenders) * len(suite.seeds)


def test_suites_are_those_that_were_asked_for() -> None:
    suites = {name: load_suite(name) for name in ("quick", "river", "traffic", "basins", "rainfall", "paper")}
    assert sorted(suites) == suite_names()
    quick, horizons = suites["quick"], (48, 96, 144, 192, 240)
    assert [task.label for task in quick.tasks] == ["klamath-daily", "synthetic-river"]
    assert (quick.seeds, quick.budget_minutes) == ((0,), 0.5)
    assert [task.label for task in suites["traffic"].tasks] == ["metr-la", "pems-bay"]
    for name in ("river", "rainfall"):
        assert [(task.preset, task.horizon) for task in suites[name].tasks] == [("korea4-do", h) for h in horizons]
    basins = [load_preset(task.preset) for task in suites["basins"].tasks]
    assert [(one.data, one.protocol.horizon) for one in basins] == [
        (basin, horizon) for basin in ("basin030501", "basin031300", "basin180102") for horizon in horizons
    ]
    readers = [(one.model, one.settings.get("covariates")) for one in suites["rainfall"].contenders]
    assert readers[:4] == [("timexer", None), ("timexer", ["rain"]), ("xlinear", None), ("xlinear", ["rain"])]
    assert all(suites[name].seeds == (0, 1, 2) for name in suites if name != "quick")


def test_models_seeds_and_budget_can_be_chosen() -> None:
    suite = load_suite("rainfall").chosen(["timexer-rain", "linear"], [5], 0.1)
    assert [contender.model for contender in suite.contenders] == ["timexer", "linear"]
    assert suite.contenders[0].settings == {"covariates": ["rain"]}
    assert {cell.seed for cell in cells_of(suite)} == {5}
    assert {cell.budget_minutes for cell in cells_of(suite)} == {0.1}


def test_all_models_and_further_contenders_stand_beside_each_other() -> None:
    assert [one.name for one in load_suite("traffic").contenders] == [
        *forecasters.names(),
        "candor-paper",
        "candor-small",
    ]
    assert [one.name for one in load_suite("paper").contenders] == forecasters.names()


def test_the_paper_is_made_of_two_suites_that_keep_their_rules() -> None:
    paper, traffic, basins = (load_suite(name) for name in ("paper", "traffic", "basins"))
    assert paper.tasks == traffic.tasks + basins.tasks
    parts = paper.parts_of([*(task.label for task in paper.tasks), "elsewhere"])
    assert [(rules.metric, rules.ranking, len(labels)) for rules, labels in parts] == [
        ("mae", "task", 2),
        ("mse", "suite", 15),
        (paper.metric, paper.ranking, 1),
    ]


def test_a_contender_of_the_suite_can_be_chosen_though_no_model_is_called_so() -> None:
    (contender,) = load_suite("traffic").chosen(["candor-small"]).contenders
    assert (contender.name, contender.model) == ("candor-small", "candor")
    task = make_task(sample_panel(), PROTOCOL)  # which does not matter where a preset settles the recipe
    assert choose_recipe(task, "metr-la", contender.settings)[0] == load_preset("metr-la-small").recipe
    with pytest.raises(InputError, match=r"no model called 'candor-tiny'(.|\n)*stid(.|\n)*candor-small"):
        load_suite("traffic").chosen(["stid", "candor-tiny"])


def test_tasks_are_chosen_by_their_labels() -> None:
    (task,) = load_suite("river").chosen(tasks=["korea4-do-h192"]).tasks
    assert (task.preset, task.horizon) == ("korea4-do", 192)
    with pytest.raises(InputError, match=r"no task called 'korea4-do'(.|\n)*korea4-do-h48, korea4-do-h96"):
        load_suite("river").chosen(tasks=["korea4-do"])


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"models": []}, "no model is named"),
        ({"tasks": []}, "no task is named"),
        ({"budget_minutes": 0.0}, "0 minutes"),
        ({"budget_minutes": -1.0}, "-1 minutes"),
        ({"budget_minutes": float("nan")}, "nan minutes"),
        ({"settings": {"horizon": 3}}, "belongs to a task"),
        ({"models": ["linear"], "settings": {"epochs": 3}}, "no network is chosen"),
    ],
)
def test_choices_that_leave_nothing_to_do_are_refused(choice: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        load_suite("quick").chosen(**choice)
    assert refused.value.hint


def test_settings_reach_networks_and_those_of_the_protocol_reach_all() -> None:
    models = ["candor-small", "stid", "lightgbm", "last-value"]
    suite, settings = load_suite("traffic"), {"epochs": 3, "size": "paper", "history": 24}
    chosen = suite.chosen(models, settings=settings)
    assert [contender.settings for contender in chosen.contenders] == [
        settings | suite.chosen(["candor-small"]).contenders[0].settings,  # its own, epochs among them, go before
        {"epochs": 3, "size": "paper", "history": 24},
        {"history": 24},
        {"history": 24},
    ]


def test_tasks_without_data_are_left_out_and_all_without_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"traffic are not on this machine: metr-la, pems-bay(.|\n)*data info metr-la"):
        load_suite("traffic").available()
    for name in ("metr-la.parquet", "metr-la.edges.csv"):
        (tmp_path / name).touch()
    suite, left_out = load_suite("traffic").available()
    assert [task.label for task in suite.tasks] == ["metr-la"] and left_out == ["pems-bay"]
    suite, left_out = load_suite("paper").available()
    assert [task.label for task in suite.tasks] == ["metr-la"] and len(left_out) == 16
    assert load_suite("quick").available() == (load_suite("quick"), [])


def test_an_unknown_suite_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"no suite called 'slow'(.|\n)*quick"):
        load_suite("slow")
