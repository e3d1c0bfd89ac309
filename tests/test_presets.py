"""Recipes that ship with the package are complete, right, and about data that the catalogue knows."""

from importlib.resources import files

import pytest

from candor.core.errors import InputError
from candor.data.catalog import datasets, load_dataset
from candor.data.protocol import Protocol, make_task, split_origins
from candor.presets import load_preset, preset_names

BASINS = ("basin030501", "basin031300", "basin180102")
REAL_GAPS = ("klamath-daily", "klamath-daily-min", "klamath-daily-max", "korea4-do")


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_the_recipe_of_the_dataset_it_is_called_after(name: str) -> None:
    preset = load_preset(name)
    assert name == preset.data or name.startswith(f"{preset.data}-")
    assert preset.data in datasets
    assert all(step <= preset.protocol.horizon for step in preset.protocol.steps)
    assert preset.protocol.reported_steps() == preset.protocol.steps


@pytest.mark.parametrize("name", list(datasets))
def test_every_dataset_has_a_preset(name: str) -> None:
    assert name in preset_names()


def test_there_is_a_file_for_every_preset_and_nothing_else_but_code() -> None:
    entries = {entry.name for entry in files("candor.presets").iterdir()} - {"__pycache__"}
    assert entries == {f"{name}.yaml" for name in datasets} | {"__init__.py"}


@pytest.mark.parametrize("name", BASINS)
@pytest.mark.parametrize(
    ("horizon", "patches", "curriculum"),
    [(48, (4, 2), 4), (96, (8, 4), 8), (144, (12, 6), 12), (192, (16, 8), 16), (240, (16, 8), 20)],
)
def test_the_basins_are_trained_as_in_the_paper(
    name: str, horizon: int, patches: tuple[int, int], curriculum: int
) -> None:
    preset = load_preset(name if horizon == 192 else f"{name}-{horizon}")
    sizes_of_model, recipe = preset.model_settings(), preset.recipe
    assert (sizes_of_model.patch_length, sizes_of_model.patch_stride) == patches
    assert (sizes_of_model.history, sizes_of_model.horizon, preset.protocol.horizon) == (48, horizon, horizon)
    assert recipe.training.curriculum == curriculum
    assert recipe.training.prefix(32, 10**6) == 11 * curriculum
    assert recipe.training.rate(5) == 2e-3 and recipe.training.rate(36) == 2e-3 / 64
    assert not recipe.anchor and recipe.size == "paper"


def test_traffic_is_trained_as_in_the_paper() -> None:
    training = load_preset("metr-la").recipe.training
    assert [training.prefix(epoch, 12) for epoch in (0, 5, 6, 65, 66, 79)] == [1, 1, 2, 11, 12, 12]
    assert (training.is_active(35), training.is_active(36)) == (False, True)
    training = load_preset("pems-bay").recipe.training
    assert [training.prefix(epoch, 12) for epoch in (0, 19, 20, 22, 41, 42)] == [12, 12, 1, 2, 11, 12]
    assert training.rate(25) == 2e-3 and training.rate(49) == 2e-3 / 16


def sizes(protocol: Protocol, rows: int) -> tuple[int, ...]:
    split = split_origins(rows, protocol.history, protocol.horizon, protocol.split, protocol.shares)
    return len(split.train), len(split.validation), len(split.test)


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [("metr-la", 34_272, (23_974, 3_425, 6_850)), ("pems-bay", 52_116, (36_465, 5_209, 10_419))],
)
def test_traffic_is_judged_as_in_the_literature(name: str, rows: int, expected: tuple[int, ...]) -> None:
    protocol = load_preset(name).protocol
    assert sizes(protocol, rows) == expected
    assert (protocol.history, protocol.horizon, protocol.steps) == (12, 12, (3, 6, 12))
    assert (protocol.fill, protocol.targets) == ("zero", "observed")


@pytest.mark.parametrize("name", BASINS)
def test_the_basins_are_judged_as_in_the_paper(name: str) -> None:
    protocol = load_preset(name).protocol
    periods = [size + protocol.horizon - 1 for size in sizes(protocol, 43_824)]
    assert [periods[0] + protocol.history, *periods[1:]] == [26_294, 8_766, 8_764]
    assert (protocol.history, protocol.horizon) == (48, 192)
    assert (protocol.fill, protocol.targets) == ("forward-backward", "filled")


@pytest.mark.parametrize("name", REAL_GAPS)
def test_data_with_real_gaps_are_filled_without_looking_ahead_and_judged_where_measured(name: str) -> None:
    protocol = load_preset(name).protocol
    assert (protocol.fill, protocol.targets, protocol.split) == ("last", "observed", "time")


@pytest.mark.parametrize("name", [name for name in datasets if not datasets.get(name).needs])
def test_data_that_are_always_there_can_be_judged_by_their_preset(name: str) -> None:
    panel, protocol = load_dataset(name), load_preset(name).protocol
    task = make_task(panel, protocol)
    assert min(len(part) for part in (task.split.train, task.split.validation, task.split.test)) > 2 * protocol.horizon
    assert task.panel.mask.mean() > 0.9


@pytest.mark.parametrize("name", ["nothing", "", "../metr-la", "metr-la.yaml", "METR-LA"])
def test_an_unknown_preset_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(InputError, match=r"no preset called .*\n.*klamath-daily"):
        load_preset(name)
