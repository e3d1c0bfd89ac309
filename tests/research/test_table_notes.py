"""Notes: seeds that some models lack, data and threads that differ, changed settings, and how the record was cut."""

import json

from made_results import made_results, made_suite

from candor.research.table_notes import shown_name
from candor.research.tables import tables_of


def note_of(errors: dict[str, list[float]], **columns: object) -> str:
    (table,) = tables_of(made_results({"road": errors}).assign(**columns), made_suite(), is_whole=True)
    return table.note


def test_models_with_fewer_seeds_are_named() -> None:
    full = [1.0, 2.0, 3.0]
    note = note_of({"candor": full, "stid": full, "linear": [1.0], "dlinear": [None, 1.0, 2.0]})
    assert "mean over seeds 0, 1, 2 (linear: seed 0; dlinear: seeds 1, 2) ± standard deviation (ddof 1);" in note
    assert "mean over seeds 0, 1, 2 ± standard deviation (ddof 1);" in note_of({"candor": full, "stid": full})
    assert "mean over seed 0;" in note_of({"candor": [1.0], "stid": [2.0]})


def test_a_reconstruction_is_named_as_one_wherever_a_note_names_it() -> None:
    errors = {"candor": [1.0, 2.0], "msthg": [1.0], "msthg-wide": [1.0]}
    note = note_of(errors, changes=json.dumps({"epochs": 3}))
    assert "(msthg (reconstruction), msthg-wide (reconstruction): seed 0)" in note
    assert "epochs=3 of candor, msthg (reconstruction), msthg-wide (reconstruction)" in note
    assert all(shown_name(name) == name for name in ("stid", "candor-small", "without-roles"))


def test_settings_that_were_changed_are_stated_with_whose_they_are() -> None:
    errors = {"candor": [1.0], "stid": [2.0]}
    assert "epochs=3 of candor, stid" in note_of(errors, changes=json.dumps({"epochs": 3}))
    many = {f"other{i}": [2.0] for i in range(6)}
    assert "epochs=3 of 6 models" in note_of(many, changes=json.dumps({"epochs": 3}))
    assert "epochs" not in note_of(errors, changes="{}")


def test_models_that_were_made_on_different_data_are_named() -> None:
    results = made_results({"road": {"candor": [1.0], "stid": [2.0], "linear": [3.0]}})
    sums = results["model"].map({"candor": "a" * 64, "stid": "b" * 64, "linear": "a" * 64})
    (table,) = tables_of(results.assign(data_sha256=sums), made_suite(), is_whole=True)
    assert "made on different data: road (aaaaaaaa) of candor, linear and road (bbbbbbbb) of stid" in table.note
    assert "data" not in note_of({"candor": [1.0], "stid": [2.0]}, data_sha256="a" * 64)


def test_a_budget_on_different_numbers_of_threads_is_told() -> None:
    results = made_results({"road": {"candor": [1.0], "stid": [2.0], "linear": [3.0], "lightgbm": [3.0]}})
    threads = results["model"].map({"candor": 4, "stid": 1, "linear": 4}).astype("Int64")  # of trees none is stated
    words = "20 minutes of training each; the same minutes on different numbers of threads: 1 of stid and 4 of candor"
    for budget in (20.0, None):
        (table,) = tables_of(results.assign(threads=threads, budget_minutes=budget), made_suite(), is_whole=True)
        assert (words in table.note) == ("threads" in table.note) == (budget is not None)
    assert "threads" not in note_of({"candor": [1.0], "stid": [2.0]}, threads=2, budget_minutes=20.0)


def test_the_split_is_told_in_words() -> None:
    split = {"kind": "time", "shares": [0.6, 0.2, 0.2], "windows": {"train": 6000, "validation": 20, "test": 20}}
    note = note_of({"candor": [1.0]}, split=json.dumps(split), windows=20)
    assert "split by time, 60 % / 20 % / 20 %: 6,000 / 20 / 20 windows" in note and "20 test windows" in note
