"""The dataset card of a basin: what people should know before they use it."""

from collections.abc import Iterable, Sequence

from candor.river.build import Basin
from candor.river.presets import Difference
from candor.river.quality import in_words

_RULES = {
    "nearest": "the valid reading nearest the hour, at most half an hour away; of two equally near, the later one",
    "mean": "the mean of the valid readings from just under half an hour before the hour to half an hour after it",
}


def dataset_card(basin: Basin, differences: Sequence[Difference] = ()) -> str:
    """Returns the card in Markdown: what the dataset is, where it comes from, and how it was made."""
    sections = [_facts(basin), _making(basin), _stations(basin), _edges(basin), _findings(basin)]
    if differences:
        sections.append(_comparison(differences))
    sections.append(_source(basin))
    return "\n\n".join(section for section in sections if section) + "\n"


def _facts(basin: Basin) -> str:
    panel, report, settings = basin.panel, basin.report, basin.settings
    local = panel.times.local
    rows = [
        ("quantity", f"USGS parameter {settings.parameter}, {panel.unit or 'unit not stated'}, hourly"),
        ("where", f"hydrologic unit {settings.huc}"),
        ("when", f"{report.hours:,} hours, {local[0]} to {local[-1]} ({panel.times.zone})"),
        ("stations", f"{report.sites}"),
        ("network", f"{report.edges} directed pairs, downstream within {settings.max_distance_km:g} river km"),
        (
            "observed",
            f"{report.observed:,} of {report.station_hours:,} station-hours, {100 * report.observed_share:.2f} %",
        ),
        ("covariates", ", ".join(panel.covariates) or "none"),
        ("checksum", f"SHA-256 of the content: {panel.fingerprint}"),
    ]
    return f"# {panel.name}\n\n" + _table(("fact", "value"), rows)


def _making(basin: Basin) -> str:
    settings = basin.settings
    negative = "" if settings.keep_negative else " and negative ones"
    lines = [
        f"- Missing are sentinels, readings that are no numbers, infinite ones{negative}. Nothing is filled.",
        f"- The value of an hour is {_RULES[settings.hourly]}.",
        "- Of several sensors at a site the one that observed most hours speaks for it.",
        f"- A station lacks at most {100 * settings.max_missing:g} % of the hours.",
        "- An edge leads to a station on the main path downstream (NLDI navigation DM); its length is that of the river"
        f" path, at most {settings.max_distance_km:g} km. There are no self-loops.",
    ]
    return "## How it was made\n\n" + "\n".join(lines)


def _stations(basin: Basin) -> str:
    rows = [
        (
            one.id,
            one.name,
            "yes" if one.is_kept else f"no: {one.reason}",
            "" if one.missing_share is None else f"{100 * one.missing_share:.2f}",
            "" if one.longest_gap_hours is None else f"{one.longest_gap_hours:,}",
            f"{sum(one.left_out.values()):,}",
            " ".join(part for part in (one.sensor, one.sensor_description) if part),
        )
        for one in basin.report.stations
    ]
    heads = ("site", "name", "in the panel", "missing %", "longest gap, h", "readings left out", "sensor")
    return "## Sites\n\n" + _table(heads, rows)


def _edges(basin: Basin) -> str:
    panel = basin.panel
    if not len(panel.edges) or panel.edges.distance is None:
        return ""
    ids, edges = panel.sensor_ids, panel.edges
    ends = zip(edges.source, edges.target, panel.edges.distance, strict=True)
    rows = [(ids[source], ids[target], f"{length:.2f}") for source, target, length in ends]
    return "## River\n\n" + _table(("from", "to", "river km"), rows)


def _findings(basin: Basin) -> str:
    lines = [f"- {in_words(one)}" for one in basin.report.findings]
    return "## What was noticed\n\n" + "\n".join(lines) if lines else ""


def _comparison(differences: Sequence[Difference]) -> str:
    rows = [
        (one.what, f"{one.paper:,}", f"{one.built:,}", "" if one.is_none else f"{one.built - one.paper:+,.10g}")
        for one in differences
    ]
    return "## Beside the paper's table\n\n" + _table(("number", "paper", "here", "difference"), rows)


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
    return "## Source\n\n" + "\n".join(lines)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)
