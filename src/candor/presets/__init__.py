"""Recipes shipped with the package, one YAML file each."""

from importlib.resources import files
from typing import Any

from pydantic import Field, PositiveInt

from candor.data.protocol import Protocol
from candor.errors import InputError
from candor.model.settings import ModelSettings
from candor.settings import Settings, parse_settings, read_yaml


class Preset(Settings):
    """A recipe: the dataset it is for, the protocol it is judged by, and the sizes of the model if they are settled."""

    data: str
    """Name of a dataset in the catalogue."""
    protocol: Protocol
    """How the record is cut and judged."""
    nodes: PositiveInt | None = None
    """Sensors of the dataset, where the model's sizes are settled."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Sizes of the model that differ from the defaults."""

    def model_settings(self) -> ModelSettings:
        """Returns the sizes of CANDOR for this preset."""
        if self.nodes is None:
            raise InputError(
                f"the preset for {self.data} has no sizes of the model",
                mend=f"presets with sizes: {', '.join(n for n in preset_names() if load_preset(n).nodes)}",
            )
        spans = {"nodes": self.nodes, "history": self.protocol.history, "horizon": self.protocol.horizon}
        return parse_settings(ModelSettings, spans | self.model, f"preset for {self.data}")


def preset_names() -> list[str]:
    """Returns the names of all presets, sorted."""
    return sorted(entry.name[:-5] for entry in files(__name__).iterdir() if entry.name.endswith(".yaml"))


def load_preset(name: str) -> Preset:
    """Returns the preset called `name`."""
    if name not in preset_names():
        raise InputError(f"there is no preset called {name!r}", mend=f"known: {', '.join(preset_names())}")
    text = files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return parse_settings(Preset, read_yaml(text, name), f"preset {name}")
