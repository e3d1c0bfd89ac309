"""What one model costs: parameters, operations, seconds and memory, measured in this process.

Single precision on the processor, with random readings. `HOW` says what each number means; it is kept with the numbers.
Trees and simple rules have no network: of them the time of a forecast is measured, and nothing else means the same.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from candor.core.progress import Report, silent
from candor.core.settings import Settings, parse_settings
from candor.data.panel import Edges, Panel, Sensor, adjacency_of
from candor.data.preprocessing import Scaler
from candor.data.protocol import Origins
from candor.data.times import TimeAxis
from candor.data.windows import Windows
from candor.forecasting import Forecaster, forecasters
from candor.forecasting.network import NetworkForecaster
from candor.nets.trainable import StepContext, Trainable, tensors_of

HOW = {
    "parameters": "numbers of the network that learn or that a forecast uses, such as an autoencoder that an earlier "
    "stage trained and froze; a teacher that is only asked in training is not counted",
    "operations": "FLOPs of one forecast of the batch, two for a multiplication with its addition; counted are matrix "
    "products, convolutions, attention and weighted sums over edges, not element-wise work and Fourier transforms",
    "inference_seconds": "mean time of a forecast of the batch, without gradients; of a model without a network, after "
    "it was fitted to the batch, so that trees are as many as its settings allow",
    "training_seconds": "mean time of a step on the batch: objective, gradients, clipping and Adam, the whole batch at "
    "once through one network with all threads; of the last stage where there are several",
    "peak_megabytes": "memory of the process at the peak of such a step beyond what it held before there was a network "
    "(2^20 bytes); `candor train` cuts batches into pieces and needs less",
    "models without a network": "are fitted in one go; of these costs only the time of a forecast is theirs as well",
}
_ATEN = torch.ops.aten
_MEGABYTE = 2**20
_CLIP = 5.0
_START = datetime(2024, 1, 1, tzinfo=UTC)


def _products_of_matrix(matrix: tuple[int, ...], *_: object, **__: object) -> int:
    return 2 * math.prod(matrix)


def _sums_of_rows(table: tuple[int, ...], rows: tuple[int, ...], *_: object, **__: object) -> int:
    return 2 * math.prod(rows) * table[1]


def _products_of_rows(ending: tuple[int, ...], _: object, rows: tuple[int, ...], *__: object, **___: object) -> int:
    return 2 * math.prod(rows) * ending[1]


# What PyTorch does not count by itself, from the shapes of the arguments.
_FURTHER = {
    _ATEN.mv: _products_of_matrix,
    _ATEN._embedding_bag: _sums_of_rows,
    _ATEN._embedding_bag_forward_only: _sums_of_rows,
    _ATEN._embedding_bag_per_sample_weights_backward: _products_of_rows,
}


class ModelProfile(Settings):
    """What one model costs; see `HOW` for the meaning of each number. Models without a network have some of them."""

    name: str
    parameters: int | None
    operations: int | None
    inference_seconds: float
    training_seconds: float | None
    peak_megabytes: float | None  # none also where the system does not tell
    is_reconstruction: bool = False  # whether the model was rebuilt by us without its authors' code
    measured: datetime | None = None  # when, in UTC

    @property
    def label(self) -> str:
        """The name as people are shown it: of a reconstruction it says so."""
        return f"{self.name} (reconstruction)" if self.is_reconstruction else self.name


@dataclass(frozen=True, eq=False)
class Job:
    """All that is needed to measure a model."""

    name: str  # under which the costs are kept
    model: str  # name of the forecaster
    settings: Mapping[str, Any]  # of the forecaster, with history and horizon
    nodes: int  # sensors
    edges: Edges  # among them
    interval: timedelta  # between two readings
    batch: int  # windows that go through the network at once
    warm_ups: int  # passes before the clock starts
    passes: int  # passes whose mean time counts


def measure(job: Job, report: Report = silent) -> ModelProfile:
    """Return the costs of a model, measured in this process, whose other work would count as well."""
    forecaster = parse_settings(forecasters.get(job.model), dict(job.settings), f"model {job.model}")
    if isinstance(forecaster, NetworkForecaster):
        costs = _measure_network(forecaster, job, report)
    else:
        costs = _measure_rule(forecaster, job, report)
    moment = datetime.now(UTC).replace(microsecond=0)
    return ModelProfile(name=job.name, is_reconstruction=forecaster.is_reconstruction, measured=moment, **costs)


def _measure_network(forecaster: NetworkForecaster, job: Job, report: Report) -> dict[str, Any]:
    """Return all costs of a network by their names in `ModelProfile`."""
    _wake_up()
    before = _begin_account()
    trainable, batch = _build(forecaster, job)
    optimiser = torch.optim.Adam(trainable.network.parameters())
    trainable.network.train()
    report("memory", 0.0)
    for _ in range(2):  # the first step makes Adam's own numbers, the second holds them at its peak
        _train(trainable, optimiser, batch)
    peak = None if before is None else (_account("VmHWM") - before) / _MEGABYTE
    training = _mean_seconds(lambda: _train(trainable, optimiser, batch), job, report, "training", 0.0)
    optimiser.zero_grad(set_to_none=True)
    trainable.network.eval()
    parameters = count_parameters(trainable.network, lambda: trainable.forecast(batch))
    trainable.network.requires_grad_(False)  # the counter trips over views of parameters that require gradients
    with torch.no_grad():
        operations = count_operations(lambda: trainable.forecast(batch))
        inference = _mean_seconds(lambda: trainable.forecast(batch), job, report, "inference", 0.5)
    return {
        "parameters": parameters,
        "operations": operations,
        "inference_seconds": inference,
        "training_seconds": training,
        "peak_megabytes": peak,
    }


def _measure_rule(forecaster: Forecaster, job: Job, report: Report) -> dict[str, Any]:
    """Return the only cost of a model without a network: how long a forecast of the batch takes."""
    panel, origins = _readings(forecaster, job)
    report("fitting", 0.0)
    forecaster.fit(panel)  # without a validation part, which would leave few trees on readings that are noise
    inference = _mean_seconds(lambda: forecaster.predict(panel, origins), job, report, "inference", 0.5)
    nothing = dict.fromkeys(("parameters", "operations", "training_seconds", "peak_megabytes"))
    return nothing | {"inference_seconds": inference}


def count_parameters(network: nn.Module, forecast: Callable[[], Tensor]) -> int:
    """Return how many parameters of a network learn, together with those that do not but that a forecast uses."""
    counted: list[Tensor | None] = [parameter for parameter in network.parameters() if parameter.requires_grad]
    frozen = [parameter for parameter in network.parameters() if not parameter.requires_grad]
    if frozen:
        for parameter in frozen:
            parameter.requires_grad_(True)
        counted += torch.autograd.grad(forecast().sum(), frozen, allow_unused=True)  # None for those it does not use
        for parameter in frozen:
            parameter.requires_grad_(False)
    return sum(found.numel() for found in counted if found is not None)


def count_operations(work: Callable[[], object]) -> int:
    """Return the floating-point operations of some work, see `HOW`."""
    # PyTorch does not count its fused attention on processors; written out as matrix products it does.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False, custom_mapping=_FURTHER) as counter:
        work()
    return int(counter.get_total_flops())


def _build(forecaster: NetworkForecaster, job: Job) -> tuple[Trainable, dict[str, Tensor]]:
    """Return the network with first weights, and a batch of random windows."""
    panel, origins = _readings(forecaster, job)
    windows = Windows(panel, panel.values, origins, forecaster.history, forecaster.horizon)
    matrix = adjacency_of(panel).tocoo()
    source, target = (ends.astype(np.int64) for ends in matrix.coords)
    state = {"edges/source": source, "edges/target": target, "edges/weight": matrix.data.astype(np.float64)}
    state |= {"interval": np.array([job.interval.total_seconds()])}
    torch.manual_seed(0)
    trainable = forecaster._trainable(state, Scaler(0.0, 1.0), job.nodes)
    forecaster._prepare(trainable, windows)
    return trainable, tensors_of(windows.batch(slice(None)))


def _readings(forecaster: Forecaster, job: Job) -> tuple[Panel, Origins]:
    """Return random readings that are just enough for a batch, and the origins of its windows."""
    history, rows = forecaster.history, forecaster.history + forecaster.horizon + job.batch - 1
    return random_panel(job.nodes, job.edges, job.interval, rows), np.arange(job.batch) + history


def _train(trainable: Trainable, optimiser: torch.optim.Optimizer, batch: dict[str, Tensor]) -> None:
    """Take one step of the optimiser on a whole batch."""
    optimiser.zero_grad(set_to_none=True)
    valid = int(batch["target_mask"].sum())
    objective = trainable.objective(batch, StepContext(trainable.horizon, True, valid, 1.0)).total
    objective.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(trainable.network.parameters(), _CLIP)
    optimiser.step()


def _mean_seconds(work: Callable[[], object], job: Job, report: Report, what: str, begin: float) -> float:
    """Return the mean time of some passes after a few that do not count: half of the job, from share `begin` on."""
    spent, rounds = 0.0, job.warm_ups + job.passes
    for number in range(rounds):
        began = time.perf_counter()
        work()
        spent += time.perf_counter() - began if number >= job.warm_ups else 0.0
        report(what, begin + (number + 1) / rounds / 2)
    return spent / job.passes


def _wake_up() -> None:
    """Take a step of a tiny network, so that what PyTorch loads at its first is not on the account of the model."""
    layer = nn.Linear(8, 8)
    layer(torch.ones(4, 8)).sum().backward()
    nn.utils.clip_grad_norm_(layer.parameters(), _CLIP)
    torch.optim.Adam(layer.parameters()).step()


def _begin_account() -> int | None:
    """Return the bytes that this process holds now, and lets its peak begin anew; None where there is no /proc."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _account("VmRSS")
    except OSError:
        return None


def _account(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def random_panel(nodes: int, edges: Edges, interval: timedelta, rows: int) -> Panel:
    """Return readings that are z-scores, none of them missing, the same whenever they are made."""
    values = np.random.default_rng(0).standard_normal((rows, nodes), dtype=np.float32)
    return Panel(values, TimeAxis(_START, interval, rows), tuple(Sensor(str(node)) for node in range(nodes)), edges)
