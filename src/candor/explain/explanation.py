"""Explanations as plain data: of a run or of one forecast, finding by finding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from candor.explain.pictures import Picture


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers to look up, as text; the first `words` columns are words."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1


@dataclass(frozen=True, eq=False)
class Finding:
    """The answer to one question.

    Args:
        name: of its files.
        title: the question, or what it is about.
        sentences: the answer; where the network has no such part, that.
        numbers: the same for scripts; None where there is no such number.
        pictures: what its figures show, by the name of their files.
        table: numbers that stand beside it.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    table: Table | None = None


@dataclass(frozen=True, eq=False)
class Explanation:
    """What is said of a run, or of one of its forecasts."""

    title: str
    subtitle: str
    findings: tuple[Finding, ...]

    @property
    def pictures(self) -> dict[str, Picture]:
        """All pictures, by the name of their files."""
        return {name: picture for finding in self.findings for name, picture in finding.pictures.items()}
