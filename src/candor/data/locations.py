"""Where datasets are looked for: the folder named by CANDOR_DATA, then a per-user cache."""

import os
from pathlib import Path

import pooch

from candor.core.errors import InputError
from candor.core.files import looking_at


def data_folders() -> list[Path]:
    """Returns the folders that are searched, in order."""
    named = os.environ.get("CANDOR_DATA")
    cache = Path(pooch.os_cache("candor"))
    return [Path(named).expanduser(), cache] if named else [cache]


def find_data(*names: str) -> Path | None:
    """Returns the first file or folder of the given names that is there, or None."""
    for folder in data_folders():
        for name in names:
            with looking_at(folder / name):
                if (folder / name).exists():
                    return folder / name
    return None


def require_data(dataset: str, *names: str, get_it: str) -> Path:
    """Returns the first of the given files that is there, or says where it was looked for and how to get it."""
    found = find_data(*names)
    if found is None:
        looked = " and ".join(str(folder) for folder in data_folders())
        raise InputError(
            f"{dataset} is not on this machine: {' or '.join(names)} was looked for in {looked}",
            hint=f"{get_it}; put it there, or name its folder with the environment variable CANDOR_DATA",
        )
    return found
