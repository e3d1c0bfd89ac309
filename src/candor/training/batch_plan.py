"""Micro-batch size and thread count, measured once on this computer and stored with the training.

A training that goes on uses the stored plan: another one would cut batches in another way and change the last digits.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf

import numpy as np
import torch

from candor.core.files import read_json, write_json
from candor.core.progress import Report, silent
from candor.data.windows import Windows
from candor.nets.recipe import LEAST_BATCH
from candor.nets.trainable import StepContext, Trainable, tensors_of
from candor.training.checkpoint import Checkpoint
from candor.training.processes import in_main_process, join_processes
from candor.training.replicas import ThreadReplicas

PLAN_FILE = "machine.json"
_FIRST_SIZE = 4
_WORTHWHILE_GAIN = 0.97
_FEWEST_PASSES, _MOST_PASSES = 2, 3  # with each size; the first is a warm-up and does not count
# Timings vary from run to run; within one program equal networks share a plan, so that equal trainings stay equal.
_MEASURED: "dict[tuple[object, ...], BatchPlan]" = {}


@dataclass(frozen=True)
class BatchPlan:
    """How many windows go through a network at once, and how many threads take such micro-batches side by side."""

    micro_batch: int
    workers: int
    seconds_per_window: float = 0.0
    """Time to learn from one window of the whole horizon."""
    tried: Mapping[str, float] = field(default_factory=dict)
    """The same by micro-batch size, smallest first; sizes are strings, as in JSON."""

    def sharing(self, batch: int) -> "BatchPlan":
        """Return the plan with micro-batches so small that every thread gets one of a batch of this size."""
        return replace(self, micro_batch=min(self.micro_batch, -(-batch // self.workers)))

    def seconds_in(self, batch: int) -> float:
        """Return the time per window in batches of this size: that of the largest micro-batch tried that fits in."""
        size = self.sharing(batch).micro_batch
        if not self.tried:
            return self.seconds_per_window
        smallest, *others = self.tried.items()
        return [smallest[1], *(seconds for tried, seconds in others if int(tried) <= size)][-1]


def find_batch_plan(
    trainable: Trainable,
    windows: Windows,
    batch: int,
    checkpoint: Checkpoint | None = None,
    report: Report = silent,
    *,
    is_divisible: bool = True,
    seconds: float | None = None,
) -> BatchPlan:
    """Return the plan stored with a checkpoint, or one found earlier by this program, or the fastest one measured now.

    Neither the weights of the network nor the caller's random state are changed.

    Args:
        trainable: the network.
        windows: it learns from.
        batch: windows of one step of the optimiser.
        checkpoint: where the plan is stored.
        report: progress callback.
        is_divisible: whether a batch may be cut into micro-batches.
        seconds: approximate limit for measuring; None sets no limit.
    """
    path = None if checkpoint is None else checkpoint.folder / PLAN_FILE

    def find() -> BatchPlan:
        if path is not None and path.is_file():
            return BatchPlan(**read_json(path))
        shapes = tuple((name, tensor.shape[1:]) for name, tensor in tensors_of(windows.batch(np.arange(1))).items())
        parameters = sum(parameter.numel() for parameter in trainable.network.parameters())
        kind = type(trainable.network), parameters, batch, is_divisible, shapes
        if kind not in _MEASURED:
            _MEASURED[kind] = _fastest(trainable, windows, batch, report, is_divisible, seconds)
        if path is not None:
            write_json(path, asdict(_MEASURED[kind]))
        return _MEASURED[kind]

    return in_main_process(find)


def _fastest(
    trainable: Trainable, windows: Windows, batch: int, report: Report, is_divisible: bool, seconds: float | None
) -> BatchPlan:
    """Return the plan with the least time per window.

    On a CPU there is a thread for every core PyTorch may use, and micro-batches double as long as that pays. A batch
    that cannot be divided goes through one network, which may use all cores; small batches are tried as well, since a
    budget may ask for them. On a GPU everything goes through one network.
    """
    deadline = time.perf_counter() + (inf if seconds is None else seconds)
    device = join_processes().device
    trainable.network.to(device)
    workers = torch.get_num_threads() if is_divisible and device.type == "cpu" else 1
    largest = min(-(-batch // workers), len(windows))
    size, times = min(_FIRST_SIZE if is_divisible else LEAST_BATCH, largest), dict[int, float]()
    before = {name: buffer.clone() for name, buffer in trainable.network.named_buffers()}
    with torch.random.fork_rng(devices=[]), ThreadReplicas(trainable, workers) as replicas:
        while True:
            report("measuring the fastest batch size", None)
            times[size] = _seconds_per_window(replicas, windows, size, device, deadline)
            if size == largest or (is_divisible and times[size] > min(times.values()) / _WORTHWHILE_GAIN):
                break
            larger = min(2 * size, largest) if is_divisible else largest
            if time.perf_counter() + _FEWEST_PASSES * larger * workers * times[size] > deadline:
                break
            size = larger
    trainable.network.zero_grad(set_to_none=True)
    for name, buffer in trainable.network.named_buffers():
        buffer.copy_(before[name])  # such as running means
    best = min(times, key=lambda tried: times[tried]) if is_divisible else size
    return BatchPlan(best if is_divisible else batch, workers, times[best], {str(one): times[one] for one in times})


def _seconds_per_window(
    replicas: ThreadReplicas[Trainable], windows: Windows, size: int, device: torch.device, deadline: float
) -> float:
    batch = {name: tensor.to(device) for name, tensor in tensors_of(windows.batch(np.arange(size))).items()}
    valid = max(1, int(batch["target_mask"].sum()))

    def learn(replica: Trainable, _: int) -> None:
        replica.objective(batch, StepContext(replica.horizon, True, valid, 1.0)).total.backward()

    replicas.train(True)
    workers, times = len(replicas.members), list[float]()
    for number in range(_MOST_PASSES):
        if number >= _FEWEST_PASSES and time.perf_counter() > deadline:
            break
        began = time.perf_counter()
        list(replicas.map(learn, range(workers)))
        if device.type != "cpu":  # work on a GPU is only queued so far
            torch.accelerator.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[1:]) / (size * workers)
