"""What models cost: counts that can be made by hand, memory that grows with the batch, the line none is beaten on."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from frames import frame, parameters
from hypothesis import given
from hypothesis import strategies as st
from made_results import made_results
from tiny import tiny_recipe
from torch import nn
from torch.nn import functional as F

from candor.core.errors import InputError
from candor.core.files import write_json
from candor.data.panel import Panel, adjacency_of
from candor.forecasting import forecasters
from candor.forecasting.baseline import BaselineForecaster
from candor.forecasting.network import NetworkForecaster
from candor.nets.baselines.stid import Stid
from candor.render.figures.benchmark import bubbles_of
from candor.render.figures.bubbles import Bubble, Cost, draw_bubbles, pareto_line
from candor.research.engine import CellState, run_cell, run_locally
from candor.research.grid import cells_of
from candor.research.measuring import (
    Job,
    ModelProfile,
    count_operations,
    count_parameters,
    measure,
)
from candor.research.paper.tables import cost_table
from candor.research.profiling import (
    Profile,
    ProfileCell,
    add_cells,
    choose_contenders,
    circumstances_of,
    errors_in,
    find_target,
    labels_of,
    load_profile,
    make_job,
    random_edges,
    read_errors,
)
from candor.research.suites import load_suite

SMALL = st.integers(1, 9)


def job(**changes: Any) -> Job:
    settings = {"history": 12, "horizon": 6, "sizes": Stid.tiny}
    made = Job("stid", "stid", settings, 5, random_edges(5, 8), timedelta(hours=1), batch=3, warm_ups=0, passes=1)
    return replace(made, **changes)


def cost(name: str, size: int | None, seconds: float = 1.0) -> ModelProfile:
    return ModelProfile(
        name=name,
        parameters=size,
        operations=1,
        inference_seconds=seconds,
        training_seconds=1.0,
        peak_megabytes=None,
        is_reconstruction=name == "msthg",
    )


@given(SMALL, SMALL, SMALL)
def test_a_linear_layer_takes_two_operations_per_weight_and_row(rows: int, before: int, after: int) -> None:
    layer = nn.Linear(before, after)
    assert count_operations(lambda: layer(torch.ones(rows, before))) == 2 * rows * before * after
    assert count_parameters(layer, lambda: layer(torch.ones(rows, before))) == (before + 1) * after


def test_what_is_frozen_counts_only_where_a_forecast_uses_it() -> None:
    parts = nn.ModuleDict({name: nn.Linear(3, size) for name, size in (("used", 5), ("teacher", 7), ("learning", 11))})
    for name in ("used", "teacher"):
        parts[name].requires_grad_(False)
    before = {name: value.requires_grad for name, value in parts.named_parameters()}
    assert count_parameters(parts, lambda: parts["used"](torch.ones(2, 3))) == 4 * 5 + 4 * 11
    assert {name: value.requires_grad for name, value in parts.named_parameters()} == before


def test_attention_recurrence_and_sums_over_edges_are_counted_as_by_hand() -> None:
    batch, heads, length, width = 2, 3, 5, 4
    heard = torch.rand(batch, heads, length, width)
    attention = count_operations(lambda: F.scaled_dot_product_attention(heard, heard, heard))
    assert attention == 2 * (2 * batch * heads * length * length * width)  # scores, then means of the values
    layer = nn.GRU(width, heads)
    with torch.no_grad():
        recurrence = count_operations(lambda: layer(torch.ones(length, batch, width)))
    assert recurrence == 2 * length * batch * 3 * heads * (width + heads)  # three gates, of inputs and of states
    rows, table, weights = torch.randint(7, (batch, length)), torch.rand(7, width), torch.rand(batch, length)
    for is_learning in (False, True):
        with torch.set_grad_enabled(is_learning):
            summed = count_operations(lambda: F.embedding_bag(rows, table, mode="sum", per_sample_weights=weights))
        assert summed == 2 * batch * length * width
    assert count_operations(lambda: table @ torch.ones(width)) == 2 * 7 * width


def test_parameters_are_those_of_a_network_that_was_built_directly() -> None:
    found = measure(job())
    direct = Stid(Stid.tiny, frame(5, 12, 6))
    assert found.parameters == parameters(direct)
    assert found.inference_seconds > 0 and found.training_seconds > 0
    twice = measure(job(batch=6))
    assert twice.operations == 2 * found.operations and twice.parameters == found.parameters


@pytest.mark.parametrize("name", forecasters.names())
def test_every_model_is_measured_and_networks_have_the_parameters_they_are_built_with(name: str) -> None:
    kind = forecasters.get(name)
    own = {"recipe": tiny_recipe()} if name == "candor" else {"sizes": kind.tiny} if hasattr(kind, "tiny") else {}
    settings = {"history": 12, "horizon": 6} | own
    found = measure(job(name=name, model=name, settings=settings))
    assert found.inference_seconds > 0 and found.measured is not None
    assert found.is_reconstruction == (name == "msthg")
    if not issubclass(kind, NetworkForecaster):
        assert (found.parameters, found.operations, found.training_seconds, found.peak_megabytes) == (None,) * 4
        return
    assert found.operations and found.training_seconds
    if issubclass(kind, BaselineForecaster):
        network = kind(**settings).build(frame(5, 12, 6))
        whole = sum(parameter.numel() for parameter in network.parameters())
        # The forecasts of LatentTSF go through a frozen autoencoder; the frozen teacher of RSTIB-MLP is never asked.
        assert found.parameters == (whole if name == "latenttsf" else parameters(network))
        assert (whole > parameters(network)) == (name in ("latenttsf", "rstib-mlp"))


def test_trees_are_timed_as_many_as_their_settings_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, grown = forecasters.get("lightgbm"), []
    monkeypatch.setattr(kind, "_watch", lambda self, *_: lambda moment: grown.append(moment.iteration))
    sizes = {"trees": 40, "leaves": 4, "rows": 500, "patience": 1}  # noise would stop at once if it were validated
    measure(job(model="lightgbm", settings={"history": 12, "horizon": 6, "sizes": sizes}))
    assert grown == list(range(40))


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the datasets away."""
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path))
    monkeypatch.setattr("candor.data.catalog.registry.pooch.os_cache", lambda project: tmp_path)


def test_candor_at_the_shape_of_a_preset_has_the_size_that_the_paper_states(nowhere: None) -> None:
    target = find_target("basin180102")
    contenders = choose_contenders(target, ["candor"])
    circumstances = circumstances_of(target, batch=1, warm_ups=0, passes=1)
    assert "random" in circumstances.graph and (circumstances.nodes, circumstances.edges) == (11, 42)
    assert measure(make_job(target, contenders[0], circumstances)).parameters == 876_590
    with pytest.raises(InputError, match="not here"):
        find_target("korea4-do")


def test_a_made_up_graph_has_as_many_edges_as_the_real_one(metr_la: Panel, nowhere: None) -> None:
    real = adjacency_of(metr_la)
    made_up = adjacency_of(find_target("metr-la").panel)
    assert made_up.nnz == real.nnz - np.count_nonzero(real.diagonal())
    assert made_up.shape == real.shape


@pytest.mark.slow
def test_peak_memory_grows_with_the_batch() -> None:
    width = 64
    script = f"""
from datetime import timedelta
from candor.research.grid import cells_of
from candor.research.measuring import Job, measure
from candor.data.panel import Edges
settings = {{"history": 12, "horizon": 6, "sizes": {{"width": {width}, "layers": 2}}}}
jobs = [Job("", "stid", settings, 50, Edges.none(), timedelta(hours=1), batch, 0, 1) for batch in (4, 400)]
print([measure(job).peak_megabytes or 0 for job in jobs])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    few, many = json.loads(ran.stdout)
    if not many:
        pytest.skip("this system does not tell how much memory a process holds")
    one_layer = 400 * 50 * width * 4 / 2**20
    assert few < many - 2 * one_layer


class DeadlyCell(ProfileCell):
    """Ends the process that receives it, before PyTorch is loaded there."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (7,)


def test_a_process_that_dies_is_named_with_its_code_and_the_others_are_measured(tmp_path: Path) -> None:
    at = circumstances_of(find_target("klamath-daily"), batch=2, warm_ups=0, passes=1)
    cells = [DeadlyCell(job(name="bad"), at), ProfileCell(job(name="good"), at)]
    assert run_cell(cells[1], tmp_path) == CellState.DONE
    run_locally(cells[:1], tmp_path, tries=1)
    found = add_cells(Profile(circumstances=at), cells, tmp_path)
    assert [model.name for model in found.models] == ["good"] and "ended with code 7" in found.failed["bad"]


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=12))
def test_no_point_on_the_line_is_beaten_and_every_other_is(points: list[tuple[int, int]]) -> None:
    def is_beaten(point: tuple[int, int]) -> bool:
        return any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in points)

    line = pareto_line(points)
    assert len(set(line)) == len(line)
    for place, point in enumerate(points):
        assert (place in line) != is_beaten(point)
    assert [points[place][0] for place in line] == sorted(points[place][0] for place in line)
    assert [points[place][1] for place in line] == sorted((points[place][1] for place in line), reverse=True)


@given(st.integers(2, 12), st.data())
def test_random_edges_join_different_sensors_once_each(nodes: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, nodes * (nodes - 1)))
    edges = random_edges(nodes, count)
    pairs = set(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
    assert len(pairs) == count
    assert all(source != target and 0 <= source < nodes and 0 <= target < nodes for source, target in pairs)


def test_all_models_are_measured_and_candor_in_both_sizes() -> None:
    names = [contender.name for contender in choose_contenders(find_target("klamath-daily"))]
    assert set(names) == {*forecasters.names(), "candor-paper"} and len(names) == len(set(names))
    with pytest.raises(InputError, match="no model called 'stidd'"):
        choose_contenders(find_target("klamath-daily"), ["stidd"])


def test_a_profile_goes_on_under_the_same_circumstances_only(tmp_path: Path) -> None:
    circumstances = circumstances_of(find_target("klamath-daily"), batch=2, warm_ups=0, passes=1)
    profile = Profile(circumstances=circumstances).with_model("big", cost("big", 9)).with_model("bad", "no memory")
    profile = profile.with_model("rule", cost("rule", None)).with_model("small", cost("small", 3))
    assert [model.name for model in profile.models] == ["small", "big", "rule"] and profile.failed == {
        "bad": "no memory"
    }
    profile.save(tmp_path)
    assert load_profile(tmp_path, circumstances) == profile.model_copy(update={"failed": {}})
    other = circumstances.model_copy(update={"batch": 3})
    with pytest.raises(InputError, match="another batch"):
        load_profile(tmp_path, other)
    assert load_profile(tmp_path, other, is_anew=True).models == ()
    table = pd.read_csv(tmp_path / "profile.csv")
    assert table.name.tolist() == ["small", "big", "rule"] and set(table.machine_cores) == {os.cpu_count()}
    (tmp_path / "profile.json").write_text("[1]")
    with pytest.raises(InputError, match="not a profile"):
        load_profile(tmp_path, circumstances)


def write_results(folder: Path, errors: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """Writes results of tasks and models; squared errors are a hundred more, those of a step three more."""
    made = made_results(errors)
    made["value"] += made["metric"].map({"mae": 0.0, "rmse": 50.0, "mape": 0.0, "mse": 100.0})
    made = made.assign(protocol="{}", data_sha256="", versions="{}")
    folder.mkdir(exist_ok=True)
    made.to_parquet(folder / "results.parquet")


def profile_of(*models: ModelProfile) -> Profile:
    at = circumstances_of(find_target("klamath-daily"), batch=2, warm_ups=0, passes=1)
    return Profile(circumstances=at, models=models)


def test_errors_are_means_over_seeds_of_all_steps_on_the_preset(tmp_path: Path) -> None:
    errors = {"candor": (1.0, 2.0), "stid": (3.0,), "linear": (4.0,), "broken": (float("nan"),)}
    write_results(tmp_path, {"road": errors, "river": {"candor": (9.0,)}})
    for place in (tmp_path, tmp_path / "results.parquet"):
        found = read_errors(place, "road")
        assert {name: found.by_model[name] for name in ("candor", "stid", "linear")} == {
            "candor": [1.0, 2.0], "stid": [3.0], "linear": [4.0]
        }  # fmt: skip
        assert (found.unit, found.metric) == ("mph", "mae")
    profile = profile_of(
        cost("stid", 5), cost("candor", 7, 2.0), cost("fast", 9), cost("broken", 11), cost("linear", None)
    )
    ours, theirs = Bubble("candor", 1.5, 2, 7, 2.0, is_ours=True), Bubble("stid", 3.0, 1, 5, 1.0)
    assert bubbles_of(profile, found) == [theirs, ours]
    with pytest.raises(InputError, match="no results of the models"):
        found.check_any_of(["fast"])
    (tmp_path / "other.parquet").write_text("nonsense")
    for path in ("other.parquet", "none.parquet"):
        with pytest.raises(InputError, match=r"results"):
            read_errors(tmp_path / path, "road")


@pytest.mark.parametrize("told_by", ["cells", "folder"])
def test_errors_are_those_by_which_the_suite_ranks_models(tmp_path: Path, told_by: str) -> None:
    grid = tmp_path / ("grid" if told_by == "cells" else "benchmark-river")
    write_results(grid, {"korea4-do-h48": {"candor": (1.0,)}})
    assert read_errors(grid, "korea4-do").metric == ("mae" if told_by == "cells" else "mse")
    if told_by == "cells":
        (cell,) = cells_of(load_suite("river").chosen(["candor"], [0], tasks=["korea4-do-h48"]))
        write_json(grid / cell.name / "cell.json", cell.content())
    errors = read_errors(grid, "korea4-do")
    assert (errors.metric, errors.by_model) == ("mse", {"candor": [101.0]})
    assert errors_in(pd.read_parquet(grid / "results.parquet"), "korea4-do", grid, load_suite("quick")).by_model == {
        "candor": [1.0]
    }
    drawing = draw_bubbles(bubbles_of(profile_of(cost("candor", 5)), errors), "time", "", "mg/L", 64)
    assert drawing.figure.axes[0].get_ylabel() == "mean squared error [(mg/L)²]"
    assert drawing.table.mean_squared_error.tolist() == [101.0]


def test_errors_of_a_grid_made_of_parts_are_those_by_which_the_part_is_ranked(tmp_path: Path) -> None:
    grid = tmp_path / "benchmark-paper"
    write_results(grid, {"metr-la": {"candor": (1.0,)}, "basin030501": {"candor": (1.0,)}})
    road, river = (read_errors(grid, preset) for preset in ("metr-la", "basin030501"))
    assert (road.metric, road.by_model) == ("mae", {"candor": [1.0]})
    assert (river.metric, river.by_model) == ("mse", {"candor": [101.0]})


def test_a_preset_is_found_under_another_with_its_horizon_and_advice_names_presets(tmp_path: Path) -> None:
    tasks = {f"korea4-do-h{horizon}": {"candor": (float(horizon),)} for horizon in (48, 96, 192)}
    write_results(tmp_path, tasks)
    for preset, horizon in (("korea4-do", 48), ("korea4-do-192", 192)):
        assert read_errors(tmp_path, preset).by_model == {"candor": [float(horizon)]}
    with pytest.raises(InputError, match="no results on metr-la") as refused:
        read_errors(tmp_path, "metr-la")
    assert refused.value.hint == "--preset korea4-do or korea4-do-192"  # of 96 steps there is no preset
    advised = refused.value.hint.removeprefix("--preset ").split(" or ")
    assert all(read_errors(tmp_path, preset).by_model for preset in advised)
    write_results(tmp_path, {"lake": {"candor": (1.0,)}})
    with pytest.raises(InputError) as refused:
        read_errors(tmp_path, "metr-la")
    assert "results on lake" in refused.value.hint and "--preset" not in refused.value.hint


def test_sizes_of_candor_that_differ_are_not_taken_for_one_another() -> None:
    assert not set(labels_of("metr-la")) & set(labels_of("metr-la-small"))
    assert labels_of("my-own") == ["my-own"]


@pytest.mark.parametrize("against", ["parameters", "time"])
def test_a_reconstruction_is_named_as_one_and_no_line_rests_on_it(against: Cost, tmp_path: Path) -> None:
    write_results(tmp_path, {"road": {"msthg": (0.1,), "stid": (1.0,), "fast": (2.0,)}})
    profile, errors = profile_of(cost("msthg", 1, 0.1), cost("stid", 5, 0.5)), read_errors(tmp_path, "road")
    whole = profile.with_model("fast", cost("fast", 9, 0.9))
    table = draw_bubbles(bubbles_of(whole, errors), against, "", "", 64).table.set_index("model")
    assert table.is_on_pareto_line.to_dict() == {"msthg (reconstruction)": False, "stid": True, "fast": False}
    alone = [bubble for bubble in bubbles_of(whole, errors) if bubble.is_reconstruction]
    drawing = draw_bubbles(alone, against, "", "", 64)
    assert [text.get_text() for text in drawing.figure.axes[0].texts] == ["msthg (reconstruction)"]
    assert not drawing.table.is_on_pareto_line.any()
    whole.save(tmp_path)
    assert pd.read_csv(tmp_path / "profile.csv").name.tolist() == ["msthg (reconstruction)", "stid", "fast"]
    rows = dict(cost_table(whole).rows)
    assert "msthg (reconstruction)" in rows and "without the authors' code" in cost_table(whole).note


@pytest.mark.parametrize(
    ("count", "against"),
    [(1, "parameters"), (1, "time"), (2, "parameters"), (2, "time"), (20, "parameters"), (12, "time"),
     pytest.param(20, "time", marks=pytest.mark.slow)],
)  # fmt: skip
def test_no_name_lies_on_another_or_leaves_the_axes(count: int, against: Cost) -> None:
    generator = np.random.default_rng(3)
    sizes, errors, seconds = (
        10 ** generator.uniform(4.5, 6, count),
        generator.uniform(2.8, 3.1, count),
        generator.random(count),
    )
    made = zip(sizes.astype(int).tolist(), errors.tolist(), seconds.tolist(), strict=True)
    bubbles = [
        Bubble(f"model-number-{i}", error, 3, size, time, is_ours=i == 0) for i, (size, error, time) in enumerate(made)
    ]
    drawing = draw_bubbles(bubbles, against, "Accuracy and cost", "mph", 64)
    (axes,) = drawing.figure.axes
    drawing.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == count
    for box in boxes:
        assert axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 and axes.bbox.y0 <= box.y0 and box.y1 <= axes.bbox.y1
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    table = drawing.table.set_index("model")
    assert table.mean_absolute_error.tolist() == [bubble.error for bubble in bubbles]
    best = table.mean_absolute_error.idxmin()
    assert table.is_on_pareto_line[best] and table.is_on_pareto_line.sum() >= 1
