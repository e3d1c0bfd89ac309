"""What the catalogue knows about a dataset besides its numbers, and where its files are looked for."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pooch

from candor.core.errors import InputError
from candor.core.files import looking_at
from candor.core.registry import Registry
from candor.data.panel import Panel


def data_folders() -> list[Path]:
    """Return the folders that are searched, in order."""
    named = os.environ.get("CANDOR_DATA")
    cache = Path(pooch.os_cache("candor"))
    return [Path(named).expanduser(), cache] if named else [cache]


def find_data(*names: str) -> Path | None:
    """Return the first file or folder of the given names that is there, or None."""
    for folder in data_folders():
        for name in names:
            with looking_at(folder / name):
                if (folder / name).exists():
                    return folder / name
    return None


def require_data(dataset: str, *names: str, get_it: str) -> Path:
    """Return the first of the given files that is there, or say where it was looked for and how to get it."""
    found = find_data(*names)
    if found is None:
        looked = " and ".join(str(folder) for folder in data_folders())
        raise InputError(
            f"{dataset} is not on this machine: {' or '.join(names)} was looked for in {looked}",
            hint=f"{get_it}; put it there, or name its folder with the environment variable CANDOR_DATA",
        )
    return found


@dataclass(frozen=True)
class Dataset:
    """An entry of the catalogue."""

    name: str  # what to type
    title: str  # one line
    licence: str  # under which terms the numbers may be used
    source: str  # where they come from
    facts: str  # a table of facts, in Markdown
    load: Callable[[], Panel]  # returns the panel, or raises an error that says how to get the files
    # SHA-256 of the whole panel's content; None where it is made on this machine or not known yet
    fingerprint: str | None = None
    # the files or folders that must be in the data folder, each by all the names it may have
    needs: tuple[tuple[str, ...], ...] = ()
    # what must be installed to make the data
    package: str = ""

    def is_available(self) -> bool:
        """Return whether the data can be loaded here."""
        if self.package and find_spec(self.package) is None:
            return False
        return all(find_data(*names) is not None for names in self.needs)

    def is_another(self, fingerprint: str) -> bool:
        """Return whether the content of a whole panel is known not to be that of this dataset."""
        return self.fingerprint is not None and self.fingerprint != fingerprint


datasets: Registry[Dataset] = Registry("dataset")


def dataset(
    name: str,
    *,
    title: str,
    licence: str,
    source: str,
    fingerprint: str | None = None,
    needs: tuple[tuple[str, ...], ...] = (),
    package: str = "",
    facts: str = "",
) -> Callable[[Callable[[], Panel]], Callable[[], Panel]]:
    """Return a decorator that enters a loading function into the catalogue; facts are else its file's docstring."""

    def enter(load: Callable[[], Panel]) -> Callable[[], Panel]:
        described = facts or inspect.getdoc(inspect.getmodule(load)) or ""
        entry = Dataset(name, title, licence, source, described, load, fingerprint, needs, package)
        datasets.register(name)(entry)
        return load

    return enter
