"""The loop on a network so small that every number can be computed another way."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import candor.training.tensorboard
from candor.core.errors import InputError
from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis
from candor.data.windows import Windows
from candor.nets.recipe import TrainingSettings
from candor.nets.trainable import Objective, StepContext, Trainable, tensors_of
from candor.training.batch_plan import BatchPlan, find_batch_plan
from candor.training.checkpoint import Checkpoint
from candor.training.loop import Stopped, Trainer, TrainingData


@dataclass
class Line(Trainable):
    """A forecast that is a learned line through the last reading."""

    network: nn.Module
    horizon: int = 2
    breaks_after: int = 10**9

    def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
        error = (self.forecast(batch) - batch["targets"].nan_to_num())[:, : step.prefix]
        total = (error.abs() * batch["target_mask"][:, : step.prefix]).sum() / step.valid
        self.breaks_after -= 1
        if self.breaks_after < 0:
            total = total * float("nan")
        return Objective(total, total.detach(), {"size": step.share * self.network.weight.abs().mean()})

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


def trainer(plan: BatchPlan = BatchPlan(8, 1), **more: object) -> Trainer:  # noqa: B008 - frozen
    settings = TrainingSettings(**{"epochs": 4, "batch": 16, "learning_rate": 0.05} | more.pop("settings", {}))
    return Trainer(more.pop("trainable", None) or line(), data(), settings, 5, plan, **more)


def test_micro_batches_and_threads_change_nothing_but_rounding() -> None:
    found = [trainer(plan).run() for plan in (BatchPlan(16, 1), BatchPlan(5, 1), BatchPlan(3, 2), BatchPlan(1, 3))]
    for other in found[1:]:
        for name, weights in found[0].items():
            torch.testing.assert_close(other[name], weights, rtol=1e-5, atol=1e-6)


def test_the_same_is_learned_again_to_the_bit_and_chance_of_the_caller_is_left_alone() -> None:
    ours, again = (trainer(BatchPlan(3, 2), trainable=line()) for _ in range(2))
    torch.manual_seed(11)
    state = torch.random.get_rng_state()
    first, second = ours.run(), again.run()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_three_steps_are_those_of_adam_on_the_whole_batch(name: str, kind: type[torch.optim.Optimizer]) -> None:
    def by_hand(decay: float, clip: float) -> dict[str, Tensor]:
        twin = line()
        optimiser = kind(twin.network.parameters(), lr=0.05, eps=floor, weight_decay=decay)
        for _ in range(3):
            optimiser.zero_grad()
            (twin.forecast(batch) - batch["targets"])[batch["target_mask"]].abs().mean().backward()
            torch.nn.utils.clip_grad_norm_(twin.network.parameters(), clip)
            optimiser.step()
        return twin.network.state_dict()

    batch, decay, clip, floor = tensors_of(data().training.batch(slice(None))), 0.5, 0.02, 0.01
    steps = {"epochs": 3, "batch": 100, "optimiser": name}
    ours = trainer(settings=steps | {"weight_decay": decay, "clip": clip, "adam_floor": floor})
    ours.run()
    found = ours.network.state_dict()
    for key, weights in by_hand(decay, clip).items():
        torch.testing.assert_close(found[key], weights)
    for other in (by_hand(0.0, clip), by_hand(decay, 1e9)):  # both count
        assert any(not torch.allclose(found[key], weights, atol=1e-4) for key, weights in other.items())


def test_every_step_keeps_to_the_schedules_of_its_epoch(tmp_path: Path) -> None:
    seen: dict[int, set[tuple[int, bool, float]]] = {}

    class Recorder(Line):
        def objective(self, batch: dict[str, Tensor], step: StepContext) -> Objective:
            rate = ours.optimiser.param_groups[0]["lr"]
            seen.setdefault(ours.progress.epoch, set()).add((step.prefix, step.is_active, rate))
            wanted = batch["target_mask"][:, : step.prefix].sum()
            assert step.share == len(batch["inputs"]) / 38 and step.valid > wanted  # 76 windows in two batches
            return super().objective(batch, step)

    schedules = {"warm_up": 1, "curriculum": 1, "period": 2, "milestones": (2, 5), "decay": 0.5, "activation": 4}
    settings = {"epochs": 7, "batch": 38} | schedules
    ours = trainer(trainable=Recorder(line().network), checkpoint=Checkpoint(tmp_path), settings=settings)
    ours.run()
    prefixes, rates = (2, 1, 1, 2, 2, 2, 2), (0.05, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125)
    expected = list(zip(prefixes, (False,) * 4 + (True,) * 3, rates, strict=True))
    assert seen == {epoch: {step} for epoch, step in enumerate(expected)}
    logged = [
        (entry["prefix"], entry["is_active"], entry["learning_rate"]) for entry in Checkpoint(tmp_path).read_log()
    ]
    assert logged == expected


def test_progress_tells_epoch_steps_rate_and_errors_in_the_unit(tmp_path: Path) -> None:
    said: list[tuple[str, float | None]] = []
    settings = {"curriculum": 1, "milestones": (1,), "epochs": 3}
    ours = trainer(checkpoint=Checkpoint(tmp_path), settings=settings, report=lambda *words: said.append(words))
    ours.run()
    log = Checkpoint(tmp_path).read_log()
    assert len(said) == 15 and said[0][0].startswith("training | epoch 1 of 3, 1 steps, rate 0.05, error ")
    for epoch, entry in enumerate(log):  # what is said after the last step of an epoch is what is written of it
        best = f", best validation {min(line['validation_error'] for line in log[:epoch]):.4g}" if epoch else ""
        rate, prefix = ("0.05", 1) if epoch == 0 else ("0.025", 2)
        expected = f"epoch {epoch + 1} of 3, {prefix} steps, rate {rate}, error {entry['train_error']:.4g}{best} m"
        assert said[5 * epoch + 4][0] == f"training | {expected}"
    assert [share for _, share in said] == pytest.approx([step / 15 for step in range(1, 16)])


@pytest.mark.parametrize("origins", [np.arange(80, 110), np.arange(0)])
def test_where_nothing_can_be_validated_the_latest_weights_are_kept(tmp_path: Path, origins: np.ndarray) -> None:
    values = panel().values.copy()
    values[80:] = np.nan
    silent = replace(panel(), values=values)
    blind = replace(data(), validation=Windows(silent, np.nan_to_num(values), origins, 4, 2))
    settings = TrainingSettings(epochs=4, batch=16, learning_rate=0.05, patience=1)
    asked = iter(range(1000))
    with pytest.raises(Stopped):
        stop = lambda: "enough" if next(asked) == 12 else None  # noqa: E731
        Trainer(line(), blind, settings, 5, BatchPlan(8, 1), Checkpoint(tmp_path), stop_reason=stop).run()
    ours = Trainer(line(), blind, settings, 5, BatchPlan(8, 1), Checkpoint(tmp_path))
    weights = ours.run()
    assert (ours.progress.epoch, ours.progress.best_epoch, ours.progress.best_error) == (4, 3, None)
    for name, latest in ours.network.state_dict().items():
        assert torch.equal(weights[name], latest) and torch.equal(Checkpoint(tmp_path).load_best()[name], latest)
    assert [entry["validation_error"] for entry in Checkpoint(tmp_path).read_log()] == [None] * 4


def test_the_best_epoch_is_kept_and_its_error_is_that_of_its_weights(tmp_path: Path) -> None:
    ours = trainer(checkpoint=Checkpoint(tmp_path), settings={"learning_rate": 0.9, "epochs": 6})
    weights = ours.run()
    log = Checkpoint(tmp_path).read_log()
    errors = [line["validation_error"] for line in log]
    assert ours.progress.best_epoch == int(np.argmin(errors)) and ours.progress.best_error == min(errors)
    best = Line(nn.Linear(1, 2))
    best.network.load_state_dict(weights)
    batch = tensors_of(data().validation.batch(slice(None)))
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


class Blend(Line):
    """A line through the mean of all sensors: one that is broken breaks the forecasts of all."""

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        mean = batch["inputs"].mean(dim=2, keepdim=True).expand_as(batch["inputs"])
        return super().forecast(batch | {"inputs": mean})


@pytest.mark.parametrize("kind", [Line, Blend])
def test_the_sensor_that_breaks_a_loss_is_named_and_not_those_that_hear_of_it(kind: type[Line]) -> None:
    inputs = np.nan_to_num(panel().values)
    inputs[50, 2] = np.inf
    broken = replace(data(), training=Windows(panel(), inputs, np.arange(4, 80), 4, 2))
    ours = Trainer(kind(nn.Linear(1, 2)), broken, TrainingSettings(batch=100), 5, BatchPlan(100, 1))
    with pytest.raises(InputError, match=r"no longer a number \(epoch 0, batch 0, sensor s2\)"):
        ours.run()


class Uneven(Line):
    """A line that has no forecast for the last two sensors."""

    def forecast(self, batch: dict[str, Tensor]) -> Tensor:
        return super().forecast(batch) / torch.tensor([1.0, 0.0, 0.0])


def test_sensors_without_a_forecast_are_named_unless_none_has_one() -> None:
    with pytest.raises(InputError, match=r"batch 0, sensors s1, s2\)"):
        trainer(trainable=Uneven(nn.Linear(1, 2))).run()
    ours = trainer()
    with torch.no_grad():
        ours.network.weight.fill_(float("nan"))
    with pytest.raises(InputError, match=r"batch 0\)"):
        ours.run()


def test_a_line_of_metrics_that_cannot_be_written_is_said_in_words_and_training_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = trainer(checkpoint=Checkpoint(tmp_path / "whole")).run()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(InputError, match=r"No space left(.|\n)*candor train --resume"):
        patch.setattr(Path, "write_text", full)
        trainer(checkpoint=Checkpoint(tmp_path / "full")).run()
    found = trainer(checkpoint=Checkpoint(tmp_path / "full")).run()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert len(Checkpoint(tmp_path / "full").read_log()) == 4


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
        with pytest.raises(InputError, match="cannot be read"):
            Checkpoint(tmp_path).progress()
    save_file({"network/weight": torch.zeros(1)}, tmp_path / "last.safetensors", {"format": "another program"})
    with pytest.raises(InputError, match="not the state of a training"):
        trainer(checkpoint=Checkpoint(tmp_path)).run()
    with pytest.raises(InputError, match="not the state of a training"):
        Checkpoint(tmp_path).progress()


def test_what_suits_the_machine_is_found_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("candor.training.batch_plan._FIRST_SIZE", 4)
    trainable, windows = line(), data().training
    before = {name: weights.clone() for name, weights in trainable.network.state_dict().items()}
    found = find_batch_plan(trainable, windows, 16, Checkpoint(tmp_path))
    assert 1 <= found.micro_batch <= 16 and found.workers >= 1
    assert json.loads((tmp_path / "machine.json").read_text()) == asdict(found)
    assert all(torch.equal(before[name], weights) for name, weights in trainable.network.state_dict().items())
    (tmp_path / "machine.json").write_text('{"micro_batch": 7, "workers": 3}')
    assert find_batch_plan(trainable, windows, 16, Checkpoint(tmp_path)) == BatchPlan(7, 3)


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
