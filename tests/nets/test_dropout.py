"""Dropout masks in both forms: the rate, the mean, and the generator they are drawn from."""

import threading
from collections.abc import Callable

import pytest
import torch

from candor.nets.dropout import Dropout, drawing_from, dropout_mask, dropout_mask_plain

both_forms = pytest.mark.parametrize("make", [dropout_mask, dropout_mask_plain])


@both_forms
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 0.9])
def test_masks_drop_the_asked_share_and_keep_the_mean(make: Callable[..., torch.Tensor], rate: float) -> None:
    torch.manual_seed(0)
    mask = make((1001, 997), rate, torch.zeros((), dtype=torch.float64))
    kept = mask != 0
    spread = (rate * (1 - rate) / mask.numel()) ** 0.5
    assert abs(float((~kept).double().mean()) - rate) < 5 * spread + 2**-16
    assert abs(float(mask.mean()) - 1) < 6 * spread / (1 - rate)
    assert len(mask[kept].unique()) == 1


def test_neighbouring_entries_are_independent() -> None:
    torch.manual_seed(1)
    kept = (dropout_mask((400_000,), 0.5, torch.zeros(())) != 0).double()
    for distance in (1, 2, 3, 4, 5):
        together = (kept[distance:] * kept[:-distance]).mean()
        assert abs(float(together) - 0.25) < 0.005


def test_in_use_nothing_is_dropped() -> None:
    values = torch.rand(5, 7)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0).train()(values), values)
    assert not torch.equal(Dropout(0.5).train()(values), values)


def test_gradients_pass_where_values_passed() -> None:
    values = torch.rand(200, requires_grad=True)
    dropped = Dropout(0.3).train()(values)
    dropped.sum().backward()
    torch.testing.assert_close(values.grad, (dropped / values).detach())


@both_forms
def test_a_generator_decides_in_its_thread_only(make: Callable[..., torch.Tensor]) -> None:
    def draw() -> torch.Tensor:
        return make((50,), 0.5, torch.zeros(()))

    with drawing_from(torch.Generator().manual_seed(3)):
        first = draw()
        torch.manual_seed(9)
        elsewhere: list[torch.Tensor] = []
        thread = threading.Thread(target=lambda: elsewhere.append(draw()))
        thread.start()
        thread.join()
    torch.manual_seed(9)
    assert torch.equal(elsewhere[0], draw())
    with drawing_from(torch.Generator().manual_seed(3)):
        assert torch.equal(draw(), first)
