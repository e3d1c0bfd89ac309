"""Curves of a training for TensorBoard, where that is installed: `tensorboard --logdir RUN/training/tensorboard`.

They are drawn from the lines of metrics.jsonl, and each session of a training draws all of them anew: so no epoch is
there twice after a kill, and none is lacking that was trained before TensorBoard was installed.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_SINGLE = ("learning_rate", "prefix", "train_error", "validation_error")


class Curves:
    """A folder that TensorBoard shows; nothing is written where TensorBoard is not installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None
        self._drawn = 0

    def draw(self, lines: Sequence[dict[str, Any]]) -> None:
        """Add those of all lines of metrics that are not drawn yet; at first empties what earlier sessions wrote."""
        make_writer = find_writer()
        if make_writer is None:
            return
        if self._writer is None:
            for file in self.folder.glob("events.out.tfevents.*"):
                os.truncate(file, 0)  # a TensorBoard that is watching would stumble over a file that is gone
            self._writer = make_writer(self.folder)
        for line in lines[self._drawn :]:
            terms = {f"terms/{name}": value for name, value in line["terms"].items()}
            for tag, value in ({name: line[name] for name in _SINGLE} | terms).items():
                if value is not None:
                    self._writer.add_scalar(tag, value, line["epoch"])
        self._drawn = len(lines)
        self._writer.flush()

    def close(self) -> None:
        """End writing."""
        if self._writer is not None:
            self._writer.close()


def find_writer() -> Callable[[Path], Any] | None:
    """Return what makes a writer for a folder, or None where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except Exception:  # not there, or in a state in which it cannot be imported: training does without
        return None
    # A TensorBoard that is watching forgets at step 0 what it has read of an earlier session.
    return lambda folder: SummaryWriter(str(folder), purge_step=0)
