"""Ctrl-C and SIGTERM during a training: the first one saves and stops, a second one ends the program at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_REASONS = {signal.SIGINT: "Ctrl-C was pressed", signal.SIGTERM: "the system asked for it"}


@contextmanager
def stopping_on_interrupt(say: Callable[[str], object]) -> Iterator[Callable[[], str | None]]:
    """Yields a function that returns why training should stop, or None: the same in all processes, which call it
    together.

    Args:
        say: tells the person at the terminal that the signal was noticed.
    """
    received: list[str] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(_REASONS[signal.Signals(number)])
        say("saving and stopping ...")

    def reason() -> str | None:
        from accelerate.utils import gather_object

        return next(iter(gather_object(received[:1])), None)

    before = {number: signal.signal(number, handle) for number in _REASONS}
    try:
        yield reason
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
