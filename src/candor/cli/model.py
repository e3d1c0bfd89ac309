"""`candor model`: what the network is made of."""

from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli import inputs
from candor.cli.screen import console, print_json, table

if TYPE_CHECKING:
    from candor.nets.candor.candor import ModuleSummary

model_app = typer.Typer(help="Look at the network.", no_args_is_help=True)


@model_app.callback()
def model() -> None:
    """Look at the network."""


@model_app.command("summary")
def summary(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="A recipe, e.g. metr-la.")],
    json: inputs.JsonOption = False,
) -> None:
    """List the modules of CANDOR for a preset, with shapes and numbers of parameters, and the total."""
    from candor.nets.candor.candor import summarise
    from candor.presets import load_preset

    settings = load_preset(preset).model_settings()
    rows = summarise(settings)
    total = sum(row.parameters for row in rows)
    if json:
        print_json({"settings": settings.model_dump(), "modules": [vars(row) for row in rows], "total": total})
        return
    spans = f"{settings.patches} patches to {settings.target_patches}"
    shown = table(f"CANDOR for {preset}: {settings.nodes} nodes, {spans}", "module", "shapes", "parameters", left=2)
    for section, members in _by_section(rows).items():
        shown.add_section()
        shown.add_row(f"[bold]{section}[/]", "", f"[bold]{sum(row.parameters for row in members):,}[/]")
        for row in members:
            shapes = "  ".join(f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in row.shapes.items())
            shown.add_row(f"  {row.module}", shapes, f"{row.parameters:,}")
    shown.add_section()
    shown.add_row("[bold]total[/]", "", f"[bold]{total:,}[/]")
    console().print(shown)


def _by_section(rows: "list[ModuleSummary]") -> "dict[str, list[ModuleSummary]]":
    sections: dict[str, list[ModuleSummary]] = {}
    for row in rows:
        sections.setdefault(row.module.split(".")[0], []).append(row)
    return sections
