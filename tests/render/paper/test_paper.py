"""A paper folder says what the results say, links to all it holds, and names what is missing or damaged."""

import json
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
from made_runs import make_run
from paper_results import results, save, write_profile, write_shock_rain, write_truth
from pictures import without_paint
from read_report import EVIL, Reader
from tiny import PROTOCOL, tiny_recipe

from candor.core.files import write_json
from candor.data.synthetic import generate_river
from candor.render.paper import paper as paper_module
from candor.render.paper.paper import Paper, write_paper
from candor.research.ablations import ablation, sweep
from candor.research.engine import CellState, run_cell
from candor.research.grid import GridCell, cells_of
from candor.research.paper.found import find_results
from candor.research.paper.missing import find_missing
from candor.research.paper.origins import origin_of_task
from candor.research.suites import Contender, SuiteTask, load_suite
from candor.runs.fit import train_model
from candor.runs.run import load_record


def overall(found: pd.DataFrame, metric: str = "mae") -> pd.DataFrame:
    """Returns errors over all steps, seed x model."""
    chosen = found[(found["step"] == 0) & (found["metric"] == metric)]
    return chosen.pivot(index="seed", columns="model", values="value")


def page_of(made: Paper) -> Reader:
    return Reader((made.folder / "index.html").read_text())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


RIVALS = {"candor": [1.0, 1.25], "stid": [2.0, 3.0], "linear": [4.0, 4.5]}
PARTS = {"candor": [1.0, 1.02], "without-physical": [1.5, 1.6], "mean-fusion": [1.01, 0.99]}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results of every kind but runs, one of them damaged."""
    runs = tmp_path_factory.mktemp("place") / "runs"
    save(results({EVIL: [1.0], "stid": [2.0]}, task=f"{EVIL}/task", data=EVIL), runs / EVIL.replace("/", "|"))
    save(results(RIVALS, task="metr-la"), runs / "benchmark-own")
    holes = results({"stid": [2.0]}, task="holes")
    save(holes.assign(value=holes["value"].where(holes["metric"] != "mape")), runs / "benchmark-with-holes")
    save(results(PARTS), runs / "ablations-a")
    save(results(PARTS, task="other"), runs / "ablations-b")
    save(results({"pairs=4": [1.0], "pairs=16": [0.5]}), runs / "sweep-pairs")
    save(results({"temporal_span=1": [3.0]}, task="other"), runs / "sweep-span")
    with without_paint(but=("truth.svg",)):
        write_truth(runs / "truth")
    write_shock_rain(runs / "one" / "figures")
    write_shock_rain(runs / "two", "second-river")
    write_profile(runs / "profile-metr-la")
    (runs / "damaged").mkdir()
    (runs / "damaged" / "results.parquet").write_bytes(b"PAR1")
    (runs / "two" / "profile.json").write_text("[]")
    return runs


@pytest.fixture(scope="module")
def made(everything: Path) -> Paper:
    with without_paint(but=("truth.svg",)):  # the one whose picture is looked at
        return write_paper([everything], everything.parent / "paper")


@pytest.fixture
def grids_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the figures of method and data, which take longest and do not depend on results."""
    for name in ("make_schematics", "make_exploration"):
        monkeypatch.setattr(paper_module, name, lambda *_: [])


@pytest.mark.usefixtures("grids_alone", "no_pictures")
def test_every_size_of_ours_is_counted_for_itself_and_marks_rest_on_all_that_may_be_ranked(tmp_path: Path) -> None:
    errors = {"candor": [1.0], "candor-small": [4.0], "stid": [3.0], "linear": [5.0], "msthg": [0.5]}
    save(results(errors, task="metr-la"), tmp_path / "runs" / "benchmark-own")
    (entry,) = write_paper([tmp_path / "runs"], tmp_path / "paper").entries["comparisons"]
    said = " ".join(entry.shows)
    assert "The worst seed of candor beats the best seed of a baseline in 2 of 2 comparisons." in said
    assert "The worst seed of candor-small beats the best seed of a baseline in 1 of 2 comparisons." in said
    assert "second best of all that may be ranked" in said and "none is ranked" in said


def test_every_kind_of_result_has_its_section(made: Paper) -> None:
    filled = {section for section, entries in made.entries.items() if entries}
    assert filled == {"method", "comparisons", "ablations", "sweeps", "costs", "shock-rain", "truth"}
    assert filled <= set(page_of(made).values("id"))


def test_all_links_resolve_and_every_picture_and_table_is_linked(made: Paper) -> None:
    page = page_of(made)
    links, names = page.values("href", "src"), page.values("id")
    inside = {link.removeprefix("#") for link in links if link.startswith("#")}
    assert inside <= set(names) and len(names) == len(set(names))
    linked = {unquote(link) for link in links if not link.startswith("#")}
    assert all((made.folder / link).is_file() for link in linked)
    there = {name for name in tree(made.folder) if name.endswith((".png", ".svg", ".csv", ".tex", ".html"))}
    assert there - linked == {"index.html"}
    words = page.words()
    for entry in (entry for entries in made.entries.values() for entry in entries):
        assert entry.title in words and entry.origin.command.splitlines()[0] in words


def test_tables_hold_the_means_and_spreads_of_the_results(made: Paper, everything: Path) -> None:
    found = pd.read_parquet(everything / "benchmark-own" / "results.parquet")
    text = (made.folder / "benchmark-own" / "tables.md").read_text()
    errors = overall(found)
    for model in RIVALS:
        told = f"{errors[model].mean():.3f} ± {errors[model].std(ddof=1):.3f}"
        assert told in text and told in page_of(made).words()
    gain = 100 * (1 - errors["candor"].mean() / errors["stid"].mean())
    assert f"{gain:+.1f} %" in text
    assert "in 2 of 2 comparisons" in page_of(made).words()  # the worst of candor, 1.25, is below 2 and 4


def test_the_heat_maps_hold_changes_paired_by_seed(made: Paper) -> None:
    for name in ("ablations-a", "ablations-together"):
        drawn = pd.read_csv(made.folder / name / "ablations.csv").set_index(["variant", "metric"])["relative_change"]
        errors = overall(results(PARTS))
        paired = (errors.div(errors["candor"], axis=0) - 1).mean()
        for metric in ("mae", "mape") if name == "ablations-a" else ("other, mae", "made-up, mape"):
            assert drawn["w/o Physical", metric] == pytest.approx(paired["without-physical"])
            assert drawn["avg Fusion", metric] == pytest.approx(paired["mean-fusion"])


@pytest.mark.usefixtures("grids_alone", "no_pictures")
def test_a_grid_of_rain_hides_no_other_variant_and_has_a_map_of_its_own(tmp_path: Path) -> None:
    rain = {"candor": [1.0, 1.0], "rain-added": [0.9, 0.9], "rain-alone": [1.2, 1.2]}
    for task in ("one", "two"):
        save(results(rain, task=task).assign(parameters=77), tmp_path / "runs" / f"a-rain-{task}")
        save(results(PARTS, task=task), tmp_path / "runs" / f"b-parts-{task}")
    told = write_paper([tmp_path / "runs"], tmp_path / "paper")
    assert not told.troubles
    together = tmp_path / "paper" / "ablations-together"
    parts, given = (pd.read_csv(together / f"{kind}.csv") for kind in ("ablations", "interventions"))
    assert set(parts["variant"]) == {"w/o Physical", "avg Fusion"} and set(given["variant"]) == {"RainAdd", "RainOnly"}
    assert set(given["parameters"]) == {77} and parts["parameters"].isna().all()
    added = given[(given["variant"] == "RainAdd") & (given["metric"] == "two, rmse")]["relative_change"]
    assert added.tolist() == pytest.approx([-0.1])
    titles = {entry.title: entry for entry in told.entries["ablations"]}
    assert {"All tasks: CANDOR without its parts", "All tasks: CANDOR that is given rain"} < set(titles)
    alone = titles["one: CANDOR that is given rain"]
    assert "loses" not in " ".join(alone.shows) and alone.pictures[0].stem.endswith("/interventions")
    rows = dict(alone.tables[0].table.rows)
    assert alone.tables[0].table.columns[0] == "parameters" and rows["rain-added"][0].text == "77"
    assert titles["one: CANDOR without its parts"].tables[0].table.columns[0] == "MAE"


def test_sweeps_hold_the_errors_by_value_alone_and_together(made: Paper) -> None:
    drawn = pd.read_csv(made.folder / "sweep-pairs" / "sweep-pairs.csv")
    assert drawn.to_dict("list") == {"pairs": [4, 16], "mae": [1.0, 0.5]}
    (together,) = (entry for entry in made.entries["sweeps"] if entry.title.startswith("All settings"))
    rows = {name: [cell.text for cell in cells] for name, cells in together.tables[0].table.rows}
    assert rows["pairs=16"] == ["0.5000", "1.0000", "2.0000", "–", "–", "–"]
    assert rows["temporal_span=1"] == ["–", "–", "–", "3.0000", "6.0000", "12.0000"]


def test_costs_are_drawn_against_the_errors_of_the_grid_on_the_same_preset(made: Paper) -> None:
    drawn = pd.read_csv(made.folder / "profile-metr-la" / "accuracy-time.csv").set_index("model")
    errors = overall(results(RIVALS)).mean()
    for model in RIVALS:
        assert drawn.loc[model, "mean_absolute_error"] == pytest.approx(errors[model])
    assert "5,000" in (made.folder / "profile-metr-la" / "tables.md").read_text()


def test_truth_is_drawn_as_the_command_drew_it(made: Paper, everything: Path) -> None:
    (folder,) = {picture.stem.split("/")[0] for entry in made.entries["truth"] for picture in entry.pictures}
    for name in ("truth.json", "truth.md", "truth.csv", "truth.png", "truth.svg"):
        assert (made.folder / folder / name).read_bytes() == (everything / "truth" / name).read_bytes(), name
    text = (made.folder / folder / "tables.md").read_text()
    assert "| candor: gates | **0.925 ± 0.035** | **0.925 ± 0.035** |" in text
    assert made.entries["truth"][0].origin.made == "2026-01-02"


def test_rain_keeps_its_curves_and_stands_in_one_table(made: Paper, everything: Path) -> None:
    stems = [picture.stem for entry in made.entries["shock-rain"] for picture in entry.pictures]
    kept = pd.read_csv(everything / "two" / "shock-rain.csv")
    assert len(stems) == 2
    shifts = (everything / "two" / "shock-rain-shifts.csv").read_bytes()
    for stem in stems:
        assert (made.folder / f"{stem}-shifts.csv").read_bytes() == shifts
        pd.testing.assert_frame_equal(pd.read_csv(made.folder / f"{stem}.csv"), kept)
    first = made.entries["shock-rain"][0]
    assert [name for name, _ in first.tables[0].table.rows] == [
        f"candor on {data}, 4 steps, 1 run" for data in ("river", "second-river")
    ]
    one = made.entries["shock-rain"][1].origin.command
    assert one.startswith("candor shock-rain runs/one --covariate rain --longest-lag 2 --lag-step 2 --shifts 1000")


def test_what_is_damaged_is_named_and_leaves_nothing(made: Paper) -> None:
    assert [Path(one.where).parent.name for one in made.troubles] == ["damaged", "two"]
    words = page_of(made).words()
    assert all(one.where in words and one.what in words for one in made.troubles)
    assert not (made.folder / "damaged").exists() and not (made.folder / "two").exists()


@pytest.mark.usefixtures("grids_alone", "no_pictures")
def test_two_runs_give_the_same_bytes_even_inside_the_folder_that_is_searched(tmp_path: Path) -> None:
    save(results(RIVALS), tmp_path / "grid")
    save(results(PARTS), tmp_path / "parts")
    first, second = (tree(write_paper([tmp_path], tmp_path / "paper").folder) for _ in range(2))
    assert first == second and {"grid/tables.md", "parts/ablations.csv", "index.html"} <= set(first)


def test_what_is_missing_is_listed_with_its_command(made: Paper, tmp_path: Path) -> None:
    commands = [one.command for one in find_missing(find_results([tmp_path]))]
    for command in ("candor truth", "candor benchmark traffic", "candor ablate metr-la", "candor sweep metr-la pairs"):
        assert command in commands
    fewer = [one.command for one in made.missing]
    assert "candor truth" not in fewer and "candor profile --preset metr-la" not in fewer
    assert "candor data info made-up" in fewer  # whose data are not here
    words = page_of(made).words()
    assert all(one.what in words and one.command in words for one in made.missing)


@pytest.mark.parametrize(
    ("preset", "command"),
    [
        ("klamath-daily", "candor benchmark quick --tasks klamath-daily"),
        ("korea4-do-192", "candor benchmark river --tasks korea4-do-h192"),
        ("synthetic-road", "candor train synthetic-road"),
    ],
)
def test_costs_without_errors_name_the_comparison_that_is_missing(preset: str, command: str, tmp_path: Path) -> None:
    write_profile(tmp_path / "profile", preset)
    (missing,) = (one for one in find_missing(find_results([tmp_path])) if "no errors" in one.what)
    assert (missing.command, preset in missing.what) == (command, True)


def test_cells_tell_the_command_and_what_was_not_done(tmp_path: Path) -> None:
    suite = ablation("klamath-daily", ["without-physical"], {"size": "small"}, seeds=(0, 1), budget_minutes=0.5)
    cells = cells_of(suite)
    errors = {"candor": [1.0, 1.1], "without-physical": [1.5]}
    grid = save(results(errors, task="klamath-daily"), tmp_path / "some", cells)
    write_json(grid / cells[-1].name / "failure.json", {"what": "no memory\nat all"})
    swept = sweep("klamath-daily", "pairs", (4, 8), {"size": "small"}, seeds=(0,))
    errors = {"pairs=4": [1.0], "pairs=8": [2.0]}
    save(results(errors, task="klamath-daily"), tmp_path / "swept", cells_of(swept))
    (first,) = (cell for cell in cells_of(load_suite("quick")) if cell.name.startswith("klamath-daily/linear/"))
    compared = save(results({"linear": [1.0]}, task="klamath-daily"), tmp_path / "tasks", [first])
    found = find_results([tmp_path])
    assert [one.kind for one in found.grids] == ["ablations", "sweep", "benchmark"]
    command = "candor benchmark quick --models linear --tasks klamath-daily --seeds 0 --budget-minutes 0.5"
    assert found.grids[2].command() == f"{command} --out {compared}"
    assert found.grids[0].command() == (
        "candor ablate klamath-daily size=small --variants without-physical --seeds 0,1 --budget-minutes 0.5 "
        f"--out {grid}"
    )
    assert found.grids[1].command().startswith("candor sweep klamath-daily pairs=4,8 size=small --seeds 0")
    (gap,) = (one for one in find_missing(found) if "begun but not done" in one.what)
    assert gap.what.endswith("klamath-daily/without-physical/seed-1 (no memory)")
    assert gap.command == found.grids[0].command()


def test_a_reconstruction_that_is_missing_is_named_as_one(tmp_path: Path) -> None:
    suite = load_suite("quick")
    errors = {one.name: [1.0] for one in suite.contenders if one.name != "msthg"}
    cells = cells_of(suite.chosen(["stid"], [0], tasks=["klamath-daily"]))
    save(results(errors, task="klamath-daily"), tmp_path / "grid", cells)
    missing = [one.what for one in find_missing(find_results([tmp_path])) if "klamath-daily: no results of" in one.what]
    assert [what.partition("no results of ")[2] for what in missing] == ["1 model (msthg (reconstruction))"]


def test_what_was_begun_is_made_by_the_command_that_is_named_for_it(tmp_path: Path) -> None:
    rain = ablation("klamath-daily", ["rain-added", "rain-alone"], {}, seeds=(0, 1))
    errors = results({"candor": [1.0], "rain-added": [1.1]}, task="klamath-daily")
    save(errors, tmp_path / "rain", cells_of(rain))
    swept = sweep("klamath-daily", "pairs", (4, 8), {}, seeds=(0, 1))
    save(results({"pairs=4": [1.0]}, task="klamath-daily"), tmp_path / "swept", cells_of(swept))
    gaps = [one.command for one in find_missing(find_results([tmp_path])) if "begun but not done" in one.what]
    assert [command.partition(" --budget")[0] for command in gaps] == [
        "candor ablate klamath-daily --variants rain-added,rain-alone --seeds 0,1",
        "candor sweep klamath-daily pairs=4,8 --seeds 0,1",
    ]


@pytest.mark.usefixtures("grids_alone", "no_pictures")
def test_models_without_and_with_rain_have_their_table_on_the_page(tmp_path: Path) -> None:
    suite = load_suite("rainfall").chosen(["timexer", "timexer-rain"], [0], tasks=["korea4-do-h48"])
    errors = {"timexer": [1.0], "timexer-rain": [0.5]}
    save(results(errors, task="korea4-do-h48", data="korea4-do"), tmp_path / "rainfall", cells_of(suite))
    made = write_paper([tmp_path], tmp_path / "paper")
    (entry,) = (one for one in made.entries["comparisons"] if "with rain" in one.title)
    assert [(name, cells[0].text, cells[1].text) for name, cells in entry.tables[0].table.rows] == [
        ("timexer", "No", "1.0000"), ("timexer", "Yes", "0.5000"),
    ]  # fmt: skip
    assert all((made.folder / file).is_file() for file, _ in entry.files)


def test_settings_that_were_given_to_a_suite_are_in_its_command(tmp_path: Path) -> None:
    suite = load_suite("quick").chosen(["stid", "linear"], [0], tasks=["klamath-daily"], settings={"epoch_windows": 64})
    save(results({"stid": [1.0], "linear": [2.0]}, task="klamath-daily"), tmp_path, cells_of(suite))
    (grid,) = find_results([tmp_path]).grids
    assert grid.command().startswith("candor benchmark quick epoch_windows=64 --models stid,linear --tasks klamath")


def test_the_full_model_with_its_first_seed_is_drawn_once_for_each_task(tmp_path: Path) -> None:
    suite = ablation("klamath-daily", ["mean-fusion"], {}, seeds=(3, 1))
    cells = cells_of(suite)
    errors = results({"candor": [1.0, 1.1, 1.2, 1.3], "mean-fusion": [1.5, 1.5, 1.5, 1.5]}, task="klamath-daily")
    for name in ("one", "two"):
        grid = save(errors, tmp_path / name, cells)
        for cell in cells:
            make_run(grid / cell.name, "last-value")
            write_json(grid / cell.name / "cell.json", cell.model_dump(mode="json"))
    (run,) = find_results([tmp_path]).runs
    assert (run.name, run.folder) == ("klamath-daily", tmp_path / "one" / "klamath-daily" / "candor" / "seed-1")


def test_cells_without_a_table_of_results_are_collected(tmp_path: Path) -> None:
    contender = Contender(name="last-value", model="last-value")
    cell = GridCell(suite="quick", task=SuiteTask(preset="klamath-daily"), contender=contender, seed=0)
    assert run_cell(cell, tmp_path) == CellState.DONE
    (grid,) = find_results([tmp_path]).grids
    judged = json.loads((tmp_path / cell.name / "evaluation.json").read_text())
    assert overall(grid.results).loc[0, "last-value"] == judged["overall"]["mae"]
    assert origin_of_task(grid, "klamath-daily").made == load_record(tmp_path / cell.name).made.date().isoformat()
    lacking = [
        one for one in find_missing(find_results([tmp_path])) if one.command.startswith("candor benchmark quick")
    ]
    assert [one.what.split(", ")[1].split(":")[0] for one in lacking] == ["klamath-daily", "synthetic-river"]


def test_names_cannot_become_a_part_of_the_page(made: Paper) -> None:
    page = page_of(made)
    assert "script" not in page.tags() and EVIL in page.words()
    assert any(EVIL in name for name, _ in made.entries["comparisons"][0].tables[0].table.rows)


def test_scores_that_are_not_numbers_are_told(made: Paper) -> None:
    assert "2 scores could not be computed (mape)" in page_of(made).words()


@pytest.mark.usefixtures("grids_alone")
def test_an_interruption_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(write_paper([], tmp_path / "paper").folder)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(paper_module, "make_schematics", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_paper([], tmp_path / "paper")
    assert tree(tmp_path / "paper") == before and [path.name for path in tmp_path.iterdir()] == ["paper"]


@pytest.mark.usefixtures("unpainted")
def test_a_run_of_another_model_is_named_and_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_module, "make_exploration", lambda *_: [])
    run = make_run(tmp_path / "linear")
    told = write_paper([run], tmp_path / "paper")
    assert {one.where for one in told.troubles} == {str(run)} and "run of linear" in told.troubles[0].what
    assert told.entries["method"] and not told.entries["runs"]


@pytest.mark.slow
def test_a_run_that_is_named_is_drawn_and_explained_with_its_data(tmp_path: Path) -> None:
    panel, run = generate_river(sensors=4, steps=300, seed=19)[0], tmp_path / "runs" / "tiny"
    train_model(panel, PROTOCOL, "candor", {"recipe": tiny_recipe(epochs=1)}, run, is_catalogued=False)
    searched = find_results([tmp_path / "runs"])
    assert not searched.runs and searched.others == [run]
    shares: list[float] = []
    named = write_paper([run], tmp_path / "paper", lambda what, share: shares.append(share or 0.0))
    assert not named.troubles and shares == sorted(shares) and shares[-1] <= 1
    plotted, explained = named.entries["runs"]
    assert plotted.origin.command == f"candor explain {run} --figures {run / 'figures'}"
    assert {Path(picture.stem).name for picture in plotted.pictures} >= {"forecast", "fusion", "components", "edges"}
    assert len(explained.pictures) > 3 and named.entries["data"][0].pictures
    for link in (unquote(link) for link in page_of(named).values("href", "src") if not link.startswith("#")):
        assert (named.folder / link).is_file(), link
