"""Networks of CANDOR with random weights and what they do over some windows, made without training."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny import SIZES

from candor.data.alignment import KnownPanel
from candor.data.panel import Edges, Panel, Sensor, adjacency_of
from candor.data.preprocessing import Scaler
from candor.data.protocol import Protocol
from candor.data.windows import Windows, future_windows
from candor.explain.analyses.states import WindowStates, window_states
from candor.forecasting.candor import Candor
from candor.forecasting.contract import sample_panel
from candor.forecasting.intervals import calibrate
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import LossWeights, ModelSettings
from candor.nets.candor.trainable import CandorTrainable
from candor.runs.run import Run, save_run

HISTORY, HORIZON = 12, 4


def river_panel() -> Panel:
    """Returns hourly readings with gaps: g0 and g1 lead to g2, g2 to g4 and back to itself; g3 stands alone."""
    panel = sample_panel()
    edges = Edges(np.array([0, 1, 2, 2]), np.array([2, 2, 4, 2]), weight=np.array([0.3, 0.6, 1.0, 0.5], np.float32))
    sensors = tuple(
        Sensor(f"g{i}", name=f"Gauge {i}" if i % 2 else "", latitude=42 + 0.1 * i, longitude=-122.0, unit="m")
        for i in range(5)
    )
    return replace(panel, edges=edges, sensors=sensors, name="river")


def daily(panel: Panel) -> Panel:
    """Returns the same readings as if there was one a day."""
    return replace(panel, times=replace(panel.times, interval=timedelta(days=1)))


def made_trainable(panel: Panel, seed: int = 0, **sizes: Any) -> CandorTrainable:
    """Returns a small network whose weights are all moved at random, as training would move them."""
    spans = {"nodes": len(panel.sensors), "history": HISTORY, "horizon": HORIZON, "patch_length": 4, "patch_stride": 2}
    settings = ModelSettings(**spans | SIZES | sizes)
    weight = np.ones(len(panel.edges)) if panel.edges.weight is None else panel.edges.weight.astype(np.float64)
    edges = EdgeArrays(panel.edges.source.astype(np.int64), panel.edges.target.astype(np.int64), weight)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = CandorNetwork(settings, edges).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    return CandorTrainable(network, Scaler(10.0, 0.8), LossWeights(), is_in_unit=False, has_anchor=True)


def made_windows(panel: Panel, trainable: CandorTrainable, count: int = 24) -> Windows:
    """Returns windows spread over the panel."""
    inputs = trainable.scaler.scale(np.nan_to_num(panel.values, nan=trainable.scaler.mean))
    origins = np.linspace(HISTORY, panel.times.length - HORIZON, count).astype(np.int64)
    return future_windows(panel, inputs, origins, HISTORY, HORIZON)


def made_states(panel: Panel | None = None, count: int = 24, seed: int = 0, **sizes: Any) -> WindowStates:
    """Returns what a network does over windows of a panel, by default the river."""
    panel = panel or river_panel()
    trainable = made_trainable(panel, seed, **sizes)
    return window_states(trainable, made_windows(panel, trainable, count))


def made_candor(panel: Panel, seed: int = 0, *, is_calibrated: bool = True, **sizes: Any) -> Candor:
    """Returns a forecaster that claims to be fitted: its weights are those of `made_trainable`."""
    trainable = made_trainable(panel, seed, **sizes)
    patches = {"patch_length": 4, "patch_stride": 2}
    candor = Candor(history=HISTORY, horizon=HORIZON, recipe={"model": SIZES | patches | sizes, "anchor": True})
    matrix = adjacency_of(panel).tocoo()
    source, target = (ends.astype(np.int64) for ends in matrix.coords)
    candor.state_ = {
        "edges/source": source, "edges/target": target, "edges/weight": matrix.data.astype(np.float64),
        "means": np.full(len(panel.sensors), 10.0, np.float32), "scaler": np.array([10.0, 0.8]),
    }  # fmt: skip
    candor.state_ |= {f"weights/{name}": tensor.numpy() for name, tensor in trainable.network.state_dict().items()}
    candor.fingerprint_, candor.trained_on_ = panel.fingerprint, KnownPanel.of(panel, panel.times.length, covariates=())
    errors = np.random.default_rng(0).standard_normal((40, HORIZON, len(panel.sensors))).astype(np.float32)
    candor.calibration_ = calibrate(errors) if is_calibrated else None
    return candor


def made_run(folder: Path, panel: Panel | None = None, *, is_calibrated: bool = True, **sizes: Any) -> Run:
    """Returns a run directory of such a forecaster, on the river if nothing else is said."""
    panel = (panel or river_panel()).slice(0, 200)
    candor = made_candor(panel, is_calibrated=is_calibrated, **sizes)
    return save_run(folder, candor, panel, Protocol(history=HISTORY, horizon=HORIZON), is_catalogued=False)
