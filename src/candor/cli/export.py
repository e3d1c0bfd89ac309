"""`candor export`: a trained model for others, as an ONNX file or as a bundle."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from candor.cli import inputs
from candor.cli.inputs import argument, option
from candor.cli.screen import print_json, progress, tell
from candor.core.errors import InputError

if TYPE_CHECKING:
    from candor.runs.bundle.bundle import Rows
    from candor.runs.run import Run

_ONNX = ".onnx"


def export(
    run: Annotated[Path, argument("RUN", "A run directory, or for --out a bundle.")],
    out: Annotated[Path | None, option("ONNX file for other programs: readings in, forecasts out.")] = None,
    bundle: Annotated[
        Path | None, option("Folder or FILE.zip to give away: all that candor needs to forecast.")
    ] = None,
    rows: Annotated[
        str | None,
        option("Latest rows of the record in the bundle, or all. (default: 4 x history + horizon, or what it needs)"),
    ] = None,
    without_readings: Annotated[bool, option("Leave the readings out of the bundle.", "--without-readings")] = False,
    json: inputs.JsonOption = False,
) -> None:
    """Write a trained model for others: an ONNX file with --out, a portable bundle with --bundle, or both."""
    from candor.runs.bundle import open_run

    chosen = _rows(rows, without_readings)
    if out is None and bundle is None:
        raise InputError("nothing is asked for", hint="say --out FILE.onnx, --bundle FILE.zip or --bundle FOLDER")
    if bundle is None and chosen is not None:
        raise InputError("--rows and --without-readings are about a bundle", hint="say --bundle as well")
    if out is not None and out.suffix != _ONNX:
        raise InputError(f"an ONNX file ends in {_ONNX}", where=str(out), hint=f"--out {out.stem}{_ONNX}")
    opened = open_run(run)
    content: dict[str, Any] = {"run": str(run), "model": opened.record.model}
    if bundle is not None:
        content["bundle"] = _export_bundle(opened, bundle, chosen, is_quiet=json)
    if out is not None:
        content["onnx"] = _export_onnx(opened, out, is_quiet=json)
    if json:
        print_json(content)


def _rows(rows: str | None, without_readings: bool) -> "Rows | None":
    """Return how much of the record goes along; None leaves it to the bundle."""
    from candor.core.settings import MOST_DIGITS

    if without_readings:
        if rows is not None:
            raise InputError("--rows and --without-readings contradict each other", hint="give one of them")
        return "none"
    if rows is None or rows == "all":
        return "all" if rows else None
    if not (rows.isdecimal() and len(rows) <= MOST_DIGITS and int(rows) > 0):
        raise InputError(f"{rows[:60]!r} is not a number of rows", hint="give a number such as 200, or all")
    return int(rows)


def _export_bundle(opened: "Run", path: Path, rows: "Rows | None", *, is_quiet: bool) -> dict[str, Any]:
    from candor.runs.bundle import write_bundle
    from candor.runs.bundle.manifest import CARD

    with progress() as report:
        report("packing", None)
        write_bundle(opened, path, rows)
    size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
    if not is_quiet:
        tell(f"bundle: {path} ({size / 1e6:.2f} MB), with a card in {CARD}")
        tell(f"use it like a run, e.g. candor forecast {path}")
    return {"path": str(path), "bytes": size}


def _export_onnx(opened: "Run", path: Path, *, is_quiet: bool) -> dict[str, Any]:
    from candor.runs.onnx import export_onnx

    with progress() as report:
        written = export_onnx(opened.forecaster, path, report)
    if not is_quiet:
        unit = written.metadata["unit"] or "(unit not named)"
        tell(f"ONNX file: {path}, opset {written.opset}")
        for name, shape in written.inputs.items():
            tell(f"  input {name}: {' x '.join(map(str, shape))}")
        horizon, sensors = written.metadata["horizon"], written.inputs["readings"][-1]
        tell(f"  output forecast: batch x {horizon} x {sensors}, in {unit}")
        tell(f"when it was tried, its forecasts differed from candor's by at most {written.difference:.1e} {unit}")
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "opset": written.opset,
        "inputs": {name: list(shape) for name, shape in written.inputs.items()},
        "difference": written.difference,
        "metadata": written.metadata,
    }
