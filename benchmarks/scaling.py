"""Time and memory of a training step as the network of sensors grows, and where dense products beat sums along edges.

METR-LA's settings with random graphs, batch 1, single precision, full losses; every size in a process of its own for
its memory. The second table compares the two ways of propagating on graphs of 207 nodes, forward and backward.

    python benchmarks/scaling.py [--json]
"""

import argparse
import json
import time
from functools import partial

import numpy as np
import torch

import candor.nets.candor.physical_operator
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.physical_operator import DirectionalSupport, EdgeArrays
from candor.nets.candor.settings import LossWeights
from candor.presets import load_preset
from measure import cost_of

SIZES = (207, 1000, 2000, 8600)
DEGREES = (8, 20)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


def random_edges(nodes: int, count: int) -> EdgeArrays:
    """Returns as many different edges with random weights."""
    generator = np.random.default_rng(0)
    cells = generator.choice(nodes**2, count, replace=False)
    return EdgeArrays(cells // nodes, cells % nodes, generator.random(count) + 0.1)


def training_step(nodes: int, degree: int, steps: int = 1) -> float:
    """Returns the seconds of the last of several training steps."""
    torch.set_num_threads(2)
    settings = load_preset("metr-la").model_settings().model_copy(update={"nodes": nodes})
    network = CandorNetwork(settings, random_edges(nodes, nodes * degree))
    whole = settings.history + settings.horizon
    values, targets = torch.randn(1, settings.history, nodes), torch.randn(1, settings.horizon, nodes)
    calendar = torch.randint(288, (1, whole)), torch.randint(7, (1, whole))
    for _ in range(steps):
        began = time.perf_counter()
        network.zero_grad(set_to_none=True)
        found = losses(
            network, network.encode(values, *calendar), targets, torch.ones_like(targets, dtype=torch.bool),
            LossWeights(), prefix=settings.horizon, space=LossSpace(), is_active=True,
        )  # fmt: skip
        found.total.backward()
    return time.perf_counter() - began


def walk_seconds(share: float, is_dense: bool, nodes: int = 207, batch: int = 8) -> float:
    """Returns the least time of walking two steps along random edges, forward and backward."""
    candor.nets.candor.physical_operator.DENSE_FROM = 0.0 if is_dense else 2.0
    edges = random_edges(nodes, int(share * nodes**2))
    support = DirectionalSupport(edges, nodes, 2, 2, is_reverse=False)
    weights = torch.rand(batch, 2, len(edges.source), requires_grad=True)
    features = torch.randn(batch, nodes, 2, 32, requires_grad=True)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        operator = support.operator(weights)
        sum(sum(operator.walk(features * step)) for step in range(1, 7)).sum().backward()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    torch.set_num_threads(2)
    steps, walks = [], []
    for nodes in SIZES:
        for degree in DEGREES:
            megabytes = cost_of(partial(training_step, nodes, degree), repeats=1).megabytes
            row = {"nodes": nodes, "degree": degree, "seconds": training_step(nodes, degree, 3), "megabytes": megabytes}
            steps.append(row)
            if not as_json:
                print(
                    "N {nodes:>6}  degree {degree:>3}  {seconds:8.2f} s  {megabytes:8,.0f} MB".format(**row), flush=True
                )
    for share in SHARES:
        row = {"share": share, "dense": walk_seconds(share, True), "edges": walk_seconds(share, False)}
        walks.append(row)
        if not as_json:
            print("share of pairs {share:5.2f}  dense {dense:7.4f} s  along edges {edges:7.4f} s".format(**row))
    if as_json:
        print(json.dumps({"training_step": steps, "propagation": walks}, indent=2))


if __name__ == "__main__":
    main()
