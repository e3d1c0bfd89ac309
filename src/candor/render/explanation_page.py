"""Pages that need neither network nor script: words, pictures inside the file, and tables.

Whatever comes in as text is escaped here, so that no name can become a part of a page; and should one ever slip
through, the page forbids the browser to run or to fetch anything.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

from candor.core.versions import versions
from candor.render.figures.html import frame_page
from candor.render.figures.style import Drawing

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, eq=False)
class PageTable:
    """A table behind a line that opens it; its first `words` columns are words, the others numbers."""

    summary: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1


@dataclass(frozen=True, eq=False)
class PageSection:
    """A part of a page.

    Args:
        title: its heading.
        sentences: each a line of its own.
        drawings: figures by the name of their files.
        table: numbers to look up.
        link: a file beside the page, and what the link says.
    """

    title: str
    sentences: Sequence[str]
    drawings: dict[str, Drawing] = field(default_factory=dict)
    table: PageTable | None = None
    link: tuple[str, str] | None = None


def make_page(title: str, subtitle: str, sections: Sequence[PageSection], pictures: dict[str, bytes]) -> str:
    """Returns a whole page.

    Args:
        title: of the page.
        subtitle: a sentence under it.
        sections: its parts.
        pictures: the drawings of all sections as PNG, by the name of their files.
    """
    style = files("candor.render").joinpath("explanation_page.css").read_text(encoding="utf-8")
    version = versions().get("candor-forecast", "")
    return frame_page(
        title,
        subtitle,
        "\n".join(_section(section, pictures) for section in sections),
        f"Made by candor {version}. This file needs no network and no other file.",
        policy=_POLICY,
        style=style,
    )


def _section(section: PageSection, pictures: dict[str, bytes]) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    lines = [escape(sentence) for sentence in section.sentences]
    parts.append(
        f"<p>{lines[0]}</p>" if len(lines) == 1 else f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"
    )
    parts += [_picture(name, section.title, pictures[name]) for name in section.drawings]
    if section.table is not None:
        parts.append(_table(section.table))
    if section.link is not None:
        file, words = section.link
        parts.append(f'<p><a href="{escape(file)}">{escape(words)}</a></p>')
    inside = "\n".join(parts)
    return f"<section>\n{inside}\n</section>"


def _picture(name: str, title: str, picture: bytes) -> str:
    """Returns a picture with links to the files of its figure beside the page."""
    links = ", ".join(f'<a href="{escape(name)}.{ending}">{ending.upper()}</a>' for ending in ("png", "svg", "csv"))
    data = b64encode(picture).decode()
    return (
        f'<img alt="{escape(f"Figure: {title}")}" src="data:image/png;base64,{data}">\n'
        f'<p class="files">This figure and its numbers: {links}</p>'
    )


def _table(table: PageTable) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        kinds = ("" if place < table.words else ' class="number"' for place in range(len(cells)))
        inside = (f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    rows = "\n".join(line("td", row) for row in table.rows)
    inside = f"<table>\n<thead>{line('th', table.head)}</thead>\n<tbody>\n{rows}\n</tbody></table>"
    summary = f"<summary>{escape(table.summary)}</summary>"
    return f'<details>\n{summary}\n<div class="wide" tabindex="0">{inside}</div>\n</details>'
