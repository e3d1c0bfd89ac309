"""`candor model`: what the network is made of."""

from itertools import groupby
from typing import Annotated

import typer

from candor.cli import inputs
from candor.cli.inputs import argument
from candor.cli.screen import print_json, show_table

model_app = typer.Typer(help="Look at the network.", no_args_is_help=True)


@model_app.callback()
def model() -> None:
    """Look at the network."""


@model_app.command("summary")
def summary(
    preset: Annotated[str, argument("PRESET", "A recipe, e.g. metr-la.")], json: inputs.JsonOption = False
) -> None:
    """List the modules of CANDOR for a preset, with shapes and numbers of parameters, and the total."""
    from candor.nets.candor.candor import summarise
    from candor.presets import load_preset

    settings = load_preset(preset).model_settings()
    modules = summarise(settings)
    total = sum(module.parameters for module in modules)
    if json:
        print_json({"settings": settings.model_dump(), "modules": [vars(module) for module in modules], "total": total})
        return
    rows: list[tuple[str, ...] | None] = []
    for section, members in groupby(modules, lambda module: module.module.split(".")[0]):
        inside = list(members)
        rows += [None, (f"[bold]{section}[/]", "", f"[bold]{sum(module.parameters for module in inside):,}[/]")]
        for module in inside:
            shapes = (f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in module.shapes.items())
            rows.append((f"  {module.module}", "  ".join(shapes), f"{module.parameters:,}"))
    rows += [None, ("[bold]total[/]", "", f"[bold]{total:,}[/]")]
    title = f"CANDOR for {preset}: {settings.nodes} nodes, {settings.patches} patches to {settings.target_patches}"
    show_table(title, ("module", "shapes", "parameters"), rows, left=2)
