"""What was found in a basin and what was decided, and its numbers beside those of the paper's table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from candor.data.findings import Finding
from candor.river.settings import PRESETS, BasinPreset

OBSERVED_IN_ALL = 1_837_295
STATION_HOURS_IN_ALL = 1_884_432


@dataclass(frozen=True)
class StationQuality:
    """One site: what its sensor sent, what of it counts, and why the site is in the basin or not.

    `sensor` is the chosen time series, `observed_hours` what each sensor of the site has; `missing_share` is None for a
    site that was not fetched because its record is too short.
    """

    id: str
    name: str
    is_kept: bool
    reason: str = ""
    sensor: str = ""
    sensor_description: str = ""
    observed_hours: Mapping[str, int] = field(default_factory=dict)
    missing_share: float | None = None
    longest_gap_hours: int | None = None
    readings: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    approvals: Mapping[str, int] = field(default_factory=dict)
    qualifiers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class QualityReport:
    """All sites that were looked at, the numbers of the panel made of them, and what was noticed on the way."""

    stations: Sequence[StationQuality]
    sites: int
    edges: int
    hours: int
    observed: int
    findings: Sequence[Finding] = ()

    @property
    def station_hours(self) -> int:
        """Sites times hours."""
        return self.sites * self.hours

    @property
    def observed_share(self) -> float:
        """The share of station-hours with a value."""
        return self.observed / self.station_hours if self.station_hours else 0.0

    def as_plain(self) -> dict[str, Any]:
        """Return the report as content for JSON."""
        return asdict(self) | {"station_hours": self.station_hours, "observed_share": self.observed_share}


def in_words(finding: Finding) -> str:
    """Return a finding as one line: how grave, where, what, how often, and how to correct it."""
    where = f"{finding.where} " if finding.where else ""
    times = f" ({finding.count:,} times)" if finding.count > 1 else ""
    hint = f"; hint: {finding.hint}" if finding.hint else ""
    return f"{finding.level}: {where}{finding.what}{times}{hint}"


@dataclass(frozen=True)
class Difference:
    """One number of the paper's table beside the one that was built."""

    what: str
    paper: float
    built: float

    @property
    def is_none(self) -> bool:
        """Whether the two are equal."""
        return self.paper == self.built


def compare_with_paper(preset: BasinPreset, report: QualityReport) -> list[Difference]:
    """Return every number of the paper's table row beside the one of the basin that was built."""
    return [
        Difference("sites", preset.sites, report.sites),
        Difference("edges", preset.edges, report.edges),
        Difference("hours", preset.hours, report.hours),
        Difference("station-hours", preset.sites * preset.hours, report.station_hours),
        Difference("observed, %", preset.observed_percent, round(100 * report.observed_share, 2)),
    ]


def compare_totals(reports: Mapping[str, QualityReport]) -> list[Difference]:
    """Return the paper's numbers of all three basins beside those built, or nothing while one of them is not built."""
    if set(reports) != set(PRESETS):
        return []
    paper = {name: sum(getattr(preset, name) for preset in PRESETS.values()) for name in ("sites", "edges")}
    paper |= {"station_hours": STATION_HOURS_IN_ALL, "observed": OBSERVED_IN_ALL}
    return [
        Difference(
            f"{name.replace('_', '-')} of all three", total, sum(getattr(report, name) for report in reports.values())
        )
        for name, total in paper.items()
    ]
