"""Refits of a backtest that outlast a kill: each that ended is kept until the backtest succeeds.

refits/test-every-7-refit-20/   those of one pace, where the results of a run lie
    refits.json                 what they depend on; those of another model, other data or versions are never taken
    row-412/model/              the model that learned from the rows before row 412
    row-433/training/           of networks: the state of a refit under way, see candor.training.checkpoint
    machine/                    of networks: the batch plan of all refits, see candor.training.batch_plan

Models are kept, and no scores: a resumed backtest forecasts with each of them again in order of time, so that scores
and adaptive intervals are the same to the bit.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

from candor.core.errors import InputError
from candor.core.files import WriteError, in_plain_words, locked_folder, read_json, write_json
from candor.core.progress import Report
from candor.core.versions import code_checksum, version_of, versions
from candor.data.protocol import Task
from candor.forecasting.forecaster import Forecaster, read_model
from candor.runs.backtesting import Pace, Refits, learn_anew, rows_of_refits
from candor.runs.evaluation import Part
from candor.runs.run import TRAINING

REFITS = "refits"
_RECORD, _MODEL, _PLANS, _PLAN = "refits.json", "model", "machine", "machine.json"


class KeptRefits(Refits):
    """Refits of one backtest in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.note = ""
        """What was found there from before; empty if nothing was."""

    @property
    def is_begun(self) -> bool:
        """Whether there is something to go on from."""
        return any(self.folder.glob("row-*"))

    def is_kept(self, row: int) -> bool:
        """Return whether the model for the forecasts from a row on is there already."""
        return (self._place(row) / _MODEL / "model.json").is_file()

    def is_under_way(self, row: int) -> bool:
        """Return whether a network began to learn for the forecasts from a row on, and can go on with it."""
        return not self.is_kept(row) and any((self._place(row) / TRAINING).rglob("last.safetensors"))

    def learned_before(self, row: int, forecaster: Forecaster, task: Task, report: Report) -> Forecaster:
        """Return the kept forecaster that learned from the rows before `row`; one that is not there yet learns now.

        A network that was killed while it learned goes on from there.
        """
        place = self._place(row)
        if self.is_kept(row):
            with suppress(InputError):  # damaged: it is made anew
                return read_model(place / _MODEL)
        # Plans are measured and differ by chance; with another one the last digits would differ.
        _copy_plans(self.folder / _PLANS, place / TRAINING)
        try:
            learned = learn_anew(row, forecaster, task, report, place / TRAINING)
            _copy_plans(place / TRAINING, self.folder / _PLANS)
            learned.save(place / _MODEL)
        except WriteError as error:
            hint = "make room or fix the folder, then give the same command again: it goes on from what is kept"
            raise WriteError(error.what, where=error.where, hint=hint) from error
        rmtree(place / TRAINING, ignore_errors=True)
        return read_model(place / _MODEL)  # as one that goes on will find it

    def _place(self, row: int) -> Path:
        return self.folder / f"row-{row}"


@contextmanager
def keeping_refits(
    folder: Path,
    forecaster: Forecaster,
    task: Task,
    part: Part,
    pace: Pace,
    model_sha256: str,
    training: Path | None = None,
) -> Iterator[KeptRefits]:
    """Yield the refits of a backtest, with those that an earlier one of the same kind left; they go when it ends well.

    Args:
        folder: where the results of the run lie.
        forecaster: the model of the run.
        task: the readings and their parts.
        part: of the task.
        pace: of the backtest; refits are the same whatever the intervals.
        model_sha256: checksum of the model of the run.
        training: the state of the training of the run, which need not be there; refits use its batch plan.
    """
    place = folder / REFITS / f"{part}-every-{pace.every}-refit-{pace.refit}"
    circumstances = {
        "model": forecaster.name,
        "settings": forecaster.settings(),
        "model_sha256": model_sha256,
        "data_sha256": task.panel.fingerprint,
        "protocol": task.protocol.model_dump(mode="json"),
        "versions": versions() | {"lightgbm": version_of("lightgbm")},
        "code_sha256": code_checksum(),
    }
    record = {"circumstances": circumstances, "part": part, "every": pace.every, "refit_after": pace.refit}
    with ExitStack() as held:
        try:
            held.enter_context(locked_folder(place))
        except BlockingIOError:
            what = "another session is backtesting this run at the same pace"
            raise InputError(what, where=str(place), hint="wait for it, or stop it first") from None
        refits, is_done = KeptRefits(place), False
        refits.note = _take_up(refits, record, rows_of_refits(task, part, pace))
        if training is not None and not refits.is_begun:
            _reuse_plan(training, place / _PLANS)
        try:
            yield refits
            is_done = True
        finally:
            if is_done:
                _remove_outdated(place.parent, circumstances)
            if is_done or not refits.is_begun:
                rmtree(place, ignore_errors=True)
            with suppress(OSError):  # those of another pace are there
                place.parent.rmdir()


def _take_up(refits: KeptRefits, record: dict[str, Any], rows: list[int]) -> str:
    """Return what was kept from before, in words; what is of no use any more is removed."""
    is_begun = refits.is_begun
    if _read(refits.folder) != record:
        with in_plain_words(refits.folder):  # what cannot be removed must not be taken for what the new record says
            for path in refits.folder.glob("*/"):
                rmtree(path)
        write_json(refits.folder / _RECORD, record)
        what = "refits were kept from before, but of another model, other data or other versions: all are made anew"
        return what if is_begun else ""
    kept, is_under_way = sum(map(refits.is_kept, rows)), any(map(refits.is_under_way, rows))
    goes_on = ", and the next one goes on within its training" if is_under_way else ""
    return f"{kept} of {len(rows)} refits are kept from before{goes_on}" if kept or is_under_way else ""


def _remove_outdated(folder: Path, circumstances: dict[str, Any]) -> None:
    """Remove refits of other paces that no backtest can go on from: the model, its data or the versions changed."""
    for place in folder.iterdir():
        record = _read(place)
        if record is not None and record.get("circumstances") != circumstances:
            with suppress(OSError), locked_folder(place):  # another session may still be at it
                rmtree(place, ignore_errors=True)


def _read(folder: Path) -> dict[str, Any] | None:
    """Return what the refits in a folder depend on, None if it cannot be known."""
    try:
        content = read_json(folder / _RECORD)
    except InputError:
        return None
    return content if isinstance(content, dict) else None


def _reuse_plan(training: Path, plans: Path) -> None:
    """Use the batch plan of the run for its refits if it was made for as many threads."""
    if found := [read_json(path) for path in training.rglob(_PLAN)]:
        import torch

        if all(one.get("workers") == torch.get_num_threads() for one in found):
            _copy_plans(training, plans)


def _copy_plans(source: Path, target: Path) -> None:
    """Copy the batch plan of each stage of a training, where there is none yet."""
    for path in source.rglob(_PLAN):
        if not (copy := target / path.relative_to(source)).is_file():
            write_json(copy, read_json(path))
