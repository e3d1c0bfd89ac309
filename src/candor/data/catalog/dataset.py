"""What the catalogue knows about a dataset besides its numbers."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from candor.core.registry import Registry
from candor.data.locations import find_data
from candor.data.panel import Panel


@dataclass(frozen=True)
class Dataset:
    """An entry of the catalogue.

    Args:
        name: what to type.
        title: one line.
        licence: under which terms the numbers may be used.
        source: where they come from.
        facts: the docstring of the dataset's file.
        load: returns the panel, or says how to get the files.
        fingerprint: SHA-256 of the whole panel's content; None where it is made on this machine or not known yet.
        needs: the files or folders that must be in the data folder, each by all the names it may have; none for data
            that come with the package or are made on this machine.
    """

    name: str
    title: str
    licence: str
    source: str
    facts: str
    load: Callable[[], Panel]
    fingerprint: str | None = None
    needs: tuple[tuple[str, ...], ...] = ()

    def is_available(self) -> bool:
        """Returns whether the data can be loaded here."""
        return all(find_data(*names) is not None for names in self.needs)

    def is_another(self, fingerprint: str) -> bool:
        """Returns whether the content of a whole panel is known not to be that of this dataset."""
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
) -> Callable[[Callable[[], Panel]], Callable[[], Panel]]:
    """Returns a decorator that enters a loading function into the catalogue."""

    def enter(load: Callable[[], Panel]) -> Callable[[], Panel]:
        facts = inspect.getdoc(inspect.getmodule(load)) or ""
        entry = Dataset(name, title, licence, source, facts, load, fingerprint, needs)
        datasets.register(name)(entry)
        return load

    return enter
