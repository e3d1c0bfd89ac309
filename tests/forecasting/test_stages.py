"""CANDOR's stages keep the contract, begin where the one before ended, and outlast kills and budgets."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny import PROTOCOL
from tiny import TINY_STAGES as TINY

from candor.core.errors import InputError
from candor.core.settings import parse_settings
from candor.data.protocol import make_task
from candor.forecasting.account import AccountForecaster
from candor.forecasting.blend import error_of
from candor.forecasting.candor import Candor
from candor.forecasting.contract import check_forecaster, sample_panel
from candor.forecasting.forecaster import load_forecaster
from candor.forecasting.own_data import choose_settings
from candor.runs.fit import Limits, TrainingStoppedError, resume_run, train_model
from candor.runs.resumable import notes_on_training
from candor.runs.run import load_run

SPANS = {"history": 12, "horizon": 4}


def made(**more: Any) -> Candor:
    """Returns a forecaster of both stages that is fitted in a second."""
    settings = SPANS | {"shared": TINY} | more
    found: Candor = parse_settings(Candor, settings, "settings")
    return found


@pytest.fixture(scope="module")
def ours() -> Candor:
    task = make_task(sample_panel(), PROTOCOL)
    return made(shared=TINY | {"networks": 2}).fit(task.panel, task.split)


@pytest.mark.parametrize("stages", [["account"], ["account", "shared"]])
def test_stages_keep_the_contract(stages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("candor.forecasting.contract._ROWS", 360)
    monkeypatch.setattr("candor.forecasting.inference.WINDOWS_PER_BATCH", 8)
    check_forecaster(partial(made, stages=stages))


def test_networks_that_learned_nothing_leave_the_account_as_it_is() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    still = made(shared=TINY | {"training": TINY["training"] | {"learning_rate": 1e-30, "weight_decay": 0.0}})
    still.fit(task.panel, task.split)
    account, network, *_ = still._member_forecasts(task.panel, task.split.test, {})
    np.testing.assert_allclose(network, account, rtol=1e-6)
    alone = AccountForecaster(**SPANS).fit(task.panel, task.split)
    np.testing.assert_allclose(account, alone.predict(task.panel, task.split.test), rtol=1e-4, atol=1e-4)


def test_the_blend_is_never_worse_than_its_best_member_where_it_was_chosen(ours: Candor) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    origins = ours.selection(task.split).validation
    truth = task.panel.values[origins[:, None] + np.arange(4)]
    members = ours._member_forecasts(task.panel, origins, ours._rules())
    assert len(members) == len(ours.members()) == ours.blend_weights().shape[1]
    alone = [error_of(np.tile(one, (4, 1)), members, truth) for one in np.eye(len(members))]
    assert np.abs(ours.predict(task.panel, origins) - truth)[~np.isnan(truth)].mean() <= min(alone) + 1e-6


def test_a_forecast_moves_only_with_readings_it_may_know(ours: Candor, tmp_path: Path) -> None:
    ours.save(tmp_path / "model")
    loaded = load_forecaster(tmp_path / "model")
    assert isinstance(loaded, Candor) and loaded.used_stages() == ("account", "shared")
    np.testing.assert_array_equal(loaded.predict(sample_panel()), ours.predict(sample_panel()))
    assert loaded.rows_needed <= loaded.rows_read


def test_training_that_only_loses_leaves_its_first_weights() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    training = TINY["training"] | {"learning_rate": 0.5, "validation_windows": None}
    wild = made(shared=TINY | {"training": training}).fit(task.panel, task.split)
    origins = wild.selection(task.split).validation
    account, network, *_ = wild._member_forecasts(task.panel, origins, {})
    truth = task.panel.values[origins[:, None] + np.arange(4)]
    errors = [np.nanmean(np.abs(one - truth)) for one in (account, network)]
    assert errors[1] <= errors[0] + 1e-6


def test_a_kill_between_and_within_networks_leaves_the_same_model(tmp_path: Path) -> None:
    settings = {"stages": ["account", "shared"], "shared": TINY | {"networks": 2}}
    train = partial(train_model, sample_panel(), PROTOCOL, "candor", settings, is_catalogued=False)
    whole = train(tmp_path / "whole")
    for steps in (1, 6, 11):
        folder, asked = tmp_path / f"after {steps}", iter(range(steps))
        with pytest.raises(TrainingStoppedError):
            train(
                folder, limits=Limits(interruption=lambda asked=asked: None if next(asked, None) is not None else "now")
            )
        resume_run(folder)
        one, other = (load_file(place / "model" / "state.safetensors") for place in (whole.folder, folder))
        assert one.keys() == other.keys()
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name], err_msg=name)
    assert notes_on_training(whole.folder) == []


def test_a_budget_ends_with_a_model_whatever_it_allows(tmp_path: Path) -> None:
    settings = {"stages": ["account", "shared"], "shared": TINY | {"sizes": TINY["sizes"]}}
    for minutes in (1e-6, 0.02):
        limits = Limits(minutes, fits_schedule=True)
        folder = tmp_path / str(minutes)
        train_model(sample_panel(), PROTOCOL, "candor", settings, folder, is_catalogued=False, limits=limits)
        assert np.isfinite(load_run(folder).forecaster.predict(sample_panel())).all()


def test_settings_choose_the_stages() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    own, _ = choose_settings("candor", task, None, {"epochs": 3, "width": 16, "account.cycle": "day", "passes": 2})
    found: Candor = parse_settings(Candor, SPANS | own, "settings")
    assert found.used_stages() == ("account", "shared") and found.shared.passes == 2
    assert (found.shared.training.epochs, found.shared.sizes.width, found.account.cycle) == (3, 16, "day")
    for preset, overrides in (("metr-la", {}), (None, {"hidden": 16}), (None, {"stages": "network"})):
        own, _ = choose_settings("candor", task, preset, overrides)
        assert own["stages"] == ["network"]
    own, _ = choose_settings("candor", task, "metr-la", {"stages": ["account", "shared"]})
    assert "recipe" not in own
    with pytest.raises(InputError, match="hidden is a setting of the published network"):
        choose_settings("candor", task, None, {"hidden": 16, "stages": ["account"]})
    with pytest.raises(InputError, match="wings"):
        choose_settings("candor", task, None, {"wings": 2})


def test_impossible_stages_are_refused() -> None:
    for stages in (["shared"], ["network", "account"], ["wings"]):
        with pytest.raises(InputError):
            made(stages=stages)
