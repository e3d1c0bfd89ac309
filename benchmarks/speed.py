"""Speed and memory of the model: a training step and a forecast against the literal oracle, all in one run.

METR-LA's shape and real graph (made-up edges of the same number where it is absent), batch 64, single precision, full
losses. What is timed:

- the model's step and the products of its head take turns, at least five each, after one run of each to warm up; what
  slows the machine slows neighbours alike, so the median of their ratios stands beside the ratio of the least;
- the model's steps at shorter prefixes take turns, `--rounds` each; the least counts;
- the oracle's step takes some 25 s for a quarter of the batch: it is timed once for the shortest and once for the
  longest prefix, after a run of each to warm up, and counted four times; prefixes between lie on a straight line. A
  single time can only be too long, so on a busy machine the ratios to it flatter the model;
- one forecast of the model and of the oracle take turns, ten times `--rounds` each; the least counts.

Memory is the peak of one step beyond what a fresh process held before it, one process for each side. That of the oracle
is measured at two sizes of the batch: what does not grow with the batch counts once, the rest in proportion.

    python benchmarks/speed.py [--json] [--rounds 3] [--turns 5]

Keys: train_step_ratio and train_memory_ratio (oracle over model), schedule_ratio (the same over the paper's 80-epoch
curriculum, from steps at several prefixes), forecast_ratio (batch 1), step_over_head_matmuls (model over the twelve
products of 92,736 x 256 x 512 that the head alone needs; least over least) and step_over_head_matmuls_median (median of
the ratios of neighbouring turns).
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from measure import Cost, cost_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from oracle import oracle_forward
from oracle_losses import oracle_losses

from candor.data.catalog import datasets
from candor.data.panel import adjacency_of
from candor.data.preprocessing import Scaler
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import LossSpace
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import LossWeights, ModelSettings
from candor.nets.candor.trainable import CandorTrainable
from candor.nets.trainable import StepContext, Trainable
from candor.presets import load_preset
from candor.training.replicas import ThreadReplicas

SPACE = LossSpace(54.40593, 19.49374)
METR_LA_EDGES = 1722
LEAST_TURNS = 5
ORACLE_WEIGHTS = {
    "branch": 0.2, "hist": 0.2, "sep": 0.2, "bg": 1e-4, "shock": 1e-4, "rec": 0.1,
    "role_background": 0.2, "role_accumulation": 0.2, "role_release": 0.2,
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """What is measured.

    Args:
        settings: of the network.
        batch: windows of a step.
        micro_batch: windows that a thread of the model takes at a time.
        oracle_batch: windows that the oracle is measured on; it holds about a third of a gigabyte for each.
        prefixes: steps of the horizon at which the model's step is measured, from 1 to all.
    """

    settings: ModelSettings
    batch: int = 64
    micro_batch: int = 16
    oracle_batch: int = 16
    prefixes: tuple[int, ...] = (1, 4, 8, 12)


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


def make_problem(batch: int = 64, settings: ModelSettings | None = None) -> Problem:
    """Returns a batch of random readings on METR-LA's graph, in its shape unless settings are given."""
    settings = settings or load_preset("metr-la").model_settings()
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
    if is_official(nodes):
        matrix = adjacency_of(datasets.get("metr-la").load()).tocoo()
        return EdgeArrays(matrix.coords[0].astype(np.int64), matrix.coords[1].astype(np.int64), matrix.data)
    generator = np.random.default_rng(0)
    others = generator.choice(nodes**2, min(METR_LA_EDGES, nodes**2) - nodes, replace=False)
    cells = np.union1d(others, np.arange(nodes) * (nodes + 1))
    return EdgeArrays(cells // nodes, cells % nodes, generator.random(len(cells)) + 0.1)


def is_official(nodes: int) -> bool:
    """Returns whether METR-LA's graph is here and of this size."""
    return nodes == load_preset("metr-la").model_settings().nodes and datasets.get("metr-la").is_available()


def part_of(problem: Problem, batch: int) -> Problem:
    """Returns the first samples of a problem."""
    names = ("values", "time_of_day", "day_of_week", "targets", "mask")
    return replace(problem, **{name: getattr(problem, name)[:batch] for name in names})


def model_step(problem: Problem, replicas: ThreadReplicas[CandorTrainable], prefix: int, micro_batch: int) -> None:
    """Runs forward, all losses and backward of one optimiser batch, as training does: micro-batches on both cores."""
    valid, whole = int(problem.mask[:, :prefix].sum()), len(problem.values)

    def learn_from(member: Trainable, first: int) -> None:
        part = slice(first, first + micro_batch)
        batch = {
            "inputs": problem.values[part],
            "time_of_day": problem.time_of_day[part],
            "day_of_week": problem.day_of_week[part],
            "targets": problem.targets[part],
            "target_mask": problem.mask[part],
        }
        member.objective(batch, StepContext(prefix, True, valid, micro_batch / whole)).total.backward()

    replicas.members[0].network.zero_grad(set_to_none=True)
    list(replicas.map(learn_from, range(0, whole, micro_batch)))
    replicas.gather_gradients()


def make_replicas(network: CandorNetwork) -> ThreadReplicas[CandorTrainable]:
    """Returns two threads that train the network."""
    return ThreadReplicas(CandorTrainable(network, Scaler(SPACE.mean, SPACE.deviation), LossWeights(), True, False), 2)


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


def model_memory(sizes: Sizes) -> object:
    """Runs one step of the model, to have its memory measured."""
    problem = make_problem(sizes.batch, sizes.settings)
    network, _, _ = sides(problem)
    with make_replicas(network) as replicas:
        return model_step(problem, replicas, sizes.settings.horizon, sizes.micro_batch)


def oracle_memory(sizes: Sizes, batch: int) -> object:
    """Runs one step of the oracle, to have its memory measured."""
    problem = make_problem(batch, sizes.settings)
    _, parameters, adjacency = sides(problem)
    return oracle_step(problem, parameters, adjacency, sizes.settings.horizon)


def extrapolate(batch: int, few: tuple[int, float], more: tuple[int, float]) -> float:
    """Returns the megabytes of a batch from those of two smaller ones: what is fixed, plus so much for each window."""
    each = (more[1] - few[1]) / (more[0] - few[0])
    return more[1] + each * (batch - more[0])


def take_turns(works: Mapping[Any, Callable[[], object]], rounds: int) -> dict[Any, list[float]]:
    """Returns the seconds of several works that take turns, back and forth, after one run of each to warm up."""
    for work in works.values():
        work()
    times: dict[Any, list[float]] = {name: [] for name in works}
    order = list(works.items())
    for number in range(rounds):
        # Threads of a library spin for a while after a call and slow down what another library does next. In one order
        # the same work would pay for that every time; back and forth, the first and the last also follow themselves.
        # To forbid the spinning would not be fair: it is how the library runs where it is used.
        for name, work in order if number % 2 == 0 else reversed(order):
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    return times


def least_seconds(works: Mapping[Any, Callable[[], object]], rounds: int) -> dict[Any, float]:
    """Returns the least time of each of several works that take turns, after one run of each to warm up."""
    return {name: min(found) for name, found in take_turns(works, rounds).items()}


def head_matmuls(sizes: Sizes) -> Callable[[], object]:
    """Returns the twelve matrix products that the head alone needs in a step, 92,736 x 256 x 512 for METR-LA."""
    settings = sizes.settings
    count = sizes.batch * settings.nodes * settings.target_patches
    rows, hidden = torch.randn(count, settings.forecast_width), torch.randn(count, settings.head_width)
    width = torch.randn(settings.forecast_width, settings.head_width)

    def work() -> None:
        torch.set_num_threads(2)  # the replicas' threads take one each
        for _ in range(4):
            rows @ width
            hidden @ width.T
            rows.T @ hidden

    return work


def curriculum(step_at: dict[int, float]) -> float:
    """Returns the time of METR-LA's 80 epochs in steps, prefixes between the measured ones by straight lines."""
    prefixes = [min(max(step_at), 1 + epoch // 6) for epoch in range(80)]
    return float(np.interp(prefixes, list(step_at), list(step_at.values())).sum())


def measure(sizes: Sizes, rounds: int, turns: int, cost: Callable[..., Cost] = cost_of) -> dict[str, float | str]:
    """Returns all times and ratios.

    Args:
        sizes: what is measured.
        rounds: runs of the model's steps at shorter prefixes; forecasts have ten times as many.
        turns: of the model's step and the head's products, at least five.
        cost: measures the memory of a work, by default in processes of its own.
    """
    problem, last = make_problem(sizes.batch, sizes.settings), sizes.settings.horizon
    network, parameters, adjacency = sides(problem)
    turned, steps = _time_model(sizes, problem, network, rounds, max(turns, LEAST_TURNS))
    few, scale = part_of(problem, sizes.oracle_batch), sizes.batch / sizes.oracle_batch
    literal = {prefix: partial(oracle_step, few, parameters, adjacency, prefix) for prefix in (1, last)}
    theirs = {prefix: scale * seconds for prefix, seconds in least_seconds(literal, 1).items()}
    forecasts = _time_forecasts(sizes, network, parameters, adjacency, rounds)
    megabytes = cost(model_memory, sizes, repeats=1).megabytes
    of_oracle = [(batch, cost(oracle_memory, sizes, batch, repeats=1).megabytes) for batch in _two_batches(sizes)]
    oracle_megabytes = extrapolate(sizes.batch, of_oracle[0], of_oracle[1])
    ratios = [step / head for step, head in zip(turned["step"], turned["head"], strict=True)]
    head = min(turned["head"])
    return {
        "graph": "METR-LA" if is_official(sizes.settings.nodes) else "made up, as many edges as METR-LA",
        "train_step_seconds": steps[last],
        "oracle_step_seconds": theirs[last],
        "head_matmuls_seconds": head,
        "forecast_seconds": forecasts["model"],
        "oracle_forecast_seconds": forecasts["oracle"],
        "train_megabytes": megabytes,
        "oracle_megabytes": oracle_megabytes,
        "train_step_ratio": theirs[last] / steps[last],
        "train_memory_ratio": oracle_megabytes / megabytes,
        "schedule_ratio": curriculum(theirs) / curriculum(steps),
        "forecast_ratio": forecasts["oracle"] / forecasts["model"],
        "step_over_head_matmuls": steps[last] / head,
        "step_over_head_matmuls_median": median(ratios),
        "step_and_head_turns": len(ratios),
    }


def _two_batches(sizes: Sizes) -> tuple[int, int]:
    return max(1, sizes.oracle_batch // 2), sizes.oracle_batch


def _time_model(
    sizes: Sizes, problem: Problem, network: CandorNetwork, rounds: int, turns: int
) -> tuple[dict[str, list[float]], dict[int, float]]:
    """Returns the seconds of step and head by turn, and the least seconds of a step by prefix."""
    last = sizes.settings.horizon
    with make_replicas(network) as replicas:
        steps = {prefix: partial(model_step, problem, replicas, prefix, sizes.micro_batch) for prefix in sizes.prefixes}
        turned = take_turns({"head": head_matmuls(sizes), "step": steps.pop(last)}, turns)
        least = least_seconds(steps, rounds)
    return turned, least | {last: min(turned["step"])}


def _time_forecasts(
    sizes: Sizes, network: CandorNetwork, parameters: dict[str, Tensor], adjacency: Tensor, rounds: int
) -> dict[str, float]:
    """Returns the least seconds of one forecast by the model and by the oracle."""
    single = make_problem(1, sizes.settings)
    clock = single.time_of_day, single.day_of_week
    network.eval()
    works: dict[str, Callable[[], object]] = {
        "model": lambda: network(single.values, *clock),
        "oracle": lambda: oracle_forward(parameters, single.settings, adjacency, single.values, *clock),
    }
    with torch.no_grad():
        return least_seconds(works, 10 * rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=3, help="runs of steps at shorter prefixes; the least counts")
    parser.add_argument("--turns", type=int, default=LEAST_TURNS, help="of step and head products, at least 5")
    options = parser.parse_args()
    torch.set_num_threads(2)
    results = measure(Sizes(load_preset("metr-la").model_settings()), options.rounds, options.turns)
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        for name, value in results.items():
            print(f"{name:<28} {value if isinstance(value, str) else f'{value:10.3f}'}")
