"""`candor paper`: every table and figure of the paper for which there are results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli import inputs
from candor.cli.inputs import argument, option
from candor.cli.screen import print_json, progress, say, say_failed, show_table, tell

if TYPE_CHECKING:
    from candor.render.paper.paper import Paper

_RUNS = Path("runs")


def paper(
    folders: Annotated[
        list[Path] | None, argument("FOLDER ...", "Where results are, or runs of CANDOR to draw. (default: runs)")
    ] = None,
    out: Annotated[Path, option("Folder, made anew each time.")] = Path("paper"),
    json: inputs.JsonOption = False,
) -> None:
    """Make every table and figure anew from the results in folders, with an index page; say what is still missing."""
    searched = folders or ([_RUNS] if _RUNS.is_dir() else [])
    if not searched:
        say(f"there is no folder {_RUNS}: nothing but the method is drawn")
    with progress() as report:
        report("making the paper | preparing figures", 0.0)  # the first import of matplotlib looks for fonts
        from candor.render.paper.paper import write_paper

        made = write_paper(searched, out, report)
    if json:
        print_json(made.to_json())
    else:
        _show(made)
    say_failed(((trouble.where, trouble.what) for trouble in made.troubles), "not readable")
    if made.troubles:
        raise typer.Exit(1)


def _show(made: "Paper") -> None:
    """Print what was made by section, and where."""
    from candor.render.paper.entry import count_pieces
    from candor.render.paper.index import INDEX, SECTIONS

    rows = [
        (SECTIONS[section], *map(str, count_pieces(entries))) for section, entries in made.entries.items() if entries
    ]
    show_table("Tables and figures", ("section", "tables", "figures"), rows)
    if made.missing:
        tell(f"still to make: {len(made.missing)}, each with its command on the page")
    tell(f"to open in a browser: {made.folder / INDEX}")
