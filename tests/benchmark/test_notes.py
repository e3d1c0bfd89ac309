"""Notes: seeds that some models lack, settings that were changed, and how the record was cut."""

import json

from made_results import made_results, made_suite

from candor.benchmark.tables import tables_of


def note_of(errors: dict[str, list[float]], **columns: object) -> str:
    (table,) = tables_of(made_results({"road": errors}).assign(**columns), made_suite(), is_whole=True)
    return table.note


def test_models_with_fewer_seeds_are_named() -> None:
    full = [1.0, 2.0, 3.0]
    note = note_of({"candor": full, "stid": full, "linear": [1.0], "dlinear": [None, 1.0, 2.0]})
    assert "mean over seeds 0, 1, 2 (linear: seed 0; dlinear: seeds 1, 2) ± standard deviation (ddof 1);" in note
    assert "mean over seeds 0, 1, 2 ± standard deviation (ddof 1);" in note_of({"candor": full, "stid": full})
    assert "mean over seed 0;" in note_of({"candor": [1.0], "stid": [2.0]})


def test_settings_that_were_changed_are_stated_with_whose_they_are() -> None:
    errors = {"candor": [1.0], "stid": [2.0]}
    assert "epochs=3 of candor, stid" in note_of(errors, changes=json.dumps({"epochs": 3}))
    many = {f"other{i}": [2.0] for i in range(6)}
    assert "epochs=3 of 6 models" in note_of(many, changes=json.dumps({"epochs": 3}))
    assert "epochs" not in note_of(errors, changes="{}")


def test_the_split_is_told_in_words() -> None:
    split = {"kind": "time", "shares": [0.6, 0.2, 0.2], "windows": {"train": 6000, "validation": 20, "test": 20}}
    note = note_of({"candor": [1.0]}, split=json.dumps(split), windows=20)
    assert "split by time, 60 % / 20 % / 20 %: 6,000 / 20 / 20 windows" in note and "20 test windows" in note
