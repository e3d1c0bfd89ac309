"""HTML of the pages that candor writes to files: their frame with the one stylesheet, and pieces to put into it.

Whatever comes in as text is escaped here, so that no name can become a part of a page. Should one ever slip through,
the policy of the page still forbids the browser to fetch anything, and to run anything but the page's own scripts.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from urllib.parse import quote

from candor.core.versions import versions


class Html(str):
    """A text that is HTML already, and not escaped again."""


Cell = str | tuple[str, str]  # a text or HTML, or a text with small print under it
_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{subtitle}</p>
<nav aria-label="Sections">
{links}
</nav>
</header>
<main>
{body}
</main>
<footer><p>{footer}</p></footer>
{scripts}</body>
</html>
"""


@dataclass(frozen=True)
class Section:
    """A part of a page: what links call it, its heading, and its HTML."""

    name: str
    title: str
    body: str


def frame_page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    *,
    before: str = "",
    images: str = "data:",
    data: str = "",
    scripts: Sequence[str] = (),
    footer: str = "This file needs no network and no other file.",
) -> str:
    """Return a whole page with links to its sections.

    Args:
        title: of the page, any text.
        subtitle: a sentence under it, any text.
        sections: what it says, in this order.
        before: HTML that stands before them.
        images: where images may come from, as a Content-Security-Policy says it.
        data: HTML that stands behind everything else, for the scripts.
        scripts: the programs that may run.
        footer: a sentence, any text.
    """
    sums = (f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    runs = f" script-src {' '.join(sums)};" if scripts else ""
    rest = "base-uri 'none'; form-action 'none'"
    parts = (
        f'<section id="{escape(one.name)}">\n<h2>{escape(one.title)}</h2>\n{one.body}\n</section>' for one in sections
    )
    return _FRAME.format(
        policy=f"default-src 'none';{runs} style-src 'unsafe-inline'; img-src {images}; {rest}",
        title=escape(title),
        subtitle=escape(subtitle),
        style=files("candor.render").joinpath("page.css").read_text(encoding="utf-8"),
        links="\n".join(f'<a href="#{escape(one.name)}">{escape(one.title)}</a>' for one in sections),
        body="\n".join([*([before] if before else []), *parts]),
        footer=escape(f"Made by candor {versions().get('candor-forecast', '')}. {footer}"),
        scripts=data + "".join(f"<script>{script}</script>\n" for script in scripts),
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """Return one paragraph of sentences."""
    return f"<p>{escape(' '.join(sentences))}</p>"


def bullets(sentences: Iterable[str]) -> str:
    """Return a list with a line for each sentence."""
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def note(text: str, is_for_paper: bool = True) -> str:
    """Return small print, which may be left out on paper."""
    kind = "note" if is_for_paper else "note on-screen"
    return f'<p class="{kind}">{escape(text)}</p>'


def heading(text: str) -> str:
    """Return the heading of a part of a section."""
    return f"<h3>{escape(text)}</h3>"


def links(files_beside: Mapping[str, str]) -> str:
    """Return links to files beside the page, by their paths, with what they are called."""
    return ", ".join(f'<a href="{escape(quote(path))}">{escape(words)}</a>' for path, words in files_beside.items())


def figure_links(stem: str) -> str:
    """Return links to the files of a figure."""
    return links({f"{stem}.{ending}": ending.upper() for ending in ("png", "svg", "csv")})


def table(
    head: Sequence[str], rows: Iterable[Sequence[Cell]], words: int = 1, groups: Sequence[tuple[str, int]] = ()
) -> str:
    """Return a table whose first `words` columns are words and whose other columns are numbers.

    Args:
        head: names of the columns.
        rows: their cells.
        words: how many columns hold words.
        groups: names over groups of the columns that hold numbers, and how many columns each spans.
    """

    def line(tag: str, cells: Sequence[Cell]) -> str:
        kinds = ("" if place < words else ' class="number"' for place in range(len(cells)))
        inside = (f"<{tag}{kind}>{_cell(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    body = "\n".join(line("td", row) for row in rows)
    over = "".join(f'<th class="group" colspan="{span}">{escape(name)}</th>' for name, span in groups)
    head_lines = (f"<tr>{'<th></th>' * words}{over}</tr>\n" if groups else "") + line("th", head)
    return (
        f'<div class="wide" tabindex="0"><table>\n<thead>{head_lines}</thead>\n<tbody>\n{body}\n</tbody></table></div>'
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell if isinstance(cell, Html) else escape(cell)
    main, small = cell
    return f"{escape(main)}<small>{escape(small)}</small>" if small else escape(main)


def folded(summary: str, inside: str) -> str:
    """Return HTML behind a line that opens it."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{inside}\n</details>"


def cards(facts: Iterable[tuple[str, str]]) -> str:
    """Return the few numbers that matter most: each a number and what it is."""
    inside = (f"<li><strong>{escape(figure)}</strong> <span>{escape(words)}</span></li>" for figure, words in facts)
    return f'<ul class="cards">\n{"".join(inside)}\n</ul>'
