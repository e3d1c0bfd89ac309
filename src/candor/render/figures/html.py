"""The frame of every page that candor writes to a file."""

from collections.abc import Mapping
from html import escape

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
{links}</header>
<main>
{body}
</main>
<footer><p>{footer}</p></footer>
{scripts}</body>
</html>
"""


def frame_page(
    title: str,
    subtitle: str,
    body: str,
    footer: str,
    *,
    policy: str,
    style: str,
    sections: Mapping[str, str] | None = None,
    scripts: str = "",
) -> str:
    """Returns a whole page.

    Args:
        title: of the page, any text.
        subtitle: a sentence under it, any text.
        body: HTML of what stands between header and footer.
        footer: a sentence, any text.
        policy: what the browser may do, as a Content-Security-Policy.
        style: CSS.
        sections: titles of the sections by name, for links to them in the header.
        scripts: HTML of script elements.
    """
    links = [f'<a href="#{escape(name)}">{escape(words)}</a>\n' for name, words in (sections or {}).items()]
    return _FRAME.format(
        policy=policy,
        title=escape(title),
        subtitle=escape(subtitle),
        style=style,
        links=f'<nav aria-label="Sections">\n{"".join(links)}</nav>\n' if links else "",
        body=body,
        footer=escape(footer),
        scripts=scripts,
    )
