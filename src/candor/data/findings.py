"""Findings about data: what was found, how bad it is, where, how often, and what to do about it."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from candor.core.text import listed


class Level(StrEnum):
    """How much a finding matters: an error stops the work, a warning should be looked at, a note informs."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing noticed: `what` in plain words, `where` (file, sensor, time), `count` of cases, and the `hint`."""

    level: Level
    what: str
    where: str = ""
    count: int = 1
    hint: str = ""


class Findings(list[Finding]):
    """A list of findings that readers add to as they go; what was found in no case, with a count of 0, is not added."""

    def _add(self, level: Level, what: str, where: str, count: int, hint: str) -> None:
        if count:
            self.append(Finding(level, what, where, count, hint))

    def error(self, what: str, where: str = "", count: int = 1, hint: str = "") -> None:
        """Add an error: the data cannot be used as they are."""
        self._add(Level.ERROR, what, where, count, hint)

    def warning(self, what: str, where: str = "", count: int = 1, hint: str = "") -> None:
        """Add a warning: the data can be used, but something was left out or looks wrong."""
        self._add(Level.WARNING, what, where, count, hint)

    def note(self, what: str, where: str = "", count: int = 1, hint: str = "") -> None:
        """Add a note: a choice that was made, or a fact worth knowing."""
        self._add(Level.NOTE, what, where, count, hint)

    def about(
        self,
        cases: Collection[object],
        what: str,
        hint: str = "",
        *,
        where: str = "",
        count: int = 0,
        level: Level = Level.WARNING,
    ) -> None:
        """Add a finding about some cases, if there are any; the first few are named beside the file `where`.

        They are counted unless a `count` is given.
        """
        if cases:
            place = ": ".join(part for part in (where, listed(cases)) if part)
            self._add(level, what, place, count or len(cases), hint)

    @property
    def errors(self) -> list[Finding]:
        """The findings that stop the work."""
        return [finding for finding in self if finding.level is Level.ERROR]
