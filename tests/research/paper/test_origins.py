"""What a paper folder says of the numbers of a grid: over which seeds they are means, and who cannot be compared."""

from pathlib import Path

import pandas as pd
from paper_results import results, save

from candor.data.catalog import load_dataset
from candor.data.panel import Panel
from candor.data.protocol import Protocol
from candor.research.paper.found import find_results, read_grid
from candor.research.paper.origins import origin_of_run, origin_of_task
from candor.research.paper.tables import sensitivity_table
from candor.runs.run import RunRecord


def said_of(found: pd.DataFrame, folder: Path) -> str:
    grid = read_grid(save(found, folder), [])
    assert grid is not None
    return origin_of_task(grid, "made-up").protocol


def test_models_with_fewer_seeds_are_named(tmp_path: Path) -> None:
    said = said_of(results({"stid": [1.0, 2.0, 3.0], "candor": [1.0]}), tmp_path)
    assert "mean over seeds 0, 1, 2 (candor: seed 0) ± standard deviation (one degree of freedom taken off)." in said
    alike = said_of(results({"stid": [1.0, 2.0], "candor": [1.0, 2.0]}), tmp_path)
    assert "mean over seeds 0, 1 ± standard deviation" in alike


def test_other_data_and_threads_are_told(tmp_path: Path) -> None:
    found = results({"stid": [1.0], "candor": [1.0]})
    ours = found["model"] == "candor"
    said = said_of(found.assign(threads=1 + ours, data_sha256=ours.map({True: "a" * 64, False: "b" * 64})), tmp_path)
    assert "Made on different data: made-up (bbbbbbbb) of stid and made-up (aaaaaaaa) of candor." in said
    assert "The same minutes on different numbers of threads: 1 of stid and 2 of candor." in said


def test_runs_on_another_copy_of_a_dataset_are_told() -> None:
    def said(panel: Panel, is_catalogued: bool) -> str:
        record = RunRecord.of("linear", panel, Protocol(history=2, horizon=1), seed=0, is_catalogued=is_catalogued)
        return origin_of_run(record, "run", "candor explain run").data

    whole = load_dataset("klamath-daily")
    assert "another copy than the catalogue knows" in said(whole.slice(0, 100), True)
    assert "another copy" not in said(whole, True) + said(whole.slice(0, 100), False)


def test_a_second_sweep_of_a_setting_is_not_taken_for_further_seeds(tmp_path: Path) -> None:
    for name, error in (("first", 1.0), ("second", 9.0)):
        save(results({"pairs=4": [error], "pairs=8": [error + 1]}), tmp_path / name)
    save(results({"spatial_orders=1": [3.0]}), tmp_path / "third")
    table = sensitivity_table(find_results([tmp_path]).grids)
    assert [(name, cells[0].text) for name, cells in table.rows] == [
        ("pairs=4", "1.0000"), ("pairs=8", "2.0000"), ("spatial_orders=1", "3.0000"),
    ]  # fmt: skip
