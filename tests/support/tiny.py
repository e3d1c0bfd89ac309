"""A small network of sensors and a small CANDOR, for tests that train."""

from typing import Any

from candor.data.protocol import Protocol

PROTOCOL = Protocol(history=12, horizon=4)
SIZES: dict[str, Any] = {
    "hidden": 8, "heads": 2, "forecast_width": 12, "head_width": 16, "node_width": 6, "relation_width": 5,
    "value_width": 7, "fusion_width": 9, "pairs": 4, "relations": 2,
}  # fmt: skip


def tiny_recipe(**training: Any) -> dict[str, Any]:
    """Returns a recipe that takes seconds; training settings can be changed."""
    few = {"epochs": 2, "batch": 48, "epoch_windows": 144, "validation_windows": 48}
    return {"model": SIZES, "training": few | {"learning_rate": 0.01, "activation": 1} | training, "anchor": True}


TINY_STAGES: dict[str, Any] = {
    "sizes": {"width": 8, "mixed": 4, "rank": 2, "identity": 3, "clock": 4, "alike": 2},
    "training": {"epochs": 2, "epoch_windows": 64, "validation_windows": 16, "batch": 16},
}
"""Shared networks that take a second."""
