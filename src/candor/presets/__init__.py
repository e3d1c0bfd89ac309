"""Recipes shipped with the package, one YAML file each; a file may hold variants, called NAME-VARIANT."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import Field, PositiveInt

from candor.core.errors import InputError
from candor.core.settings import Settings, parse_settings, read_yaml
from candor.data.protocol import Protocol
from candor.nets.candor.recipe import Recipe
from candor.nets.candor.settings import ModelSettings


class Preset(Settings):
    """A recipe: its dataset, the protocol of its evaluation, and how CANDOR is trained if that is settled."""

    data: str
    """Name of a dataset in the catalogue."""
    protocol: Protocol
    """How the record is cut and evaluated."""
    nodes: PositiveInt | None = None
    """Sensors of the dataset, where the model's sizes are settled."""
    recipe: Recipe | None = None
    """Sizes, training and objective of CANDOR; None fits them to the data."""
    baselines: Mapping[str, dict[str, Any]] = Field(default_factory=dict)
    """By name of a baseline, what its authors settled for this dataset in place of its defaults."""

    def model_settings(self) -> ModelSettings:
        """Return the sizes of CANDOR for this preset."""
        if self.nodes is None or self.recipe is None:
            raise InputError(
                f"the preset for {self.data} has no sizes of the model",
                hint=f"presets with sizes: {', '.join(n for n in preset_names() if load_preset(n).nodes)}",
            )
        return self.recipe.model_settings(self.nodes, self.protocol.history, self.protocol.horizon)


def preset_names() -> list[str]:
    """Return the names of all presets, sorted."""
    return sorted(_contents())


def load_preset(name: str) -> Preset:
    """Return the preset called `name`."""
    if name not in _contents():
        raise InputError(f"there is no preset called {name!r}", hint=f"known: {', '.join(preset_names())}")
    return parse_settings(Preset, _contents()[name], f"preset {name}")


@cache
def _contents() -> dict[str, dict[str, Any]]:
    """Return the content of every preset by name."""
    found = {}
    for entry in files(__name__).iterdir():
        if not entry.name.endswith(".yaml"):
            continue
        name = entry.name.removesuffix(".yaml")
        content = dict(read_yaml(entry.read_text(encoding="utf-8"), name))
        variants = content.pop("variants", {})
        found[name] = content
        for variant, changes in variants.items():
            found[f"{name}-{variant}"] = merge(content, changes)
    return found


def merge(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with changes laid over it, section by section."""
    merged = dict(content)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged
