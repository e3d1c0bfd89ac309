"""Ctrl-C and SIGTERM: training saves its state and stops."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from accelerate.utils import gather_object

_REASONS = {signal.SIGINT: "Ctrl-C was pressed", signal.SIGTERM: "the system asked for it"}


@contextmanager
def stopping_on_interrupt(say: Callable[[str], object]) -> Iterator[Callable[[], str | None]]:
    """Yield a function that returns why training should stop, or None: the same in all processes, which call it
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
