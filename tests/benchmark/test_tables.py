"""Tables: what is best, what is gained, and who is shown, on numbers that can be checked by eye."""

import pandas as pd
import pytest

from candor.benchmark.suites import Suite
from candor.benchmark.tables import count_strict_wins, tables_of
from candor.benchmark.writing import as_html, as_latex, as_markdown


def suite(**changes: object) -> Suite:
    content = {"name": "made-up", "title": "", "tasks": [{"preset": "metr-la"}], "models": ["candor"]} | changes
    return Suite(**content)


def results(errors: dict[str, dict[str, list[float]]]) -> pd.DataFrame:
    """Returns results in which all metrics of a model on a task are the same number per seed."""
    rows = [
        {
            "task": task, "model": model, "seed": seed, "step": step, "metric": metric, "value": value + step,
            "unit": "mph", "windows": 10, "aggregation": "pooled; more", "mask": "observed", "split": "{}",
            "budget_minutes": None,
        }
        for task, by_model in errors.items()
        for model, values in by_model.items()
        for seed, value in enumerate(values)
        for step in (0, 3)
        for metric in ("mae", "rmse", "mape", "mse")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_mean_spread_best_second_and_gain_are_those_of_the_seeds() -> None:
    made = results({"road": {"candor": [1.0, 3.0], "stid": [4.0, 4.0], "linear": [5.0, 5.0]}})
    (table,) = tables_of(made, suite())
    rows = dict(table.rows)
    assert list(rows) == ["stid", "linear", "candor", "gain of candor"]
    ours = rows["candor"][0]
    assert ours.text == "2.000 ± 1.414" and ours.is_best  # a deviation of 1.414 has one degree of freedom taken off
    assert rows["stid"][0].is_second and not rows["linear"][0].is_second
    assert rows["gain of candor"][0].text == "+50.0 %"
    assert table.groups == (("all steps", 3), ("step 3", 3))


def test_a_score_that_is_not_a_number_is_shown_as_such() -> None:
    made = results({"road": {"candor": [1.0, 3.0], "stid": [4.0, float("nan")]}})
    (table,) = tables_of(made, suite(), is_whole=True)
    assert dict(table.rows)["stid"][0].text == "nan"


def test_the_eight_best_baselines_are_shown_and_all_on_request() -> None:
    made = results({"road": {"candor": [1.0], **{f"other{i}": [2.0 + i] for i in range(10)}}})
    (few,), (whole,) = tables_of(made, suite()), tables_of(made, suite(), is_whole=True)
    assert [name for name, _ in few.rows] == [f"other{i}" for i in range(8)] + ["candor", "gain of candor"]
    assert len(whole.rows) == 12


def test_a_shared_set_is_ranked_by_the_mean_over_tasks() -> None:
    errors = {"near": {"candor": [1.0], "a": [2.0], "b": [3.0]}, "far": {"candor": [1.0], "a": [9.0], "b": [3.0]}}
    shared = tables_of(results(errors), suite(ranking="suite"))
    alone = tables_of(results(errors), suite(ranking="task"))
    assert [[name for name, _ in table.rows][:2] for table in shared] == [["b", "a"], ["b", "a"]]
    assert [[name for name, _ in table.rows][:2] for table in alone] == [["a", "b"], ["b", "a"]]


def test_the_worst_seed_is_compared_with_the_best_of_each_baseline() -> None:
    made = results({"road": {"candor": [1.0, 3.0], "a": [3.5, 9.0], "b": [2.9, 9.0]}, "river": {"a": [1.0]}})
    assert count_strict_wins(made, "mae") == (1, 2)


def test_a_reconstruction_is_shown_as_one_and_no_claim_rests_on_it() -> None:
    errors = {"candor": [2.0], "stid": [3.0], "linear": [4.0]}
    rebuilt = {"msthg": [1.0], "msthg-wide": [2.5]}
    (with_it,) = tables_of(results({"road": errors | rebuilt}), suite(), is_whole=True)
    (without,) = tables_of(results({"road": errors}), suite(), is_whole=True)
    rows = dict(with_it.rows)
    marked = ["msthg (reconstruction)", "msthg-wide (reconstruction)"]
    assert list(rows) == ["stid", "linear", *marked, "candor", "gain of candor"]
    assert {name: cells for name, cells in rows.items() if name not in marked} == dict(without.rows)
    assert not any(cell.is_best or cell.is_second for name in marked for cell in rows[name])
    assert "rebuilt by us" in with_it.note and "rebuilt" not in without.note
    assert tables_of(results({"road": errors | rebuilt}), suite()) == tables_of(results({"road": errors}), suite())
    assert count_strict_wins(results({"road": errors | rebuilt}), "mae") == (2, 2)
    for form in (as_markdown, as_latex, as_html):
        assert "msthg (reconstruction)" in form([with_it])


def test_reconstructions_alone_make_no_ranking() -> None:
    made = results({"road": {"msthg": [1.0]}})
    assert tables_of(made, suite()) == []
    (whole,) = tables_of(made, suite(), is_whole=True)
    assert [name for name, _ in whole.rows] == ["msthg (reconstruction)"]


@pytest.mark.parametrize(
    ("form", "best"), [(as_markdown, "**1.000**"), (as_latex, r"\textbf{1.000}"), (as_html, "<b>1.000</b>")]
)
def test_every_form_marks_the_best_and_escapes_names(form, best: str) -> None:
    made = results({"a_b & <c>": {"candor": [1.0], "stid": [4.0]}})
    text = form(tables_of(made, suite()))
    assert best in text
    if form is as_html:
        assert "<c>" not in text
    if form is as_latex:
        assert r"a\_b \& " in text
