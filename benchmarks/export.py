"""Speed of a forecast: candor's own call against the exported ONNX file in onnxruntime, side by side in one run.

    python benchmarks/export.py [--json] [--rounds 20] [--presets metr-la metr-la-small]

METR-LA's shape and graph (made-up edges of the same number where it is absent) with random weights, which take as long
as learned ones; batches of 1 and 16 windows; one and two threads. All ways take turns, back and forth, so that
`network` does not always run while the threads of `onnx` still spin; the least time of each counts.
`network` is the call that answers a request once the network stands, from scaled windows; `predict` is the whole of
`Forecaster.predict`, which makes the windows and builds the network first; `onnx` begins with readings and gaps. The
goal: `network` takes at most 1.2 times as long as `onnx`.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch

from candor.data.panel import Edges, Panel, Sensor
from candor.data.preprocessing import Scaler
from candor.data.times import TimeAxis
from candor.forecasting.candor import Candor
from candor.nets.trainable import tensors_of
from candor.presets import load_preset
from candor.runs.onnx import OnnxFile, export_onnx, open_session
from speed import SPACE, least_seconds, metr_la_edges

BATCHES, THREADS = (1, 16), (1, 2)
ROWS = 64


def make_forecaster(preset: str) -> tuple[Candor, Panel]:
    """Returns CANDOR of a preset with random weights, and random readings that it can forecast from."""
    chosen = load_preset(preset)
    assert chosen.nodes is not None and chosen.recipe is not None
    graph, generator = metr_la_edges(chosen.nodes), np.random.default_rng(0)
    panel = Panel(
        values=(SPACE.mean + SPACE.deviation * generator.standard_normal((ROWS, chosen.nodes))).astype(np.float32),
        times=TimeAxis(datetime(2012, 3, 1, tzinfo=UTC), timedelta(minutes=5), ROWS),
        sensors=tuple(Sensor(str(number), unit="mph") for number in range(chosen.nodes)),
        edges=Edges(graph.source.astype(np.int32), graph.target.astype(np.int32), weight=graph.weight),
        name=preset,
    )
    protocol = chosen.protocol
    made = Candor(protocol.history, protocol.horizon, fill=protocol.fill, recipe=chosen.recipe)
    state: dict[str, Any] = {f"edges/{name}": array for name, array in vars(graph).items()}
    state |= {"means": panel.values.mean(axis=0), "scaler": np.array([SPACE.mean, SPACE.deviation])}
    torch.manual_seed(0)
    network = made._trainable(state, Scaler(SPACE.mean, SPACE.deviation), chosen.nodes).network
    made.state_ = state | {f"weights/{name}": tensor.numpy() for name, tensor in network.state_dict().items()}
    made.calibration_ = None
    made._remember(panel, made._own_split(panel))
    return made, panel


def ways(made: Candor, panel: Panel, written: OnnxFile, batch: int, threads: int) -> dict[str, Callable[[], object]]:
    """Returns the ways to the same forecasts of `batch` windows."""
    origins = np.arange(made.history, made.history + batch)
    windows, trainable = made.windows(panel, origins).batch(slice(None)), made.trained()
    tensors, session = tensors_of(windows), open_session(written.path, threads)
    inputs = {name: tensors[name].numpy() for name in written.inputs if name != "readings"}
    inputs["readings"] = np.stack([panel.values[origin - made.history : origin] for origin in origins])

    def network() -> object:
        torch.set_num_threads(threads)
        with torch.no_grad():
            return trainable.forecast(tensors).numpy()

    def predict() -> object:
        torch.set_num_threads(threads)
        return made.predict(panel, origins)

    return {"network": network, "predict": predict, "onnx": lambda: session.run(None, inputs)[0]}


def measure(presets: list[str], rounds: int) -> dict[str, Any]:
    """Returns milliseconds and ratios by preset, batch and threads."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for preset in presets:
            made, panel = make_forecaster(preset)
            written = export_onnx(made, Path(folder) / f"{preset}.onnx")
            for batch in BATCHES:
                for threads in THREADS:
                    least = least_seconds(ways(made, panel, written, batch, threads), rounds)
                    results[f"{preset}, batch {batch}, threads {threads}"] = {
                        **{f"{name}_milliseconds": 1e3 * seconds for name, seconds in least.items()},
                        "network_over_onnx": least["network"] / least["onnx"],
                        "predict_over_onnx": least["predict"] / least["onnx"],
                    }
            results[f"{preset}, largest difference in mph"] = written.difference
    return results


def show(results: dict[str, Any]) -> None:
    """Prints a Markdown table."""
    print("| | network ms | predict ms | onnx ms | network / onnx | predict / onnx |\n|---|---|---|---|---|---|")
    for name, found in results.items():
        if isinstance(found, dict):
            print(f"| {name} | {' | '.join(f'{number:.2f}' for number in found.values())} |")
        else:
            print(f"\n{name}: {found:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=20, help="runs of each way; the least time counts")
    parser.add_argument("--presets", nargs="+", default=["metr-la", "metr-la-small"], help="which sizes")
    options = parser.parse_args()
    measured = measure(options.presets, options.rounds)
    if options.json:
        print(json.dumps(measured, indent=2))
    else:
        show(measured)
