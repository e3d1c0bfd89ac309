"""`candor data follow`: what is new at the sites of a basin, and what comes next."""

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape

from candor.cli import inputs
from candor.cli.build_river import say_if_no_key
from candor.cli.forecast import ForecastChoices, deliver, present
from candor.cli.inputs import option
from candor.cli.screen import print_error, progress, say, show_table
from candor.core.errors import InputError
from candor.core.text import NOTHING, duration, timestamp

if TYPE_CHECKING:
    from candor.river.follow import Feed, SiteNews
    from candor.runs.run import Run

STORE = "live"
_SHORTEST_MINUTES = 5.0  # sites report every fifteen minutes at best
_LONGEST_MINUTES = 525_600.0  # a year; no clock waits for ever


@inputs.takes(ForecastChoices)
def follow(
    choices: ForecastChoices,
    run: inputs.RunArgument,
    store: Annotated[
        Path | None, option("Folder where readings are kept. (default: live in RUN, or beside a bundle)")
    ] = None,
    every: Annotated[
        float | None, option("Minutes after which to ask and forecast again, until Ctrl-C. JSON: a line each.")
    ] = None,
    offline: Annotated[bool, option("Ask nobody: forecast from the readings that are kept.", "--offline")] = False,
) -> None:
    """Ask the USGS for what is new since the last time at the sites of a basin, and forecast them.

    RUN was trained on a folder of `candor data build-river`. Readings are kept, in RUN/live or beside a bundle; those
    younger than three days are asked for again, because they are revised.
    """
    from candor.runs.bundle import open_run, results_folder

    choices.options()  # refuses what cannot be asked
    _check_options(every, choices.now, offline)
    opened = open_run(run)
    feed = _feed_of(opened, run, store or results_folder(run) / STORE)
    if not offline:
        say_if_no_key()

    def once() -> None:
        moment = present(choices.now, feed.basin.times.zone)
        _follow_once(opened, run, feed, moment, choices, is_offline=offline, is_line=every is not None)

    if every is None:
        once()
    else:
        _go_on(once, 60 * every)
        say(f"stopped; the readings are kept in {feed.folder}")


def _check_options(every: float | None, now: str | None, offline: bool) -> None:
    if every is None:
        return
    if not _SHORTEST_MINUTES <= every <= _LONGEST_MINUTES:
        raise InputError(
            f"the sites cannot be asked every {every:g} minutes",
            hint=f"give --every {_SHORTEST_MINUTES:g} or more: they report every 15 to 60 minutes",
        )
    if now is not None or offline:
        other = "--now" if now is not None else "--offline"
        raise InputError(f"--every waits for what is new, and with {other} there is nothing", hint="give one of them")


def _feed_of(opened: "Run", run: Path, folder: Path) -> "Feed":
    """Return what a run follows; a run on other data, or one that reads what no service has yet, is refused."""
    from candor.river.follow import Feed

    if "covariates" in opened.forecaster.state_:
        raise InputError(
            "the model also reads another quantity, such as rain, which is published months later",
            where=str(run),
            hint="follow a model that was trained without it",
        )
    provenance = opened.task().panel.provenance
    return Feed.of(opened.forecaster.trained_on_.panel, provenance, opened.forecaster.rows_needed, folder)


def _follow_once(
    opened: "Run",
    run: Path,
    feed: "Feed",
    now: datetime,
    choices: ForecastChoices,
    *,
    is_offline: bool,
    is_line: bool,
) -> None:
    """Ask for what is new, say how each site is doing, and forecast."""
    from candor.data.alignment import align
    from candor.river.follow import follow as ask

    with progress() as report:
        found = ask(feed, now, is_offline=is_offline, report=report)
    model = opened.forecaster
    aligned = align(found.panel, model.trained_on_, model.rows_needed, now=now, horizon=model.horizon)
    found.findings.extend(aligned.findings)
    if not choices.json:
        _show(found.sites, feed, now)
    # What was unpacked of a bundle file lies where nobody will find it: scripts are told what was named.
    more = {
        "run": str(run),
        "asked": now.isoformat(timespec="seconds"),
        "sites": [_as_json(site, now) for site in found.sites],
    }
    deliver(opened, aligned.panel, found.findings, choices, more, is_line=is_line)


def _go_on(once: Callable[[], None], seconds: float) -> None:
    """Work again and again until Ctrl-C; an error is printed, and the next time is waited for."""
    try:
        while True:
            begun = time.monotonic()
            try:
                once()
            except InputError as error:
                print_error(error)
                say(f"trying again in {seconds / 60:g} minutes")
            _wait(seconds - (time.monotonic() - begun))
    except KeyboardInterrupt:
        return


def _wait(seconds: float) -> None:
    time.sleep(max(seconds, 0.0))


def _as_json(site: "SiteNews", now: datetime) -> dict[str, Any]:
    last = site.last_reading
    return {
        "id": site.id,
        "last_reading": None if last is None else last.isoformat(),
        "age_hours": None if last is None else round((now - last).total_seconds() / 3600, 3),
        "new": site.new,
        "revised": site.revised,
    }


def _show(sites: "tuple[SiteNews, ...]", feed: "Feed", now: datetime) -> None:
    from candor.data.times import zone_from_name

    zone = zone_from_name(feed.basin.times.zone)
    rows = []
    for site in sites:
        last = site.last_reading
        when = "none that is kept" if last is None else timestamp(last.astimezone(zone))
        age = NOTHING if last is None else duration(now - last)
        rows.append((escape(site.id), escape(site.name), when, age, f"{site.new:,}", f"{site.revised:,}"))
    heads = ("site", "name", "last reading", "age", "new", "revised")
    show_table(f"Sites at {timestamp(now.astimezone(zone))}", heads, rows, left=3)
