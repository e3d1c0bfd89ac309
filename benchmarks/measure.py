"""Seconds and peak memory of a piece of work, each measured in a process of its own, side by side in one run."""

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MEGABYTE = 2**20


@dataclass(frozen=True)
class Cost:
    """What a piece of work cost: seconds, and megabytes at the peak beyond what its process held before it began."""

    seconds: float
    megabytes: float


def cost_of(work: Callable[..., object], *arguments: object, repeats: int = 3) -> Cost:
    """Returns the least cost of several runs, each in a fresh process."""
    costs = []
    for _ in range(repeats):
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_measured, args=(sender, work, arguments))
        child.start()
        costs.append(receiver.recv())
        child.join()
    return Cost(min(cost.seconds for cost in costs), min(cost.megabytes for cost in costs))


def _measured(sender: Any, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    import candor.data.readers.panels  # importing is not part of the work
    import candor.data.windows  # noqa: F401

    # A process starts with the peak of its parent on its account: begin anew (Linux).
    Path("/proc/self/clear_refs").write_text("5")
    before, began = _status("VmRSS"), time.perf_counter()
    kept = work(*arguments)  # held until the peak is read
    cost = Cost(time.perf_counter() - began, (_status("VmHWM") - before) / MEGABYTE)
    sender.send(cost)
    del kept


def _status(field: str) -> int:
    """Returns a field of this process's memory account, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def report(title: str, costs: dict[str, Cost], ratios: dict[str, float]) -> None:
    """Prints the costs and ratios as a table, or as JSON with --json."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", action="store_true", help="print JSON")
    if parser.parse_args().json:
        print(json.dumps({"costs": {name: asdict(cost) for name, cost in costs.items()}, "ratios": ratios}, indent=2))
        return
    print(title)
    for name, cost in costs.items():
        print(f"  {name:<40} {cost.seconds:8.2f} s {cost.megabytes:10,.0f} MB")
    for name, ratio in ratios.items():
        print(f"  {name:<40} {ratio:8.2f}")
