"""Turns the notebooks of the site (`notebooks/*.py`, jupytext's percent form) into pages, and runs them on the way.

A hook of MkDocs: Markdown cells become text, code cells blocks of code, each with what it printed and drew. A cell that
fails ends the build, so that pages cannot show what no longer runs.
"""

from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import jupytext
from jupyter_client.manager import AsyncKernelManager
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Puts the page of a notebook, and its pictures, in the place of the notebook."""
    for file in list(files):
        if file.src_uri.startswith("notebooks/") and file.src_uri.endswith(".py"):
            files.remove(file)
            page = PurePosixPath(file.src_uri).with_suffix(".md")
            text, pictures = executed(file.content_string, page.stem)
            files.append(File.generated(config, str(page), content=text))
            for name, content in pictures.items():
                files.append(File.generated(config, str(page.with_name(name)), content=content))
    return files


@cache  # `mkdocs serve` builds often
def executed(source: str, stem: str) -> tuple[str, dict[str, bytes]]:
    """Returns the page of a notebook and its pictures by name."""
    notebook = jupytext.reads(source, fmt="py:percent")
    notebook.cells.insert(0, new_code_cell("%matplotlib inline"))
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc")  # no port of the machine is opened
    NotebookClient(notebook, km=manager, timeout=600).execute()
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    for cell in notebook.cells[1:]:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts.extend(shown(cell.outputs, stem, pictures))
    return "\n\n".join(parts), pictures


def shown(outputs: list[Any], stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """Yields what a cell printed and drew; pictures are added to those there are."""
    if printed := "".join(one.text for one in outputs if one.output_type == "stream" and one.name == "stdout"):
        yield f"```text\n{printed.rstrip()}\n```"
    for data in (one.data for one in outputs if one.output_type in {"display_data", "execute_result"}):
        if "image/png" in data:
            name = f"{stem}-{len(pictures) + 1}.png"
            pictures[name] = b64decode(data["image/png"])
            yield f"![Drawn by the cell above]({name})"
        else:
            yield f"```text\n{data['text/plain']}\n```"
