"""Explanations as plain data: of a run or of one forecast, finding by finding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from candor.explain.pictures import AnyPicture


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers to look up, as text; the first `words` columns are words."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1


@dataclass(frozen=True, eq=False)
class ModelFinding:
    """The answer to one question."""

    name: str  # of its files
    title: str  # the question, or what it is about
    sentences: tuple[str, ...]  # the answer, or which part the network lacks for one
    numbers: Mapping[str, Any] = field(default_factory=dict)  # the answer for scripts
    pictures: Mapping[str, AnyPicture] = field(default_factory=dict)  # by the name of their files
    table: Table | None = None


@dataclass(frozen=True, eq=False)
class Explanation:
    """All findings about a run, or about one of its forecasts."""

    title: str
    subtitle: str
    findings: tuple[ModelFinding, ...]

    @property
    def pictures(self) -> dict[str, AnyPicture]:
        """All pictures, by the name of their files."""
        return {name: picture for finding in self.findings for name, picture in finding.pictures.items()}
