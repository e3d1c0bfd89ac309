"""`candor profile`: what models cost, and accuracy against cost."""

from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli import inputs
from candor.cli.inputs import option
from candor.cli.screen import print_json, say, say_failed, say_written, show_table
from candor.cli.watching import work_on
from candor.core.text import number

if TYPE_CHECKING:
    from candor.research.profiling import Profile, TaskErrors


def profile(
    models: Annotated[str | None, option("Models, separated by commas. (default: all)")] = None,
    preset: Annotated[str, option("Names shape and graph.")] = "metr-la",
    results: Annotated[
        Path | None, option("A grid of `candor benchmark`, to draw accuracy against cost as well.")
    ] = None,
    batch: Annotated[int, option("Windows that go through a network at once.", min=1)] = 64,
    warm_ups: Annotated[int, option("Passes before the clock starts.", min=0)] = 20,
    passes: Annotated[int, option("Passes whose mean time counts.", min=1)] = 100,
    anew: Annotated[bool, option("Measure again what was measured before.", "--anew")] = False,
    out: Annotated[Path | None, option("Folder. (default: runs/profile-PRESET)")] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Measure parameters, FLOPs, time and memory of every model, one after the other, each in its own process.

    Models without a network, such as trees and simple rules, have a time of forecasting only.
    """
    from candor.research import profiling

    errors = None if results is None else profiling.read_errors(results, preset)
    target, folder = profiling.find_target(preset), out or Path("runs") / f"profile-{preset}"
    names = None if models is None else inputs.parse_names(models, "model")
    contenders = profiling.choose_contenders(target, names)
    circumstances = profiling.circumstances_of(target, batch, warm_ups, passes)
    found = profiling.load_profile(folder, circumstances, is_anew=anew)
    known = {model.name for model in found.models}
    wanted = [contender for contender in contenders if anew or contender.name not in known]
    if errors is not None:
        errors.check_any_of({*known, *(contender.name for contender in contenders)})
    _introduce(found, len(contenders) - len(wanted))
    root = folder / "cells"
    if anew:
        rmtree(root, ignore_errors=True)
    cells, found = profiling.make_cells(target, wanted, found)
    try:
        work_on(cells, root, tries=1)
    finally:  # what was measured is kept, also when somebody stopped it
        found = profiling.add_cells(found, cells, root)
        files = found.save(folder)
    rmtree(root, ignore_errors=True)
    if errors is not None:
        files += _draw(found, errors, folder)
    if json:
        print_json(found.model_dump(mode="json") | {"files": [str(file) for file in files]})
    else:
        _show(found)
    say_failed(found.failed.items())
    say_written(files)
    if found.failed:
        raise typer.Exit(1)


def _introduce(found: "Profile", known: int) -> None:
    """Say what the measurements are made on, and what is not measured now."""
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
    """Print a row per model, smallest first; a dash where a model has no such cost."""

    def cell(cost: float | None, factor: float = 1.0, digits: int = 1) -> str:
        return number(None if cost is None else factor * cost, digits)

    rows = [
        (
            model.label,
            cell(model.parameters, digits=0),
            cell(model.operations, 1e-6),
            cell(model.inference_seconds, 1e3),
            cell(model.training_seconds, 1e3),
            cell(model.peak_megabytes, digits=0),
        )
        for model in found.models
    ]
    heads = ("parameters", "MFLOPs", r"inference \[ms]", r"training step \[ms]", r"peak memory \[MB]")
    show_table(f"Cost on {found.circumstances.preset}, batch {found.circumstances.batch}", ("model", *heads), rows)


def _draw(found: "Profile", errors: "TaskErrors", folder: Path) -> list[Path]:
    """Draw errors against parameters and against time, and say which models have only one of the two."""
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
