"""Without and with rain: the paper's table, on numbers that can be checked by eye."""

import json
from pathlib import Path

import pandas as pd
from made_results import made_results, made_suite

from candor.render.paper.tables import write_grid_tables
from candor.research.suites import load_suite
from candor.research.tables import rain_table_of

PLACES = {"river-h48": ("river", 48), "river-h96": ("river", 96), "lake-h48": ("lake", 48)}
RAIN = load_suite("rainfall")


def results() -> pd.DataFrame:
    """Returns errors of which rain takes away on the river and adds on the lake."""
    near = {"timexer": [1.0, 3.0], "timexer-rain": [1.0, 2.0], "xlinear": [7.0], "candor": [0.5, 0.5]}
    far = {"timexer": [5.0, 7.0], "timexer-rain": [4.0, 7.0], "candor": [0.5, 0.5]}
    lake = {"timexer": [2.0, 2.0], "timexer-rain": [3.0, 3.0], "xlinear": [4.0], "xlinear-rain": [4.0]}
    return made_results({"river-h48": near, "river-h96": far, "lake-h48": lake}, PLACES)


def test_each_pair_is_averaged_over_seeds_and_horizons_and_its_better_is_bold() -> None:
    table = rain_table_of(results(), RAIN)
    assert table is not None
    assert table.groups == (("", 1), ("river", 2), ("lake", 2))
    assert table.columns == ("Rainfall", "MAE", "MSE", "MAE", "MSE")
    shown = [(name, *(cell.text for cell in cells)) for name, cells in table.rows]
    assert shown == [
        ("timexer", "No", "4.0000", "4.0000", "2.0000", "2.0000"),
        ("timexer", "Yes", "3.5000", "3.5000", "3.0000", "3.0000"),
        ("xlinear", "No", "–", "–", "4.0000", "4.0000"),
        ("xlinear", "Yes", "–", "–", "4.0000", "4.0000"),
    ]
    marked = [[cell.is_best for cell in cells[1:]] for _, cells in table.rows]
    assert marked == [[False, False, True, True], [True, True, False, False], [False] * 4, [False] * 4]
    assert (
        "seeds 0, 1 and horizons 48, 96" in table.note and "only one of a pair has are left out (xlinear)" in table.note
    )


def test_the_note_states_the_protocol_of_the_models_that_are_shown() -> None:
    split = {"kind": "time", "shares": [0.6, 0.2, 0.2], "windows": {"train": 60, "validation": 20, "test": 20}}
    made = results().assign(split=json.dumps(split), budget_minutes=10.0, changes="{}")
    made.loc[made["model"] == "timexer-rain", "changes"] = json.dumps({"covariates": ["rain"]})
    made.loc[made["model"] == "candor", ["budget_minutes", "changes"]] = [99.0, json.dumps({"epochs": 3})]
    table = rain_table_of(made, RAIN)
    assert table is not None
    for words in ("10 test windows", "pooled", "mask: observed", "split by time, 60 % / 20 % / 20 %: 60 / 20 / 20"):
        assert words in table.note
    assert "10 minutes of training each" in table.note and "covariates=['rain'] of timexer-rain" in table.note
    assert "99 minutes" not in table.note and "epochs" not in table.note


def test_a_result_that_one_of_a_pair_lacks_moves_neither_mean() -> None:
    made = results()
    further = made[(made["model"] == "timexer") & (made["task"] == "river-h48")].assign(seed=9, value=99.0)
    before, after = rain_table_of(made, RAIN), rain_table_of(pd.concat([made, further]), RAIN)
    assert before is not None and after is not None and before.rows == after.rows
    hole = made.assign(value=made["value"].where((made["model"] != "timexer-rain") | (made["seed"] != 0)))
    table = rain_table_of(hole, RAIN)
    assert table is not None and table.rows[0][1][1].text == "5.0000"  # of seed 1 alone: 3 and 7


def test_suites_without_such_pairs_have_no_such_table(tmp_path: Path) -> None:
    made = results()
    assert rain_table_of(made, made_suite()) is None
    assert rain_table_of(made[made["model"] == "timexer"], RAIN) is None
    names = {file.name for file in write_grid_tables(made, RAIN, tmp_path)}
    assert {"tables-rain.md", "tables-rain.tex", "tables-rain.html"} < names
    text = (tmp_path / "tables-rain.md").read_text()
    assert "| model | Rainfall | MAE, river |" in text and "| timexer | Yes | **3.5000** |" in text
    assert not any("rain" in file.name for file in write_grid_tables(made, made_suite(), tmp_path))
