"""An entry of a paper folder: its figures and tables are written, and what the index says of them is kept."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from candor.core.progress import Report
from candor.render.figures.style import Drawing
from candor.research.paper.origins import Origin
from candor.research.tables import PaperTable


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

    table: PaperTable
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


def draw(folder: Path, name: str, drawing: Drawing, caption: str) -> Picture:
    """Writes a figure to the folder of a part and returns it as the index shows it."""
    drawing.write(folder, name)
    return Picture(f"{folder.name}/{name}", caption)


def table_files(folder: str, name: str = "tables", words: str = "tables") -> tuple[tuple[str, str], ...]:
    """Returns the three forms in which `write_tables` wrote tables, as further files of an entry."""
    forms = {"md": f"{words}: Markdown", "tex": "LaTeX", "html": "HTML"}
    return tuple((f"{folder}/{name}.{ending}", form) for ending, form in forms.items())


def make_slug(text: str, used: Iterable[str] = ()) -> str:
    """Returns a text as the name of a file or folder, unlike those that are used already."""
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unnamed"
    taken, name, number = set(used), plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    return name


def count_pieces(entries: Sequence[Entry]) -> tuple[int, int]:
    """Returns how many tables and figures there are."""
    return sum(len(entry.tables) for entry in entries), sum(len(entry.pictures) for entry in entries)
