"""`candor data build-river`: a basin from the public services of the USGS, as a panel folder."""

import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape

from candor.cli import inputs
from candor.cli.inputs import option
from candor.cli.screen import percentage, print_json, progress, say, show_table, tell
from candor.core.errors import InputError
from candor.core.text import NOTHING, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from candor.core.progress import Report
    from candor.river.build import Basin, RainStep
    from candor.river.cache import ResponseCache
    from candor.river.imerg import EarthdataArchive
    from candor.river.quality import Difference
    from candor.river.settings import BasinSettings


@dataclass(frozen=True)
class BasinOptions:
    """What the basin is to be; None stands for the value of the preset, or for the default."""

    huc: Annotated[str | None, option("Hydrologic unit of the basin, 2 to 12 digits, e.g. 180102.")] = None
    parameter: Annotated[str | None, option("USGS parameter code. (default: 00300, dissolved oxygen)")] = None
    start: Annotated[str | None, option("First day or time, on the local clock.")] = None
    end: Annotated[str | None, option("Last day or time, on the local clock.")] = None
    zone: Annotated[str | None, option("Local zone. (default: where most sites lie)")] = None
    max_missing: Annotated[float | None, option("Largest share of hours a station may lack. (default: 0.10)")] = None
    max_distance_km: Annotated[float | None, option("Longest river path of an edge. (default: 200)")] = None
    min_sites: Annotated[int | None, option("Fewest stations. (default: 10)")] = None
    min_edges: Annotated[int | None, option("Fewest edges. (default: one less than there are stations)")] = None
    hourly: Annotated[str | None, option("nearest: the reading nearest the hour; mean: of the hour around it.")] = None
    keep_negative: Annotated[
        bool | None, option("Count negative readings, e.g. of temperature.", "--keep-negative")
    ] = None

    def settings(self, preset: str | None) -> "BasinSettings":
        """Return the settings of a preset, if there is one, with the given options in their place."""
        from candor.core.settings import parse_settings
        from candor.river.settings import BasinSettings, preset_called

        given = {name: value for name, value in vars(self).items() if value is not None}
        if preset is not None:
            if "huc" in given:
                raise InputError("a preset has its own basin", hint="give --preset or --huc")
            given = preset_called(preset).settings.model_dump() | given
        lacking = [f"--{name}" for name in ("huc", "start", "end") if name not in given]
        if lacking:
            raise InputError(f"{', '.join(lacking)} must be given", hint="or name a basin of the paper with --preset")
        return parse_settings(BasinSettings, given, "build-river")


@inputs.takes(BasinOptions)
def build_river(
    options: BasinOptions,
    out: Annotated[Path, option("Folder to write the panel to.")],
    preset: Annotated[str | None, option("A basin of the paper: basin030501, basin031300, basin180102.")] = None,
    rain: Annotated[bool, option("Add hourly rain (IMERG V07) at each site; needs an Earthdata login.", "--rain")] = (
        False
    ),
    cache: Annotated[Path | None, option("Folder where answers of services are kept. (default: per user)")] = None,
    refresh: Annotated[
        bool, option("Ask the USGS again: recent readings are revised. Rain that was read stands.", "--refresh")
    ] = False,
    offline: Annotated[
        bool, option("Ask nobody: take what is kept; rain that was never read is unknown.", "--offline")
    ] = False,
    archive: Annotated[Path | None, option("Also write the basin as one zip file.")] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Build the panel of a river basin from USGS services: sites, readings, hours, river network, quality report.

    Answers are kept on disk: the command goes on after it was stopped, and works again without a network.
    """
    from candor.river.build import build_basin
    from candor.river.cache import ResponseCache, default_cache
    from candor.river.client import ServiceClient
    from candor.river.folder import export_archive, save_basin
    from candor.river.imerg import sign_in

    settings = options.settings(preset)
    if refresh and offline:
        raise InputError("--refresh asks everything anew and --offline asks nobody", hint="give one of them")
    folder = cache or default_cache()
    _check_places(out, archive, folder)
    if not offline:
        say_if_no_key()
    responses, log_in = ResponseCache(folder), once(sign_in)
    since = _begin_refresh(responses, settings) if refresh else None
    with progress() as report:
        # Without a login all that the USGS sends would be in vain, so that it is looked for before anything is asked.
        client = ServiceClient(
            responses,
            report=report,
            fresh_since=since,
            is_offline=offline,
            before_request=log_in if rain else None,
        )
        add_rain = _rain_step(folder, report, log_in, is_offline=offline) if rain else None
        basin = build_basin(settings, client, preset or "", add_rain)
        differences = save_basin(basin, out, preset)
        if archive is not None:
            export_archive(out, archive)
    if refresh:
        responses.end_refresh(settings.model_dump())
    if json:
        paper = [asdict(difference) for difference in differences]
        print_json(basin.report.as_plain() | {"fingerprint": basin.panel.fingerprint, "paper": paper})
    else:
        _show(basin, differences)
    say(f"{basin.report.hours:,} hours x {basin.report.sites} stations, {basin.report.edges} edges -> {out}")


def _begin_refresh(responses: "ResponseCache", settings: "BasinSettings") -> datetime:
    """Return since when answers count as fresh; say so where a refresh that was broken off goes on."""
    now = datetime.now(UTC)
    since = responses.begin_refresh(settings.model_dump())
    if since < now:
        say(f"going on with the refresh that was begun on {since:%Y-%m-%d at %H:%M} UTC and not finished")
    return since


def _check_places(out: Path, archive: Path | None, cache: Path) -> None:
    """Refuse places that could not be written in the end, before anybody is asked."""
    from candor.data.panel_store import check_panel_place
    from candor.river.folder import check_archive_path

    check_panel_place(out)
    if archive is not None:
        check_archive_path(archive)
        if archive.resolve().is_relative_to(out.resolve()):
            raise InputError(
                "the archive would lie in the folder of the panel, which could then not be built again",
                where=str(archive),
                hint="let --archive name a file outside of --out",
            )
    if cache.resolve().is_relative_to(out.resolve()):
        raise InputError(
            "the answers of the services would be kept in the folder of the panel, which is replaced as a whole",
            where=str(cache),
            hint="let --cache and --out name folders beside one another",
        )


def say_if_no_key() -> None:
    """Say where a key can be had if there is none."""
    from candor.river.client import KEY_ADDRESS, KEY_VARIABLE

    if not os.environ.get(KEY_VARIABLE):
        say(f"{KEY_VARIABLE} is not set: the USGS allows fewer requests without a key (free: {KEY_ADDRESS})")


def _rain_step(
    folder: Path, report: "Report", log_in: "Callable[[], EarthdataArchive]", *, is_offline: bool
) -> "RainStep":
    """Return the step that adds rain, with what it reads kept beside the other answers."""
    from candor.data.panel import Covariate, Sensor
    from candor.data.times import TimeAxis
    from candor.river.build import unknown_rain
    from candor.river.rain import fetch_rain

    def step(sensors: tuple[Sensor, ...], times: TimeAxis) -> tuple[Covariate, dict[str, Any]]:
        found = fetch_rain(
            sensors, times, folder / "rain", log_in=log_in, is_offline=is_offline, announce=say, report=report
        )
        if unknown := unknown_rain(found.covariate, is_offline=is_offline):
            say(unknown)
        return found.covariate, found.provenance

    return step


def _show(basin: "Basin", differences: "list[Difference]") -> None:
    from candor.river.quality import in_words

    heads = ("id", "name", "in the panel", "sensor", "missing %", "longest gap h", "left out")
    rows = [
        (
            *(escape(one.id), escape(one.name), "yes" if one.is_kept else escape(f"no: {one.reason}")),
            escape(f"{one.sensor} {one.sensor_description}".strip()),
            *(percentage(one.missing_share), number(one.longest_gap_hours, 0), f"{sum(one.left_out.values()):,}"),
        )
        for one in basin.report.stations
    ]
    show_table("Sites", heads, rows, left=4)
    for finding in basin.report.findings:
        tell(in_words(finding))
    if differences:
        lines = []
        for line in differences:
            change = NOTHING if line.is_none else f"{line.built - line.paper:+,.10g}"
            lines.append((line.what, f"{line.paper:,}", f"{line.built:,}", change))
        show_table("Beside the paper's table", ("number", "paper", "here", "difference"), lines)
