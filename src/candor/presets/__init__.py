"""Recipes shipped with the package, one YAML file each."""

from importlib.resources import files

from candor.data.protocol import Protocol
from candor.errors import InputError
from candor.settings import Settings, parse_settings, read_yaml


class Preset(Settings):
    """A recipe: the dataset it is for and the protocol it is judged by."""

    data: str
    """Name of a dataset in the catalogue."""
    protocol: Protocol
    """How the record is cut and judged."""


def preset_names() -> list[str]:
    """Returns the names of all presets, sorted."""
    return sorted(entry.name[:-5] for entry in files(__name__).iterdir() if entry.name.endswith(".yaml"))


def load_preset(name: str) -> Preset:
    """Returns the preset called `name`."""
    if name not in preset_names():
        raise InputError(f"there is no preset called {name!r}", mend=f"known: {', '.join(preset_names())}")
    text = files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return parse_settings(Preset, read_yaml(text, name), f"preset {name}")
