"""The paper, section by section; imports torch and nothing of the data layer."""

from candor.model.candor import CandorNetwork, Explanation
from candor.model.losses import LossSpace, LossWeights, loss_terms, total_loss
from candor.model.propagation import EdgeArrays
from candor.model.settings import ModelSettings

__all__ = [
    "CandorNetwork",
    "EdgeArrays",
    "Explanation",
    "LossSpace",
    "LossWeights",
    "ModelSettings",
    "loss_terms",
    "total_loss",
]
