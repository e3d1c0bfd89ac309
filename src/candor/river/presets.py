"""The paper's three basins: how they are built, and what its table water_dataset_statistics says of them.

The table gives years only. Five whole years of 43,824 hours fit 2014 to 2018; for the other two basins water years
(October to September) are our inference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from candor.core.errors import InputError
from candor.river.quality import QualityReport
from candor.river.settings import BasinSettings

OBSERVED_IN_ALL = 1_837_295
STATION_HOURS_IN_ALL = 1_884_432


@dataclass(frozen=True)
class Preset:
    """A basin of the paper; `observed_percent` as the table rounds it."""

    title: str
    settings: BasinSettings
    sites: int
    edges: int
    hours: int
    observed_percent: float


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


def _preset(title: str, huc: str, start: str, end: str, sites: int, edges: int, percent: float) -> Preset:
    return Preset(title, BasinSettings(huc=huc, start=start, end=end), sites, edges, 43_824, percent)


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "basin030501": _preset("Santee", "030501", "2014-01-01", "2018-12-31", 12, 17, 98.66),
        "basin031300": _preset("Apalachicola", "031300", "2017-10-01", "2022-09-30", 20, 28, 96.44),
        "basin180102": _preset("Klamath", "180102", "2020-10-01", "2025-09-30", 11, 42, 98.15),
    }
)


def preset_called(name: str) -> Preset:
    """Returns the preset called `name`, or says which there are."""
    if name not in PRESETS:
        raise InputError(f"there is no preset called {name!r}", hint=f"known: {', '.join(PRESETS)}")
    return PRESETS[name]


def compare_with_paper(preset: Preset, report: QualityReport) -> list[Difference]:
    """Returns every number of the paper's table row beside the one of the basin that was built."""
    return [
        Difference("sites", preset.sites, report.sites),
        Difference("edges", preset.edges, report.edges),
        Difference("hours", preset.hours, report.hours),
        Difference("station-hours", preset.sites * preset.hours, report.station_hours),
        Difference("observed, %", preset.observed_percent, round(100 * report.observed_share, 2)),
    ]


def compare_totals(reports: Mapping[str, QualityReport]) -> list[Difference]:
    """Returns the paper's numbers of all three basins beside those built, or nothing while one of them is not built."""
    if set(reports) != set(PRESETS):
        return []
    built = list(reports.values())
    return [
        Difference("sites of all three", sum(p.sites for p in PRESETS.values()), sum(r.sites for r in built)),
        Difference("edges of all three", sum(p.edges for p in PRESETS.values()), sum(r.edges for r in built)),
        Difference("station-hours of all three", STATION_HOURS_IN_ALL, sum(r.station_hours for r in built)),
        Difference("observed of all three", OBSERVED_IN_ALL, sum(r.observed for r in built)),
    ]
