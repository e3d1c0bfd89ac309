"""Micro-batches on several threads, each with one core, instead of one micro-batch on all cores.

Most operations of a network of sensors are too small to be worth sharing among cores, and where another program takes
a core now and then, every shared operation waits for it. Whole micro-batches do neither. Each thread works on a copy of
the network that shares the weights but has gradients of its own; they are added in a fixed order, so that the outcome
does not depend on who was faster.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from types import TracebackType
from typing import Self, TypeVar

import torch

from candor.nets.trainable import Trainable

Job = TypeVar("Job")
Result = TypeVar("Result")


class Crew:
    """Some threads with a copy of the network each; to be used in a `with` block."""

    def __init__(self, trainable: Trainable, workers: int) -> None:
        self.members = [trainable, *(_copy_with_shared_weights(trainable) for _ in range(workers - 1))]
        self._threads = torch.get_num_threads()
        self._pool = (
            ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) if workers > 1 else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            torch.set_num_threads(self._threads)  # a part of what a thread sets holds for all

    def train(self, is_training: bool) -> None:
        """Puts all copies into the mode of training, or of use."""
        for member in self.members:
            member.network.train(is_training)

    def run(self, work: Callable[[Trainable, Job], Result], jobs: Sequence[Job]) -> list[Result]:
        """Returns the results of all jobs in their order; member m does the jobs m, m + members, ..."""
        members = self.members
        if self._pool is None:
            return [work(members[0], job) for job in jobs]

        def some(number: int) -> list[Result]:
            return [work(members[number], job) for job in jobs[number :: len(members)]]

        done = list(self._pool.map(some, range(len(members))))
        return [done[place % len(members)][place // len(members)] for place in range(len(jobs))]

    def gather_gradients(self) -> None:
        """Adds the gradients of all copies to those of the first, and clears the copies'."""
        for member in self.members[1:]:
            pairs = zip(self.members[0].network.parameters(), member.network.parameters(), strict=True)
            for parameter, copied in pairs:
                if copied.grad is not None:
                    parameter.grad = copied.grad if parameter.grad is None else parameter.grad.add_(copied.grad)
                    copied.grad = None


def _copy_with_shared_weights(trainable: Trainable) -> Trainable:
    copied = deepcopy(trainable)
    pairs = zip(trainable.network.parameters(), copied.network.parameters(), strict=True)
    for parameter, own in pairs:
        own.data = parameter.data
    return copied
