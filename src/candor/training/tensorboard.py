"""Curves of a training for TensorBoard, where that is installed: `tensorboard --logdir RUN/training/tensorboard`.

They are drawn from the lines of metrics.jsonl, and each session of a training draws all of them anew: so no epoch is
there twice after a kill, and none is lacking that was trained before TensorBoard was installed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

_SINGLE = ("learning_rate", "prefix", "train_error", "validation_error")


class Writer(Protocol):
    """What is used of TensorBoard's SummaryWriter."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Adds a point to a curve."""

    def flush(self) -> None:
        """Makes all points so far visible."""

    def close(self) -> None:
        """Ends writing."""


class Curves:
    """A folder that TensorBoard shows; nothing is written where TensorBoard is not installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Writer | None = None
        self._drawn = 0

    def draw(self, lines: Sequence[dict[str, Any]]) -> None:
        """Adds the epochs that are not drawn yet; the first call of a session empties what earlier ones wrote.

        Args:
            lines: all lines of metrics, one per epoch.
        """
        make_writer = find_writer()
        if make_writer is None:
            return
        if self._writer is None:
            for file in self.folder.glob("events.out.tfevents.*"):
                os.truncate(file, 0)  # a TensorBoard that is watching would stumble over a file that is gone
            self._writer = make_writer(self.folder)
        for line in lines[self._drawn :]:
            for tag, value in _points(line):
                self._writer.add_scalar(tag, value, line["epoch"])
        self._drawn = len(lines)
        self._writer.flush()

    def close(self) -> None:
        """Ends writing."""
        if self._writer is not None:
            self._writer.close()


def find_writer() -> Callable[[Path], Writer] | None:
    """Returns what makes a writer for a folder, or None where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except Exception:  # not there, or in a state in which it cannot be imported: training does without
        return None
    # A TensorBoard that is watching forgets at step 0 what it has read of an earlier session.
    return lambda folder: SummaryWriter(str(folder), purge_step=0)


def _points(line: dict[str, Any]) -> Iterator[tuple[str, float]]:
    yield from ((name, line[name]) for name in _SINGLE if line[name] is not None)
    yield from ((f"terms/{name}", value) for name, value in line["terms"].items())
