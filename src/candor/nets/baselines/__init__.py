"""Published models under one protocol, one file each; a file here is a model that `candor` knows.

They are written anew from papers and public code; the docstring of each says what was changed and why.
"""

from importlib.resources import files
from typing import TYPE_CHECKING

from candor.core.registry import Registry

if TYPE_CHECKING:
    from candor.nets.baseline import BaselineNetwork

baselines: Registry[type["BaselineNetwork"]] = Registry("published model")
for _file in files(__name__).iterdir():
    _module, _, _ending = _file.name.partition(".")
    if _ending == "py" and not _module.startswith("_"):
        baselines.announce(_module.replace("_", "-"), f"{__name__}.{_module}")  # imported when it is first used
