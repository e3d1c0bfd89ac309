"""Arguments and options that commands share: data and how to read them, runs, and lists of names."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime, timedelta
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from candor.cli.screen import LEVEL_COLOURS, progress, say
from candor.core.errors import InputError
from candor.core.files import looking_at

if TYPE_CHECKING:
    from candor.data.findings import Findings
    from candor.data.panel import Panel
    from candor.data.readers.options import ReadOptions


def option(help: str, *names: str, **more: Any) -> Any:
    """Return an option of a command, called like its parameter unless it has other names; flags need their name."""
    return typer.Option(*names, help=help, **more)


def argument(metavar: str, help: str) -> Any:
    """Return a positional argument of a command."""
    return typer.Argument(metavar=metavar, help=help)


RunArgument = Annotated[
    Path, argument("RUN", "A run directory made by `candor train`, or a bundle made by `candor export`.")
]
DataArgument = Annotated[str, argument("DATA", "A file of readings, a dataset of the catalogue, or a panel folder.")]
JsonOption = Annotated[bool, option("Print JSON for scripts.", "--json")]
SeedsOption = Annotated[str, option("Seeds, separated by commas.")]
BudgetOption = Annotated[float | None, option("Training of each cell; schedules are shortened to it.")]
WorkersOption = Annotated[int, option("Cells at a time on this machine.", min=1)]


@dataclass(frozen=True)
class DataFiles:
    """The data a user named and how to read them: the arguments that all commands on data share."""

    data: DataArgument
    edges: Annotated[Path | None, option("Edges: from, to, distance or weight; or a matrix.")] = None
    sensors: Annotated[Path | None, option("Sensors: id, name, latitude, longitude, unit.")] = None
    zone: Annotated[
        str | None, option("Local zone, e.g. America/Los_Angeles or UTC-08:00. (default: that of the times, else UTC)")
    ] = None
    unit: Annotated[str, option("Unit of the readings, e.g. mg/L.")] = ""
    missing: Annotated[
        list[float] | None,
        option("A number that stands for missing; may be repeated. (default: -9999 ...)"),
    ] = None
    minimum: Annotated[float | None, option("Readings below this are impossible and count as missing.")] = None
    interval: Annotated[str | None, option("Distance of the time grid, e.g. 15min, 1h, 1d. (default: most common)")] = (
        None
    )
    start: Annotated[str | None, option("First time, for files that carry none (npz), e.g. 2012-03-01.")] = None
    time_column: Annotated[str | None, option("Name of the column of times.")] = None
    day_first: Annotated[bool | None, option("How to read dates such as 03/04/2020.", "--day-first/--month-first")] = (
        None
    )
    variable: Annotated[str | None, option("Which variable of a NetCDF file. (default: the only one that fits)")] = None

    def options(self) -> "ReadOptions":
        """Return how the files are to be read."""
        from candor.data.readers.options import SENTINELS, ReadOptions

        same = ("minimum", "unit", "zone", "time_column", "day_first", "variable")
        return ReadOptions(
            missing=SENTINELS if self.missing is None else tuple(self.missing),
            interval=None if self.interval is None else parse_interval(self.interval),
            start=None if self.start is None else parse_moment(self.start),
            **{name: getattr(self, name) for name in same},
        )

    def read(self, findings: "Findings | None" = None, wall_zone: str | None = None) -> "Panel":
        """Return the panel of the files; days with offsets begin by the clock of `wall_zone`, None means the zone."""
        from candor.data.readers.panels import read_panel

        with progress() as report:
            options = replace(self.options(), wall_zone=wall_zone)
            return read_panel(self.data, self.edges, self.sensors, options, findings, report=report)

    def is_file(self) -> bool:
        """Return whether the data that were named are a file."""
        path = Path(self.data)
        with looking_at(path):
            return path.exists() and not path.is_dir()

    def load(self) -> "tuple[Panel, bool]":
        """Return the panel that was named in whatever way, and whether it is a dataset of the catalogue."""
        from candor.data.catalog import datasets
        from candor.data.findings import Findings
        from candor.data.panel_store import is_panel_folder, load_panel

        if not self.data:
            raise InputError("no data are named", hint="give a file of readings, a dataset or a panel folder")
        path = Path(self.data)
        if self.data in datasets or is_panel_folder(path):
            self.refuse_options()
            with progress() as report:
                report(f"opening {self.data}", None)
                return (load_named(self.data), True) if self.data in datasets else (load_panel(path), False)
        if not path.exists() and not path.suffix and len(path.parts) == 1:
            datasets.get(self.data)  # says which datasets there are
        findings = Findings()
        panel = self.read(findings)
        print_findings(findings, ("warning",))
        return panel, False

    def given_options(self) -> list[str]:
        """Return the names of the options that were given, such as `--time-column`."""
        given = [field.name for field in fields(self)[1:] if getattr(self, field.name) != field.default]
        return [f"--{name.replace('_', '-')}" for name in given]

    def refuse_options(self) -> None:
        """Refuse options on how files are read for data that are no files: they would change nothing."""
        if given := self.given_options():
            raise InputError(
                f"a dataset or a panel folder has its own edges, sensors, units and times: {', '.join(given)} cannot "
                "be given",
                where=self.data,
                hint="leave it out, or import the files anew: candor data import FILE --out FOLDER",
            )


def load_named(name: str) -> "Panel":
    """Return a dataset of the catalogue, and warn if its content differs from what the catalogue records."""
    from candor.data.catalog import load_dataset

    panel = load_dataset(name)
    warn_of_copy(name, panel.fingerprint)
    return panel


def warn_of_copy(name: str, fingerprint: str) -> None:
    """Warn if this checksum of a dataset differs from what the catalogue records."""
    from candor.data.catalog import datasets
    from candor.data.findings import Findings

    if datasets.get(name).is_another(fingerprint):
        findings = Findings()
        what = "these data are not those that the catalogue knows by this name: another copy, or a part of it"
        hint = f"compare them with what `candor data info {name}` says, and get the files anew"
        findings.warning(what, name, hint=hint)
        print_findings(findings)


def print_findings(findings: "Findings", levels: Sequence[str] = ("warning", "note")) -> None:
    """Print findings about readings, warnings first."""
    for level in levels:
        for finding in findings:
            if finding.level == level:
                count = f" ({finding.count:,})" if finding.count > 1 else ""
                place = f": {finding.where}" if finding.where else ""
                hint = f"; {finding.hint}" if finding.hint else ""
                say(f": {finding.what}{count}{place}{hint}", label=level, colour=LEVEL_COLOURS[level])


def folder_name(name: str) -> str:
    """Return the name of data made safe for a folder: the panel of somebody else may be called `../../x`."""
    return re.sub(r'[\x00-\x1f/\\:*?"<>|]+', "-", name).lstrip(".-") or "data"


def takes(
    *groups: type[Any], defaults: Mapping[str, Any] | None = None, **instead: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of dataclasses as arguments, for its first parameters.

    Defaults and annotations by the name of a field take the place of those of the dataclasses.
    """
    shared = {
        field.name: Parameter.empty if field.default is MISSING else field.default
        for group in groups
        for field in fields(group)
    } | dict(defaults or {})

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**arguments: Any) -> None:
            given = [group(**{field.name: arguments.pop(field.name) for field in fields(group)}) for group in groups]
            command(*given, **arguments)

        hints = get_type_hints(command, include_extras=True)
        for group in groups:
            hints |= get_type_hints(group, include_extras=True)
        own = list(signature(command).parameters.values())[len(groups) :]
        every = shared | {parameter.name: parameter.default for parameter in own}
        parameters = [  # required ones first
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=(hints | instead)[name])
            for name, default in sorted(every.items(), key=lambda item: item[1] is not Parameter.empty)
        ]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        with_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return with_options

    return decorate


takes_data = takes(DataFiles)


def parse_names(listed: str, thing: str) -> list[str]:
    """Return names of things that are separated by commas; a comma too many means nothing, no name is refused."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names:
        raise InputError(f"no {thing} is named", hint="write names with commas, or leave the option out")
    return names


def parse_seeds(listed: str) -> list[int]:
    """Return seeds that are separated by commas."""
    from candor.core.settings import MOST_DIGITS

    words = parse_names(listed, "seed")
    if not all(word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS for word in words):
        raise InputError(f"{listed[:60]!r} are not seeds", hint="write whole numbers with commas, e.g. --seeds 0,1,2")
    return [int(word) for word in words]


def parse_interval(text: str) -> timedelta:
    """Return the interval written as `15min`, `1h`, `1d` or `30s`."""
    units = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}
    units |= {f"{name}s": seconds for name, seconds in units.items() if len(name) > 1}
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())
    seconds = float(match[1]) * units.get(match[2], 0) if match else 0
    if not 0 < seconds < 1e9:
        raise InputError(f"{text!r} is not an interval", hint="write it like 15min, 1h or 1d")
    return timedelta(seconds=seconds)


def parse_moment(text: str) -> datetime:
    """Return the moment written as an ISO date or time."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not a time", hint="write it like 2012-03-01 or 2012-03-01T06:00") from None
