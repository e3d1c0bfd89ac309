"""A backtest that is interrupted goes on from its refits, and comes out as if nothing had happened."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from candor.core.errors import InputError
from candor.core.files import locked_folder, read_json, write_json
from candor.core.progress import Report, silent
from candor.data.panel import Panel
from candor.data.protocol import Protocol, Split, Task, make_task
from candor.forecasting import Linear, forecasters
from candor.forecasting.contract import sample_panel
from candor.forecasting.forecaster import Forecaster
from candor.runs import Pace, backtest, keeping_refits
from candor.runs import refits as module
from candor.runs.backtesting import rows_of_refits

TASK = make_task(sample_panel().slice(0, 300), Protocol(history=6, horizon=2))
MODEL = Linear(6, 2).fit(TASK.panel, TASK.split)
PACE = Pace(every=4, refit=4, is_adaptive=True)
ROWS = rows_of_refits(TASK, "test", PACE)


class Fits:
    """The rows before which models learned, one after the other, and how many are let through."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.most = 100


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Fits:
    """Counts the fits of linear models, and interrupts what would be one too many."""
    counted, learn = Fits(), Linear._learn

    def count(self: Linear, panel: Panel, split: Split, report: Report) -> Any:
        if len(counted.rows) == counted.most:
            raise KeyboardInterrupt
        counted.rows.append(panel.times.length)
        return learn(self, panel, split, report)

    monkeypatch.setattr(Linear, "_learn", count)
    return counted


def rolled(
    folder: Path,
    pace: Pace = PACE,
    model_sha256: str = "one",
    task: Task = TASK,
    model: Forecaster = MODEL,
    report: Report = silent,
    training: Path | None = None,
) -> tuple[str, dict[str, Any]]:
    """Returns what was found from before, and the scores."""
    with keeping_refits(folder, model, task, "test", pace, model_sha256, training) as refits:
        return refits.note, backtest(model, task, "test", pace, report, refits).to_json()


def interrupt(fits: Fits, folder: Path, after: int, pace: Pace = PACE) -> None:
    """Interrupts a backtest after so many refits, and begins to count anew."""
    fits.most = after
    with pytest.raises(KeyboardInterrupt):
        rolled(folder, pace)
    assert len(fits.rows) == after
    fits.rows, fits.most = [], 100


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("refits/*"))


@pytest.mark.parametrize(("is_adaptive", "after"), [(True, 1), (True, 2), (False, 2)])
def test_an_interrupted_backtest_goes_on_to_the_same_scores(
    tmp_path: Path, fits: Fits, is_adaptive: bool, after: int
) -> None:
    pace = replace(PACE, is_adaptive=is_adaptive)
    whole = rolled(tmp_path, pace)
    assert whole == ("", backtest(MODEL, TASK, pace=pace).to_json())  # kept or not
    assert fits.rows == 2 * ROWS and len(ROWS) == 3
    fits.rows = []
    interrupt(fits, tmp_path, after, pace)
    assert left(tmp_path) == ["test-every-4-refit-4"]
    assert rolled(tmp_path, pace) == (f"{after} of 3 refits are kept from before", whole[1])
    assert fits.rows == ROWS[after:]
    assert list(tmp_path.iterdir()) == []


def test_refits_do_not_depend_on_the_intervals(tmp_path: Path, fits: Fits) -> None:
    interrupt(fits, tmp_path, 2)
    pace = replace(PACE, coverage=0.5, is_adaptive=False)
    note, content = rolled(tmp_path, pace)
    assert note.startswith("2 of 3") and fits.rows == ROWS[2:]
    assert content == backtest(MODEL, TASK, pace=pace).to_json()


@pytest.mark.parametrize("changes", [{"every": 5}, {"refit": 6}])
def test_another_pace_takes_nothing_and_leaves_it_there(tmp_path: Path, fits: Fits, changes: dict[str, int]) -> None:
    interrupt(fits, tmp_path, 2)
    pace = replace(PACE, **changes)
    note, content = rolled(tmp_path, pace)
    assert note == "" and fits.rows == rows_of_refits(TASK, "test", pace)
    assert content == backtest(MODEL, TASK, pace=pace).to_json()
    assert left(tmp_path) == ["test-every-4-refit-4"]
    assert rolled(tmp_path)[0].startswith("2 of 3")


@pytest.mark.parametrize("what", ["model", "settings", "data", "versions", "code"])
def test_what_was_learned_in_other_circumstances_is_learned_anew(
    tmp_path: Path, fits: Fits, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(fits, tmp_path, 1)
    interrupt(fits, tmp_path, 1, replace(PACE, every=2))
    changes: dict[str, Any] = {"model": {"model_sha256": "two"}, "settings": {"model": Linear(6, 2, penalty=9.0)}}.get(
        what, {}
    )
    if what == "settings":
        changes["model"].fit(TASK.panel, TASK.split)
    if what == "data":
        changes["task"] = make_task(replace(TASK.panel, values=TASK.panel.values + 1), TASK.protocol)
    if what == "versions":
        monkeypatch.setattr(module, "versions", lambda: {"candor-forecast": "99"})
    if what == "code":
        monkeypatch.setattr(module, "code_checksum", lambda: "that of other code")
    fits.rows = []
    note, _ = rolled(tmp_path, **changes)
    assert "another model" in note and "anew" in note
    assert fits.rows == ROWS
    assert list(tmp_path.iterdir()) == []  # nothing could go on from the other pace either


def test_a_damaged_refit_is_made_anew(tmp_path: Path, fits: Fits) -> None:
    interrupt(fits, tmp_path, 2)
    (state, _) = sorted(tmp_path.rglob("state.safetensors"))
    state.write_bytes(state.read_bytes()[:-9])
    assert rolled(tmp_path)[1] == backtest(MODEL, TASK, pace=PACE).to_json()
    assert fits.rows[:2] == [ROWS[0], ROWS[2]]


def test_what_learned_nothing_leaves_nothing(tmp_path: Path, fits: Fits) -> None:
    interrupt(fits, tmp_path, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_second_session_at_the_same_pace_is_refused(tmp_path: Path, fits: Fits) -> None:
    interrupt(fits, tmp_path, 1)
    with locked_folder(tmp_path / "refits" / "test-every-4-refit-4"):
        with pytest.raises(InputError, match="another session"):
            rolled(tmp_path)
        rolled(tmp_path, replace(PACE, every=2))
    assert rolled(tmp_path)[0].startswith("1 of 3")


def test_the_time_left_is_told_of_what_is_still_to_be_learned(tmp_path: Path, fits: Fits) -> None:
    interrupt(fits, tmp_path, 2)
    heard: list[float | None] = []
    rolled(tmp_path, report=lambda _, share: heard.append(share))
    of_forecasts, of_a_refit = 4, 9
    assert heard[:3] == pytest.approx([number / (of_forecasts + of_a_refit) for number in (1, 2, 3)])
    assert heard[-1] == 1.0


def test_all_refits_are_fed_as_the_run_or_the_first_one_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[list[Any]] = []

    def learn(row: int, forecaster: Forecaster, task: Task, report: Report, training: Path) -> Forecaster:
        place = training / "teacher" / "machine.json"
        fed.append([read_json(path)["workers"] for path in training.rglob("machine.json")])
        if not place.is_file():
            write_json(place, {"workers": 7})
        return MODEL

    monkeypatch.setattr(module, "learn_anew", learn)
    monkeypatch.setattr("torch.get_num_threads", lambda: 3)
    rolled(tmp_path)
    assert fed == [[], [7], [7]]
    assert list(tmp_path.iterdir()) == []
    for workers in (3, 4):  # as many threads as here, and others
        write_json(tmp_path / "training" / "teacher" / "machine.json", {"workers": workers})
        rolled(tmp_path, training=tmp_path / "training")
    assert fed[3:] == [[3], [3], [3], [], [7], [7]]


def test_a_network_killed_while_it_learns_anew_goes_on_within_its_training(tmp_path: Path) -> None:
    training = {"epochs": 2, "batch": 512}
    network = forecasters.get("stid")(
        history=6, horizon=2, sizes={"width": 2, "layers": 1}, recipe={"training": training}
    )
    network.fit(TASK.panel, TASK.split)
    pace, said = Pace(every=10, refit=4), list[str]()

    def kill(what: str, share: float | None) -> None:
        if "epoch 2" in what:
            raise KeyboardInterrupt

    whole = rolled(tmp_path / "whole", pace, model=network)
    with pytest.raises(KeyboardInterrupt):
        rolled(tmp_path / "killed", pace, model=network, report=kill)
    resumed = rolled(tmp_path / "killed", pace, model=network, report=lambda what, share: said.append(what))
    note = "0 of 1 refits are kept from before, and the next one goes on within its training"
    assert resumed == (note, whole[1])
    assert any("epoch 2" in what for what in said) and not any("epoch 1" in what for what in said)
