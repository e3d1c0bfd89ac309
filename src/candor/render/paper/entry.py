"""What a paper folder holds: entries with tables and figures, what is missing, and what could not be read."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from candor.core.progress import Report
from candor.core.text import NOTHING
from candor.research.tables import Table

UNKNOWN = "not recorded"


@dataclass(frozen=True)
class Origin:
    """Where numbers come from.

    Args:
        source: the file or folder they were read from.
        command: that made them.
        data: what they are about, with unit and checksum where those are known.
        protocol: how they were made, in words.
        made: the dates of the results.
        versions: what they were made with.
    """

    source: str
    command: str
    data: str = NOTHING
    protocol: str = NOTHING
    made: str = UNKNOWN
    versions: str = UNKNOWN


@dataclass(frozen=True)
class Picture:
    """A figure: its files are STEM.png, STEM.svg and STEM.csv, beside the index; and what it shows."""

    stem: str
    caption: str


@dataclass(frozen=True)
class ShownTable:
    """A table on the page.

    Args:
        table: its content.
        head: what its first column holds.
        is_folded: whether it is behind a line that opens it.
        has_note: whether its note is shown; that of a grid's table says what stands below the entry in words.
    """

    table: Table
    head: str = "model"
    is_folded: bool = False
    has_note: bool = True


@dataclass(frozen=True)
class Entry:
    """One thing to look at.

    Args:
        title: what it is.
        shows: what it shows, in sentences.
        origin: where its numbers come from.
        pictures: its figures.
        tables: its tables.
        files: further files beside the index, with what links call them.
    """

    title: str
    shows: tuple[str, ...]
    origin: Origin
    pictures: tuple[Picture, ...] = ()
    tables: tuple[ShownTable, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Missing:
    """What the paper has and this folder has not, and the command that would make it."""

    what: str
    command: str


@dataclass(frozen=True)
class Trouble:
    """A result that could not be read or drawn, and why."""

    where: str
    what: str


@dataclass(frozen=True, eq=False)
class Part:
    """Work to be done for one section of the index.

    Args:
        section: name of the section.
        folder: name of the folder beside the index that its files go to.
        source: what it is made of; named if it fails.
        make: writes files to a folder and returns the entries.
        weight: how long it takes, compared with the other parts.
    """

    section: str
    folder: str
    source: str
    make: Callable[[Path, Report], list[Entry]]
    weight: float = 1.0


def make_slug(text: str, used: Iterable[str] = ()) -> str:
    """Returns a text as the name of a file or folder, unlike those that are used already."""
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unnamed"
    taken, name, number = set(used), plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    return name


def table_files(folder: str, name: str = "tables", words: str = "tables") -> tuple[tuple[str, str], ...]:
    """Returns the three forms in which `write_tables` wrote tables, as further files of an entry."""
    forms = {"md": f"{words}: Markdown", "tex": "LaTeX", "html": "HTML"}
    return tuple((f"{folder}/{name}.{ending}", form) for ending, form in forms.items())


def in_versions(found: Iterable[Mapping[str, object]]) -> str:
    """Returns versions as a sentence; where results differ, all versions of a package."""
    by_package: dict[str, dict[str, None]] = {}
    for one in found:
        for package, version in one.items():
            by_package.setdefault(str(package), {})[str(version)] = None
    return ", ".join(f"{package} {' and '.join(versions)}" for package, versions in by_package.items()) or UNKNOWN


def in_dates(found: Iterable[str]) -> str:
    """Returns the first and the last of some dates in ISO form, of which the day counts."""
    days = sorted({date[:10] for date in found if date})
    if not days:
        return UNKNOWN
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def joined(origins: Sequence[Origin]) -> Origin:
    """Returns one origin for numbers of several; what is the same in all is said once."""
    return Origin(
        source=_listed([origin.source for origin in origins]),
        command="\n".join(dict.fromkeys(origin.command for origin in origins)),
        data=_listed([origin.data for origin in origins]),
        protocol=_listed([origin.protocol for origin in origins], " "),
        made=_listed([origin.made for origin in origins]),
        versions=_listed([origin.versions for origin in origins]),
    )


def _listed(texts: Sequence[str], between: str = "; ") -> str:
    return between.join(dict.fromkeys(texts))
