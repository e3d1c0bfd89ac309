"""Pages read back: their elements, tables and data; and names that would do harm if a page took them for its own."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from candor.data.panel import Panel, Sensor

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Reader(HTMLParser):
    """Reads a page as a browser would, and refuses one whose elements do not nest.

    Args:
        page: the HTML.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Remembers an element that begins, and a row or a cell of a table with it."""
        self.elements.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Refuses an end that is not that of the last element."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remembers a text by its element, and by its cell."""
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data

    def tags(self) -> list[str]:
        """Returns the kinds of all elements."""
        return [tag for tag, _ in self.elements]

    def values(self, *names: str) -> list[str]:
        """Returns the values of attributes with some names."""
        return [found[name] or "" for _, found in self.elements for name in names if name in found]

    def words(self) -> str:
        """Returns all texts that are shown, from first to last within each kind of element."""
        return " ".join(text for tag, texts in self.texts.items() if tag not in ("style", "script") for text in texts)

    def sections(self) -> set[str | None]:
        """Returns the names of the sections."""
        return {attributes["id"] for tag, attributes in self.elements if tag == "section"}

    def data(self) -> dict[str, Any]:
        """Returns what the page hands to its script."""
        (content,) = (text for text in self.texts["script"] if text.startswith('{"charts"'))
        found: dict[str, Any] = json.loads(content)
        return found


def with_evil_names(panel: Panel) -> Panel:
    """Returns a panel in which whatever has a name is called by a script."""
    sensors = [Sensor(f"{EVIL}{place}", EVIL, unit=EVIL) for place in range(len(panel.sensors))]
    return replace(panel, sensors=tuple(sensors), name=EVIL)
