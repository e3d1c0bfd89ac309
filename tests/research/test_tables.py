"""Tables: what is best, what is gained, and who is shown, on numbers that can be checked by eye."""

import re

import pandas as pd
import pytest
from made_results import made_results as results
from made_results import made_suite as suite

from candor.render.paper.tables import as_html, as_latex, as_markdown
from candor.research.suites import load_suite
from candor.research.tables import PaperTable, TableCell, strict_wins, tables_of


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


def test_equal_errors_are_marked_alike_whoever_is_named_first() -> None:
    scores = {"candor": [2.0, 2.0], "stid": [2.0, 2.0], "linear": [3.0, 3.0], "dlinear": [3.0, 3.0], "fast": [4.0, 4.0]}
    for order in (list(scores), list(reversed(scores))):
        made = results({"road": {model: scores[model] for model in order}})
        (table,) = tables_of(made, suite(), is_whole=True)
        first = {name: cells[0] for name, cells in table.rows}
        assert {name for name, cell in first.items() if cell.is_best} == {"candor", "stid"}
        assert {name for name, cell in first.items() if cell.is_second} == {"linear", "dlinear"}


def test_a_score_that_is_not_a_number_is_shown_as_such() -> None:
    made = results({"road": {"candor": [1.0, 3.0], "stid": [4.0, float("nan")]}})
    (table,) = tables_of(made, suite(), is_whole=True)
    assert dict(table.rows)["stid"][0].text == "nan"


def test_what_is_not_a_number_wins_nothing_and_hides_no_gain() -> None:
    nothing = float("nan")
    made = results({"road": {"candor": [1.0], "stid": [nothing], "linear": [4.0]}})
    (table,) = tables_of(made, suite(), is_whole=True)
    rows = dict(table.rows)
    assert list(rows) == ["linear", "stid", "candor", "gain of candor"]
    assert rows["candor"][0].is_best and rows["linear"][0].is_second
    assert not rows["stid"][0].is_best and not rows["stid"][0].is_second
    assert rows["gain of candor"][0].text == "+75.0 %"
    assert strict_wins(made, "mae") == {"candor": (1, 1)}  # a rival without a number is no rival


def test_a_candor_that_is_not_a_number_claims_nothing() -> None:
    for values in ([1.0, float("nan")], [float("nan"), 1.0]):
        made = results({"road": {"candor": values, "linear": [4.0, 4.0]}})
        (table,) = tables_of(made, suite(), is_whole=True)
        rows = dict(table.rows)
        assert rows["gain of candor"][0].text == "–" and rows["linear"][0].is_best
        assert strict_wins(made, "mae") == {"candor": (0, 1)}


def test_only_steps_that_all_models_report_are_shown() -> None:
    made = results({"road": {"candor": [1.0], "stid": [2.0]}})
    further = made[(made["model"] == "stid") & (made["step"] == 3)].assign(step=6)
    (table,) = tables_of(pd.concat([made, further]), suite())
    assert table.groups == (("all steps", 3), ("step 3", 3))


def test_the_eight_best_baselines_are_shown_and_all_on_request() -> None:
    made = results({"road": {"candor": [1.0], **{f"other{i}": [2.0 + i] for i in range(10)}}})
    (few,), (whole,) = tables_of(made, suite()), tables_of(made, suite(), is_whole=True)
    assert [name for name, _ in few.rows] == [f"other{i}" for i in range(8)] + ["candor", "gain of candor"]
    assert len(whole.rows) == 12


def test_ranks_rest_on_errors_that_are_not_rounded() -> None:
    made = results({"road": {"candor": [1.0], **{f"other{i}": [2.0 - 1e-6 * i] for i in range(9)}}})
    (table,) = tables_of(made, suite())
    assert [name for name, _ in table.rows][:8] == [f"other{i}" for i in range(8, 0, -1)]


def test_marks_and_gains_rest_on_baselines_that_are_not_shown_too() -> None:
    made = results({"road": {"candor": [1.0], **{f"other{i}": [2.0 + i] for i in range(9)}}})
    is_better = (made["model"] == "other8") & (made["step"] == 3)  # the worst over all steps, the best at one of them
    made.loc[is_better, "value"] = 2.0
    (few,), (whole,) = tables_of(made, suite()), tables_of(made, suite(), is_whole=True)
    assert "other8" not in dict(few.rows) and "other8" in dict(whole.rows)
    for table in (few, whole):
        rows = dict(table.rows)
        overall, at_step = rows["candor"][0], rows["candor"][3]  # MAE; three metrics stand under each head
        assert overall.is_best and at_step.is_second and not at_step.is_best
        assert rows["gain of candor"][3].text == "-100.0 %"
    assert "all 9 baselines, of which 1 are not shown" in few.note and "not shown" not in whole.note


def test_a_shared_set_is_ranked_by_the_mean_over_tasks() -> None:
    errors = {"near": {"candor": [1.0], "a": [2.0], "b": [3.0]}, "far": {"candor": [1.0], "a": [9.0], "b": [3.0]}}
    shared = tables_of(results(errors), suite(ranking="suite"))
    alone = tables_of(results(errors), suite(ranking="task"))
    assert [[name for name, _ in table.rows][:2] for table in shared] == [["b", "a"], ["b", "a"]]
    assert [[name for name, _ in table.rows][:2] for table in alone] == [["a", "b"], ["b", "a"]]


def test_a_shared_ranking_leaves_out_who_lacks_a_task_and_says_so() -> None:
    errors = {"near": {"candor": [1.0], "a": [2.0], "b": [3.0]}, "far": {"candor": [1.0], "b": [3.0]}}
    few, whole = (tables_of(results(errors), suite(ranking="suite"), is_whole=is_whole) for is_whole in (False, True))
    assert [[name for name, _ in table.rows] for table in few] == [["b", "candor", "gain of candor"]] * 2
    assert [name for name, _ in whole[0].rows] == ["b", "a", "candor", "gain of candor"]
    assert "on some of the tasks only: a" in few[0].note and "some of the tasks" not in few[1].note
    (near, _) = tables_of(results(errors), suite(ranking="task"))
    assert [name for name, _ in near.rows][:2] == ["a", "b"] and "some of the tasks" not in near.note


def test_the_paper_ranks_roads_by_mae_each_and_water_by_mse_together() -> None:
    water = {"basin030501-48": {"a": [1.0], "b": [2.0]}, "basin180102": {"a": [9.0], "b": [3.0]}}
    made = results({"metr-la": {"a": [1.0], "b": [2.0]}, "pems-bay": {"a": [9.0], "b": [3.0]}} | water)
    tables = {table.title: table for table in tables_of(made, load_suite("paper"))}
    assert {task: [name for name, _ in table.rows] for task, table in tables.items()} == {
        "metr-la": ["a", "b"], "pems-bay": ["b", "a"], "basin030501-48": ["b", "a"], "basin180102": ["b", "a"],
    }  # fmt: skip
    assert tables["pems-bay"].columns[:3] == ("MAE", "RMSE", "MAPE [%]")
    assert tables["basin180102"].columns[:2] == ("MSE", "MAE")


def test_the_worst_seed_is_compared_with_the_best_of_each_baseline() -> None:
    made = results({"road": {"candor": [1.0, 3.0], "a": [3.5, 9.0], "b": [2.9, 9.0]}, "river": {"a": [1.0]}})
    assert strict_wins(made, "mae") == {"candor": (1, 2)}
    (table, _) = tables_of(made, suite())
    assert "the worst seed of candor beats the best seed of a baseline in 1 of 2 comparisons (MAE)" in table.note
    (alone, *_) = tables_of(made, suite(has_rivals=False))
    assert "comparisons" not in alone.note


def test_no_variant_is_left_out_of_a_table_however_many_there_are() -> None:
    variants = {f"without-{part}": [float(part)] for part in range(1, 13)}
    made = results({"road": {"candor": [1.0]} | variants})
    (few,) = tables_of(made, suite())
    (all_of_them,) = tables_of(made, suite(has_rivals=False))
    assert len(few.rows) == 8 + 1 + 1 and {name for name, _ in all_of_them.rows} == {"candor", *variants}
    assert "not shown" in few.note and "not shown" not in all_of_them.note


def test_every_size_of_ours_is_counted_for_itself() -> None:
    made = results({"road": {"candor": [1.0], "candor-small": [4.0], "a": [3.0], "b": [5.0]}})
    assert strict_wins(made, "mae") == {"candor": (2, 2), "candor-small": (1, 2)}


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
    assert strict_wins(results({"road": errors | rebuilt}), "mae") == {"candor": (2, 2)}
    for form in (as_markdown, as_latex, as_html):
        assert "msthg (reconstruction)" in form([with_it])


def test_reconstructions_alone_make_no_ranking() -> None:
    made = results({"road": {"msthg": [1.0]}})
    assert tables_of(made, suite()) == []
    (whole,) = tables_of(made, suite(), is_whole=True)
    assert [name for name, _ in whole.rows] == ["msthg (reconstruction)"]


@pytest.mark.parametrize(
    ("form", "best", "second"),
    [
        (as_markdown, "**{}**", "<u>{}</u>"),
        (as_latex, r"\textbf{{{}}}", r"\underline{{{}}}"),
        (as_html, "<b>{}</b>", "<u>{}</u>"),
    ],
)
def test_every_form_marks_the_best_two_and_escapes_names(form, best: str, second: str) -> None:
    made = results({"a_b & <c>": {"candor": [1.0], "stid": [5.0], "linear": [9.0]}})
    text = form(tables_of(made, suite()))
    for number in ("1.000", "5.000", "9.000"):  # over all steps, MAE and RMSE; MAPE has two digits
        assert text.count(best.format(number)) == (2 if number == "1.000" else 0)
        assert text.count(second.format(number)) == (2 if number == "5.000" else 0)
        assert text.count(number) == 2
    if form in (as_html, as_markdown):
        assert "<c>" not in text
    if form is as_latex:
        assert r"a\_b \& " in text


def test_names_cannot_become_commands_or_columns() -> None:
    name = r"x\input{y}|z^2~<img>"
    table = PaperTable(name, (("", 1),), (name,), ((name, (TableCell(name, is_best=True),)),), name)
    assert r"\input" not in as_latex([table])
    assert as_latex([table]).count(r"x\textbackslash{}input\{y\}|z\textasciicircum{}2\textasciitilde{}<img>") == 5
    rows = [line for line in as_markdown([table]).splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in rows] == [3, 3, 3] and "<img>" not in as_markdown([table])
