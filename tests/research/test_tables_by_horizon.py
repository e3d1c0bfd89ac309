"""Horizons side by side: their mean, who is ranked, and when a dataset has steps instead."""

from statistics import mean, stdev

from made_results import made_results, made_suite

from candor.research.tables import PaperTable, paper_tables_of, tables_of

PLACES = {"river-h96": ("river", 96), "river-h48": ("river", 48), "lake-h48": ("lake", 48), "lake-h96": ("lake", 96)}
SHARED = made_suite(metric="mse", ranking="suite")


def cell(table: PaperTable, model: str, group: str, metric: str = "MSE") -> str:
    place = [name for name, _ in table.groups].index(group) * 2 + ["MSE", "MAE"].index(metric)
    return dict(table.rows)[model][place].text


def test_horizons_stand_side_by_side_with_the_mean_of_each_seed_over_them() -> None:
    near, far = [1.0, 2.0, 4.0], [5.0, 3.0, 2.0]
    errors = {"river-h96": {"candor": far, "stid": [6.0] * 3}, "river-h48": {"candor": near, "stid": [2.0] * 3}}
    (table,) = paper_tables_of(made_results(errors, PLACES), SHARED)
    assert table.title == "river" and table.groups == (("H = 48", 2), ("H = 96", 2), ("Avg", 2))
    assert table.columns == ("MSE", "MAE") * 3
    by_seed = [mean(pair) for pair in zip(near, far, strict=True)]
    for metric in ("MSE", "MAE"):
        assert cell(table, "candor", "H = 96", metric) == f"{mean(far):.3f} ± {stdev(far):.3f}"
        assert cell(table, "candor", "Avg", metric) == f"{mean(by_seed):.3f} ± {stdev(by_seed):.3f}"
        assert cell(table, "gain of candor", "Avg", metric) == f"{100 * (1 - mean(by_seed) / 4):+.1f} %"
    assert "in 1 of 2 comparisons (MSE)" in table.note


def test_the_mean_over_horizons_needs_all_of_them_and_so_does_a_rank() -> None:
    near = {"candor": [1.0, 1.0], "a": [2.0, 4.0], "b": [3.0, 3.0]}
    made = made_results({"river-h48": near, "river-h96": {"candor": [3.0], "b": [5.0]}}, PLACES)
    (few,), (whole,) = paper_tables_of(made, SHARED), paper_tables_of(made, SHARED, is_whole=True)
    assert [name for name, _ in few.rows] == ["b", "candor", "gain of candor"]
    assert [name for name, _ in whole.rows] == ["b", "a", "candor", "gain of candor"]
    assert cell(whole, "a", "H = 48") == "3.000 ± 1.414"
    assert cell(whole, "a", "H = 96") == cell(whole, "a", "Avg") == "–"
    assert cell(whole, "b", "Avg") == "4.000"  # of seed 0, the only one with both
    assert "on some of the tasks only: a" in few.note
    assert "mean over seeds 0, 1 (candor, b: not all of them on every task)" in few.note


def test_one_set_of_baselines_is_shared_by_all_datasets() -> None:
    lake = {"a": [9.0], "b": [1.0], "candor": [1.0]}
    river = {"a": [1.0], "b": [2.0], "candor": [1.0]}
    errors = {"river-h48": river, "river-h96": river, "lake-h48": lake, "lake-h96": lake}
    tables = paper_tables_of(made_results(errors, PLACES), SHARED)
    assert [table.title for table in tables] == ["river", "lake"]
    assert [[name for name, _ in table.rows][:2] for table in tables] == [["b", "a"]] * 2


def test_a_dataset_with_one_horizon_and_a_ranking_by_task_show_steps() -> None:
    errors = {"river-h48": {"candor": [1.0], "a": [2.0]}, "lake-h48": {"candor": [1.0], "a": [2.0]}}
    made = made_results(errors, PLACES)
    assert paper_tables_of(made, SHARED) == tables_of(made, SHARED)
    both = made_results({"river-h48": errors["river-h48"], "river-h96": errors["river-h48"]}, PLACES)
    by_task = made_suite(metric="mse", ranking="task")
    assert paper_tables_of(both, by_task) == tables_of(both, by_task)
    assert [table.groups[0][0] for table in tables_of(both, by_task)] == ["all steps"] * 2
