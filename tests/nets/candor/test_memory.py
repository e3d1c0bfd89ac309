"""A training step gives back all the memory it took, and what the functional branch takes is linear in the nodes."""

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from tiny import SIZES
from torch.utils._python_dispatch import TorchDispatchMode

from candor.data.preprocessing import Scaler
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.functional import FunctionalBranch
from candor.nets.candor.physical_operator import EdgeArrays, closed_walks
from candor.nets.candor.settings import LossWeights, ModelSettings
from candor.nets.candor.trainable import CandorTrainable
from candor.nets.trainable import StepContext


def tensors_alive() -> int:
    gc.collect()
    return sum(type(thing) is torch.Tensor for thing in gc.get_objects())


def test_nothing_of_a_step_is_left_after_it() -> None:
    settings = ModelSettings(nodes=3, history=12, horizon=4, patch_length=4, patch_stride=2, **SIZES)
    edges = EdgeArrays(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 0.5]))
    network = CandorNetwork(settings, edges)
    learner = CandorTrainable(network, Scaler(0.0, 1.0), LossWeights(), True, False)
    batch = {
        "inputs": torch.randn(2, 12, 3),
        "time_of_day": torch.zeros(2, 16, dtype=torch.long),
        "day_of_week": torch.zeros(2, 16, dtype=torch.long),
        "targets": torch.randn(2, 4, 3),
        "target_mask": torch.ones(2, 4, 3, dtype=torch.bool),
    }

    def step() -> None:
        learner.objective(batch, StepContext(4, True, 24, 1.0)).total.backward()

    step()
    before = tensors_alive()
    for _ in range(3):
        step()
    assert tensors_alive() == before


class Largest(TorchDispatchMode):
    """Remembers the most numbers of any tensor that is made, and of the scores that the best are chosen from."""

    def __init__(self) -> None:
        super().__init__()
        self.made, self.scores = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        if function is torch.ops.aten.topk.default:
            self.scores = max(self.scores, arguments[0].numel())
        found = function(*arguments, **(named or {}))
        for one in found if isinstance(found, tuple | list) else [found]:
            self.made = max(self.made, one.numel() if isinstance(one, torch.Tensor) else 0)
        return found


def largest_of(nodes: int, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> Largest:
    monkeypatch.setattr("candor.nets.candor.ops.pairs.SCORES_AT_A_TIME", at_a_time)
    settings = ModelSettings(nodes=nodes, history=12, horizon=4, patch_length=4, patch_stride=2, **SIZES)
    branch, width = FunctionalBranch(settings).eval(), settings.hidden
    for relation in (branch.level_relations, branch.trend_relations):
        torch.nn.init.xavier_uniform_(relation)
    states = torch.randn(2, nodes, settings.patches, width)
    with Largest() as seen:
        branch(states, states, torch.randn(nodes, width), torch.randn(2, width))
    return seen


def test_scores_are_looked_at_in_blocks_and_nothing_grows_faster_than_the_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many, whole = (
        largest_of(nodes, limit, monkeypatch) for nodes, limit in ((200, 4_000), (400, 4_000), (400, 10**9))
    )
    assert max(few.scores, many.scores) <= 4_000
    assert many.made <= 2 * few.made
    assert whole.scores == 2 * 400 * 400 * SIZES["relations"] and whole.made > 9 * many.made


def test_closed_walks_of_a_matrix_of_all_distances_take_no_more_than_its_edges() -> None:
    receiver, sender = (ends.ravel() for ends in np.indices((100, 100)))
    tracemalloc.start()
    walks = closed_walks(receiver, sender, 100, 2)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert walks.shape == (2, 10_000) and most < 20 * receiver.nbytes  # a number for every open walk would be 100 times
