"""Several runs in one paper folder: told apart, and in one figure of what their forecasts rest on."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_runs import make_run
from tiny import PROTOCOL, tiny_recipe

from candor.core.progress import silent
from candor.data.synthetic import generate_river
from candor.render.paper.runs import FUSIONS, make_fusions
from candor.research.paper.found import FoundRun, data_names, data_of_runs, find_results
from candor.runs.fit import train_model
from candor.runs.run import load_record, load_run


@pytest.mark.slow
def test_fusion_of_all_systems_is_the_mean_and_range_over_all_that_is_fused(tmp_path: Path) -> None:
    panel = generate_river(sensors=4, steps=300, seed=19)[0]
    train_model(panel, PROTOCOL, "candor", {"recipe": tiny_recipe(epochs=1)}, tmp_path / "one", is_catalogued=False)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    make_run(tmp_path / "linear")
    runs = [FoundRun(name, tmp_path / name, load_record(tmp_path / name)) for name in ("one", "linear", "two")]
    (entry,) = make_fusions(runs, tmp_path / "paper", silent)
    assert entry.pictures[0].stem == f"paper/{FUSIONS}" and str(tmp_path / "two") in entry.origin.source
    table = pd.read_csv(tmp_path / "paper" / f"{FUSIONS}.csv").set_index(["system", "branch"])
    assert set(table.index.get_level_values("system")) == {"one", "two"}

    run = load_run(tmp_path / "one")
    task = run.task()
    by_window = [
        run.forecaster.explain(task.panel, sensor, task.panel.times.local[origin]).fusion
        for origin in task.split.test.tolist()
        for sensor in task.panel.sensor_ids
    ]
    for branch in ("functional", "forward", "reverse"):
        weights = [getattr(patch, branch) for patches in by_window for patch in patches]
        expected = np.mean(weights), *np.quantile(weights, (0.1, 0.9))
        assert table.loc[("one", branch)].tolist() == pytest.approx(expected, abs=1e-5)
    assert not list(make_fusions(runs[:2], tmp_path / "less", silent)) and not (tmp_path / "less").exists()


def test_runs_and_data_that_share_a_name_are_told_apart(tmp_path: Path) -> None:
    first, second = (make_run(tmp_path / place / "readings-linear") for place in ("a", "b"))
    record = json.loads((second / "run.json").read_text())
    (second / "run.json").write_text(json.dumps(record | {"fingerprint": "0" * 64}))
    found = find_results([first, second])
    assert [run.name for run in found.runs] == ["readings-linear", str(second)]
    data = load_record(first).data
    assert data_of_runs(found.runs) == {data: first / "data", f"{data} of {second}": second / "data"}
    assert data_names(found) == [data, f"{data} of {second}"]
