"""Speed and memory of the model: a training step and a forecast against the literal oracle, all in one run.

METR-LA's shape and real graph (made-up edges of the same number where it is absent), batch 64, single precision, full
losses. Every side runs in a process of its own and is warmed; the sides take turns, and the least of each is compared.

    python benchmarks/speed.py [--json] [--rounds 3]

Keys: train_step_ratio and train_memory_ratio (oracle over model), schedule_ratio (the same over the paper's 80-epoch
curriculum, from steps at several prefixes), forecast_ratio (batch 1), step_over_head_matmuls (model over the twelve
products of 92,736 x 256 x 512 that the head alone needs).
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from measure import cost_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from oracle import oracle_forward
from oracle_losses import oracle_losses

from candor.data.adjacency import adjacency_of
from candor.data.catalog import datasets
from candor.data.scaling import Scaler
from candor.forecasting.trainable import CandorTrainable
from candor.model.candor import CandorNetwork
from candor.model.losses import LossSpace
from candor.model.propagation import EdgeArrays
from candor.model.settings import LossWeights, ModelSettings
from candor.presets import load_preset
from candor.training.crew import Crew
from candor.training.trainable import Moment, Trainable

BATCH = 64
MICRO_BATCH = 16
# The oracle holds about a third of a gigabyte per sample: a part of the batch is measured and counted in proportion.
ORACLE_BATCH = 16
SPACE = LossSpace(54.40593, 19.49374)
PREFIXES = (1, 4, 8, 12)
ORACLE_WEIGHTS = {
    "branch": 0.2, "hist": 0.2, "sep": 0.2, "bg": 1e-4, "shock": 1e-4, "rec": 0.1,
    "role_background": 0.2, "role_accumulation": 0.2, "role_release": 0.2,
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One batch of METR-LA's shape."""

    settings: ModelSettings
    edges: EdgeArrays
    values: Tensor
    time_of_day: Tensor
    day_of_week: Tensor
    targets: Tensor
    mask: Tensor


def make_problem(batch: int = BATCH) -> Problem:
    """Returns a batch of random readings on METR-LA's graph."""
    settings = load_preset("metr-la").model_settings()
    generator = torch.Generator().manual_seed(0)
    steps = settings.history + settings.horizon
    return Problem(
        settings,
        metr_la_edges(settings.nodes),
        torch.randn(batch, settings.history, settings.nodes, generator=generator),
        torch.randint(288, (batch, steps), generator=generator),
        torch.randint(7, (batch, steps), generator=generator),
        54 + 19 * torch.randn(batch, settings.horizon, settings.nodes, generator=generator),
        torch.rand(batch, settings.horizon, settings.nodes, generator=generator) < 0.92,
    )


def metr_la_edges(nodes: int) -> EdgeArrays:
    """Returns the official adjacency, or as many random edges with as many self-loops."""
    if datasets.get("metr-la").is_available():
        matrix = adjacency_of(datasets.get("metr-la").load()).tocoo()
        return EdgeArrays(matrix.coords[0].astype(np.int64), matrix.coords[1].astype(np.int64), matrix.data)
    chance = np.random.default_rng(0)
    others = chance.choice(nodes**2, 1722 - nodes, replace=False)
    cells = np.union1d(others, np.arange(nodes) * (nodes + 1))
    return EdgeArrays(cells // nodes, cells % nodes, chance.random(len(cells)) + 0.1)


def part_of(problem: Problem, batch: int) -> Problem:
    """Returns the first samples of a problem."""
    names = ("values", "time_of_day", "day_of_week", "targets", "mask")
    return replace(problem, **{name: getattr(problem, name)[:batch] for name in names})


def model_step(problem: Problem, crew: Crew, prefix: int) -> None:
    """Runs forward, all losses and backward of one optimiser batch, as training does: micro-batches on both cores."""
    valid = int(problem.mask[:, :prefix].sum())

    def learn_from(member: Trainable, first: int) -> None:
        part = slice(first, first + MICRO_BATCH)
        batch = {
            "inputs": problem.values[part],
            "time_of_day": problem.time_of_day[part],
            "day_of_week": problem.day_of_week[part],
            "targets": problem.targets[part],
            "target_mask": problem.mask[part],
        }
        member.objective(batch, Moment(prefix, True, valid, MICRO_BATCH / BATCH)).total.backward()

    crew.members[0].network.zero_grad(set_to_none=True)
    crew.run(learn_from, range(0, BATCH, MICRO_BATCH))
    crew.gather_gradients()


def make_crew(network: CandorNetwork) -> Crew:
    """Returns two threads that train the network."""
    return Crew(CandorTrainable(network, Scaler(SPACE.mean, SPACE.deviation), LossWeights(), True, False), 2)


def oracle_step(problem: Problem, parameters: dict[str, Tensor], adjacency: Tensor, prefix: int) -> None:
    """Runs the same by the literal equations."""
    for parameter in parameters.values():
        parameter.grad = None
    calendar = problem.time_of_day, problem.day_of_week
    output = oracle_forward(parameters, problem.settings, adjacency, problem.values, *calendar, prefix)
    found = oracle_losses(
        output, parameters, problem.settings, problem.targets, problem.mask, ORACLE_WEIGHTS, True, prefix,
        (SPACE.mean, SPACE.deviation),
    )  # fmt: skip
    found["total"].backward()


def sides(problem: Problem) -> tuple[CandorNetwork, dict[str, Tensor], Tensor]:
    """Returns the model and, for the oracle, its parameters by name and the adjacency."""
    torch.manual_seed(0)
    network = CandorNetwork(problem.settings, problem.edges)
    parameters = {name: value.detach().clone().requires_grad_() for name, value in network.named_parameters()}
    adjacency = torch.zeros(problem.settings.nodes, problem.settings.nodes)
    adjacency[problem.edges.source, problem.edges.target] = torch.from_numpy(problem.edges.weight).float()
    return network, parameters, adjacency


def model_memory() -> object:
    """Runs one step of the model, to have its memory measured."""
    problem = make_problem()
    network, _, _ = sides(problem)
    with make_crew(network) as crew:
        return model_step(problem, crew, 12)


def oracle_memory() -> object:
    """Runs one step of the oracle, to have its memory measured."""
    problem = make_problem(ORACLE_BATCH)
    _, parameters, adjacency = sides(problem)
    return oracle_step(problem, parameters, adjacency, 12)


def least_seconds(works: Mapping[Any, Callable[[], object]], rounds: int) -> dict[Any, float]:
    """Returns the least time of each of several works that take turns, after one run of each to warm up."""
    for work in works.values():
        work()
    times: dict[Any, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    return {name: min(found) for name, found in times.items()}


def head_matmuls() -> Callable[[], object]:
    """Returns the twelve matrix products that the head alone needs in a step of batch 64."""
    rows, width, hidden = torch.randn(92_736, 256), torch.randn(256, 512), torch.randn(92_736, 512)

    def work() -> None:
        torch.set_num_threads(2)  # the crew's threads take one each
        for _ in range(4):
            rows @ width
            hidden @ width.T
            rows.T @ hidden

    return work


def curriculum(step_at: dict[int, float]) -> float:
    """Returns the time of METR-LA's 80 epochs in steps, prefixes between the measured ones by straight lines."""
    prefixes = [min(12, 1 + epoch // 6) for epoch in range(80)]
    return float(np.interp(prefixes, list(step_at), list(step_at.values())).sum())


def measure(rounds: int) -> dict[str, float | str]:
    """Returns all times and ratios."""
    problem = make_problem()
    network, parameters, adjacency = sides(problem)
    with make_crew(network) as crew:
        steps: dict[str, Callable[[], object]] = {
            f"model {prefix}": partial(model_step, problem, crew, prefix) for prefix in PREFIXES
        }
        at: dict[Any, float] = least_seconds({"head": head_matmuls(), **steps}, rounds)
    few, scale = part_of(problem, ORACLE_BATCH), BATCH / ORACLE_BATCH
    literal_steps = {prefix: partial(oracle_step, few, parameters, adjacency, prefix) for prefix in (1, 12)}
    at |= {prefix: scale * time for prefix, time in least_seconds(literal_steps, 1).items()}
    single = make_problem(1)
    network.eval()
    clock = single.time_of_day, single.day_of_week
    forecasts: dict[str, Callable[[], object]] = {
        "forecast": lambda: network(single.values, *clock),
        "oracle forecast": lambda: oracle_forward(parameters, single.settings, adjacency, single.values, *clock),
    }
    with torch.no_grad():
        at |= least_seconds(forecasts, 10 * rounds)
    ours, theirs = cost_of(model_memory, repeats=1), cost_of(oracle_memory, repeats=1)
    model_at = {prefix: at[f"model {prefix}"] for prefix in PREFIXES}
    return {
        "graph": "METR-LA" if datasets.get("metr-la").is_available() else "made up, as many edges as METR-LA",
        "train_step_seconds": model_at[12],
        "oracle_step_seconds": at[12],
        "head_matmuls_seconds": at["head"],
        "forecast_seconds": at["forecast"],
        "oracle_forecast_seconds": at["oracle forecast"],
        "train_megabytes": ours.megabytes,
        "oracle_megabytes": scale * theirs.megabytes,
        "train_step_ratio": at[12] / model_at[12],
        "train_memory_ratio": scale * theirs.megabytes / ours.megabytes,
        "schedule_ratio": curriculum({1: at[1], 12: at[12]}) / curriculum(model_at),
        "forecast_ratio": at["oracle forecast"] / at["forecast"],
        "step_over_head_matmuls": model_at[12] / at["head"],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side; the least time counts")
    options = parser.parse_args()
    torch.set_num_threads(2)
    results = measure(options.rounds)
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        for name, value in results.items():
            print(f"{name:<28} {value if isinstance(value, str) else f'{value:10.3f}'}")
