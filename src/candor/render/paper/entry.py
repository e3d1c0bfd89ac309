"""An entry of a paper folder: its figures and tables are written, and what the index says of them is kept."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from candor.core.progress import Report
from candor.render.figures.style import Drawing
from candor.render.paper.tables import write_tables
from candor.research.paper.origins import Origin
from candor.research.tables import PaperTable


@dataclass(frozen=True)
class Picture:
    """A figure: its files are STEM.png, STEM.svg and STEM.csv, beside the index; and what it shows."""

    stem: str
    caption: str


@dataclass(frozen=True)
class ShownTable:
    """A table on the page."""

    table: PaperTable
    head: str = "model"  # what its first column holds
    is_folded: bool = False  # whether it is behind a line that opens it
    has_note: bool = True  # that of a grid's table says what stands below the entry in words


@dataclass(frozen=True)
class PaperEntry:
    """One thing to look at."""

    title: str
    shows: tuple[str, ...]  # in sentences
    origin: Origin  # of its numbers
    pictures: tuple[Picture, ...] = ()
    tables: tuple[ShownTable, ...] = ()
    files: tuple[tuple[str, str], ...] = ()  # further ones beside the index, with what links call them


@dataclass(frozen=True, eq=False)
class Part:
    """Work to be done for one section of the index."""

    section: str
    folder: str  # beside the index, for its files
    source: str  # what it is made of; named if it fails
    make: Callable[[Path, Report], Iterator[PaperEntry]]  # writes files to a folder
    weight: float = 1.0  # how long it takes, compared with the other parts


def draw(folder: Path, name: str, drawing: Drawing, caption: str) -> Picture:
    """Write a figure to the folder of a part and return it as the index shows it."""
    drawing.write(folder, name)
    return Picture(f"{folder.name}/{name}", caption)


def write_shown(
    tables: Sequence[PaperTable], folder: Path, name: str = "tables", words: str = "tables"
) -> tuple[tuple[str, str], ...]:
    """Write tables in each of their forms to the folder of a part and return these as further files of an entry."""
    called = (f"{words}: Markdown", "LaTeX", "HTML")
    files = write_tables(tables, folder, name)
    return tuple((f"{folder.name}/{file.name}", form) for file, form in zip(files, called, strict=True))


def make_slug(text: str, used: Iterable[str] = ()) -> str:
    """Return a text as the name of a file or folder, unlike those that are used already."""
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unnamed"
    names = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
    return next(name for name in names if name not in set(used))


def count_pieces(entries: Sequence[PaperEntry]) -> tuple[int, int]:
    """Return how many tables and figures there are."""
    return sum(len(entry.tables) for entry in entries), sum(len(entry.pictures) for entry in entries)
