"""The training loop: epochs of batches, each made of micro-batches that fit the cache, on one or many processes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, broadcast_object_list, gather_object
from torch import Tensor

from candor.core.errors import InputError
from candor.core.progress import Report, silent
from candor.core.text import listed
from candor.data.windows import Windows
from candor.nets.dropout import drawing_from
from candor.nets.recipe import TrainingSettings
from candor.nets.trainable import StepContext, Trainable, tensors_of
from candor.training.batch_plan import BatchPlan
from candor.training.batches import Indices, Pacing, batch_seed, epoch_order, micro_batches, share_of, spread_evenly
from candor.training.checkpoint import Checkpoint, Progress, Weights
from candor.training.processes import in_main_process, join_processes
from candor.training.replicas import ThreadReplicas
from candor.training.tensorboard import Curves

SECONDS_BETWEEN_SAVES = 60.0
Replicas = ThreadReplicas[Trainable]
StopReason = Callable[[], str | None]
"""Returns why training should stop now, or None while it should go on."""


class Stopped(Exception):  # noqa: N818 - being asked to stop is not an error
    """Training stopped in good order before its end; its state is saved."""


@dataclass(frozen=True)
class TrainingData:
    """Windows to learn from, windows that choose the best weights, and how errors are named."""

    training: Windows
    validation: Windows
    sensors: tuple[str, ...]
    unit: str


class Trainer:
    """Trains a network from the beginning, or goes on where a checkpoint stands.

    Args:
        trainable: the network with its objective.
        data: the windows.
        settings: optimiser and schedules.
        seed: of all random numbers.
        plan: micro-batch size and threads.
        checkpoint: None keeps the state in memory only.
        report: progress callback.
        stop_reason: called after every step, in every process.
        stage: see candor.training.stages; empty for the last.
        pacing: of the epochs after the first; None leaves them to the settings.
    """

    def __init__(
        self,
        trainable: Trainable,
        data: TrainingData,
        settings: TrainingSettings,
        seed: int,
        plan: BatchPlan,
        checkpoint: Checkpoint | None = None,
        report: Report = silent,
        stop_reason: StopReason = lambda: None,
        stage: str = "",
        pacing: Pacing | None = None,
    ) -> None:
        join_processes()
        settings, plan = broadcast_object_list([settings, plan])  # measured times differ between processes
        self.trainable, self.data, self.settings, self.seed = trainable, data, settings, seed
        self.plan, self.checkpoint, self.report, self.stop_reason = plan, checkpoint, report, stop_reason
        self.stage, self.pacing = stage, pacing
        self.accelerator = Accelerator()
        self.network = trainable.network.to(self.accelerator.device)
        kind = torch.optim.AdamW if settings.optimiser == "adamw" else torch.optim.Adam
        self.optimiser = kind(
            self.network.parameters(),
            lr=settings.learning_rate,
            eps=settings.adam_floor,
            weight_decay=settings.weight_decay,
        )
        self.progress = Progress()
        self.best: Weights | None = None
        self.average: Weights = {}
        self.curves = None if checkpoint is None else Curves(checkpoint.folder / "tensorboard")
        self._began = self._saved = time.monotonic()

    def run(self) -> Weights:
        """Return the weights with the smallest validation error; raises `Stopped` when asked to stop before the end.

        Without readings to validate on they are the latest. The random state of the caller is left as it was.
        """
        self._resume()
        try:
            with torch.random.fork_rng(devices=[]), ThreadReplicas(self.trainable, self.plan.workers) as replicas:
                self._validate_start(replicas)
                while not self.progress.is_finished:
                    self._end_epoch(replicas, *self._train_epoch(replicas))
        finally:
            if self.curves is not None:
                self.curves.close()
        return self.best_weights()

    def end(self) -> Weights:
        """Mark a training that was stopped as finished, and return its best weights."""
        self.progress.is_finished = True
        self._save()
        return self.best_weights()

    def saved_weights(self) -> Weights:
        """Return the best weights of the checkpoint without training on."""
        self._resume()
        return self.best_weights()

    def best_weights(self) -> Weights:
        """Return the best weights so far; those of now if no epoch has ended yet."""
        return self._copy_of_weights() if self.best is None else self.best

    def _copy_of_weights(self) -> Weights:
        return {name: tensor.detach().cpu().clone() for name, tensor in self.network.state_dict().items()}

    def _validate_start(self, replicas: Replicas) -> None:
        """Take the first weights for the best so far, if they are to be kept where training does not gain."""
        progress = self.progress
        if self.settings.keeps_start and progress.best_epoch is None:
            progress.best_error, progress.best_epoch = self._validation_error(replicas), -1
            self.best = self._copy_of_weights()
            if self.checkpoint is not None:
                in_main_process(partial(self.checkpoint.save_best, self.best))
                self._save()

    def _resume(self) -> None:
        if self.checkpoint is not None and self.checkpoint.exists:
            self.progress, self.average = self.checkpoint.load(self.network, self.optimiser)
            if self.progress.best_epoch is not None:
                self.best = self.checkpoint.load_best()
        places = gather_object([(self.progress.epoch, self.progress.batch)])
        if len(set(places)) > 1:
            raise InputError(
                f"the processes do not see the same state of training: they stand at (epoch, batch) {places}",
                where=str(self.checkpoint.folder) if self.checkpoint else "training",
                hint="put the run directory where all machines see it, such as a network file system",
            )
        broadcast(list(self.network.state_dict().values()))  # first weights may differ between machines

    def _train_epoch(self, replicas: Replicas) -> tuple[int, float]:
        """Return how many windows this process learned from in the epoch, and in how many seconds."""
        progress, settings = self.progress, self.settings
        learned_before, began = progress.windows, time.monotonic()
        replicas.train(True)
        there = len(self.data.training)
        windows = min(there, progress.epoch_windows or settings.epoch_windows or there)
        order = epoch_order(there, self.seed, progress.epoch)[:windows]
        batches = -(-windows // settings.batch)  # the last one may be smaller
        while progress.batch < batches:
            indices = order[progress.batch * settings.batch : (progress.batch + 1) * settings.batch]
            self._train_batch(replicas, indices, settings.rate(progress.epoch, progress.batch / batches))
            progress.batch += 1
            self.report(self._words(), (progress.epoch + progress.batch / batches) / settings.epochs)
            self._save_if_due()
        return progress.windows - learned_before, time.monotonic() - began

    def _train_batch(self, replicas: Replicas, indices: Indices, rate: float) -> None:
        """Take one step of the optimiser; the parts of all micro-batches and processes add up to its gradient."""
        progress = self.progress
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        found = gather_object(self._learn_share(replicas, indices))
        for part, terms in found:
            if not np.isfinite(terms.pop("total")):
                self._give_up("the objective is no longer a number", self._broken_sensors(part))
        replicas.gather_gradients()
        self._sum_gradients()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        if not torch.isfinite(norm):
            self._give_up("the gradient of the objective is no longer a number")
        self.optimiser.step()
        progress.windows += len(indices)
        progress.steps += 1
        self._average_weights()
        for _, terms in found:
            for name, value in terms.items():
                progress.sums[name] = progress.sums.get(name, 0.0) + value * len(indices)

    def _learn_share(self, replicas: Replicas, indices: Indices) -> list[tuple[Indices, dict[str, float]]]:
        """Return this process's micro-batches of a batch with their terms; gradients stay in the replicas."""
        progress, settings, accelerator = self.progress, self.settings, self.accelerator
        rank = accelerator.process_index
        torch.manual_seed(batch_seed(self.seed, progress.epoch, progress.batch, rank))
        prefix, is_active = settings.prefix(progress.epoch, self.trainable.horizon), settings.is_active(progress.epoch)
        done = progress.epoch / settings.epochs
        valid = int(self.data.training.batch(indices).target_mask[:, :prefix].sum())
        parts = list(micro_batches(share_of(indices, rank, accelerator.num_processes), self.plan.micro_batch))
        seeds = torch.randint(2**62, (len(parts),)).tolist()
        generators = [torch.Generator(accelerator.device).manual_seed(seed) for seed in seeds]

        def learn_from(replica: Trainable, number: int) -> dict[str, float]:
            step = StepContext(prefix, is_active, valid, len(parts[number]) / len(indices), done)
            with drawing_from(generators[number]):
                found = replica.objective(self._tensors(self.data.training, parts[number]), step)
            found.total.backward()
            named = {"total": found.total, "error": found.error} | found.terms
            return {name: float(term.detach()) for name, term in named.items()}

        return list(zip(parts, replicas.map(learn_from, range(len(parts))), strict=True))

    def _sum_gradients(self) -> None:
        """Add up the gradients of all processes; a parameter that no process used keeps none."""
        if self.accelerator.num_processes == 1:
            return
        parameters = list(self.network.parameters())
        used = np.any(gather_object([[parameter.grad is not None for parameter in parameters]]), axis=0)
        chosen = [parameter for parameter, is_used in zip(parameters, used, strict=True) if is_used]
        gradients = (torch.zeros_like(one) if one.grad is None else one.grad for one in chosen)
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        flat = self.accelerator.reduce(flat, "sum")
        for parameter, gradient in zip(chosen, flat.split([p.numel() for p in chosen]), strict=True):
            parameter.grad = gradient.view_as(parameter)

    @torch.no_grad()
    def _average_weights(self) -> None:
        """Move the running mean a step towards the weights; at first it forgets faster, so that the start fades."""
        if self.settings.averaging is None:
            return
        if not self.average:
            self.average = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        steps = self.progress.steps
        share = 1 - min(self.settings.averaging, (1 + steps) / (10 + steps))
        for name, tensor in self.network.state_dict().items():
            mean = self.average[name]
            if mean.is_floating_point():
                mean.lerp_(tensor, share)
            else:
                mean.copy_(tensor)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Put the mean of the weights in their place while the block runs, if there is one."""
        if not self.average:
            yield
            return
        latest = self._copy_of_weights()
        self.network.load_state_dict(self.average)  # in place: replicas share the weights
        try:
            yield
        finally:
            self.network.load_state_dict(latest)

    def _end_epoch(self, replicas: Replicas, learned: int, learning: float) -> None:
        """Validate, keep the weights if they are the best, and log the epoch, see `_train_epoch`."""
        progress, settings, began = self.progress, self.settings, time.monotonic()
        with self._averaged():
            error = self._validation_error(replicas)
            is_best = error is None or progress.best_error is None or error < progress.best_error
            if is_best:
                progress.best_error, progress.best_epoch = error, progress.epoch
                self.best = self._copy_of_weights()
        sums = {name: total / progress.windows for name, total in progress.sums.items()}
        progress.seconds += self._lap()
        entry = {
            "epoch": progress.epoch,
            "prefix": settings.prefix(progress.epoch, self.trainable.horizon),
            "learning_rate": settings.rate(progress.epoch),
            "is_active": settings.is_active(progress.epoch),
            "train_error": sums.pop("error"),
            "terms": sums,
            "windows": progress.windows,
            "validation_error": error,
            "unit": self.data.unit,
            "seconds": round(progress.seconds, 3),
            "processes": self.accelerator.num_processes,
        }
        if self.checkpoint is not None:
            in_main_process(partial(self._write_epoch, self.checkpoint, entry, self.best if is_best else None))
        stale = progress.epoch - (progress.best_epoch or 0)
        progress.learned += progress.windows
        progress.epoch, progress.batch, progress.windows, progress.sums = progress.epoch + 1, 0, 0, {}
        progress.lines += 1
        took = learned, learning, time.monotonic() - began
        progress.epoch_windows = in_main_process(partial(self._windows_after, *took))  # clocks differ between processes
        progress.is_finished = progress.epoch >= settings.epochs or stale >= settings.patience
        self._save()

    def _windows_after(self, learned: int, learning: float, validating: float) -> int | None:
        """Return how many windows the next epoch takes, if that is not left to the settings; see `Pacing.windows`."""
        progress, batch = self.progress, self.settings.batch
        if self.pacing is None:
            return None
        if learned < batch:  # a session before this one had learned nearly all of the epoch
            return progress.epoch_windows
        return self.pacing.windows(learned, learning, validating, self.settings.epochs - progress.epoch, batch)

    def _write_epoch(self, checkpoint: Checkpoint, entry: dict[str, Any], best: Weights | None) -> None:
        if best is not None:
            checkpoint.save_best(best)
        checkpoint.log(self.progress.lines, entry)
        if self.curves is not None:
            self.curves.draw(checkpoint.read_log())

    def _validation_error(self, replicas: Replicas) -> float | None:
        """Return the mean absolute error over observed targets of the chosen validation windows, in the sensors' unit.

        Where nothing was observed there is no error, and the latest weights count as the best.
        """
        accelerator, windows = self.accelerator, self.data.validation
        chosen = spread_evenly(len(windows), self.settings.validation_windows)
        mine = share_of(chosen, accelerator.process_index, accelerator.num_processes)

        @torch.no_grad()
        def error_of(replica: Trainable, part: Indices) -> tuple[float, int]:
            batch = self._tensors(windows, part)
            error = (replica.forecast(batch) - batch["targets"])[batch["target_mask"]]
            return float(error.abs().double().sum()), len(error)

        replicas.train(False)
        found = gather_object(list(replicas.map(error_of, micro_batches(mine, self.plan.micro_batch))))
        observed = sum(count for _, count in found)
        if observed == 0:
            return None
        error_of_all = sum(error for error, _ in found) / observed
        if not np.isfinite(error_of_all):
            self._give_up("the forecasts of the validation part are no longer numbers")
        return error_of_all

    def _tensors(self, windows: Windows, indices: Indices) -> dict[str, Tensor]:
        tensors = tensors_of(windows.batch(indices))
        return {name: tensor.to(self.accelerator.device) for name, tensor in tensors.items()}

    @torch.no_grad()
    def _broken_sensors(self, part: Indices) -> str:
        """Name the sensors whose numbers are not finite, for a message; empty if that is none or all of them.

        Inputs and targets are looked at first: one broken sensor spreads to the forecasts of its neighbours.
        """
        batch = self._tensors(self.data.training, part)
        is_broken = ~torch.isfinite(batch["inputs"]).all(dim=1).all(dim=0)
        is_broken |= (batch["target_mask"] & ~torch.isfinite(batch["targets"])).any(dim=1).any(dim=0)
        if "covariates" in batch:
            is_broken |= ~torch.isfinite(batch["covariates"]).all(dim=-1).all(dim=1).all(dim=0)
        if not is_broken.any():
            is_broken = ~torch.isfinite(self.trainable.forecast(batch)).all(dim=1).all(dim=0)
        if is_broken.all() or not is_broken.any():
            return ""
        names = [self.data.sensors[place] for place in is_broken.nonzero().flatten().tolist()]
        return f", sensor{'s' if len(names) > 1 else ''} {listed(names, 3)}"

    def _give_up(self, what: str, detail: str = "") -> None:
        """Save the weights of the step before, which are still good, and raise an error that names the batch."""
        progress = self.progress
        self._save()
        raise InputError(
            f"{what} (epoch {progress.epoch}, batch {progress.batch}{detail}); the last good weights are kept",
            where=str(self.checkpoint.folder) if self.checkpoint else "training",
            hint="look for impossible readings with `candor data check`, or train with a smaller learning_rate, "
            "from the weights that were kept if you like (--init RUN)",
        )

    def _save_if_due(self) -> None:
        is_late = time.monotonic() - self._saved >= SECONDS_BETWEEN_SAVES
        answers = gather_object([(self.stop_reason(), is_late)])  # all processes save and stop together, or none
        reason = next((reason for reason, _ in answers if reason is not None), None)
        if reason is None and not any(is_late for _, is_late in answers):
            return
        self.progress.seconds += self._lap()
        self._save()
        if reason is not None:
            raise Stopped(reason)

    def _save(self) -> None:
        if self.checkpoint is not None:
            in_main_process(partial(self.checkpoint.save, self.progress, self.network, self.optimiser, self.average))
        self._saved = time.monotonic()

    def _lap(self) -> float:
        now = time.monotonic()
        spent, self._began = now - self._began, now
        return spent

    def _words(self) -> str:
        progress, settings = self.progress, self.settings
        prefix = settings.prefix(progress.epoch, self.trainable.horizon)
        error = progress.sums["error"] / progress.windows
        best = "" if progress.best_error is None else f", best validation {progress.best_error:.4g}"
        work = f"training, stage {self.stage} | {self.stage}: " if self.stage else "training | "
        return (
            f"{work}epoch {progress.epoch + 1} of {settings.epochs}, {prefix} steps, "
            f"rate {settings.rate(progress.epoch):.2g}, error {error:.4g}{best} {self.data.unit}"
        )
