"""The tables of `docs/comparison.md` are those of the kept scores, computed here by another route than the tables."""

from pathlib import Path

import pandas as pd

from candor.forecasting import forecasters

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
SECTIONS = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").split("\n## ")
SPREADLESS = {"last-value", "seasonal-naive", "historical-average", "linear"}  # the same with every seed
RAINFALL = {"`timexer`": "timexer", "`timexer` with rain": "timexer-rain", "`xlinear`": "xlinear"} | {
    "`xlinear` with rain": "xlinear-rain",
    "`candor`": "candor",
}


def tables_of(title: str) -> list[dict[str, list[str]]]:
    """Returns the tables of a section of the page: rows by their first cell."""
    (section,) = [section for section in SECTIONS if section.startswith(title)]
    tables: list[dict[str, list[str]]] = []
    before = ""
    for line in section.splitlines():
        if line.startswith("|") and not before.startswith("|"):
            tables.append({})
        elif line.startswith("|") and not line.startswith("|---"):
            first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
            assert first not in tables[-1]
            tables[-1][first] = rest
        before = line
    return tables


def bare(cell: str) -> str:
    """Returns a cell without the marks of the best and the second."""
    return cell.replace("**", "").removeprefix("<u>").removesuffix("</u>")


def number(cell: str) -> float:
    """Returns the score in a cell."""
    return float(bare(cell).split(" ")[0])


def model_of(cell: str) -> str:
    """Returns the model that a first cell names."""
    return bare(cell).split(" (")[0].strip("`")


def scores(grid: str) -> pd.DataFrame:
    """Returns the scores over all steps of a grid that is kept."""
    results = pd.read_parquet(RESULTS / grid / "results.parquet")
    return results[results["step"] == 0]


def spelled(values: pd.Series, digits: int, *, has_spread: bool) -> str:
    """Returns the mean over seeds, and the standard deviation if it is asked for, as the page writes them."""
    mean = f"{values.mean():.{digits}f}"
    return f"{mean} ± {values.std(ddof=1):.{digits}f}" if has_spread else mean


def test_the_table_of_the_quick_suite_has_all_models_and_their_scores() -> None:
    (table,) = tables_of("Two small tasks")
    results = scores("quick")
    known = dict(list(results.groupby(["task", "model", "metric"])["value"]))
    assert {model_of(cell) for cell in table} == set(results["model"]) <= set(forecasters.names())
    for cell, row in table.items():
        name = model_of(cell)
        assert [bare(score) for score in row] == [
            spelled(known[task, name, metric], 2 if metric == "mape" else 3, has_spread=name not in SPREADLESS)
            for task in ("klamath-daily", "synthetic-river")
            for metric in ("mae", "rmse", "mape")
        ], name
    errors = [number(row[0]) for row in table.values()]
    assert errors == sorted(errors)


def test_the_best_of_the_quick_suite_are_bold_and_the_second_underlined() -> None:
    (table,) = tables_of("Two small tasks")
    ranked = [row for cell, row in table.items() if "reconstruction" not in cell]
    for column in zip(*ranked, strict=True):
        best, second, *rest = sorted(column, key=number)
        assert best.startswith("**") and second.startswith("<u>")
        assert not any(cell.startswith(("**", "<u>")) for cell in rest)


def test_the_table_of_the_river_has_all_models_their_scores_and_the_windows_they_learned_from() -> None:
    (table,) = tables_of("KOREA4_DO, eight days ahead")
    results = scores("river")
    assert {model_of(cell) for cell in table} == set(results["model"]) <= set(forecasters.names())
    for cell, row in table.items():
        of_model = results[results["model"] == model_of(cell)].set_index("metric")
        learned = of_model.loc["mse", "windows_learned"]
        windows = "" if pd.isna(learned) else f"{int(learned):,} windows"
        assert [bare(score) for score in row] == [
            f"{of_model.loc[metric, 'value']:.3f}" for metric in ("mse", "mae")
        ] + [windows], cell


def test_the_tables_of_rain_have_the_scores_and_changes() -> None:
    results = scores("rainfall")
    known = dict(list(results.groupby(["model", "metric", "horizon"])["value"]))
    horizons = sorted(results["horizon"].unique())
    for metric, table in zip(("mse", "mae"), tables_of("KOREA4_DO, without and with rain"), strict=True):
        for cell, row in table.items():
            if cell.startswith("change by rain"):
                name = cell.split("`")[1]
                pairs = [(known[name, metric, steps], known[f"{name}-rain", metric, steps]) for steps in horizons]
                assert row == [f"{100 * (rain.mean() / dry.mean() - 1):+.1f} %" for dry, rain in pairs], cell
            else:
                runs = [known[RAINFALL[cell], metric, steps] for steps in horizons]
                assert [bare(score) for score in row] == [
                    spelled(values, 3, has_spread=len(values) > 1) for values in runs
                ], cell


def test_the_table_of_costs_has_what_was_measured() -> None:
    (table,) = tables_of("What they cost")
    known = pd.read_csv(RESULTS / "profile-klamath-daily" / "profile.csv")
    known = known.set_index(known["name"].map(model_of))
    assert {model_of(cell) for cell in table} == set(known.index)
    for cell, row in table.items():
        of_model = known.loc[model_of(cell)]
        whole = [
            of_model["parameters"],
            of_model["operations"] / 1e6,
            of_model["training_seconds"] * 1e3,
            of_model["peak_megabytes"],
        ]
        parameters, operations, training, memory = ("–" if pd.isna(number) else f"{number:,.0f}" for number in whole)
        forecast = f"{of_model['inference_seconds'] * 1e3:.1f}"
        assert row == [parameters, operations, training, forecast, memory], cell
