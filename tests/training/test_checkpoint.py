"""The state of a training as others see it who look while it goes on."""

from pathlib import Path

import pytest
import torch
from torch import nn

from candor.training.checkpoint import Checkpoint, Progress


def save(checkpoint: Checkpoint, epoch: int, width: int) -> None:
    network = nn.Linear(width, width)
    checkpoint.save(Progress(epoch=epoch), network, torch.optim.Adam(network.parameters()))


def test_a_state_that_is_replaced_while_it_is_read_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, mapped = Checkpoint(tmp_path), torch.UntypedStorage.from_file
    save(checkpoint, epoch=3, width=200)

    def meanwhile_replaced(*arguments: object, **more: object) -> object:  # torch maps a file that others opened before
        save(checkpoint, epoch=4, width=8)
        return mapped(*arguments, **more)

    monkeypatch.setattr(torch.UntypedStorage, "from_file", meanwhile_replaced)
    assert checkpoint.progress() == Progress(epoch=3)
