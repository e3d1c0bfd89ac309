"""What models cost: counts that can be made by hand, memory that grows with the batch, the line none is beaten on."""

import json
import os
import subprocess
import sys
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
from torch import nn
from torch.nn import functional as F

from candor.baselines.stid import Stid
from candor.benchmark.measuring import (
    Job,
    MeasurementError,
    ModelProfile,
    count_operations,
    count_parameters,
    measure,
    measure_apart,
)
from candor.benchmark.profiling import (
    Profile,
    bubbles_of,
    choose_contenders,
    circumstances_of,
    find_ground,
    load_profile,
    make_job,
    random_edges,
    read_errors,
)
from candor.data.adjacency import adjacency_of
from candor.errors import InputError
from candor.figures.bubbles import Bubble, draw_bubbles, pareto_line

SMALL = st.integers(1, 9)


def job(**changes: Any) -> Job:
    settings = {"history": 12, "horizon": 6, "sizes": Stid.tiny}
    made = Job("stid", "stid", settings, 5, random_edges(5, 8), timedelta(hours=1), batch=3, warm_ups=0, passes=1)
    return replace(made, **changes)


def cost(name: str, size: int, seconds: float = 1.0) -> ModelProfile:
    return ModelProfile(
        name=name, parameters=size, operations=1, inference_seconds=seconds, training_seconds=1.0, peak_megabytes=None
    )


@given(SMALL, SMALL, SMALL)
def test_a_linear_layer_takes_two_operations_per_weight_and_row(rows: int, before: int, after: int) -> None:
    layer = nn.Linear(before, after)
    assert count_operations(lambda: layer(torch.ones(rows, before))) == 2 * rows * before * after
    assert count_parameters(layer) == (before + 1) * after
    layer.bias.requires_grad_(False)
    assert count_parameters(layer) == before * after


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
    direct = Stid(history=12, horizon=6, sizes=Stid.tiny).build(frame(5, 12, 6))
    assert found.parameters == parameters(direct)
    assert found.inference_seconds > 0 and found.training_seconds > 0
    twice = measure(job(batch=6))
    assert twice.operations == 2 * found.operations and twice.parameters == found.parameters


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the datasets away."""
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path))
    monkeypatch.setattr("candor.data.locations.pooch.os_cache", lambda project: tmp_path)


def test_candor_at_the_shape_of_a_preset_has_the_size_that_the_paper_states(nowhere: None) -> None:
    ground = find_ground("basin180102")
    contenders, _ = choose_contenders(ground, ["candor"])
    circumstances = circumstances_of(ground, batch=1, warm_ups=0, passes=1)
    assert "random" in circumstances.graph and (circumstances.nodes, circumstances.edges) == (11, 42)
    assert measure(make_job(ground, contenders[0], circumstances)).parameters == 876_590
    with pytest.raises(InputError, match="not here"):
        find_ground("korea4-do")


def test_a_made_up_graph_has_as_many_edges_as_the_real_one(real_data: Path, request: pytest.FixtureRequest) -> None:
    real = adjacency_of(find_ground("metr-la").panel)
    request.getfixturevalue("nowhere")
    made_up = adjacency_of(find_ground("metr-la").panel)
    assert made_up.nnz == real.nnz - np.count_nonzero(real.diagonal())
    assert made_up.shape == real.shape


def test_peak_memory_grows_with_the_batch() -> None:
    width = 64
    script = f"""
from datetime import timedelta
from candor.benchmark.measuring import Job, measure
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


class Deadly:
    """Ends the process that receives it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (7,)


def test_a_process_that_dies_is_told_with_its_code() -> None:
    with pytest.raises(MeasurementError, match="ended with code 7"):
        measure_apart(job(settings={"sizes": Deadly()}))


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


def test_all_networks_are_measured_and_candor_in_both_sizes() -> None:
    found, left_out = choose_contenders(find_ground("klamath-daily"))
    names = [contender.name for contender in found]
    assert {"candor", "candor-paper", "stid", "dlinear"} <= set(names) and "candor-small" not in names
    assert {"lightgbm", "linear"} <= set(left_out) and not set(left_out) & set(names)
    with pytest.raises(InputError, match="no model called 'stidd'"):
        choose_contenders(find_ground("klamath-daily"), ["stidd"])


def test_a_profile_goes_on_under_the_same_circumstances_only(tmp_path: Path) -> None:
    circumstances = circumstances_of(find_ground("klamath-daily"), batch=2, warm_ups=0, passes=1)
    profile = Profile(circumstances=circumstances).with_model("big", cost("big", 9)).with_model("bad", "no memory")
    profile = profile.with_model("small", cost("small", 3))
    assert [model.name for model in profile.models] == ["small", "big"] and profile.failed == {"bad": "no memory"}
    profile.save(tmp_path)
    assert load_profile(tmp_path, circumstances) == profile.model_copy(update={"failed": {}})
    other = circumstances.model_copy(update={"batch": 3})
    with pytest.raises(InputError, match="another batch"):
        load_profile(tmp_path, other)
    assert load_profile(tmp_path, other, is_anew=True).models == ()
    table = pd.read_csv(tmp_path / "profile.csv")
    assert table.name.tolist() == ["small", "big"] and set(table.machine_cores) == {os.cpu_count()}
    (tmp_path / "profile.json").write_text("[1]")
    with pytest.raises(InputError, match="not a profile"):
        load_profile(tmp_path, circumstances)


def test_errors_are_means_over_seeds_of_all_steps_on_the_preset(tmp_path: Path) -> None:
    rows = [
        {"task": task, "model": model, "step": step, "metric": metric, "value": value + step, "unit": "mph", "seed": 0}
        for task, shift in (("road", 0.0), ("river", 9.0))
        for model, values in {"candor": (1.0, 2.0), "stid": (3.0,), "linear": (4.0,)}.items()
        for value in np.array(values) + shift
        for step in (0, 3)
        for metric in ("mae", "rmse")
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "results.parquet")
    for place in (tmp_path, tmp_path / "results.parquet"):
        errors = read_errors(place, "road")
        assert errors.by_model == {"candor": [1.0, 2.0], "stid": [3.0], "linear": [4.0]} and errors.unit == "mph"
    circumstances = circumstances_of(find_ground("klamath-daily"), batch=2, warm_ups=0, passes=1)
    profile = Profile(circumstances=circumstances, models=(cost("stid", 5), cost("candor", 7, 2.0), cost("fast", 9)))
    ours, theirs = Bubble("candor", 1.5, 2, 7, 2.0, is_ours=True), Bubble("stid", 3.0, 1, 5, 1.0)
    assert bubbles_of(profile, errors) == [theirs, ours]
    with pytest.raises(InputError, match="no results of the models"):
        errors.check_any_of(["fast"])
    with pytest.raises(InputError, match="no results on lake") as refused:
        read_errors(tmp_path, "lake")
    assert "river or road" in refused.value.mend
    (tmp_path / "other.parquet").write_text("nonsense")
    for path in ("other.parquet", "none.parquet"):
        with pytest.raises(InputError, match=r"results"):
            read_errors(tmp_path / path, "road")


@pytest.mark.parametrize("against", ["parameters", "time"])
@pytest.mark.parametrize("count", [1, 2, 20])
def test_no_name_lies_on_another_or_leaves_the_axes(count: int, against: str) -> None:
    chance = np.random.default_rng(3)
    sizes, errors, seconds = 10 ** chance.uniform(4.5, 6, count), chance.uniform(2.8, 3.1, count), chance.random(count)
    made = zip(sizes.astype(int).tolist(), errors.tolist(), seconds.tolist(), strict=True)
    bubbles = [
        Bubble(f"model-number-{i}", error, 3, size, time, is_ours=i == 0) for i, (size, error, time) in enumerate(made)
    ]
    drawing = draw_bubbles(bubbles, against, "Accuracy and cost", "mph", 64)
    (axes,) = drawing.figure.axes
    drawing.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == count
    for box in boxes:
        assert axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 and axes.bbox.y0 <= box.y0 and box.y1 <= axes.bbox.y1
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    table = drawing.table.set_index("model")
    assert table.mean_absolute_error.tolist() == [bubble.error for bubble in bubbles]
    best = table.mean_absolute_error.idxmin()
    assert table.is_on_pareto_line[best] and table.is_on_pareto_line.sum() >= 1
