"""The operations of the network that have a fast form beside the plain one, and which of the two is used when.

Every operation stands for a few lines of ordinary torch, written beside it as `..._plain`; tests hold the two to the
same values and gradients. The fast forms are made for processors: gradients written by hand and blocks that fit into
their caches. Other devices use the plain forms, or the fast ones with blocks of their own where memory would grow
otherwise. A graph that is traced (`torch.export`, and from it ONNX) is always plain: it must consist of operations that
every runtime knows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_PLAIN = ContextVar("plain", default=False)


@contextmanager
def plain() -> Iterator[None]:
    """Use the plain form of every operation while the block runs, in this thread."""
    token = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(token)


def is_plain() -> bool:
    """Return whether plain forms are wanted whatever the device."""
    return _PLAIN.get() or torch.compiler.is_exporting()


def is_fast_on_cpu(tensor: Tensor) -> bool:
    """Return whether to use a fast form that is made for processors only."""
    return tensor.device.type == "cpu" and not is_plain()


def block_size(tensor: Tensor, *, cpu: int, other: int) -> int:
    """Return the size of a block for the device of a tensor: caches are small, other devices need much at a time."""
    return cpu if tensor.device.type == "cpu" else other
