"""A run directory is complete: from it and nothing else the model can be judged again."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from candor.data.protocol import Protocol
from candor.errors import InputError
from candor.forecasting.contract import sample_panel
from candor.forecasting.runs import load_run
from candor.forecasting.train import choose_protocol, train_model
from candor.presets import load_preset

PROTOCOL = Protocol(history=24, horizon=6)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    train_model(sample_panel(), PROTOCOL, "linear", {"penalty": 2}, tmp_path / "run", is_catalogued=False, seed=3)
    return tmp_path / "run"


def test_a_run_moved_elsewhere_answers_the_same(run: Path, tmp_path: Path) -> None:
    here = load_run(run)
    shutil.move(run, tmp_path / "moved")
    there = load_run(tmp_path / "moved")
    task = there.task()
    assert task.panel.fingerprint == sample_panel().fingerprint
    assert there.record.protocol == PROTOCOL
    assert there.record.seed == there.forecaster.seed == 3
    assert there.forecaster.settings()["penalty"] == 2
    forecast = here.forecaster.predict(task.panel, task.split.test)
    np.testing.assert_array_equal(there.forecaster.predict(task.panel, task.split.test), forecast)


def test_a_catalogued_run_names_its_data_instead_of_copying_them(tmp_path: Path) -> None:
    from candor.data.catalog import load_dataset

    panel = load_dataset("klamath-daily")
    protocol = load_preset("klamath-daily").protocol
    train_model(panel, protocol, "last-value", {}, tmp_path / "run", is_catalogued=True)
    assert not (tmp_path / "run" / "data").exists()
    task = load_run(tmp_path / "run").task()
    assert task.panel.times.length == 1609


def test_changed_data_are_refused(run: Path) -> None:
    record = json.loads((run / "run.json").read_text())
    record["fingerprint"] = "0" * 64
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="content has changed"):
        load_run(run).task()


@pytest.mark.parametrize("file", ["run.json", "model/model.json", "model/state.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "emptied", "removed", "replaced"])
def test_damaged_runs_are_refused_in_plain_words(run: Path, file: str, damage: str) -> None:
    path = run / file
    content = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes({"cut": content[: len(content) // 2], "emptied": b"", "replaced": b"[1, 2]"}[damage])
    with pytest.raises(InputError):
        load_run(run)


@pytest.mark.parametrize("file", ["run.json", "model/model.json"])
def test_a_format_from_the_future_is_refused(run: Path, file: str) -> None:
    content = json.loads((run / file).read_text())
    content["format_version"] = 99
    (run / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match="format version 99"):
        load_run(run)


def test_overrides_go_to_the_protocol_first_and_the_rest_to_the_model() -> None:
    protocol, rest = choose_protocol(sample_panel(), None, {"horizon": 7, "penalty": 3})
    assert protocol.horizon == 7
    assert protocol.history == 48
    assert rest == {"penalty": 3}
    with pytest.raises(InputError, match="horizon"):
        choose_protocol(sample_panel(), None, {"horizon": -1})


def test_unknown_models_and_settings_leave_nothing_behind(tmp_path: Path) -> None:
    for model, settings in (("linaer", {}), ("linear", {"wings": 2})):
        with pytest.raises(InputError):
            train_model(sample_panel(), PROTOCOL, model, settings, tmp_path / "run", is_catalogued=False)
    assert list(tmp_path.iterdir()) == []
