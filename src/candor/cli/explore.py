"""`candor data explore`: three views of data before any model."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.screen import console, print_json, progress, say, table
from candor.core.text import number


@inputs.takes_data
def explore(
    files: inputs.DataFiles,
    sensor: Annotated[
        str | None, typer.Option("--sensor", help="Id of the sensor to look at. (default: a lively one)")
    ] = None,
    longest_lag: Annotated[
        int | None, typer.Option("--longest-lag", min=1, help="Steps, either way. (default: 24; 14 for daily readings)")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder. (default: explore-DATA)")] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Draw what a model has to cope with: coexisting dynamics, lags along edges, distant sensors that are alike."""
    panel, _ = files.load()
    with progress() as report:
        report("preparing figures", None)  # the first import of matplotlib looks for the fonts of the machine
        from candor.render.figures.explore import write_exploration
        from candor.research.explore import explore as explore_panel

        picture = explore_panel(panel, sensor, longest_lag, report)
        written = write_exploration(picture, out or Path(f"explore-{inputs.folder_name(panel.name)}"))
    lags, dynamics = picture.lags, picture.dynamics
    facts = {
        "sensor": dynamics.sensor,
        "edges": 0 if lags is None else len(lags.table),
        "edges_with_a_clear_peak": 0 if lags is None else int(lags.table["is_clear"].sum()),
        "edges_whose_target_follows": 0
        if lags is None
        else int((lags.table["is_clear"] & (lags.table["lag_steps"] > 0)).sum()),
        "distant_pairs": len(picture.pairs.table),
        "most_alike": None if picture.similar is None else picture.similar.correlation,
        "least_alike": None if picture.opposite is None else picture.opposite.correlation,
    }
    if json:
        print_json(facts | {"files": [str(path) for path in written]})
    else:
        shown = table(f"Before any model: {escape(panel.name)}", "what", "found")
        for name, fact in facts.items():
            cell = number(fact) if fact is None or isinstance(fact, float) else escape(str(fact))
            shown.add_row(name.replace("_", " "), cell)
        console().print(shown)
    say(f"written: {', '.join(str(path) for path in written)}")
