"""Where a training step and a forecast spend their time: operations, bytes and achieved rates, part by part.

    python benchmarks/parts.py [--json] [--rounds 5]

METR-LA's shape and graph, single precision, one thread; a step is that of one micro-batch of 16 windows with full
losses. Operations are those of matrix products, counted where PyTorch dispatches them. Bytes are what every operation
reads and writes if nothing stays in cache, views left out: an upper bound of the traffic. Beside them stand the rates
that this machine reaches at best: the head's large product, and copying an array that fits no cache.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from candor.data.preprocessing import Scaler
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.fusion import fuse
from candor.nets.candor.settings import LossWeights
from candor.nets.candor.trainable import CandorTrainable
from candor.nets.trainable import StepContext
from speed import SPACE, Problem, make_problem, sides

WINDOWS = 16
HORIZON = 12


@dataclass(frozen=True)
class Cost:
    """What a piece of work takes."""

    milliseconds: float
    calls: int
    gigaflop: float
    gigabytes: float

    @property
    def gigaflop_per_second(self) -> float:
        return 1e3 * self.gigaflop / self.milliseconds

    @property
    def gigabytes_per_second(self) -> float:
        return 1e3 * self.gigabytes / self.milliseconds


class Traffic(TorchDispatchMode):
    """Counts operations, the bytes they read and write, and those of matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.bytes, self.flop = 0, 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self.calls += 1
        in_place = function.overloadpacket.__name__.removesuffix("_")  # addmm_ multiplies as addmm does
        if (count := flop_registry.get(getattr(torch.ops.aten, in_place, None))) is not None:
            self.flop += count(*args, **(kwargs or {}), out_val=result)
        if not function.is_view:
            tensors = {id(leaf): leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor)}
            self.bytes += sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        return result


def cost_of(work: Callable[[], object], rounds: int) -> Cost:
    """Returns the least processor time of several runs, after one to warm up, and what the operations amount to."""
    work()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    with Traffic() as traffic:
        work()
    return Cost(1e3 * min(times), traffic.calls, traffic.flop / 1e9, traffic.bytes / 1e9)


def parts_of_a_forecast(network: CandorNetwork, problem: Problem) -> dict[str, Callable[[], object]]:
    """Returns the parts of a forward pass; each is given what the parts before it computed."""
    settings, patches = network.settings, network.settings.patches
    inputs = problem.values, problem.time_of_day, problem.day_of_week
    at_starts = problem.time_of_day[:, network.patch_starts], problem.day_of_week[:, network.patch_starts]
    with torch.no_grad():
        rows = network.calendar.rows(*at_starts)
        contexts = network.calendar.context(rows)
        last_row = network.calendar.rows(inputs[1][:, settings.history - 1 :][:, :1], inputs[2][:, :1])[:, 0]
        embedded = network.embedding(problem.values)
        components = network.decomposition(embedded, contexts[:, :patches])
        refined = network.history.refine(embedded, components)
        encoding = network.encode(*inputs)
        made = network.represent(encoding.forecast_inputs)
    nodes = network.decomposition.nodes.weight
    physical = problem.values, refined, components.shock_activity, rows[:, :patches], rows[:, patches:], last_row
    return {
        "decomposition": lambda: network.decomposition(network.embedding(problem.values), contexts[:, :patches]),
        "physical branch": lambda: network.physical(*physical),
        "functional branch": lambda: network.functional(components.background, refined, nodes, contexts.mean(dim=1)),
        "representations": lambda: network.represent(encoding.forecast_inputs),
        "fusion and head": lambda: network.head(fuse(made.fusion_weights, made.branches), HORIZON),
        "whole forecast": lambda: network(*inputs),
    }


def step_of(network: CandorNetwork, problem: Problem) -> Callable[[], object]:
    """Returns forward, all losses and backward of one micro-batch."""
    learner = CandorTrainable(network, Scaler(SPACE.mean, SPACE.deviation), LossWeights(), True, False)
    batch = {
        "inputs": problem.values,
        "time_of_day": problem.time_of_day,
        "day_of_week": problem.day_of_week,
        "targets": problem.targets,
        "target_mask": problem.mask,
    }
    step = StepContext(HORIZON, True, int(problem.mask.sum()), 1.0)

    def work() -> None:
        network.zero_grad(set_to_none=True)
        learner.objective(batch, step).total.backward()

    return work


def limits(rounds: int) -> dict[str, float]:
    """Returns what one core of this machine reaches at best."""
    rows, width = torch.randn(23_184, 256), torch.randn(256, 512)
    product = cost_of(lambda: rows @ width, rounds)
    source, target = torch.randn(2, 50_000_000).unbind()
    copying = cost_of(lambda: target.copy_(source), rounds)
    return {"gigaflop_per_second": product.gigaflop_per_second, "gigabytes_per_second": copying.gigabytes_per_second}


def measure(rounds: int) -> dict[str, Any]:
    """Returns all costs by name."""
    one, some = make_problem(1), make_problem(WINDOWS)
    network, _, _ = sides(one)
    network.eval()
    with torch.no_grad():
        forecast = {name: cost_of(work, rounds) for name, work in parts_of_a_forecast(network, one).items()}
        many = {name: cost_of(work, rounds) for name, work in parts_of_a_forecast(network, some).items()}
    network.train()
    return {
        "limits": limits(rounds),
        "forecast of one window": forecast,
        f"forward of {WINDOWS} windows": many,
        f"training step of {WINDOWS} windows": {"whole step": cost_of(step_of(network, some), rounds)},
    }


def show(results: dict[str, Any]) -> None:
    """Prints Markdown tables."""
    best = results.pop("limits")
    print(f"one core at best: {best['gigaflop_per_second']:.0f} GFLOP/s, {best['gigabytes_per_second']:.1f} GB/s\n")
    for title, parts in results.items():
        print(f"| {title} | ms | calls | GFLOP | GFLOP/s | GB at most | GB/s at most |\n|---|---|---|---|---|---|---|")
        for name, cost in parts.items():
            rates = f"{cost.gigaflop_per_second:.0f} | {cost.gigabytes:.3f} | {cost.gigabytes_per_second:.1f}"
            print(f"| {name} | {cost.milliseconds:.1f} | {cost.calls:,} | {cost.gigaflop:.2f} | {rates} |")
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each part; the least time counts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = measure(options.rounds)
    if options.json:
        print(json.dumps(found, indent=2, default=asdict))
    else:
        show(found)
