"""Processes that were launched together: how they meet, and what only one of them does."""

import atexit
import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list

from candor.core.errors import InputError

Result = TypeVar("Result")


def join_processes() -> PartialState:
    """Return what this process knows of those that were launched with it, once it has met them.

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
    """End the connection to the other processes before this one ends: its threads may abort what is done already."""
    atexit.register(PartialState().destroy_process_group)


def in_main_process(work: Callable[[], Result]) -> Result:
    """Return what the main process finds while the others wait; what is wrong with the input there, all raise."""
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
