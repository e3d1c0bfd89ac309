"""Speed and memory against the closest published relative, D2STGNN, whose released code is given as a folder.

    git clone https://github.com/zezhishao/D2STGNN && pip install torchinfo  # which the released code imports
    python benchmarks/relative.py D2STGNN [--json] [--turns 5]

METR-LA's shape and graph, batch 64, single precision, two threads, random weights. The released model has the settings
of its `configs/METR-LA.yaml` and unchanged code; its step is forward, its masked error over all twelve steps and
backward. CANDOR's step is that of `speed.py`, with all losses. Steps take turns, and so do forecasts of one window; the
least time of each counts. Memory is the peak of one step in a process of its own.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from candor.presets import load_preset
from measure import cost_of
from speed import SPACE, Problem, Sizes, least_seconds, make_problem, make_replicas, model_memory, model_step, sides

STEPS_A_DAY = 288


def released_model(code: Path, problem: Problem) -> torch.nn.Module:
    """Returns the released network for the graph of a problem."""
    sys.path.insert(0, str(code))
    from models.model import D2STGNN

    settings: dict[str, Any] = yaml.safe_load((code / "configs" / "METR-LA.yaml").read_text())["model_args"]
    nodes = problem.settings.nodes
    graph = torch.zeros(nodes, nodes)
    graph[problem.edges.source, problem.edges.target] = torch.from_numpy(problem.edges.weight).float()
    ways = [way / way.sum(dim=1, keepdim=True).clamp(min=1e-9) for way in (graph, graph.T)]
    given = {"device": torch.device("cpu"), "num_nodes": nodes, "adjs": ways, "adjs_ori": graph, "dataset": "METR-LA"}
    torch.manual_seed(0)
    network: torch.nn.Module = D2STGNN(**settings | given)
    return network


def released_inputs(problem: Problem) -> Tensor:
    """Returns history as the released network reads it: value, share of the day that has passed, day of the week."""
    history = problem.settings.history
    clock = problem.time_of_day[:, :history] / STEPS_A_DAY + 1e-4, problem.day_of_week[:, :history].float()
    return torch.stack([problem.values, *(part[..., None].expand_as(problem.values) for part in clock)], dim=-1)


def released_step(network: torch.nn.Module, problem: Problem) -> Callable[[], None]:
    """Returns forward, error and backward of the released network."""
    from models.losses import masked_mae

    inputs = released_inputs(problem)
    targets = (problem.targets * problem.mask).transpose(1, 2)  # zero stands for missing

    def work() -> None:
        torch.set_num_threads(2)  # the replicas' threads take one each
        network.zero_grad(set_to_none=True)
        forecast = network(inputs) * SPACE.deviation + SPACE.mean
        masked_mae(forecast, targets, 0.0).backward()

    return work


def released_memory(code: Path, sizes: Sizes) -> None:
    """Runs one step of the released network, to have its memory measured."""
    problem = make_problem(sizes.batch, sizes.settings)
    released_step(released_model(code, problem), problem)()


def measure(code: Path, sizes: Sizes, turns: int) -> dict[str, float]:
    """Returns times, megabytes and ratios, the released network over CANDOR."""
    problem, single = make_problem(sizes.batch, sizes.settings), make_problem(1, sizes.settings)
    ours, _, _ = sides(problem)
    released = released_model(code, problem)
    with make_replicas(ours) as replicas:
        steps = least_seconds(
            {
                "ours": lambda: model_step(problem, replicas, sizes.settings.horizon, sizes.micro_batch),
                "theirs": released_step(released, problem),
            },
            turns,
        )
    ours.eval()
    released.eval()
    inputs = released_inputs(single)
    with torch.no_grad():
        works = {
            "ours": lambda: ours(single.values, single.time_of_day, single.day_of_week),
            "theirs": lambda: released(inputs),
        }
        forecasts = least_seconds(works, 10 * turns)
    megabytes = {
        "ours": cost_of(model_memory, sizes, repeats=1).megabytes,
        "theirs": cost_of(released_memory, code, sizes, repeats=1).megabytes,
    }
    found: dict[str, float] = {"parameters": sum(weight.numel() for weight in released.parameters())}
    for what, both in (("step_seconds", steps), ("forecast_seconds", forecasts), ("megabytes", megabytes)):
        found |= {f"candor_{what}": both["ours"], f"released_{what}": both["theirs"]}
        found[f"{what.partition('_')[0]}_ratio"] = both["theirs"] / both["ours"]
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("code", type=Path, help="a clone of zezhishao/D2STGNN")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--turns", type=int, default=5, help="of the two steps; forecasts have ten times as many")
    options = parser.parse_args()
    torch.set_num_threads(2)
    results = measure(options.code.resolve(), Sizes(load_preset("metr-la").model_settings()), options.turns)
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        for name, value in results.items():
            print(f"{name:<28} {value:12,.3f}")
