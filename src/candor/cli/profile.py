"""`candor profile`: what models cost, and accuracy against cost."""

from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli import inputs
from candor.cli.screen import console, print_json, say, table
from candor.cli.watching import work_on
from candor.core.text import number

if TYPE_CHECKING:
    from candor.research.profiling import Errors, Profile


def profile(
    models: Annotated[str | None, typer.Option("--models", help="Models, separated by commas. (default: all)")] = None,
    preset: Annotated[str, typer.Option("--preset", help="Names shape and graph.")] = "metr-la",
    results: Annotated[
        Path | None,
        typer.Option("--results", help="A grid of `candor benchmark`, to draw accuracy against cost as well."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Windows that go through a network at once.")] = 64,
    warm_ups: Annotated[int, typer.Option("--warm-ups", min=0, help="Passes before the clock starts.")] = 20,
    passes: Annotated[int, typer.Option("--passes", min=1, help="Passes whose mean time counts.")] = 100,
    anew: Annotated[bool, typer.Option("--anew", help="Measure again what was measured before.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder. (default: runs/profile-PRESET)")] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Measure parameters, FLOPs, time and memory of every model, one after the other, each in its own process.

    Models without a network, such as trees and simple rules, have a time of forecasting only.
    """
    from candor.research.profiling import (
        add_cells,
        choose_contenders,
        circumstances_of,
        find_target,
        load_profile,
        make_cells,
        read_errors,
    )

    errors = None if results is None else read_errors(results, preset)
    target, folder = find_target(preset), out or Path("runs") / f"profile-{preset}"
    contenders = choose_contenders(target, None if models is None else inputs.parse_names(models, "model"))
    found = load_profile(folder, circumstances_of(target, batch, warm_ups, passes), is_anew=anew)
    known = {model.name for model in found.models}
    wanted = [contender for contender in contenders if anew or contender.name not in known]
    if errors is not None:
        errors.check_any_of({*known, *(contender.name for contender in contenders)})
    _introduce(found, len(contenders) - len(wanted))
    root = folder / "cells"
    if anew:
        rmtree(root, ignore_errors=True)
    cells, found = make_cells(target, wanted, found)
    try:
        work_on(cells, root, tries=1)
    finally:  # what was measured is kept, also when somebody stopped it
        found = add_cells(found, cells, root)
        files = found.save(folder)
    rmtree(root, ignore_errors=True)
    if errors is not None:
        files += _draw(found, errors, folder)
    if json:
        print_json(found.model_dump(mode="json") | {"files": [str(file) for file in files]})
    else:
        _show(found)
    for name, why in found.failed.items():
        say(f" {name}: {why}", label="failed", colour="red")
    say(f"written: {', '.join(str(file) for file in files)}")
    if found.failed:
        raise typer.Exit(1)


def _introduce(found: "Profile", known: int) -> None:
    """Says what the measurements are made on, and what is not measured now."""
    at = found.circumstances
    machine = at.machine
    say(
        f"{at.preset}: {at.nodes} sensors, {at.horizon} steps from {at.history}, {at.batch} windows at once; graph: "
        f"{at.graph}, {at.edges:,} edges"
    )
    say(
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads, torch {machine['torch']}; "
        f"mean of {at.passes} passes after {at.warm_ups}"
    )
    if known:
        say(f"{known} measured before; --anew measures again")


def _show(found: "Profile") -> None:
    """Prints a row per model, smallest first; a dash where a model has no such cost."""
    heads = ("parameters", "MFLOPs", r"inference \[ms]", r"training step \[ms]", r"peak memory \[MB]")
    shown = table(f"Cost on {found.circumstances.preset}, batch {found.circumstances.batch}", "model", *heads)
    for model in found.models:
        shown.add_row(
            model.label,
            number(model.parameters, 0),
            number(_times(1e-6, model.operations), 1),
            number(1e3 * model.inference_seconds, 1),
            number(_times(1e3, model.training_seconds), 1),
            number(model.peak_megabytes, 0),
        )
    console().print(shown)


def _times(factor: float, cost: float | None) -> float | None:
    return None if cost is None else factor * cost


def _draw(found: "Profile", errors: "Errors", folder: Path) -> list[Path]:
    """Draws errors against parameters and against time, and says which models have only one of the two."""
    from candor.render.figures.benchmark import bubbles_of, draw_costs
    from candor.research.table_notes import shown_name

    drawings = draw_costs(found, errors)
    if not drawings:
        say("no figure: none of the models with results could be measured")
        return []
    measured, compared = {model.name for model in found.models}, set(errors.by_model)
    shown = {bubble.name for bubble in bubbles_of(found, errors)}
    left_out = {model.name for model in found.models if model.label not in shown and model.name in compared}
    for what, names in (
        ("without results", measured - compared),
        ("not measured", compared - measured),
        ("without a network, or without errors that are numbers", left_out),
    ):
        if names:
            say(f"not in the figures, since {what}: {', '.join(map(shown_name, sorted(names)))}")
    return [file for name, drawing in drawings.items() for file in drawing.write(folder, name)]
