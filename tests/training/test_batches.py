"""Every window is seen once in an epoch, whoever takes it, and chance is the same whenever it is asked."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from candor.training.batches import (
    batch_seed,
    epoch_order,
    micro_batches,
    share_of,
    spread_evenly,
)


@given(st.integers(1, 500), st.integers(1, 70), st.integers(1, 5), st.integers(1, 20), st.integers(0, 99))
def test_each_window_is_taken_once(windows: int, batch: int, processes: int, micro: int, seed: int) -> None:
    order = epoch_order(windows, seed, 3)
    taken = []
    for number in range(-(-windows // batch)):
        indices = order[number * batch : (number + 1) * batch]
        assert 1 <= len(indices) <= batch
        for rank in range(processes):
            parts = list(micro_batches(share_of(indices, rank, processes), micro))
            assert all(1 <= len(part) <= micro for part in parts)
            taken += [index for part in parts for index in part]
    assert sorted(taken) == list(range(windows))


def test_orders_differ_by_epoch_and_seed_and_are_the_same_when_asked_again() -> None:
    orders = {(seed, epoch): tuple(epoch_order(50, seed, epoch)) for seed in range(3) for epoch in range(3)}
    assert len(set(orders.values())) == 9
    assert all(tuple(epoch_order(50, *key)) == order for key, order in orders.items())


def test_chance_differs_for_every_step_and_process() -> None:
    seeds = [batch_seed(*place) for place in np.ndindex(3, 4, 5, 2)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


@given(st.integers(1, 500), st.integers(1, 600))
def test_windows_that_are_spread_evenly_reach_from_the_first_to_the_last(windows: int, wanted: int) -> None:
    chosen = spread_evenly(windows, wanted)
    assert len(chosen) == min(windows, wanted) and chosen[0] == 0
    gaps = np.diff(chosen)
    if len(chosen) > 1:
        assert chosen[-1] == windows - 1 and gaps.min() >= 1 and gaps.max() - gaps.min() <= 1
    np.testing.assert_array_equal(spread_evenly(windows, None), np.arange(windows))
