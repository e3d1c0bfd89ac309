"""One way to find things by name: datasets, forecasters, and whatever is added later."""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Generic, TypeVar

from candor.core.errors import InputError

Entry = TypeVar("Entry")
Decorated = TypeVar("Decorated")


class Registry(Generic[Entry]):
    """Entries by name, filled by a decorator; an unknown name lists the nearest known ones."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}
        self._homes: dict[str, str | Callable[[], Entry]] = {}

    def announce(self, name: str, home: str | Callable[[], Entry]) -> None:
        """Name an entry that is made when it is first needed, so that nothing is imported before.

        Args:
            name: of the entry.
            home: the module that registers it, or a function that returns it.
        """
        self._homes[name] = home

    def register(self, name: str) -> Callable[[Decorated], Decorated]:
        """Return a decorator that files an entry under `name`, which must be free."""

        def file_entry(entry: Decorated) -> Decorated:
            if name in self._entries:
                raise ValueError(f"the {self.kind} {name!r} is registered twice")
            as_entry: Any = entry  # other decorators, such as pydantic's, hide the true type
            self._entries[name] = as_entry
            return entry

        return file_entry

    def get(self, name: str) -> Entry:
        """Return the entry called `name`."""
        if name in self._homes and name not in self._entries:
            home = self._homes[name]
            if isinstance(home, str):
                import_module(home)
            else:
                self._entries[name] = home()
        if name in self._entries:
            return self._entries[name]
        near = get_close_matches(name, self.names(), n=3, cutoff=0.5)
        near_names = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(
            f"there is no {self.kind} called {name!r}",
            hint=f"{near_names}known: {', '.join(self.names())}",
        )

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self._entries, *self._homes})

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())
