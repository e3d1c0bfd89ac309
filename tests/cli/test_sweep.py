"""`candor sweep`: one setting varied, by values given or the paper's."""

import json
from pathlib import Path

import pandas as pd
import pytest
from pictures import without_paint
from tiny import SIZES

from candor.core.errors import InputError
from candor.core.files import write_json
from candor.research.ablations import SWEEPS, parse_values, sweep, values_in
from candor.research.grid import cells_of, collect_whole

pytestmark = pytest.mark.usefixtures("in_this_process")
TINY = [f"{key}={value}" for key, value in SIZES.items() if key != "pairs"]
TINY += ["epochs=1", "epoch_windows=16", "batch=16", "validation_windows=4", "first=2024-06-01"]


def test_values_are_trained_drawn_and_added_to_in_a_second_go(candor) -> None:
    with without_paint(but=("sweep-pairs.png",)):
        first = candor("sweep", "klamath-daily", "pairs=4,2", *TINY)
    assert first.code == 0, first.err
    assert "pairs=2" in first.out and "pairs=4" in first.out
    folder = Path("runs/sweep-klamath-daily-pairs")
    assert pd.read_csv(folder / "sweep-pairs.csv")["pairs"].tolist() == [2, 4]
    assert (folder / "sweep-pairs.png").stat().st_size > 5_000

    with without_paint():
        second = candor("sweep", "klamath-daily", "pairs=3", *TINY, "--json")
    content = json.loads(second.out)
    assert second.code == 0 and content["setting"] == "pairs" and list(content["mae"]) == ["2", "3", "4"]
    results = pd.read_parquet(folder / "results.parquet")
    overall = results[(results["step"] == 0) & (results["metric"] == "mae")]
    assert overall["value"].tolist() == [errors[0] for errors in content["mae"].values()]
    used = {value: json.loads(text)["recipe"]["model"]["pairs"] for value, text in zip(
        overall["model"], overall["settings"], strict=True)}  # fmt: skip
    assert used == {"pairs=2": 2, "pairs=3": 3, "pairs=4": 4}
    assert all(Path(file).is_file() for file in content["files"])


def test_a_cell_with_another_budget_in_the_folder_is_left_out_and_stops_nothing(tmp_path: Path) -> None:
    def done(values: tuple[int, ...], seeds: tuple[int, ...], budget: float) -> None:
        suite = sweep("klamath-daily", "pairs", values, {}, seeds=seeds, budget_minutes=budget)
        for cell in cells_of(suite):
            write_json(tmp_path / cell.name / "cell.json", cell.model_dump(mode="json"))
            error = {"step": 0, "metric": "mae", "value": budget}
            scores = {"data": "klamath-daily", "horizon": 14, "values": [error], "parameters": 1}
            write_json(tmp_path / cell.name / "scores.json", scores)

    done((4,), (1,), 1.0)
    done((4, 8), (0,), 10.0)
    done((8,), (1,), 10.0)
    values = values_in(tmp_path, "pairs", [8])
    whole = sweep("klamath-daily", "pairs", values, {}, seeds=[1], budget_minutes=10.0)
    results, others = collect_whole(whole, tmp_path)
    assert [cell.budget_minutes for cell in others] == [1.0]
    assert results["model"].unique().tolist() == ["pairs=4", "pairs=8"]
    found = sorted(zip(results["model"], results["seed"], results["value"], strict=True))
    assert found == [("pairs=4", 0, 10.0), ("pairs=8", 0, 10.0), ("pairs=8", 1, 10.0)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("pairs=2,4", [2, 4]),
        ("milestones=[1,2],[3]", [[1, 2], [3]]),
        ("size=small, base", ["small", "base"]),
        ("pairs=8", [8]),
        *((name, list(values)) for name, values in SWEEPS.items()),
    ],
)
def test_values_are_read_as_settings_are(text: str, values: list[object]) -> None:
    assert parse_values(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize("text", ["pairs=", "hidden", "=4", "pairs=[4", "pairs=4,,8"])
def test_no_values_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"no values|cannot be read") as refused:
        parse_values(text)
    assert refused.value.hint.startswith("write e.g. pairs=4,8")


def test_a_bare_setting_has_the_values_of_the_paper(candor, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("candor.research.engine.run_locally", lambda cells, *_: asked.extend(c.name for c in cells))
    shown = candor("sweep", "klamath-daily", "pairs", *TINY, "--json")
    assert shown.code == 0, shown.err
    assert asked == [f"klamath-daily/pairs={pairs}/seed-0" for pairs in (4, 8, 16, 32)]
    told = {"failed": {}, "unfinished": asked, "files": [], "setting": "pairs", "mae": {}}
    assert json.loads(shown.out) == told


def test_a_value_or_seed_that_is_given_twice_is_trained_once() -> None:
    cells = cells_of(sweep("klamath-daily", "pairs", [4, 4, 8], {}, seeds=[1, 1]))
    assert [cell.name for cell in cells] == [f"klamath-daily/pairs={pairs}/seed-1" for pairs in (4, 8)]
