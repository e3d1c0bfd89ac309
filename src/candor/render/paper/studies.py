"""Tables and figures of single studies: what models cost, and shock activity against rain."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from candor.core.progress import Report
from candor.render.figures.benchmark import draw_costs
from candor.render.figures.shock_rain import write_picture
from candor.render.paper.entry import PaperEntry, Picture, ShownTable, draw, write_shown
from candor.research.paper.found import FoundGrid
from candor.research.paper.origins import Origin, origin_of_profile
from candor.research.paper.shock_rain import association_table, findings_of, origin_of_shock_rain, run_table
from candor.research.paper.tables import cost_table, find_errors
from candor.research.profiling import read_profile
from candor.research.shock_rain_runs import NAME, SHIFTS_NAME, RainComparison, read_comparison

_COST_CAPTIONS = {
    "accuracy-parameters": "Error against parameters; the area of a bubble is the time of a forecast.",
    "accuracy-time": "Error against the time of a forecast; the area of a bubble is the number of parameters.",
}
_RAIN_CAPTION = (
    "Left: correlation of shock activity with rain over lags, by horizon; the grey band holds 95 % of shifted rains, "
    "of the mean over horizons, which varies less than a single one. Right: "
    "the largest correlation over lags of every shift, and of what happened."
)


def make_costs(path: Path, grids: Sequence[FoundGrid], folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Write the table and figures of a profile; `grids` may have errors of its models on the same preset."""
    report("drawing costs", None)
    profile = read_profile(path)
    preset, table, errors = profile.circumstances.preset, cost_table(profile), find_errors(profile, grids)
    drawings = {} if errors is None else draw_costs(profile, errors)
    shows = [f"What {len(profile.models)} models cost at the shape and graph of {preset}."]
    shows += [f"{name} could not be measured: {why}." for name, why in profile.failed.items()]
    if errors is not None:
        kind = {"mae": "absolute", "mse": "squared"}[errors.metric]
        shows.append(f"Mean {kind} errors in the figures are those of {errors.where.parent}.")
    yield PaperEntry(
        title=f"{preset}: cost of models",
        shows=tuple(shows),
        origin=origin_of_profile(path, profile),
        pictures=tuple(draw(folder, name, drawing, _COST_CAPTIONS[name]) for name, drawing in drawings.items()),
        tables=(ShownTable(table, has_note=False),),
        files=write_shown([table], folder),
    )


def make_shock_rain(path: Path, folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Write the table and the figure of a comparison with rain to a folder and return its entry."""
    report("drawing shocks and rain", None)
    stored = read_comparison(path)
    tables = [association_table([stored]), run_table(stored)]
    pictures: list[Picture] = []
    files = write_shown(tables, folder)
    if not (stored.curves.empty or stored.null.empty):
        write_picture(stored, folder)
        pictures.append(Picture(f"{folder.name}/{NAME}", _RAIN_CAPTION))
        files = (*files, (f"{folder.name}/{SHIFTS_NAME}", "statistic of every shift: CSV"))
    unseen = "" if stored.given_rain else " it never saw"
    yield PaperEntry(
        title=f"{stored.data}: does the learned shock know of rain{unseen}?",
        shows=tuple(findings_of(stored)),
        origin=origin_of_shock_rain(stored),
        pictures=tuple(pictures),
        tables=(ShownTable(tables[0], "data"), ShownTable(tables[1], "run", is_folded=True)),
        files=files,
    )


def make_associations(stored: Sequence[RainComparison], folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Write the tests of shock activity against rain on all data as one table and return its entry."""
    report("writing tables", None)
    table = association_table(stored)
    below = "as in the entries below"
    origin = Origin(
        source="; ".join(dict.fromkeys(str(one.path) for one in stored)),
        command="those of the entries below, one for each data",
        data="; ".join(dict.fromkeys(one.data for one in stored)),
        protocol=below,
        made=below,
        versions=below,
    )
    yield PaperEntry(
        title="All data: shock activity and rain",
        shows=("Whether the shock that CANDOR learned knows of rain.",),
        origin=origin,
        tables=(ShownTable(table, "data"),),
        files=write_shown([table], folder),
    )
