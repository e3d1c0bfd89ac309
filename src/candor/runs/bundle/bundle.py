"""Bundles: run directories to give away, as a folder or as one file.

manifest.json     size and SHA-256 of every other file
README.md         the card: what was trained on what, how good it is, what it is for and what it is not
run.json          the record of the run, as `candor.runs.run` reads it
evaluation.json   the scores on the test part, unless the record was cut
source/           record and scores of the run it was made from, if the record was cut
model/            the fitted forecaster
data/             the record or its end; not there if the bundle was made without readings

An unpacked bundle is a run directory. One that holds the end of a record only has no test part: it forecasts and
explains, and whoever asks for scores is told that there is nothing to evaluate. `open_run` checks a bundle to the last
byte before it opens it; `load_run` takes an unpacked one as it is. A bundle stays as it was exported: what commands
make of it lies beside it.
"""

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from candor.core.errors import InputError
from candor.core.files import atomic_folder, in_plain_words, is_of_format, write_json
from candor.core.text import first_line
from candor.data.catalog import load_dataset
from candor.data.panel import Covariate, Panel
from candor.data.panel_store import SIGNS_OF_DAMAGE, load_panel, save_panel
from candor.data.protocol import Task
from candor.forecasting.forecaster import Forecaster
from candor.runs.bundle import manifest
from candor.runs.bundle.card import model_card
from candor.runs.bundle.manifest import MOST_BYTES
from candor.runs.run import EVALUATION, MANIFEST, RECORD, Run, RunRecord, load_run
from candor.runs.summary import summarise_run

Rows = int | Literal["all", "none"]
WINDOWS_BY_DEFAULT = 4
_RESULTS = "-results"
_MODEL = ("model.json", "state.safetensors", "calibration.safetensors")
_BYTES_PER_NUMBER = 4


def write_bundle(run: Run, path: Path, rows: Rows | None = None) -> Path:
    """Return where the bundle of a run was written, all or nothing: one file if the path ends in .zip, else a folder.

    Args:
        run: a finished run.
        path: the file or the folder; a bundle that is there already is replaced.
        rows: how many of the latest rows of the record go along, all or none; None means four times history and
            horizon, or what the model looks back on if that is more. Without any, a dataset of the catalogue is still
            named, and used where it is at hand.
    """
    path = Path(path)
    if is_bundle(run.folder):
        raise InputError(
            "this is a bundle already", where=str(run.folder), hint="copy it as it is, or export the run it came from"
        )
    _refuse_to_overwrite(path, run.folder)
    if path.suffix.lower() == ".zip":
        with in_plain_words(path), tempfile.TemporaryDirectory() as temporary:
            _fill(Path(temporary), run, rows)
            manifest.pack(Path(temporary), path)
    else:
        with atomic_folder(path) as temporary_folder:
            _fill(temporary_folder, run, rows)
    return path


def is_bundle(path: Path) -> bool:
    """Return whether a path claims to be a bundle: a file, or a folder with a manifest."""
    path = Path(path)
    return path.is_file() or (path / MANIFEST).is_file()


def open_run(path: Path) -> Run:
    """Return the run in a run directory, in an unpacked bundle or in a bundle file; a bundle is checked first."""
    path = Path(path)
    return open_bundle(path) if is_bundle(path) else load_run(path)


def results_folder(path: Path) -> Path:
    """Return where commands write what they make of a run: a run directory itself, or a folder beside a bundle.

    A bundle is given away as it was exported, and one more file in it would be a sign of damage. The folder has the
    whole name of the bundle: klamath.zip and klamath, which may be another model, lie side by side.
    """
    path = Path(path)
    if not is_bundle(path):
        return path
    named = path if path.name.strip(".") else path.resolve()  # "." and ".." say nothing of what they lead to
    return named.with_name(f"{named.name}{_RESULTS}")


def open_bundle(path: Path) -> Run:
    """Return the run in a bundle after a check to the last byte; nothing that does not belong there is opened.

    A bundle file is unpacked into a temporary folder, which goes when the run is no longer used.
    """
    path = Path(path)
    if path.is_dir():
        return _open_folder(path, str(path))
    with in_plain_words(Path(tempfile.gettempdir())):
        home = Path(tempfile.mkdtemp(prefix="candor-"))
    try:
        folder = home / (path.stem if path.stem.strip(".") else "bundle")
        manifest.unpack(path, folder)
        run = _open_folder(folder, str(path))
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    weakref.finalize(run, shutil.rmtree, home, ignore_errors=True)
    return run


def demo_bundle() -> Path:
    """Return the bundle that comes with the package: dissolved oxygen at eleven stations of the Klamath River.

    It is the run of `candor demo` with half the hidden width, which is a third of the size and no worse on the test
    part (MAE 0.856 mg/L against 0.855), with its whole record:

        candor train klamath-daily --run runs/klamath hidden=16
        candor evaluate runs/klamath
        candor export runs/klamath --bundle src/candor/runs/bundle/demo/klamath-daily --rows all
    """
    return Path(str(files("candor.runs.bundle"))) / "demo" / "klamath-daily"


def _fill(folder: Path, run: Run, rows: Rows | None) -> None:
    """Write all files of a bundle."""
    task, evaluation, where = run.task(), summarise_run(run.folder).evaluation, str(run.folder)
    (folder / "model").mkdir()
    for name in _MODEL:
        if (run.folder / "model" / name).is_file():
            shutil.copyfile(run.folder / "model" / name, folder / "model" / name)
    (folder / manifest.CARD).write_text(model_card(run.record, run.forecaster, task, evaluation), encoding="utf-8")
    if rows == "none":
        _write_records(folder, run.record, evaluation)
    elif rows == "all":
        whole = load_dataset(run.record.data) if run.record.is_catalogued else load_panel(run.folder / "data")
        save_panel(whole, folder / "data")
        _write_records(folder, run.record.model_copy(update={"is_catalogued": False}), evaluation)
    else:
        _write_records(folder / "source", run.record, evaluation)
        _write_records(folder, _write_end(folder, run, task, rows), None)
    manifest.write_manifest(folder)
    try:  # what could not be opened is better refused now
        manifest.check_sizes({file: (folder / file).stat().st_size for file in manifest.files_of(folder, where)}, where)
        _refuse_large_panel(folder / "data" / "panel.json", where)
    except InputError as error:
        raise InputError(error.what, where=where, hint="take fewer rows: --rows N, or --without-readings") from None


def _write_end(folder: Path, run: Run, task: Task, rows: int | None) -> RunRecord:
    """Write the last rows of a record and return the record of a run on them."""
    record, span = run.record, task.protocol.history + task.protocol.horizon
    count = max(WINDOWS_BY_DEFAULT * span, run.forecaster.rows_read) if rows is None else rows
    least = max(span, run.forecaster.rows_needed)
    if count < least:
        raise InputError(
            f"{count} rows are too few: history and horizon are {span} together, and the model looks back on "
            f"{run.forecaster.rows_needed}",
            hint=f"take at least {least} rows, or none: --without-readings",
        )
    length = task.panel.times.length
    panel = run.measured().slice(length - min(count, length), length)
    save_panel(panel, folder / "data")
    # What the model learned from is not there, and nothing that is left may be evaluated as if it were.
    rules: dict[str, Any] = {"first": None, "last": None, "shares": (1.0, 0.0, 0.0)}
    if record.protocol.targets == "filled":  # a sensor that is silent throughout would be filled with zeros
        rules |= {"targets": "observed", "fill": "last"}
    protocol = record.protocol.model_copy(update=rules)
    changes = {"is_catalogued": False, "fingerprint": panel.fingerprint, "protocol": protocol}
    return record.model_copy(update=changes)


def _write_records(folder: Path, record: RunRecord, evaluation: Mapping[str, Any] | None) -> None:
    write_json(folder / RECORD, record.model_dump(mode="json"))
    if evaluation is not None:
        write_json(folder / EVALUATION, dict(evaluation))


def _refuse_to_overwrite(path: Path, source: Path) -> None:
    """Refuse to put a bundle where something else is: a folder is replaced as a whole."""
    if path.resolve() == source.resolve() or path.resolve() in source.resolve().parents:
        raise InputError("the bundle cannot take the place of its own run", where=str(path), hint="name another folder")
    is_empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not is_empty and not _holds_a_bundle(path):
        what = "folder" if path.is_dir() else "file"
        raise InputError(
            f"there is a {what} already, and it is not a bundle", where=str(path), hint="name another, or delete it"
        )
    if path.is_dir():
        for name in manifest.files_of(path, str(path)):
            try:
                manifest.check_name(name, str(path))
            except InputError:
                raise InputError(
                    f"there is a bundle already, and {name!r} in it is not of candor",
                    where=str(path),
                    hint="name another folder, or move that file away: the folder is replaced as a whole",
                ) from None
    if path.is_file() and path.suffix.lower() != ".zip":
        what = "the bundle would be a folder, and there is a file"
        raise InputError(what, where=str(path), hint="name another, or one that ends with .zip")


def _holds_a_bundle(path: Path) -> bool:
    """Return whether there is a bundle at a path, whole or damaged; many other things have a manifest.json."""
    return is_of_format(path / MANIFEST, manifest.FORMAT) if path.is_dir() else manifest.lists_a_bundle(path)


def _open_folder(folder: Path, where: str) -> Run:
    manifest.check_folder(folder, where)
    _refuse_large_panel(folder / "data" / "panel.json", where)
    try:
        run = load_run(folder)
        _check_fits(run)
    except InputError as error:  # what people named, not the temporary folder it was unpacked to
        place = error.where.replace(str(folder), where) or where
        raise InputError(error.what, where=place, hint=error.hint) from None
    return run


def _refuse_large_panel(path: Path, where: str) -> None:
    """Refuse readings that would take more memory than a bundle may: a small file can claim any number of rows."""
    if not path.is_file():
        return
    try:
        header = manifest.parse_json(path, where)
        quantities = 1 + len(header["covariates"])
        needed = _BYTES_PER_NUMBER * header["times"]["length"] * len(header["sensors"]) * quantities
        is_too_large = not 0 <= needed <= MOST_BYTES
    except (LookupError, TypeError) as error:
        raise InputError(f"the bundle is damaged: its panel.json is not one ({error!r})", where=where) from None
    if is_too_large:
        raise InputError(f"the bundle is too large: its readings would take {needed:,} bytes of memory", where=where)


def _check_fits(run: Run) -> None:
    """Refuse a model that is not the one of the record, or that cannot answer: it is asked once, with all silent."""
    record, forecaster = run.record, run.forecaster
    spans = (record.protocol.history, record.protocol.horizon)
    if (forecaster.name, forecaster.history, forecaster.horizon) != (record.model, *spans):
        raise InputError("the model in the bundle is not the one its record speaks of", where=str(run.folder))
    try:
        forecaster.predict(_silence(forecaster))
    except (InputError, *SIGNS_OF_DAMAGE, RuntimeError, MemoryError) as error:
        raise InputError(
            f"the weights in the bundle do not fit its model ({first_line(error)})",
            where=str(run.folder),
            hint="export the run again",
        ) from None


def _silence(forecaster: Forecaster) -> Panel:
    """Return a history of the model's sensors in which none of them reports."""
    known = forecaster.trained_on_.panel
    values = np.full((forecaster.history, len(known.sensors)), np.nan, np.float32)
    names = forecaster.quantities_read()
    times = known.times.slice(0, forecaster.history)
    return replace(known, values=values, times=times, covariates={name: Covariate(values) for name in names})
