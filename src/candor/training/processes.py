"""Processes that were launched together: how they meet, what only one of them does, and how all stop on a signal."""

import atexit
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object

from candor.core.errors import InputError

Result = TypeVar("Result")
_REASONS = {signal.SIGINT: "Ctrl-C was pressed", signal.SIGTERM: "the system asked for it"}


def join_processes() -> PartialState:
    """Returns what this process knows of those that were launched with it, once it has met them.

    Left to itself accelerate lets every process work alone where there is no graphics card, so this goes first.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    state = PartialState(cpu=processes > 1 and not torch.cuda.is_available())
    if state.num_processes != processes:
        raise InputError(
            f"{processes} processes were launched, but this one found {state.num_processes}",
            hint="launch them with torchrun or accelerate launch, and leave the setting up of processes to candor",
        )
    if processes > 1:
        _disconnect_at_exit()
    return state


@cache
def _disconnect_at_exit() -> None:
    """Ends the connection to the other processes before this one ends: its threads may abort what is done already."""
    atexit.register(PartialState().destroy_process_group)


def in_main_process(work: Callable[[], Result]) -> Result:
    """Returns what the main process finds while the others wait; what is wrong with the input there, all raise."""
    found: Any = None
    failure: InputError | None = None
    if join_processes().is_main_process:
        try:
            found = work()
        except InputError as error:
            failure = error
    found, failure = broadcast_object_list([found, failure])
    if failure is not None:
        raise failure
    return found


@contextmanager
def stopping_on_interrupt(say: Callable[[str], object]) -> Iterator[Callable[[], str | None]]:
    """Yields a function that returns why training should stop, or None: the same in all processes, which call it
    together. The first Ctrl-C or SIGTERM saves and stops, a second one ends the program at once.

    Args:
        say: tells the person at the terminal that the signal was noticed.
    """
    received: list[str] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(_REASONS[signal.Signals(number)])
        say("saving and stopping ...")

    before = {number: signal.signal(number, handle) for number in _REASONS}
    try:
        yield lambda: next(iter(gather_object(received[:1])), None)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
