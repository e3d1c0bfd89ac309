"""What a network computes for many windows: the one loop of batched inference, with one size of batches."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from candor.core.progress import Report, silent
from candor.data.windows import Batch
from candor.nets.trainable import tensors_of
from candor.training.batches import Indices, micro_batches
from candor.training.replicas import Network, ThreadReplicas

WINDOWS_PER_BATCH = 16
"""Larger batches do not fit into the processor's cache, and take longer by the window."""

Result = TypeVar("Result")


class WindowSource(Protocol):
    """Windows by index, such as `candor.data.windows.Windows`."""

    def __len__(self) -> int: ...

    def batch(self, indices: Indices) -> Batch:
        """Return the windows at indices as one batch."""


def infer(
    trainable: Network,
    windows: WindowSource,
    compute: Callable[[Network, dict[str, Tensor]], Result],
    report: Report = silent,
    message: str = "",
    *,
    threads: int | None = None,
) -> Iterator[Result]:
    """Yield what `compute` makes of each batch of windows, in their order and without gradients.

    Args:
        trainable: the network, in evaluation mode.
        windows: what it reads.
        compute: takes the network, or a replica of it that shares its weights, and the tensors of a batch by name.
        report: progress callback.
        message: what is being done, for `report`.
        threads: that take batches side by side; None takes all cores PyTorch may use.
    """
    batches = list(micro_batches(np.arange(len(windows)), WINDOWS_PER_BATCH))
    threads = max(1, min(threads or torch.get_num_threads(), len(batches)))

    @torch.no_grad()  # in the thread that does the work: the mode is a thread's own
    def work(replica: Network, places: Indices) -> Result:
        return compute(replica, tensors_of(windows.batch(places)))

    with ThreadReplicas(trainable, threads) as replicas:
        for places, result in zip(batches, replicas.map(work, batches), strict=True):
            report(message, (int(places[-1]) + 1) / len(windows))
            yield result
