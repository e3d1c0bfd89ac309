"""The loop on a network so small that every number can be computed another way."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import candor.training.tensorboard
from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis
from candor.data.windows import Windows
from candor.errors import InputError
from candor.training.checkpoint import Checkpoint
from candor.training.loop import Stopped, Trainer, TrainingData
from candor.training.machine import Machine, find_machine
from candor.training.settings import TrainingSettings
from candor.training.trainable import Moment, Objective, Trainable


@dataclass
class Line(Trainable):
    """A forecast that is a learned line through the last reading."""

    network: nn.Module
    horizon: int = 2
    breaks_after: int = 10**9

    def objective(self, batch: dict[str, Tensor], moment: Moment) -> Objective:
        error = (self.forecast(batch) - batch["targets"].nan_to_num())[:, : moment.prefix]
        total = (error.abs() * batch["target_mask"][:, : moment.prefix]).sum() / moment.valid
        self.breaks_after -= 1
        if self.breaks_after < 0:
            total = total * float("nan")
        return Objective(total, total.detach(), {"size": moment.share * self.network.weight.abs().mean()})

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        return self.network(batch["inputs"][:, -1:].transpose(1, 2)).transpose(1, 2)


@pytest.fixture(autouse=True)
def no_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders hold the same whether TensorBoard is installed here or not."""
    monkeypatch.setattr(candor.training.tensorboard, "find_writer", lambda: None)


def panel() -> Panel:
    values = np.sin(np.arange(120)[:, None] / 5 + np.arange(3)).astype(np.float32)
    values[::7, 1] = np.nan
    return Panel(
        values=values,
        times=TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 120, "UTC"),
        sensors=tuple(Sensor(f"s{i}", unit="m") for i in range(3)),
        edges=Edges(np.array([0], np.int32), np.array([1], np.int32), np.array([1], np.float32)),
        name="waves",
    )


def data() -> TrainingData:
    readings = panel()
    inputs = np.nan_to_num(readings.values)
    training = Windows(readings, inputs, np.arange(4, 80), 4, 2)
    return TrainingData(training, Windows(readings, inputs, np.arange(80, 110), 4, 2), readings.sensor_ids, "m")


def line(**more: int) -> Line:
    torch.manual_seed(3)
    return Line(nn.Linear(1, 2), **more)


def trainer(machine: Machine = Machine(8, 1), **more: object) -> Trainer:  # noqa: B008 - frozen
    settings = TrainingSettings(**{"epochs": 4, "batch": 16, "learning_rate": 0.05} | more.pop("settings", {}))
    return Trainer(more.pop("trainable", None) or line(), data(), settings, 5, machine, **more)


def test_micro_batches_and_threads_change_nothing_but_rounding() -> None:
    found = [trainer(machine).run() for machine in (Machine(16, 1), Machine(5, 1), Machine(3, 2), Machine(1, 3))]
    for other in found[1:]:
        for name, weights in found[0].items():
            torch.testing.assert_close(other[name], weights, rtol=1e-5, atol=1e-6)


def test_the_same_is_learned_again_to_the_bit_and_chance_of_the_caller_is_left_alone() -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    state = torch.random.get_rng_state()
    first = trainer(Machine(3, 2), trainable=line()).run()
    second = trainer(Machine(3, 2), trainable=line()).run()
    torch.random.set_rng_state(state)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_one_step_is_that_of_adam_on_the_whole_batch() -> None:
    network = nn.Linear(1, 2)
    ours = trainer(trainable=Line(network), settings={"epochs": 1, "batch": 100, "clip": 1e9})
    twin = nn.Linear(1, 2)
    twin.load_state_dict(network.state_dict())
    optimiser = torch.optim.Adam(twin.parameters(), lr=0.05, eps=1e-8, weight_decay=1e-5)
    batch = data().training.batch(slice(None)).tensors()
    forecast = twin(batch["inputs"][:, -1:].transpose(1, 2)).transpose(1, 2)
    (forecast - batch["targets"])[batch["target_mask"]].abs().mean().backward()
    optimiser.step()
    found = ours.run()
    for name, weights in twin.state_dict().items():
        torch.testing.assert_close(found[name], weights)


def test_the_best_epoch_is_kept_and_its_error_is_that_of_its_weights(tmp_path: Path) -> None:
    ours = trainer(checkpoint=Checkpoint(tmp_path), settings={"learning_rate": 0.9, "epochs": 6})
    weights = ours.run()
    log = Checkpoint(tmp_path).read_log()
    errors = [line["validation_error"] for line in log]
    assert ours.progress.best_epoch == int(np.argmin(errors)) and ours.progress.best_error == min(errors)
    best = Line(nn.Linear(1, 2))
    best.network.load_state_dict(weights)
    batch = data().validation.batch(slice(None)).tensors()
    error = (best.forecast(batch) - batch["targets"])[batch["target_mask"]].abs().mean()
    assert float(error.detach()) == pytest.approx(min(errors), rel=1e-5)
    assert all(torch.equal(Checkpoint(tmp_path).load_best()[name], weights[name]) for name in weights)


def test_training_ends_when_nothing_gets_better() -> None:
    ours = trainer(settings={"epochs": 50, "patience": 2, "learning_rate": 1e-30})
    ours.run()
    assert ours.progress.epoch == 3


@pytest.mark.parametrize("steps", [1, 4, 5, 12])
def test_a_training_that_is_stopped_goes_on_to_the_same_weights(tmp_path: Path, steps: int) -> None:
    whole = trainer(checkpoint=Checkpoint(tmp_path / "whole"))
    expected = whole.run()
    asked = iter(range(1000))
    stopping = trainer(
        checkpoint=Checkpoint(tmp_path / "pieces"),
        stop_reason=lambda: "enough" if next(asked) + 1 >= steps else None,
    )
    with pytest.raises(Stopped, match="enough"):
        stopping.run()
    found = trainer(trainable=Line(nn.Linear(1, 2)), checkpoint=Checkpoint(tmp_path / "pieces")).run()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    logs = [Checkpoint(tmp_path / name).read_log() for name in ("whole", "pieces")]
    for line in [line for log in logs for line in log]:
        del line["seconds"]
    assert logs[0] == logs[1]


def test_a_finished_training_is_not_trained_further(tmp_path: Path) -> None:
    first = trainer(checkpoint=Checkpoint(tmp_path)).run()
    before = (tmp_path / "last.safetensors").read_bytes()
    again = trainer(trainable=Line(nn.Linear(1, 2)), checkpoint=Checkpoint(tmp_path)).run()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert (tmp_path / "last.safetensors").read_bytes() == before


def test_a_loss_that_is_no_number_names_the_batch_and_keeps_the_last_good_weights(tmp_path: Path) -> None:
    ours = trainer(trainable=line(breaks_after=13), checkpoint=Checkpoint(tmp_path))
    with pytest.raises(InputError, match=r"no longer a number \(epoch 1, batch 1\).*last good weights are kept"):
        ours.run()
    kept = trainer(trainable=Line(nn.Linear(1, 2)), checkpoint=Checkpoint(tmp_path))
    kept._resume()
    assert all(torch.isfinite(weights).all() for weights in kept.network.state_dict().values())
    assert (kept.progress.epoch, kept.progress.batch) == (ours.progress.epoch, ours.progress.batch)


def test_a_sensor_whose_forecast_is_no_number_is_named() -> None:
    ours = trainer()
    with torch.no_grad():
        ours.network.weight.fill_(float("nan"))
    with pytest.raises(InputError, match="sensor s0"):
        ours.run()


def test_a_state_that_cannot_be_saved_is_said_in_words_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Stopped):
        asked = iter(range(100))
        trainer(checkpoint=Checkpoint(tmp_path), stop_reason=lambda: "enough" if next(asked) == 6 else None).run()
    before = (tmp_path / "last.safetensors").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("candor.training.checkpoint.save_file", full)
    with pytest.raises(InputError, match="No space left on device"):
        trainer(checkpoint=Checkpoint(tmp_path)).run()
    assert (tmp_path / "last.safetensors").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.safetensors", "last.safetensors", "metrics.jsonl"]


def test_a_foreign_or_damaged_state_is_refused(tmp_path: Path) -> None:
    trainer(checkpoint=Checkpoint(tmp_path), settings={"epochs": 1}).run()
    whole = (tmp_path / "last.safetensors").read_bytes()
    for content in (b"", b"x" * 100, whole[:-10]):
        (tmp_path / "last.safetensors").write_bytes(content)
        with pytest.raises(InputError, match="cannot be read"):
            trainer(checkpoint=Checkpoint(tmp_path)).run()


def test_what_suits_the_machine_is_found_once_and_kept(tmp_path: Path) -> None:
    trainable, windows = line(), data().training
    before = {name: weights.clone() for name, weights in trainable.network.state_dict().items()}
    found = find_machine(trainable, windows, 16, Checkpoint(tmp_path))
    assert 1 <= found.micro_batch <= 16 and found.workers >= 1
    assert all(torch.equal(before[name], weights) for name, weights in trainable.network.state_dict().items())
    (tmp_path / "machine.json").write_text('{"micro_batch": 7, "workers": 3}')
    assert find_machine(trainable, windows, 16, Checkpoint(tmp_path)) == Machine(7, 3)


@dataclass
class FileWriter:
    """A writer that, like TensorBoard's, begins a new file in its folder and adds a line per point."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / f"events.out.tfevents.{len(list(self.folder.iterdir()))}"
        self.is_closed = False

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        assert not self.is_closed
        with self.file.open("a") as file:
            file.write(f"{tag} {global_step} {scalar_value!r}\n")

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


def assert_each_epoch_is_drawn_once(checkpoint: Checkpoint) -> None:
    curves: dict[str, list[tuple[int, float]]] = {}
    for file in (checkpoint.folder / "tensorboard").iterdir():
        for tag, step, value in map(str.split, file.read_text().splitlines()):
            curves.setdefault(tag, []).append((int(step), float(value)))
    log = checkpoint.read_log()
    names = ("learning_rate", "prefix", "train_error", "validation_error")
    expected = {name: [(line["epoch"], line[name]) for line in log] for name in names}
    assert curves == expected | {"terms/size": [(line["epoch"], line["terms"]["size"]) for line in log]}


def test_curves_hold_each_epoch_once_whatever_happened_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path)

    def go_on(steps: int) -> None:
        asked = iter(range(steps, 0, -1))
        with suppress(Stopped):
            trainer(checkpoint=checkpoint, stop_reason=lambda: "enough" if next(asked) == 1 else None).run()

    go_on(7)  # an epoch and two steps, while TensorBoard is not installed
    earlier = checkpoint.last.read_bytes()
    monkeypatch.setattr(candor.training.tensorboard, "find_writer", lambda: FileWriter)
    go_on(10)
    assert len(checkpoint.read_log()) == 3
    assert_each_epoch_is_drawn_once(checkpoint)
    checkpoint.last.write_bytes(
        earlier
    )  # as if it had been killed before it could save, two epochs after the last time
    go_on(1000)
    assert len(checkpoint.read_log()) == 4
    assert_each_epoch_is_drawn_once(checkpoint)


def test_without_tensorboard_no_curves_are_drawn(tmp_path: Path) -> None:
    trainer(checkpoint=Checkpoint(tmp_path)).run()
    assert not (tmp_path / "tensorboard").exists()
