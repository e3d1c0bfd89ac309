"""What every baseline computes with given weights: a change that parity.md knows nothing of shows in these numbers.

Weights follow from their names, so that the numbers are the same wherever they are computed. Where a network is changed
on purpose, compare it with the released code again, and then run this file: it writes the numbers.
"""

import json
import math
from pathlib import Path
from zlib import crc32

import torch
from frames import calendar, frame
from torch import Tensor

from candor.data.preprocessing import Scaler
from candor.nets.baseline import BaselineNetwork, BaselineTrainable
from candor.nets.baselines import baselines
from candor.nets.trainable import StepContext

FROZEN = Path(__file__).parents[1] / "fixtures" / "baselines" / "frozen.json"
AS_RELEASED = "as_released"
HISTORY, HORIZON, NODES, WINDOWS = 12, 6, 5, 4
LARGEST_WEIGHT = 0.4
TABLES = ("usual",)  # buffers that training windows would have filled


def variants() -> list[str]:
    """Returns the names of all networks, and of those that can also be as released with that word behind them."""
    found = []
    for name in baselines:
        has_switch = AS_RELEASED in type(baselines.get(name).sizes).model_fields
        found += [name, *([f"{name} {AS_RELEASED}"] if has_switch else [])]
    return found


def numbers_of(variant: str) -> dict[str, float]:
    """Returns some of the forecasts of a network, the terms of its objective, and the sizes of their gradients."""
    name, _, switch = variant.partition(" ")
    kind = baselines.get(name)
    sizes = kind.tiny.model_copy(update={switch: True} if switch else {})
    network = kind(sizes, frame(NODES, HISTORY, HORIZON)).eval()
    settle(network)
    learner = BaselineTrainable(network, Scaler(50.0, 10.0), HORIZON, kind.recipe)
    windows = batch()
    with torch.no_grad():
        scores = (learner.forecast(windows) - learner.scaler.mean) / learner.scaler.deviation
    found = learner.objective(windows, StepContext(HORIZON, True, int(windows["target_mask"].sum()), 1.0))
    return {
        **{f"forecast {place}": float(scores[place, place, place]) for place in range(WINDOWS)},
        "forecasts": float(scores.square().mean().sqrt()),
        **{f"term {key}": float(term.detach()) for key, term in found.terms.items()},
        **{f"gradient of {key}": size_of_gradient(term, network) for key, term in found.terms.items()},
    }


def size_of_gradient(term: Tensor, network: BaselineNetwork) -> float:
    """Returns how strongly all weights together move a term of the objective."""
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(term, learning, retain_graph=True, allow_unused=True)
    return math.sqrt(sum(float(gradient.square().sum()) for gradient in found if gradient is not None))


def settle(network: BaselineNetwork) -> None:
    """Gives every parameter, and every table that training would have filled, numbers that follow from its name."""
    with torch.no_grad():
        named = [*network.named_parameters(), *(pair for pair in network.named_buffers() if pair[0] in TABLES)]
        for name, numbers in named:
            numbers.copy_(LARGEST_WEIGHT * waves(numbers.numel(), name).view_as(numbers))


def batch() -> dict[str, Tensor]:
    """Returns windows with a few missing targets."""
    time_of_day, day_of_week = calendar(WINDOWS, HISTORY + HORIZON, 12)
    values = waves(WINDOWS * (HISTORY + HORIZON) * NODES, "values").view(WINDOWS, -1, NODES)
    mask = waves(WINDOWS * HORIZON * NODES, "mask").view(WINDOWS, HORIZON, NODES) < 0.6
    return {
        "inputs": 1.5 * values[:, :HISTORY],
        "input_mask": torch.ones(WINDOWS, HISTORY, NODES, dtype=torch.bool),
        "time_of_day": time_of_day,
        "day_of_week": day_of_week,
        "targets": 50 + 15 * values[:, HISTORY:],
        "target_mask": mask,
    }


def waves(count: int, name: str) -> Tensor:
    """Returns numbers from -1 to 1 without order, always the same for a name."""
    places = torch.arange(1, count + 1, dtype=torch.float64)
    return torch.sin(crc32(name.encode()) % 1000 + 1.7 * places.square()).float()


if __name__ == "__main__":
    FROZEN.parent.mkdir(parents=True, exist_ok=True)
    content = {variant: numbers_of(variant) for variant in variants()}
    FROZEN.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
