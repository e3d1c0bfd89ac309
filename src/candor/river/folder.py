"""A basin on disk: a panel folder with its quality report and dataset card beside the readings.

quality.json    what was found at every site, what was decided, and the differences from the paper's table
card.md         the same for people: what the dataset is, where it comes from, how it was made
"""

import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from candor.core.errors import InputError
from candor.core.files import atomic_file, atomic_folder, read_json, remove_leftovers, sha256_of_file, write_json
from candor.data.catalog.registry import find_data
from candor.data.panel_store import check_panel_place, check_writable, is_panel_folder, load_panel, save_panel
from candor.data.writers import export_panel
from candor.river.build import Basin
from candor.river.quality import Difference, QualityReport, compare_totals, compare_with_paper, in_words
from candor.river.settings import PRESETS, preset_called

QUALITY = "quality.json"
CARD = "card.md"
CHECKSUMS = "SHA256SUMS"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # no time of its own: the same basin makes the same bytes


def save_basin(basin: Basin, folder: Path, preset: str | None = None) -> list[Difference]:
    """Write the basin to `folder`, all or nothing, and return its numbers beside those of the paper's table.

    A folder that holds anything but an earlier panel is refused.
    """
    folder = Path(folder)
    check_panel_place(folder)
    differences = []
    if preset is not None:
        differences = compare_with_paper(preset_called(preset), basin.report)
        differences += compare_totals(_reports(basin, folder, preset))
    # What builders of this folder that were killed while they wrote left beside it, under hidden names.
    for half_written in folder.parent.glob(f".{folder.name}.*"):
        remove_leftovers(half_written)  # of the panel that was being written into it
    remove_leftovers(folder)
    with atomic_folder(folder) as temporary:
        save_panel(basin.panel, temporary)
        paper = [asdict(difference) for difference in differences]
        write_json(temporary / QUALITY, basin.report.as_plain() | {"paper": paper})
        (temporary / CARD).write_text(dataset_card(basin, differences), encoding="utf-8")
    return differences


def _reports(basin: Basin, folder: Path, preset: str) -> dict[str, QualityReport]:
    """Return the reports of the paper's basins: this one, and those found beside it or among the datasets."""
    reports = {preset: basin.report}
    for name in PRESETS:
        for place in (folder.parent / name, find_data(name)):
            if name not in reports and place is not None and (place / QUALITY).is_file():
                content = read_json(place / QUALITY)
                try:
                    sites, edges, hours, observed = (
                        int(content[one]) for one in ("sites", "edges", "hours", "observed")
                    )
                except (LookupError, TypeError, ValueError):
                    what, where = "the quality report lacks its numbers", str(place / QUALITY)
                    raise InputError(what, where=where, hint="build the basin again") from None
                reports[name] = QualityReport((), sites, edges, hours, observed)
    return reports


def check_archive_path(path: Path) -> None:
    """Refuse a name under which no archive can be written."""
    if Path(path).suffix != ".zip":
        raise InputError("an archive is a zip file", where=str(path), hint="give a name that ends in .zip")
    if Path(path).is_dir():
        raise InputError("this is a folder, and an archive is a file", where=str(path), hint="give another name")
    check_writable(path)


def export_archive(folder: Path, path: Path) -> list[str]:
    """Write a basin's folder as a zip archive, all or nothing, and return the names of the files in it.

    The panel's own files lie in `panel/`, the same content as CSV in `csv/`, and `SHA256SUMS` can be checked with
    `sha256sum --check`.
    """
    folder, path = Path(folder), Path(path)
    check_archive_path(path)
    if not is_panel_folder(folder):
        raise InputError("this is not a panel folder", where=str(folder), hint="build the basin first")
    with tempfile.TemporaryDirectory() as workplace:
        export_panel(load_panel(folder), Path(workplace), "csv")
        files = {
            f"{name}/{file.relative_to(place).as_posix()}": file
            for name, place in (("panel", folder), ("csv", Path(workplace)))
            for file in place.rglob("*")
            if file.is_file()
        }
        with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(files):
                _add(archive, name, files[name].read_bytes())
            sums = "".join(f"{sha256_of_file(files[name])}  {name}\n" for name in sorted(files))
            _add(archive, CHECKSUMS, sums.encode())
    return [*sorted(files), CHECKSUMS]


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


_RULES = {
    "nearest": "the valid reading nearest the hour, at most half an hour away; of two equally near, the later one",
    "mean": "the mean of the valid readings from just under half an hour before the hour to half an hour after it",
}


def dataset_card(basin: Basin, differences: Sequence[Difference] = ()) -> str:
    """Return the card in Markdown: what the dataset is, where it comes from, and how it was made."""
    parts = {
        f"# {basin.panel.name}": _table(("fact", "value"), _facts(basin)),
        "## How it was made": _making(basin),
        "## Sites": _stations(basin),
        "## River": _edges(basin),
        "## What was noticed": "\n".join(f"- {in_words(one)}" for one in basin.report.findings),
        "## Beside the paper's table": _comparison(differences),
        "## Source": _source(basin),
    }
    return "\n\n".join(f"{title}\n\n{text}" for title, text in parts.items() if text) + "\n"


def _facts(basin: Basin) -> list[tuple[str, str]]:
    panel, report, settings = basin.panel, basin.report, basin.settings
    local, share = panel.times.local, f"{100 * report.observed_share:.2f} %"
    return [
        ("quantity", f"USGS parameter {settings.parameter}, {panel.unit or 'unit not stated'}, hourly"),
        ("where", f"hydrologic unit {settings.huc}"),
        ("when", f"{report.hours:,} hours, {local[0]} to {local[-1]} ({panel.times.zone})"),
        ("stations", f"{report.sites}"),
        ("network", f"{report.edges} directed pairs, downstream within {settings.max_distance_km:g} river km"),
        ("observed", f"{report.observed:,} of {report.station_hours:,} station-hours, {share}"),
        ("covariates", ", ".join(panel.covariates) or "none"),
        ("checksum", f"SHA-256 of the content: {panel.fingerprint}"),
    ]


def _making(basin: Basin) -> str:
    settings = basin.settings
    negative = "" if settings.keep_negative else " and negative ones"
    return f"""\
- Missing are sentinels, readings that are no numbers, infinite ones{negative}. Nothing is filled.
- The value of an hour is {_RULES[settings.hourly]}.
- Of several sensors at a site the one that observed most hours speaks for it.
- A station lacks at most {100 * settings.max_missing:g} % of the hours.
- An edge leads to a station on the main path downstream (NLDI navigation DM); its length is that of the river path, \
at most {settings.max_distance_km:g} km. There are no self-loops."""


def _stations(basin: Basin) -> str:
    rows = [
        (
            one.id,
            one.name,
            "yes" if one.is_kept else f"no: {one.reason}",
            "" if one.missing_share is None else f"{100 * one.missing_share:.2f}",
            "" if one.longest_gap_hours is None else f"{one.longest_gap_hours:,}",
            f"{sum(one.left_out.values()):,}",
            f"{one.sensor} {one.sensor_description}".strip(),
        )
        for one in basin.report.stations
    ]
    return _table(("site", "name", "in the panel", "missing %", "longest gap, h", "readings left out", "sensor"), rows)


def _edges(basin: Basin) -> str:
    ids, edges = basin.panel.sensor_ids, basin.panel.edges
    if not len(edges) or edges.distance is None:
        return ""
    ends = zip(edges.source, edges.target, edges.distance, strict=True)
    rows = [(ids[source], ids[target], f"{length:.2f}") for source, target, length in ends]
    return _table(("from", "to", "river km"), rows)


def _comparison(differences: Sequence[Difference]) -> str:
    rows = [
        (one.what, f"{one.paper:,}", f"{one.built:,}", "" if one.is_none else f"{one.built - one.paper:+,.10g}")
        for one in differences
    ]
    return _table(("number", "paper", "here", "difference"), rows) if rows else ""


def _source(basin: Basin) -> str:
    provenance = basin.panel.provenance
    dates = sorted(request["fetched"] for request in provenance.get("requests", ())) or ["-"]
    lines = [
        f"- {provenance.get('source', '')}, through {provenance.get('client', '')}.",
        f"- Fetched from {dates[0]} to {dates[-1]}; every request is listed in `panel.json`.",
        "- Licence: public domain (U.S. Geological Survey). Readings marked Provisional are subject to revision.",
    ]
    if rain := provenance.get("rain"):
        lines.append(f"- Rain: {rain.get('product', 'not named')}, {rain.get('row', 'as in `panel.json`')}.")
    return "\n".join(lines)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)
