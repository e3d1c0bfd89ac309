"""An explanation as a folder to read: figures with their numbers, two pages, and a summary for scripts.

Pages need neither network nor script, and forbid the browser to run or to fetch anything.
"""

from base64 import b64encode
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path

from candor.core.errors import InputError
from candor.core.files import atomic_folder, is_of_format, write_json
from candor.core.progress import Report, silent
from candor.core.versions import versions
from candor.explain.explanation import Explanation, Finding
from candor.explain.run import FORMAT, RunExplanation
from candor.render.figures.gallery import write_figures
from candor.render.html import folded, frame_page, table

EXPLAINED, INDEX, FORECAST_PAGE, SUMMARY = "explained", "index.html", "forecast.html", "summary.json"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_LINKS = {"forecast": f'<p><a href="{FORECAST_PAGE}">The whole story of this forecast</a></p>'}


def check_folder(folder: Path) -> None:
    """Refuses a folder that holds anything but an earlier explanation: it would be lost."""
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file, and a folder is needed", where=str(folder), hint="choose another place")
    if folder.is_dir() and any(folder.iterdir()) and not is_of_format(folder / SUMMARY, FORMAT):
        raise InputError(
            "this folder holds other things, and an explanation takes the place of all that is in its folder",
            where=str(folder),
            hint="choose an empty folder or a new one: --out DIR",
        )


def write_explanation(found: RunExplanation, folder: Path, report: Report = silent) -> None:
    """Writes an explanation into a folder, which is made anew, all or nothing; see `check_folder`."""
    check_folder(folder)
    try:
        with atomic_folder(folder) as temporary:
            write_figures(found.pictures, temporary, report)
            images = {name: (temporary / f"{name}.png").read_bytes() for name in found.pictures}
            made = Finding("circumstances", "How this was made", found.circumstances)
            index = Explanation(found.run.title, found.run.subtitle, (*found.run.findings, made))
            (temporary / INDEX).write_text(make_page(index, images), encoding="utf-8")
            (temporary / FORECAST_PAGE).write_text(make_page(found.forecast, images), encoding="utf-8")
            write_json(temporary / SUMMARY, dict(found.summary))
    except OSError as error:
        what = f"the explanation cannot be written ({error.strerror or error})"
        raise InputError(what, where=str(folder), hint="choose another place, or make room") from None


def make_page(explanation: Explanation, images: Mapping[str, bytes]) -> str:
    """Returns a whole page.

    Args:
        explanation: what it says.
        images: its pictures as PNG, by the name of their files.
    """
    return frame_page(
        explanation.title,
        explanation.subtitle,
        "\n".join(_section(finding, images) for finding in explanation.findings),
        f"Made by candor {versions().get('candor-forecast', '')}. This file needs no network and no other file.",
        policy=_POLICY,
        style=files("candor.render").joinpath("explanation_page.css").read_text(encoding="utf-8"),
    )


def _section(finding: Finding, images: Mapping[str, bytes]) -> str:
    lines = [escape(sentence) for sentence in finding.sentences]
    parts = [f"<h2>{escape(finding.title)}</h2>"]
    parts.append(
        f"<p>{lines[0]}</p>" if len(lines) == 1 else f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"
    )
    parts += [_image(name, finding.title, images[name]) for name in finding.pictures]
    if finding.table is not None:
        parts.append(folded(finding.table.title, table(finding.table.head, finding.table.rows, finding.table.words)))
    parts.append(_LINKS.get(finding.name, ""))
    inside = "\n".join(parts)
    return f"<section>\n{inside}\n</section>"


def _image(name: str, title: str, image: bytes) -> str:
    """Returns a picture with links to the files of its figure beside the page."""
    links = ", ".join(f'<a href="{escape(name)}.{ending}">{ending.upper()}</a>' for ending in ("png", "svg", "csv"))
    return (
        f'<img alt="{escape(f"Figure: {title}")}" src="data:image/png;base64,{b64encode(image).decode()}">\n'
        f'<p class="files">This figure and its numbers: {links}</p>'
    )
