"""The entry of a profile: its rows, the errors it is drawn against, and when it was measured."""

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from candor.core.progress import silent
from candor.render.paper.studies import make_costs
from candor.research.measuring import ModelProfile
from candor.research.paper.found import FoundGrid, GridKind
from candor.research.paper.tables import cost_table, find_errors
from candor.research.profiling import Circumstances, Profile
from candor.research.suites import load_suite

AT = Circumstances(
    preset="korea4-do-192", graph="random", nodes=5, edges=4, history=48, horizon=192, batch=8, warm_ups=1, passes=2,
    machine={"processor": "one", "cores": 2, "threads": 1, "torch": "2.13.0"},
)  # fmt: skip
SQUARED = {"stid": 4.0, "msthg": 1.0, "linear": 9.0}


def profile() -> Profile:
    shared = {"inference_seconds": 0.002, "measured": datetime(2026, 1, 2, tzinfo=UTC)}
    network = {"operations": 3_000_000, "training_seconds": 0.004, "peak_megabytes": 5.0}
    nothing = dict.fromkeys(("parameters", "operations", "training_seconds", "peak_megabytes"))
    return Profile(
        circumstances=AT,
        models=(
            ModelProfile(name="msthg", parameters=20, is_reconstruction=True, **network, **shared),
            ModelProfile(name="stid", parameters=1234567, **network, **shared),
            ModelProfile(name="linear", **nothing, **shared),
        ),
    )


@pytest.fixture
def grid(tmp_path: Path) -> FoundGrid:
    """A grid that has the preset under another with its horizon, ranked by squared errors."""
    rows = [
        {"task": "korea4-do-h192", "model": model, "step": 0, "metric": metric, "value": value, "unit": "mg/L"}
        for model, squared in SQUARED.items()
        for metric, value in (("mse", squared), ("mae", squared**0.5))
    ]
    results = pd.DataFrame(rows)
    folder = tmp_path / "grid"
    folder.mkdir()
    results.to_parquet(folder / "results.parquet")
    return FoundGrid(folder, GridKind.BENCHMARK, load_suite("river"), (), results)


def test_rows_have_dashes_for_what_a_model_has_not_and_name_reconstructions() -> None:
    table = cost_table(profile())
    rows = {name: [cell.text for cell in cells] for name, cells in table.rows}
    assert rows == {
        "msthg (reconstruction)": ["20", "3.00", "2.00", "4.00", "5.00"],
        "stid": ["1,234,567", "3.00", "2.00", "4.00", "5.00"],
        "linear": ["–", "–", "2.00", "–", "–"],
    }
    assert "without the authors' code" in table.note and "without a network" in table.note
    plain = Profile(circumstances=AT, models=profile().models[1:2])
    assert "without" not in cost_table(plain).note


@pytest.mark.usefixtures("no_pictures")
def test_costs_are_drawn_against_the_errors_that_the_suite_ranks_by(grid: FoundGrid, tmp_path: Path) -> None:
    found = find_errors(profile(), [grid])
    assert found is not None and (found.metric, found.by_model) == ("mse", {name: [v] for name, v in SQUARED.items()})
    profile().save(tmp_path / "costs")
    (entry,) = make_costs(tmp_path / "costs" / "profile.json", [grid], tmp_path / "out", silent)
    assert entry.origin.made == "2026-01-02" and any("Mean squared errors" in sentence for sentence in entry.shows)
    drawn = pd.read_csv(tmp_path / "out" / "accuracy-time.csv").set_index("model")
    assert drawn.mean_squared_error.to_dict() == {"msthg (reconstruction)": 1.0, "stid": 4.0}
    assert drawn.is_on_pareto_line.to_dict() == {"msthg (reconstruction)": False, "stid": True}


def test_errors_of_another_horizon_are_not_taken(grid: FoundGrid) -> None:
    other = profile().model_copy(update={"circumstances": AT.model_copy(update={"preset": "korea4-do"})})
    assert find_errors(other, [grid]) is None
