"""An explanation as a folder to read: figures with their numbers, two pages, and a summary for scripts."""

from base64 import b64encode
from collections.abc import Mapping
from html import escape
from pathlib import Path

from candor.core.files import atomic_folder, check_replaceable, write_json
from candor.core.progress import Report, silent
from candor.explain.explanation import Explanation, ModelFinding
from candor.explain.run import FORMAT, RunExplanation
from candor.render.figures.gallery import write_figures
from candor.render.html import Section, bullets, figure_links, folded, frame_page, paragraphs, table

EXPLAINED, INDEX, FORECAST_PAGE, SUMMARY = "explained", "index.html", "forecast.html", "summary.json"
_LINKS = {"forecast": f'<p><a href="{FORECAST_PAGE}">The whole story of this forecast</a></p>'}


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier explanation: it would be lost."""
    check_replaceable(folder, SUMMARY, FORMAT, "an explanation")


def write_explanation(found: RunExplanation, folder: Path, report: Report = silent) -> None:
    """Write an explanation into a folder, which is made anew, all or nothing; see `check_folder`."""
    check_folder(folder)
    with atomic_folder(folder) as temporary:
        write_figures(found.pictures, temporary, report)
        images = {name: (temporary / f"{name}.png").read_bytes() for name in found.pictures}
        made = ModelFinding("circumstances", "How this was made", found.circumstances)
        index = Explanation(found.run.title, found.run.subtitle, (*found.run.findings, made))
        (temporary / INDEX).write_text(make_page(index, images), encoding="utf-8")
        (temporary / FORECAST_PAGE).write_text(make_page(found.forecast, images), encoding="utf-8")
        write_json(temporary / SUMMARY, dict(found.summary))


def make_page(explanation: Explanation, images: Mapping[str, bytes]) -> str:
    """Return a whole page, which needs neither network nor script; images are PNG, by the name of their files."""
    sections = [_section(finding, images) for finding in explanation.findings]
    return frame_page(explanation.title, explanation.subtitle, sections)


def _section(finding: ModelFinding, images: Mapping[str, bytes]) -> Section:
    parts = [bullets(finding.sentences) if len(finding.sentences) > 1 else paragraphs(finding.sentences)]
    for name in finding.pictures:
        source = f"data:image/png;base64,{b64encode(images[name]).decode()}"
        parts.append(f'<img alt="{escape(f"Figure: {finding.title}")}" src="{source}">')
        parts.append(f'<p class="files">This figure and its numbers: {figure_links(name)}</p>')
    if finding.table is not None:
        parts.append(folded(finding.table.title, table(finding.table.head, finding.table.rows, finding.table.words)))
    parts.append(_LINKS.get(finding.name, ""))
    return Section(finding.name, finding.title, "\n".join(parts))
