"""Which basin is to be built, by which rules; the three of the paper with the numbers of its table."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from candor.core.errors import InputError
from candor.core.settings import Settings
from candor.data.times import TimeAxis

HOUR = timedelta(hours=1)
Hourly = Literal["nearest", "mean"]


class BasinSettings(Settings):
    """A basin, a quantity, a period, and the paper's rules for what is kept."""

    huc: str = Field(pattern=r"^(\d\d){1,6}$")
    """Hydrologic unit code of the basin: 2, 4, 6, 8, 10 or 12 digits, such as 180102 for the Klamath."""
    parameter: str = Field(default="00300", pattern=r"^\d{5}$")
    """Five-digit USGS parameter code; 00300 is dissolved oxygen in mg/L."""
    start: str
    """First moment or day, on the local clock."""
    end: str
    """Last moment, or last day with all its hours, on the local clock."""
    zone: str | None = None
    """Local zone of the panel; None takes the zone in which most of the sites lie."""
    max_missing: float = Field(default=0.10, ge=0, lt=1)
    """Largest share of hours a station may lack."""
    max_distance_km: float = Field(default=200.0, gt=0, le=5000)
    """Longest river path of an edge, in kilometres."""
    min_sites: int = Field(default=10, ge=1)
    """Fewest stations of a basin."""
    min_edges: int | None = Field(default=None, ge=0)
    """Fewest edges; None asks for one less than there are stations."""
    hourly: Hourly = "nearest"
    """The reading nearest the hour, at most half an hour away; or the mean of the hour around it."""
    keep_negative: bool = False
    """Whether negative readings count. They do for temperature; an oxygen content cannot be negative."""


def period(start: str, end: str, zone: str) -> TimeAxis:
    """Return the hours from `start` to `end` on the clock of `zone`; a bare date as `end` means its whole day."""
    epoch = TimeAxis(datetime(1970, 1, 1, tzinfo=UTC), HOUR, 0, zone)
    axis = epoch.slice(epoch.index_of(start), epoch.index_after(end))
    if axis.length == 0:
        raise InputError(f"the period from {start} to {end} has no hours", hint="let --end lie after --start")
    if axis.end > datetime.now(UTC):
        raise InputError(
            f"the period ends on {end}, which is not over yet",
            hint="give an --end in the past: answers are kept on disk, and an unfinished one would stay unfinished",
        )
    return axis


# The table water_dataset_statistics of the paper gives years only. Five whole years of 43,824 hours fit 2014 to 2018;
# for the other two basins water years (October to September) are our inference.
@dataclass(frozen=True)
class BasinPreset:
    """A basin of the paper; `observed_percent` as the table rounds it."""

    title: str
    settings: BasinSettings
    sites: int
    edges: int
    observed_percent: float
    hours: int = 43_824


_SANTEE = BasinSettings(huc="030501", start="2014-01-01", end="2018-12-31")
_APALACHICOLA = BasinSettings(huc="031300", start="2017-10-01", end="2022-09-30")
_KLAMATH = BasinSettings(huc="180102", start="2020-10-01", end="2025-09-30")
PRESETS: Mapping[str, BasinPreset] = MappingProxyType(
    {
        "basin030501": BasinPreset("Santee", _SANTEE, sites=12, edges=17, observed_percent=98.66),
        "basin031300": BasinPreset("Apalachicola", _APALACHICOLA, sites=20, edges=28, observed_percent=96.44),
        "basin180102": BasinPreset("Klamath", _KLAMATH, sites=11, edges=42, observed_percent=98.15),
    }
)


def preset_called(name: str) -> BasinPreset:
    """Return the preset called `name`, or say which there are."""
    if name not in PRESETS:
        raise InputError(f"there is no preset called {name!r}", hint=f"known: {', '.join(PRESETS)}")
    return PRESETS[name]
