"""What was noticed about somebody's data: how bad, where, how often, and what to do about it."""

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
    """A list of findings that readers add to as they go."""

    def error(self, what: str, where: str = "", count: int = 1, hint: str = "") -> None:
        """Adds an error: the data cannot be used as they are."""
        self.append(Finding(Level.ERROR, what, where, count, hint))

    def warning(self, what: str, where: str = "", count: int = 1, hint: str = "") -> None:
        """Adds a warning: the data can be used, but something was left out or looks wrong."""
        self.append(Finding(Level.WARNING, what, where, count, hint))

    def note(self, what: str, where: str = "", count: int = 1, hint: str = "") -> None:
        """Adds a note: a choice that was made, or a fact worth knowing."""
        self.append(Finding(Level.NOTE, what, where, count, hint))

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
        """Adds a finding about some cases, if there are any; the first few are named.

        Args:
            cases: what the finding is about, as they are to be named.
            what: the finding in words.
            hint: what to do about it.
            where: the file that the cases are in.
            count: how many cases to count, if not those that are named.
            level: how much it matters.
        """
        if cases:
            place = ": ".join(part for part in (where, listed(cases)) if part)
            self.append(Finding(level, what, place, count or len(cases), hint))

    @property
    def errors(self) -> list[Finding]:
        """The findings that stop the work."""
        return [finding for finding in self if finding.level is Level.ERROR]
