"""The state of a training on disk: one file that is replaced as a whole, so that a kill finds the old or the new one.

last.safetensors   weights, Adam's moments, and in its header how far training has come
best.safetensors   the weights with the smallest validation error; the latest ones where there is nothing to validate on
metrics.jsonl      one line per epoch; lines beyond what `last` knows of are cut when training goes on
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from candor.core.errors import InputError
from candor.core.files import WriteError, atomic_file, remove_leftovers

FORMAT = "candor-training-1"
Weights = dict[str, Tensor]


@dataclass
class Progress:
    """How far training has come."""

    epoch: int = 0
    """The epoch that is under way."""
    batch: int = 0
    """Batches of it that are done."""
    windows: int = 0
    """Windows that those held."""
    epoch_windows: int | None = None
    """Windows that it takes, settled before it began; None leaves that to the settings."""
    learned: int = 0
    """Windows of the epochs before it."""
    steps: int = 0
    """Of the optimiser, over all epochs."""
    sums: dict[str, float] = field(default_factory=dict)
    """Terms of the objective so far in this epoch, each weighed by its windows."""
    best_error: float | None = None
    """Smallest validation error so far, in the sensors' unit; None while there is none to tell of."""
    best_epoch: int | None = None
    """The epoch whose weights are kept; -1 stands for the first weights."""
    lines: int = 0
    """Lines of metrics that belong to finished epochs."""
    seconds: float = 0.0
    """Time spent in all sessions."""
    is_finished: bool = False
    """Whether training came to its end."""


class Checkpoint:
    """A folder that holds the state of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last, self.best = folder / "last.safetensors", folder / "best.safetensors"
        self.metrics = folder / "metrics.jsonl"

    @property
    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self.last.is_file()

    def save(
        self, progress: Progress, network: nn.Module, optimiser: torch.optim.Optimizer, average: Weights | None = None
    ) -> None:
        """Write the state of training, with the running mean of the weights if there is one, all or nothing."""
        tensors = {f"network/{name}": tensor for name, tensor in network.state_dict().items()}
        tensors |= {f"average/{name}": tensor for name, tensor in (average or {}).items()}
        names = [name for name, _ in network.named_parameters()]
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= {f"adam/{key}/{names[index]}": value for key, value in state.items()}
        _write(self.last, tensors, {"progress": json.dumps(asdict(progress))})

    def load(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[Progress, Weights]:
        """Bring network and optimiser to the saved state; return how far training had come and the mean of weights."""
        tensors, header = _read(self.last)
        network.load_state_dict(_under("network/", tensors))
        names = [name for name, _ in network.named_parameters()]
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in _under("adam/", tensors).items():
            kind, name = key.split("/", 1)
            state.setdefault(names.index(name), {})[kind] = value
        optimiser.load_state_dict(optimiser.state_dict() | {"state": state})
        return Progress(**json.loads(header["progress"])), _under("average/", tensors)

    def progress(self) -> Progress:
        """Return how far training has come; if nothing is there, that it has not begun.

        The time of the stages before it counts; their folders lie in this one.
        """
        found = Progress()
        if self.exists:
            found = Progress(**json.loads(_read_header(self.last)["progress"]))
        for last in sorted(self.folder.glob(f"*/{self.last.name}")):
            found.seconds += Checkpoint(last.parent).progress().seconds
        return found

    def save_best(self, weights: Weights) -> None:
        """Write the best weights, all or nothing."""
        _write(self.best, weights, {})

    def load_best(self) -> Weights:
        """Return the best weights."""
        return _read(self.best)[0]

    def load_last(self) -> Weights:
        """Return the weights that training goes on from."""
        return _under("network/", _read(self.last)[0])

    def remove_leftovers(self) -> None:
        """Remove what was half-written when an earlier session was killed, also that of the stages before."""
        for folder in (self.folder, *(place for place in self.folder.glob("*") if place.is_dir())):
            for name in {self.last.name, self.best.name, *(file.name for file in folder.glob("[!.]*"))}:
                remove_leftovers(folder / name)

    def log(self, lines: int, entry: dict[str, Any]) -> None:
        """Make `entry` the line after the first `lines` lines of metrics; later ones are of an epoch that was lost."""
        kept = self.read_log()[:lines]
        with _saving(), atomic_file(self.metrics) as temporary:
            temporary.write_text("".join(json.dumps(line, allow_nan=False) + "\n" for line in [*kept, entry]))

    def read_log(self) -> list[dict[str, Any]]:
        """Return the lines of metrics."""
        if not self.metrics.is_file():
            return []
        return [json.loads(line) for line in self.metrics.read_text().splitlines()]


def _under(prefix: str, tensors: Weights) -> Weights:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _write(path: Path, tensors: Weights, header: dict[str, str]) -> None:
    with _saving(), atomic_file(path) as temporary:
        contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, temporary, {"format": FORMAT, **header})


@contextmanager
def _saving() -> Iterator[None]:
    """Say of a state that cannot be written how training goes on from the one before."""
    try:
        yield
    except WriteError as error:
        raise WriteError(
            f"the state of training cannot be saved ({error.__cause__})",
            where=error.where,
            hint="make room or fix the folder, then go on with `candor train --resume`: the last saved state is whole",
        ) from error


def _read(path: Path) -> tuple[Weights, dict[str, str]]:
    header = _read_header(path)
    with _reading(path):
        return load_file(path), header


def _read_header(path: Path) -> dict[str, str]:
    # For torch the file would be opened twice, and a training under way may have replaced it in between.
    with _reading(path), safe_open(path, framework="np") as file:
        header: dict[str, str] = file.metadata() or {}
    if header.get("format") != FORMAT:
        raise InputError("this is not the state of a training that this version of candor reads", where=str(path))
    return header


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of a damaged file in plain words that it is damaged."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:  # of torch where the file was replaced meanwhile
        raise InputError(f"the saved state of training cannot be read ({error})", where=str(path)) from None
