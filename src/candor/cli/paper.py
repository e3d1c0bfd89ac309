"""`candor paper`: every table and figure of the paper for which there are results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.screen import console, print_json, progress, say, table

if TYPE_CHECKING:
    from candor.render.paper.paper import Paper

_RUNS = Path("runs")


def paper(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER ...", help="Where results are, or runs of CANDOR to draw. (default: runs)"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder, made anew each time.")] = Path("paper"),
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
    for trouble in made.troubles:
        say(f" {trouble.where}: {trouble.what}", label="not readable", colour="red")
    if made.troubles:
        raise typer.Exit(1)


def _show(made: "Paper") -> None:
    """Prints what was made by section, and where."""
    from candor.render.paper.entry import count_pieces
    from candor.render.paper.index import INDEX, SECTIONS

    shown = table("Tables and figures", "section", "tables", "figures")
    for section, entries in made.entries.items():
        if entries:
            tables, figures = count_pieces(entries)
            shown.add_row(SECTIONS[section], str(tables), str(figures))
    console().print(shown)
    if made.missing:
        console().print(f"still to make: {len(made.missing)}, each with its command on the page")
    console().print(f"to open in a browser: {escape(str(made.folder / INDEX))}", soft_wrap=True)
