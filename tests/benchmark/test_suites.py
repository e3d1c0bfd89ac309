"""Suites name presets and models that exist, and can be cut down on the command line."""

import pytest

from candor.benchmark.cells import cells_of
from candor.benchmark.suites import load_suite, suite_names
from candor.errors import InputError
from candor.forecasting import forecasters
from candor.presets import load_preset


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_names_presets_and_models_that_exist(name: str) -> None:
    suite = load_suite(name)
    for task in suite.tasks:
        load_preset(task.preset)
    for contender in suite.contenders:
        assert contender.model in forecasters
    names = [cell.name for cell in cells_of(suite)]
    assert len(set(names)) == len(names) == len(suite.tasks) * len(suite.contenders) * len(suite.seeds)


def test_models_seeds_and_budget_can_be_chosen() -> None:
    suite = load_suite("rainfall").chosen(["timexer-rain", "linear"], [5], 0.1)
    assert [contender.model for contender in suite.contenders] == ["timexer", "linear"]
    assert suite.contenders[0].settings == {"covariates": ["rain"]}
    assert {cell.seed for cell in cells_of(suite)} == {5}
    assert {cell.budget_minutes for cell in cells_of(suite)} == {0.1}


def test_an_unknown_suite_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"no suite called 'slow'(.|\n)*quick"):
        load_suite("slow")
