"""Runs are ranked where they answered the same question, and only there."""

import json
from pathlib import Path

import pytest

from candor.core.errors import InputError
from candor.data.protocol import Protocol, make_task
from candor.forecasting import LastValue
from candor.forecasting.contract import sample_panel
from candor.runs.run import save_run
from candor.runs.summary import compare

PROTOCOL = Protocol(history=24, horizon=6)


def make_run(folder: Path, error: float | None, protocol: Protocol = PROTOCOL, sensors: int = 5) -> Path:
    panel = sample_panel()
    task = make_task(panel.select(panel.sensor_ids[:sensors]), protocol)
    model = LastValue(protocol.history, protocol.horizon).fit(task.panel, task.split)
    save_run(folder, model, task.panel, protocol, is_catalogued=False)
    if error is not None:
        content = {"model": "last-value", "protocol": protocol.model_dump(mode="json"), "overall": {"mae": error}}
        (folder / "evaluation.json").write_text(json.dumps(content))
    return folder


def test_the_best_comes_first_and_what_is_not_judged_last(tmp_path: Path) -> None:
    errors = {"a": 2.0, "b": None, "c": 0.5, "d": 1.0}
    runs, differences = compare([make_run(tmp_path / name, error) for name, error in errors.items()])
    assert not differences
    assert [run.folder.name for run in runs] == ["c", "d", "a", "b"]


@pytest.mark.parametrize(
    ("change", "sensors", "word"),
    [
        ({"horizon": 5}, 5, "horizon: 6, 5"),
        ({"shares": (0.7, 0.1, 0.2)}, 5, "shares"),
        ({"split": "windows"}, 5, "split: time, windows"),
        ({"first": "2024-01-02"}, 5, "first"),
        ({}, 4, "different data"),
    ],
)
def test_other_data_or_rules_are_named_and_nothing_is_ranked(tmp_path: Path, change, sensors, word) -> None:
    other = PROTOCOL.model_copy(update=change)
    folders = [make_run(tmp_path / "a", 2.0), make_run(tmp_path / "b", 1.0, other, sensors)]
    runs, differences = compare(folders)
    assert [run.folder for run in runs] == folders
    assert any(word in difference for difference in differences)


def test_which_steps_a_table_shows_makes_no_difference(tmp_path: Path) -> None:
    other = PROTOCOL.model_copy(update={"steps": (2, 4)})
    _, differences = compare([make_run(tmp_path / "a", 2.0), make_run(tmp_path / "b", 1.0, other)])
    assert not differences


def test_a_damaged_run_is_shown_and_a_folder_that_is_none_refused(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path / "a", 2.0), make_run(tmp_path / "b", 1.0)
    (bad / "run.json").write_text("{")
    runs, _ = compare([bad, good])
    assert [run.state.value for run in runs] == ["evaluated", "damaged"]
    with pytest.raises(InputError, match="not a run directory"):
        compare([good, tmp_path])
