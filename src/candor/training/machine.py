"""How a network is fed on this machine: found out once, kept with the training, the same whenever it goes on."""

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
from candor.nets.trainable import StepContext, Trainable
from candor.training.checkpoint import Checkpoint
from candor.training.processes import in_main_process, join_processes
from candor.training.replicas import ThreadReplicas

_FIRST = 4
_WORTH_IT = 0.97
_FEWEST_PASSES, _MOST_PASSES = 2, 3  # with each size; the first does not count
# Timing is chance: a program that trains twice must not cut its batches in two ways, or the last digits would differ.
_FOUND: "dict[tuple[object, ...], Machine]" = {}


@dataclass(frozen=True)
class Machine:
    """How many windows go through a network at once, and how many threads take such micro-batches side by side."""

    micro_batch: int
    workers: int
    seconds_per_window: float = 0.0
    """Time to learn from one window of the whole horizon."""
    tried: Mapping[str, float] = field(default_factory=dict)
    """The same by size of micro-batches, smallest first; sizes as text, as JSON has them."""

    def sharing(self, batch: int) -> "Machine":
        """Returns the same with micro-batches small enough that every thread has one of a batch of this size."""
        return replace(self, micro_batch=min(self.micro_batch, -(-batch // self.workers)))

    def seconds_in(self, batch: int) -> float:
        """Returns the time per window in batches of this size: that of the largest micro-batch tried that fits in."""
        size = self.sharing(batch).micro_batch
        if not self.tried:
            return self.seconds_per_window
        smallest, *others = self.tried.items()
        return [smallest[1], *(seconds for tried, seconds in others if int(tried) <= size)][-1]


def find_machine(
    trainable: Trainable,
    windows: Windows,
    batch: int,
    checkpoint: Checkpoint | None = None,
    report: Report = silent,
    *,
    is_divisible: bool = True,
    seconds: float | None = None,
) -> Machine:
    """Returns what was found out for a checkpoint before, or by this program, or what suits this machine now.

    Args:
        trainable: the network; neither its weights nor the caller's chance are changed.
        windows: what it learns from.
        batch: windows of one step of the optimiser.
        checkpoint: where the finding is kept.
        report: is told that this takes a while.
        is_divisible: whether a batch may be cut into micro-batches.
        seconds: that finding out may take, a little more or less; None takes as long as it takes.
    """

    def find() -> Machine:
        path = None if checkpoint is None else checkpoint.folder / "machine.json"
        if path is not None and path.is_file():
            return Machine(**read_json(path))
        shapes = tuple(
            (name, tuple(tensor.shape[1:])) for name, tensor in windows.batch(np.arange(1)).tensors().items()
        )
        parameters = sum(parameter.numel() for parameter in trainable.network.parameters())
        kind = type(trainable.network), parameters, batch, is_divisible, shapes
        if kind not in _FOUND:
            _FOUND[kind] = _fastest(trainable, windows, batch, report, is_divisible, seconds)
        if path is not None:
            write_json(path, asdict(_FOUND[kind]))
        return _FOUND[kind]

    return in_main_process(find)


def _fastest(
    trainable: Trainable, windows: Windows, batch: int, report: Report, is_divisible: bool, seconds: float | None
) -> Machine:
    """Returns what takes the least time per window.

    There is a thread for every core PyTorch may use; micro-batches double from a few as long as that pays. What cannot
    be divided goes through one network, which may use all cores; it is tried in small batches too, since a budget may
    ask for these. On a graphics card everything goes through one network. Sizes that would take longer to try than the
    `seconds` there are for all of it are not tried.
    """
    until = time.perf_counter() + (inf if seconds is None else seconds)
    device = join_processes().device
    trainable.network.to(device)  # where it will be trained
    workers = torch.get_num_threads() if is_divisible and device.type == "cpu" else 1
    largest = min(-(-batch // workers), len(windows))
    size, times = min(_FIRST if is_divisible else LEAST_BATCH, largest), {}
    before = {name: buffer.clone() for name, buffer in trainable.network.named_buffers()}
    with torch.random.fork_rng(devices=[]), ThreadReplicas(trainable, workers) as replicas:
        while True:
            report("finding out what suits this machine", None)
            times[size] = _seconds_per_window(replicas, windows, size, device, until)
            if size == largest or (is_divisible and times[size] > min(times.values()) / _WORTH_IT):
                break
            larger = min(2 * size, largest) if is_divisible else largest
            if time.perf_counter() + _FEWEST_PASSES * larger * workers * times[size] > until:
                break
            size = larger
    trainable.network.zero_grad(set_to_none=True)
    for name, buffer in trainable.network.named_buffers():
        buffer.copy_(before[name])  # such as running means
    best = min(times, key=lambda tried: times[tried]) if is_divisible else size
    return Machine(best if is_divisible else batch, workers, times[best], {str(one): times[one] for one in times})


def _seconds_per_window(
    replicas: ThreadReplicas[Trainable], windows: Windows, size: int, device: torch.device, until: float
) -> float:
    batch = {name: tensor.to(device) for name, tensor in windows.batch(np.arange(size)).tensors().items()}
    valid = max(1, int(batch["target_mask"].sum()))

    def learn(member: Trainable, _: int) -> None:
        member.objective(batch, StepContext(member.horizon, True, valid, 1.0)).total.backward()

    replicas.train(True)
    workers, times = len(replicas.members), []
    for number in range(_MOST_PASSES):
        if number >= _FEWEST_PASSES and time.perf_counter() > until:
            break
        began = time.perf_counter()
        list(replicas.map(learn, range(workers)))
        if device.type != "cpu":  # which only was told what to do
            torch.accelerator.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[1:]) / (size * workers)
