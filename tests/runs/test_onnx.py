"""ONNX files: graph and onnxruntime forecast what candor forecasts from the same rows, and the file says what it is."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from jaxtyping import config
from tiny import TINY_STAGES

from candor.core.errors import InputError, NotFittedError
from candor.core.versions import versions
from candor.data.panel import Panel
from candor.data.preprocessing import fill
from candor.data.protocol import Protocol, make_task
from candor.data.synthetic import generate_river
from candor.data.times import calendar_of
from candor.forecasting import LastValue, forecasters
from candor.forecasting.baseline import BaselineForecaster
from candor.forecasting.candor import Candor
from candor.forecasting.forecaster import Forecaster
from candor.nets.baselines import baselines
from candor.nets.candor import ops
from candor.runs import onnx as exporting
from candor.runs.onnx import (
    CLOCK,
    OPSET,
    ForecastGraph,
    OnnxFile,
    check_exportable,
    describe,
    export_onnx,
    open_session,
)

Make = Callable[..., Candor]
RULES = ("zero", "last", "forward-backward")
BATCHES = (1, 3, 7)
# The exporter takes milliseconds for every operation: a network of few, with edges, anchor and season.
SMALL = {
    "season": True, "branches": ("forward",), "decomposition": False, "patch_length": 12, "patch_stride": 12,
    "temporal_span": 1, "spatial_orders": 1,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "everything": {"season": True},
    "no edges": {"has_edges": False, "patch_length": 6, "patch_stride": 4},
    "no functional branch": {"branches": ("forward", "reverse"), "season": True, "anchor": False},
    "functional branch only": {"branches": ("functional",), "anchor": False},
    "no decomposition, gaps as zero": {"decomposition": False, "fill": "zero"},
}


def fit_baseline(name: str, panel: Panel) -> BaselineForecaster:
    kind = forecasters.get(name)
    forecaster = kind(history=12, horizon=4, sizes=kind.tiny)
    training = forecaster.recipe.training.model_copy(update={"epochs": 1})
    return kind(
        history=12, horizon=4, sizes=kind.tiny, recipe=forecaster.recipe.model_copy(update={"training": training})
    ).fit(panel)


def assert_same_forecasts(forecaster: Forecaster, written: OnnxFile, windows_of: Callable[..., Any]) -> None:
    session = open_session(written.path)
    names = [given.name for given in session.get_inputs()]
    assert names == list(written.inputs)
    chance = np.random.default_rng(1)
    for batch in BATCHES:
        origins = [120, *chance.integers(12, 120, batch - 1).tolist()]
        inputs, wanted = windows_of(forecaster, origins, names)
        (forecast,) = session.run(["forecast"], inputs)
        np.testing.assert_allclose(forecast, wanted, rtol=0, atol=1e-4)


@pytest.fixture(scope="module", autouse=True)
def unchecked_shapes() -> Iterator[None]:
    """Without the checks of shapes that tests switch on: while a network is traced, sizes are no numbers."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def candor_file(unchecked_shapes: None, make_candor, tmp_path_factory: pytest.TempPathFactory) -> OnnxFile:
    return export_onnx(make_candor(**SMALL), tmp_path_factory.mktemp("onnx") / "candor.onnx")


def test_candor_in_onnxruntime_forecasts_the_same(make_candor, candor_file: OnnxFile, windows_of) -> None:
    assert_same_forecasts(make_candor(**SMALL), candor_file, windows_of)
    assert candor_file.difference < 1e-4


def test_the_file_says_what_it_is_and_is_whole_in_itself(candor_file: OnnxFile) -> None:
    model = onnx.load(candor_file.path, load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    assert not any(part.external_data for part in model.graph.initializer)
    assert b".py" not in candor_file.path.read_bytes()  # nothing of the machine it was made on
    said = {entry.key: entry.value for entry in model.metadata_props}
    assert said == candor_file.metadata
    assert json.loads(said["sensors"]) == ["s0", "s1", "s2", "s3", "s4"]
    assert list(json.loads(said["inputs"])) == ["readings", "time_of_day", "day_of_week", "week_of_year"]
    assert (said["unit"], said["zone"], said["interval_seconds"]) == ("m", "Europe/Berlin", "3600")
    assert (said["history"], said["horizon"], said["candor_version"]) == ("12", "4", versions()["candor-forecast"])
    assert [entry.version for entry in model.opset_import if not entry.domain] == [OPSET] == [int(said["opset"])]
    axes = {value.name: value.type.tensor_type.shape.dim for value in (*model.graph.input, *model.graph.output)}
    assert {name: [axis.dim_param or axis.dim_value for axis in shape] for name, shape in axes.items()} == {
        "readings": ["batch", 12, 5], "time_of_day": ["batch", 16], "day_of_week": ["batch", 16],
        "week_of_year": ["batch", 16], "forecast": ["batch", 4, 5],
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_all_forms_of_candor_can_be_exported(make_candor, windows_of, tmp_path: Path, variant: str) -> None:
    forecaster = make_candor(**VARIANTS[variant])
    assert_same_forecasts(forecaster, export_onnx(forecaster, tmp_path / "candor.onnx"), windows_of)


def test_the_stages_in_onnxruntime_forecast_the_same_from_the_same_rows(tmp_path: Path) -> None:
    panel, _ = generate_river(sensors=5, steps=700, seed=2, missing_share=0.1)
    task = make_task(panel, Protocol(history=12, horizon=6))
    forecaster = Candor(history=12, horizon=6, shared=TINY_STAGES | {"networks": 2}).fit(task.panel, task.split)
    # Equal weights, so that every member counts.
    forecaster.state_ |= {"blend": np.full_like(forecaster.blend_weights(), 1 / len(forecaster.members()))}
    written = export_onnx(forecaster, tmp_path / "stages.onnx")
    rows, session = forecaster.rows_needed, open_session(written.path)
    assert written.metadata["history"] == str(rows)
    forecasts = []
    for origin in (100, 450, 700):
        calendar = vars(calendar_of(panel.times.slice(origin - rows, origin + 6)))
        inputs = {"readings": panel.values[origin - rows : origin][None]}
        inputs |= {name: positions[None].astype(np.int64) for name, positions in calendar.items()}
        (forecast,) = session.run(["forecast"], inputs)
        np.testing.assert_allclose(forecast, forecaster.predict(panel.slice(origin - rows, origin)), atol=1e-4)
        forecasts.append(forecast)
    assert np.abs(forecasts[0] - forecasts[1]).max() > 1e-3


# Fourier transforms of which the exporter knows no form, and windows that take different ways through a network.
REFUSED = ("dtaf", "pathformer", "timemixerpp")
QUICK = ("dlinear", "pathformer")


def unhurried(*names: str) -> list[Any]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", unhurried(*(name for name in baselines.names() if name not in REFUSED)))
def test_baselines_in_onnxruntime_forecast_the_same(panel: Panel, windows_of, tmp_path: Path, name: str) -> None:
    forecaster = fit_baseline(name, panel)
    assert_same_forecasts(forecaster, export_onnx(forecaster, tmp_path / "baseline.onnx"), windows_of)


@pytest.mark.parametrize("name", unhurried(*REFUSED))
def test_what_onnx_cannot_say_is_refused_in_plain_words(
    panel: Panel, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    forecaster = fit_baseline(name, panel)
    with pytest.raises(InputError, match="cannot be written as an ONNX file") as refused:
        export_onnx(forecaster, tmp_path / "baseline.onnx")
    assert "--bundle" in refused.value.hint
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")  # nothing of what the exporter says to programmers


def test_a_file_that_disagrees_with_candor_is_not_kept(
    make_candor, candor_file: OnnxFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_another(graph: Any, _: dict[str, str], path: Path) -> None:
        shutil.copy(candor_file.path, path)
        graph.mean += graph.deviation

    monkeypatch.setattr(exporting, "_write", write_another)
    with pytest.raises(ValueError, match="differ by"):
        export_onnx(make_candor(**SMALL), tmp_path / "wrong.onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_is_lacking_is_named_with_the_way_to_get_it(
    panel: Panel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(InputError, match="onnxscript") as refused:
        export_onnx(forecasters.get("last-value")(12, 4).fit(panel), tmp_path / "model.onnx")
    assert "candor-forecast[export]" in refused.value.hint


def test_metadata_are_texts_whatever_the_sensors_are_called(panel: Panel) -> None:
    described = describe(forecasters.get("last-value")(12, 4).fit(panel))
    assert all(isinstance(text, str) for text in described.values())


def asked(graph: ForecastGraph, inputs: dict[str, np.ndarray]) -> np.ndarray:
    with torch.no_grad():
        return graph(*(torch.from_numpy(array) for array in inputs.values())).numpy()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("is_plain", [True, False])
def test_it_forecasts_what_candor_forecasts_from_the_same_rows(
    make_candor: Make, windows_of, rule: str, is_plain: bool
) -> None:
    forecaster = make_candor(fill=rule, season=True)
    inputs, wanted = windows_of(forecaster, [12, 55, 108, 120], ["readings", *CLOCK])
    assert np.isnan(inputs["readings"]).all(axis=1).any()  # a silent sensor
    with ops.plain() if is_plain else nullcontext():
        forecast = asked(ForecastGraph(forecaster).eval(), inputs)
    np.testing.assert_allclose(forecast, wanted, rtol=0, atol=1e-4)


def test_without_anchor_and_season_it_asks_for_no_week(make_candor: Make, windows_of) -> None:
    forecaster = make_candor(anchor=False)
    inputs, wanted = windows_of(forecaster, [40, 120], ["readings", *tuple(CLOCK)[:2]])
    graph = ForecastGraph(forecaster).eval()
    assert graph.clock == ("time_of_day", "day_of_week")
    np.testing.assert_allclose(asked(graph, inputs), wanted, rtol=0, atol=1e-4)


readings = arrays.arrays(
    np.float32, (12, 5), elements=st.one_of(st.just(float("nan")), st.floats(-100, 100, width=32)), fill=st.nothing()
)


@pytest.fixture(scope="module")
def graphs(make_candor: Make) -> dict[str, ForecastGraph]:
    return {rule: ForecastGraph(make_candor(fill=rule, season=True)) for rule in RULES}


@given(readings, st.sampled_from(RULES))
def test_gaps_are_filled_by_the_rule_of_the_model(
    graphs: dict[str, ForecastGraph], values: np.ndarray, rule: str
) -> None:
    window, graph = torch.from_numpy(values)[None], graphs[rule]
    filled = graph._filled(window, ~window.isnan())[0].numpy()
    np.testing.assert_array_equal(filled, fill(values, rule, graph.means.numpy()))


def test_a_simple_rule_has_no_onnx_form(panel: Panel) -> None:
    with pytest.raises(InputError, match="last-value is not a network"):
        check_exportable(LastValue(12, 4).fit(panel))


def test_a_network_that_reads_covariates_has_no_onnx_form() -> None:
    kind = forecasters.get("timexer")
    with pytest.raises(InputError, match="rain"):
        check_exportable(kind(12, 4, sizes=kind.tiny, covariates=("rain",)))


def test_a_network_that_has_learned_nothing_is_not_exported() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        check_exportable(Candor(12, 4))
