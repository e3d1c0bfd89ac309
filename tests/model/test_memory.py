"""A training step gives back all the memory it took."""

import gc

import numpy as np
import torch
from tiny import SIZES

from candor.data.scaling import Scaler
from candor.forecasting.trainable import CandorTrainable
from candor.model.candor import CandorNetwork
from candor.model.propagation import EdgeArrays
from candor.model.settings import LossWeights, ModelSettings
from candor.training.trainable import Moment


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
        learner.objective(batch, Moment(4, True, 24, 1.0)).total.backward()

    step()
    before = tensors_alive()
    for _ in range(3):
        step()
    assert tensors_alive() == before
