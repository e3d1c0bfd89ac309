"""Micro-batches on several threads, each with one core, instead of one micro-batch on all cores.

Most operations of a network of sensors are too small to be worth sharing among cores, and where another program takes
a core now and then, every shared operation waits for it. Whole micro-batches do neither. Each thread works on a replica
of the network that shares the weights but has gradients of its own; they are added in a fixed order, so that the
outcome does not depend on which thread was faster.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from typing import Generic, Self, TypeVar

import torch

from candor.nets.trainable import Trainable

Network = TypeVar("Network", bound=Trainable)
Job = TypeVar("Job")
Result = TypeVar("Result")
_JOBS_AHEAD = 2  # per thread: results that nobody has taken yet are not piled up


class ThreadReplicas(Generic[Network]):
    """Replicas of a network, which is the first of them, one for each thread; to be used in a `with` block.

    A single one works in the caller's thread, with all cores.
    """

    def __init__(self, trainable: Network, count: int) -> None:
        self.members = [trainable, *(_copy_with_shared_weights(trainable) for _ in range(count - 1))]
        self._torch_threads = torch.get_num_threads()
        self._threads = [
            ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,))
            for _ in range(count if count > 1 else 0)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for thread in self._threads:
            thread.shutdown(cancel_futures=True)
        if self._threads:
            torch.set_num_threads(self._torch_threads)  # a part of what a thread sets holds for all

    def train(self, is_training: bool) -> None:
        """Put all replicas into training or evaluation mode."""
        for member in self.members:
            member.network.train(is_training)

    def map(self, work: Callable[[Network, Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the results of all jobs in their order; of n replicas, number m does the jobs m, m + n, ..."""
        if not self._threads:
            yield from (work(self.members[0], job) for job in jobs)
            return
        waiting: deque[Future[Result]] = deque()
        for place, job in enumerate(jobs):
            number = place % len(self.members)
            waiting.append(self._threads[number].submit(work, self.members[number], job))
            if len(waiting) == _JOBS_AHEAD * len(self.members):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def gather_gradients(self) -> None:
        """Add the gradients of all replicas to those of the first, and clears the others'."""
        for member in self.members[1:]:
            pairs = zip(self.members[0].network.parameters(), member.network.parameters(), strict=True)
            for parameter, copied in pairs:
                if copied.grad is not None:
                    parameter.grad = copied.grad if parameter.grad is None else parameter.grad.add_(copied.grad)
                    copied.grad = None


def _copy_with_shared_weights(trainable: Network) -> Network:
    copied = deepcopy(trainable)
    pairs = zip(trainable.network.parameters(), copied.network.parameters(), strict=True)
    for parameter, own in pairs:
        own.data = parameter.data
    return copied
