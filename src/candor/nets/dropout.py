"""Dropout with masks from a generator of the thread; on a processor four entries are cut from each 64-bit random word.

PyTorch draws a number for each entry, which takes longer there than the products beside it.
"""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

_ENTRIES_PER_WORD, _LEVELS, _LOWEST = 4, 2**16, -(2**15)
_THREAD = threading.local()


class Dropout(nn.Module):
    """In training a share of the entries becomes zero and the others grow so that the mean stays."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or self.rate == 0:
            return inputs
        return inputs * dropout_mask(inputs.shape, self.rate, inputs)


def dropout_mask_plain(shape: tuple[int, ...], rate: float, like: Tensor) -> Tensor:
    """Return a mask of zeros and 1 / (1 - rate), of the type and on the device of `like`."""
    return like.new_empty(shape).bernoulli_(1 - rate, generator=current_generator()).div_(1 - rate)


def dropout_mask(shape: tuple[int, ...], rate: float, like: Tensor) -> Tensor:
    """Return such a mask; on a processor with the nearest of 65,536 rates, and its factor: the mean is exact."""
    if like.device.type != "cpu":
        return dropout_mask_plain(shape, rate, like)
    entries = math.prod(shape)
    words = torch.empty(-(-entries // _ENTRIES_PER_WORD), dtype=torch.int64, device=like.device)
    words.random_(-(2**63), None, generator=current_generator())
    dropped = round(rate * _LEVELS)
    mask = words.view(torch.int16)[:entries].to(like.dtype)
    return mask.ge_(_LOWEST + dropped).mul_(_LEVELS / (_LEVELS - dropped)).view(shape)


def current_generator() -> torch.Generator | None:
    """Return the generator of this thread; None is PyTorch's own, which all threads share."""
    return getattr(_THREAD, "generator", None)


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Draw masks from a generator while the block runs in this thread."""
    before = current_generator()
    _THREAD.generator = generator
    try:
        yield
    finally:
        _THREAD.generator = before
