"""A trained network as an ONNX file, for programs that know nothing of candor or of PyTorch.

Its inputs are `INPUTS`, with the batch first; its output `forecast` is batch x horizon x sensor. Gaps are filled by the
model's own rule within the window: it is the forecast that candor makes from these rows alone. Where candor is given a
longer record, a sensor that is silent when the window begins keeps the reading it had before. Operations of CANDOR are
traced in their plain form, see `candor.nets.candor.ops`.

The metadata of the file hold the sensors, their unit, interval and zone, history and horizon, and what it was made
with. It is compared with candor in onnxruntime before it is kept.
"""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from candor.core.errors import InputError, NotFittedError
from candor.core.files import atomic_file
from candor.core.optional import needing_packages
from candor.core.progress import Report, silent
from candor.core.text import first_line
from candor.core.versions import versions
from candor.data.times import BINS_PER_DAY, DAYS_PER_WEEK, WEEKS_PER_YEAR
from candor.forecasting.candor import Candor
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.network import NetworkForecaster
from candor.nets.candor.trainable import CandorTrainable
from candor.runs.onnx_stages import StagesGraph, carried_forward

CLOCK = {"time_of_day": BINS_PER_DAY, "day_of_week": DAYS_PER_WEEK, "week_of_year": WEEKS_PER_YEAR}
"""Inputs beside the readings, and how many values each may have; the last for networks with a season."""
OPSET = 20
BATCHES = (1, 3)
# In deviations of all readings: beyond it something is wrong. Single precision stays below a hundredth of it.
MOST_DIFFERENCE = 1e-2
INPUTS = {
    "readings": "history x sensors, in the unit of the sensors, NaN where missing",
    "time_of_day": "every step of history and horizon: 288 * seconds since local midnight // 86400; 0 for daily data",
    "day_of_week": "every step of history and horizon: 0 is Monday, on the local clock",
    "week_of_year": "every step of history and horizon: (day of the year - 1) // 7, on the local clock",
}
_SHARE_OF_GAPS = 0.1

Inputs = dict[str, NDArray[Any]]


class ForecastGraph(nn.Module):
    """Filling, scaling, the network, and the way back to the sensors' unit."""

    means: Tensor

    def __init__(self, forecaster: NetworkForecaster) -> None:
        super().__init__()
        trainable = forecaster.trained()
        has_season = isinstance(trainable, CandorTrainable) and trainable.network.settings.season
        self.trainable, self.network = trainable, trainable.network
        self.clock = tuple(CLOCK) if has_season else tuple(CLOCK)[:2]
        self.history, self.horizon, self.rule = forecaster.history, forecaster.horizon, forecaster.fill
        self.mean, self.deviation = (float(number) for number in forecaster.state_["scaler"])
        means = torch.from_numpy(forecaster.state_["means"]).nan_to_num(nan=0.0)
        self.register_buffer("means", means, persistent=False)

    def forward(self, readings: Tensor, *clock: Tensor) -> Tensor:
        """Return the forecast in the sensors' unit, batch x horizon x sensor."""
        is_observed = ~readings.isnan()
        scores = (self._filled(readings, is_observed) - self.mean) / self.deviation
        batch = dict(zip(self.clock, clock, strict=True)) | {"inputs": scores, "input_mask": is_observed}
        return self.trainable.forecast(batch)

    def _filled(self, readings: Tensor, is_observed: Tensor) -> Tensor:
        """Return the readings with every gap filled, as `candor.data.preprocessing.fill` does within one window."""
        known = torch.where(is_observed, readings, 0.0)
        if self.rule == "zero":
            return known
        before = self.means
        if self.rule == "forward-backward":
            steps = torch.arange(self.history)[:, None]
            first = torch.where(is_observed, steps, self.history).amin(dim=1, keepdim=True)
            earliest = known.gather(1, first.clamp(max=self.history - 1))
            before = torch.where(first < self.history, earliest, self.means)
        return carried_forward(known, is_observed, before)


Graph = ForecastGraph | StagesGraph


def check_exportable(forecaster: Forecaster) -> NetworkForecaster:
    """Return the forecaster if it has an ONNX form; those that are no network of readings alone are refused."""
    if not isinstance(forecaster, NetworkForecaster):
        raise InputError(
            f"{forecaster.name} is not a network: it has no ONNX form",
            hint="export a run of candor or of a network among the baselines, or make a bundle: --bundle",
        )
    if names := forecaster.quantities_read():
        raise InputError(
            f"this {forecaster.name} reads covariates ({', '.join(names)}), which an ONNX file has no place for",
            hint="train it without covariates, or make a bundle: --bundle",
        )
    if not hasattr(forecaster, "state_"):
        raise NotFittedError(f"this {forecaster.name} forecaster is not fitted yet", hint="call fit(panel) first")
    return forecaster


@dataclass(frozen=True)
class OnnxFile:
    """An ONNX file that was written."""

    path: Path
    opset: int
    """The version of the operators it needs."""
    inputs: dict[str, tuple[str | int, ...]]
    """Shapes by name; the first axis is the batch, of any size."""
    difference: float
    """The largest difference from candor's own forecasts, in the sensors' unit."""
    metadata: dict[str, str]


def export_onnx(forecaster: Forecaster, path: Path, report: Report = silent) -> OnnxFile:
    """Return the ONNX file that a fitted network was written to, all or nothing; one that is there is replaced."""
    with needing_packages("writing ONNX files", extra="export"):
        import onnxscript  # noqa: F401
    network = check_exportable(forecaster)
    graph = _graph_of(network).eval()
    metadata = describe(forecaster) | {
        "history": str(graph.history),
        "inputs": json.dumps({name: INPUTS[name] for name in ("readings", *graph.clock)}),
    }
    with atomic_file(Path(path)) as temporary:
        report("writing down the network", None)
        _write(graph, metadata, temporary)
        report("comparing with candor", None)
        difference = _compare(graph, temporary)
        if not difference <= MOST_DIFFERENCE * graph.deviation:  # so that NaN is refused as well
            raise ValueError(f"the ONNX file and candor differ by {difference} {metadata['unit']}")
    shapes = {name: ("batch", *array.shape[1:]) for name, array in made_up_inputs(graph, 1).items()}
    return OnnxFile(Path(path), OPSET, shapes, difference, metadata)


def _graph_of(network: NetworkForecaster) -> Graph:
    if isinstance(network, Candor) and network.is_additive:
        return StagesGraph(network)
    return ForecastGraph(network)


def describe(forecaster: Forecaster) -> dict[str, str]:
    """Return the metadata of an ONNX file; what is not a text is JSON."""
    known = forecaster.trained_on_.panel
    return {
        "model": forecaster.name,
        "candor_version": versions()["candor-forecast"],
        "opset": str(OPSET),
        "sensors": json.dumps(known.sensor_ids, ensure_ascii=False),
        "unit": known.unit,
        "interval_seconds": f"{known.times.interval.total_seconds():.15g}",
        "zone": known.times.zone,
        "history": str(forecaster.history),
        "horizon": str(forecaster.horizon),
        "trained_on": known.name,
    }


def made_up_inputs(graph: Graph, batch: int, seed: int = 0) -> Inputs:
    """Return inputs by name as a program would give them: readings near the usual ones with some gaps, any times."""
    generator = np.random.default_rng(seed)
    sensors, steps = len(graph.means), graph.history + graph.horizon
    noise = graph.deviation * generator.standard_normal((batch, graph.history, sensors))
    readings = (graph.means.numpy() + noise).astype(np.float32)
    readings[generator.random(readings.shape) < _SHARE_OF_GAPS] = np.nan
    clock = {name: generator.integers(0, CLOCK[name], (batch, steps)) for name in graph.clock}
    return {"readings": readings} | clock


def _write(graph: Graph, metadata: dict[str, str], path: Path) -> None:
    inputs = {name: torch.from_numpy(array) for name, array in made_up_inputs(graph, max(BATCHES)).items()}
    program = trace(graph, inputs, OPSET)
    program.model.metadata_props.update(metadata)
    program.model.producer_name, program.model.producer_version = "candor", metadata["candor_version"]
    program.save(path, external_data=False)


def trace(graph: nn.Module, inputs: dict[str, Tensor], opset: int) -> Any:
    """Return the ONNX program of a graph whose inputs have the batch first; its output is called `forecast`.

    The first parameter of the graph is one tensor, the others are a sequence; `inputs` is an example by name.
    """
    batch = {0: torch.export.Dim("batch")}
    shapes = (batch, (batch,) * (len(inputs) - 1))
    try:
        with _without_messages(), torch.no_grad():
            traced = torch.export.export(graph, tuple(inputs.values()), dynamic_shapes=shapes, strict=False)
            program = torch.onnx.export(
                traced, dynamo=True, input_names=list(inputs), output_names=["forecast"], opset_version=opset,
                verbose=False,
            )  # fmt: skip
    except RuntimeError as error:  # of all exceptions of the exporter
        cause: Exception = error
        while isinstance(cause.__cause__, Exception):  # the first of the chain; the others name steps of the exporter
            cause = cause.__cause__
        raise InputError(
            "this network cannot be written as an ONNX file: what it does depends on the readings themselves, or it "
            f"uses an operation that ONNX does not have ({first_line(cause)})",
            hint="make a bundle instead: candor export RUN --bundle FILE.zip",
        ) from None
    assert program is not None  # it is with dynamo=True
    _clean(program.model)
    return program


def _clean(model: Any) -> None:
    """Name the batch axis, and remove what the exporter adds: names, code and folders of this machine.

    Shapes within the graph are removed too: the exporter writes wrong ones for some operations.
    """
    import onnx_ir

    graph = model.graph
    for node in graph.all_nodes():
        node.metadata_props.clear()
        node.doc_string = None
        for value in node.outputs:
            if not value.is_graph_output():
                value.shape = None
    for part in (model, graph, *graph.inputs, *graph.outputs):
        part.metadata_props.clear()
    for value in (*graph.inputs, *graph.outputs):
        value.shape = onnx_ir.Shape(["batch", *value.shape[1:]])


@contextmanager
def _without_messages() -> Iterator[None]:
    """Suppress what the exporter prints about its own parts: nobody who exports a model can act on it."""
    before, nowhere = logging.root.manager.disable, io.StringIO()
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _compare(graph: Graph, path: Path) -> float:
    """Return the largest difference between the file's forecasts and those of a graph, in the sensors' unit."""
    session, differences = open_session(path), []
    for batch in BATCHES:
        inputs = made_up_inputs(graph, batch, seed=batch)
        with torch.no_grad():
            wanted = graph(*(torch.from_numpy(array) for array in inputs.values())).numpy()
        differences.append(np.abs(session.run(None, inputs)[0] - wanted).max())
    return float(np.max(differences))


def open_session(path: Path, threads: int = 1) -> Any:
    """Return an onnxruntime session on the processor for a file."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
