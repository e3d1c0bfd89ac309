"""How well the components rebuild the history they were taken from, by both references of the decomposition.

The paper compares states: Z with B~ + A~ + S~ (the background of the same patch), and Z with B~ of the next patch + R~
+ S~. To show the same in the sensors' unit the embedding Z = LN(W x + b) is inverted. The norm takes a mean and a scale
off u = W x + b, so that with C u = u - mean(u), the scale s of u, and the norm's own factor g and offset o

    Z - o = g * (C W x + C b) / s = g * [C W, C b] (x / s, 1 / s)

is linear in x / s and 1 / s: one pseudo-inverse gives both back, exactly if a patch is shorter than the states are
wide. States that are no embedding of anything are read with the scale s of the embedding they stand for; so the
readings of a sum of components are the sum of what its components read.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from candor.core.arrays import Doubles
from candor.core.text import amount, rounded_percent, sensor_label, significant
from candor.data.panel import Panel
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import ReconstructionPicture
from candor.nets.candor.decomposition import Components, PatchEmbedding

NAME, TITLE = "reconstruction", "Do the components rebuild the history?"
_LEAST_SCALE = 1e-12


class EmbeddingInverse:
    """From states back to the patches of readings that have them, in double precision."""

    def __init__(self, embedding: PatchEmbedding) -> None:
        weight, bias = embedding.linear.weight.detach().double(), embedding.linear.bias.detach().double()
        factor, self._offset = embedding.norm.weight.detach().double(), embedding.norm.bias.detach().double()
        centred = torch.cat([weight - weight.mean(dim=0), (bias - bias.mean())[:, None]], dim=1)
        forth = factor[:, None] * centred
        self._back = torch.linalg.pinv(forth)  # (length + 1) x hidden
        self.is_exact = bool(torch.linalg.matrix_rank(forth) == forth.shape[1])
        """Whether every patch can be told from its state."""

    def scales(self, embedded: Tensor) -> Tensor:
        """Return 1 / s of embedded patches, ... x 1."""
        scales: Tensor = (embedded.double() - self._offset) @ self._back[-1:].T
        return scales.clamp(min=_LEAST_SCALE)

    def readings(self, states: Tensor, scales: Tensor, *, has_offset: bool = True) -> Tensor:
        """Return the patches that states stand for, ... x length, in z-scores without their anchor.

        Args:
            states: ... x hidden.
            scales: of the embedding that the states are, rebuild, or are a part of.
            has_offset: whether the offset of the norm is in these states; of several parts it is in one.
        """
        states = states.double() - self._offset if has_offset else states.double()
        patches: Tensor = states @ self._back[:-1].T
        return patches / scales


@dataclass(frozen=True)
class ReferenceError:
    """How far the states rebuilt by one reference are from the embedding."""

    loss: float  # mean smooth-L1, as the reconstruction loss of the paper has it
    explained: float  # share of the variance of the embedding that is rebuilt; below 0 is worse than its mean
    in_unit: float | None  # mean absolute error of the readings, in the sensors' unit; None if they cannot be read back


@dataclass(frozen=True)
class Reconstruction:
    """The errors of both references over windows."""

    current: ReferenceError  # against the background of the same patch
    following: ReferenceError | None  # against that of the next patch; None if the history is one patch
    of_embedding: float | None  # of reading the embedding itself back, in the sensors' unit: rounding
    of_nothing: float  # of guessing the mean of what the network reads, in the sensors' unit


def rebuilt(components: Components) -> tuple[Tensor, Tensor]:
    """Return the states rebuilt by the current and by the following reference; the last background is repeated."""
    background, shock = components.raw_background, components.raw_shock
    following = torch.cat([background[..., 1:, :], background[..., -1:, :]], dim=-2)
    return background + components.raw_accumulation + shock, following + components.raw_release + shock


def reconstruction_errors(states: WindowStates) -> Reconstruction:
    """Return the errors over all windows, sensors and patches; in the unit over readings that were measured."""
    assert states.components is not None
    embedded, settings = states.embedded, states.network.settings
    current, following = rebuilt(states.components)
    inverse = EmbeddingInverse(states.network.embedding)
    patches, observed = (  # window sensor patch step
        values.transpose(1, 2).unfold(-1, settings.patch_length, settings.patch_stride)
        for values in (states.values, states.observed)
    )
    scales, deviation = inverse.scales(embedded), states.trainable.scaler.deviation

    def error_in_unit(found: Tensor, rows: slice) -> float | None:
        known = observed[..., rows, :]
        if not inverse.is_exact or not known.any():
            return None
        away = inverse.readings(found[..., rows, :], scales[..., rows, :]) - patches[..., rows, :]
        return float(away[known].abs().mean()) * deviation

    def error_of(rebuilt: Tensor, rows: slice) -> ReferenceError:
        wanted, found = embedded[..., rows, :].double(), rebuilt[..., rows, :].double()
        spread = (wanted - wanted.mean(dim=(0, 1, 2))).square().sum()
        missed = (wanted - found).square().sum()
        loss = float(F.smooth_l1_loss(found, wanted))
        return ReferenceError(loss, float(1 - missed / spread.clamp(min=1e-30)), error_in_unit(rebuilt, rows))

    whole, but_last = slice(None), slice(None, -1)
    known = patches[observed] if observed.any() else patches
    return Reconstruction(
        current=error_of(current, whole),
        following=error_of(following, but_last) if embedded.shape[-2] > 1 else None,
        of_embedding=error_in_unit(embedded, whole),
        of_nothing=float((known - known.mean()).abs().mean()) * deviation,
    )


def find_reconstruction(states: WindowStates, shown: WindowStates, panel: Panel, column: int) -> ModelFinding:
    """Return how well the history is rebuilt, with the trajectories of one sensor.

    Args:
        states: windows that the errors are means over.
        shown: windows of the trajectories, one after the other.
        panel: the readings.
        column: of the sensor that is shown.
    """
    if states.components is None:
        sentence = "This network does not split the past into components, so there is nothing to rebuild it from."
        return ModelFinding(NAME, TITLE, (sentence,))
    found, unit = reconstruction_errors(states), panel.unit
    references = {
        "the background of the same patch, background and accumulation": found.current,
        "that of the next patch, background and release": found.following,
    }
    sentences = []
    for parts, error in references.items():
        if error is not None:
            share = f"{rounded_percent(error.explained)} of the variance of the embedding"
            rebuilt = share if error.explained >= 0 else "the embedding worse than its mean would"
            read = "" if error.in_unit is None else f"; read back, they are off by {amount(error.in_unit, unit)}"
            sentences.append(
                f"Against {parts} and shock rebuild {rebuilt} (smooth-L1 {significant(error.loss)}){read}."
            )
    if found.following is None:
        sentences.append("The history is a single patch: there is no next background to refer to.")
    if found.of_embedding is None:
        sentences.append("Patches are too long for their states to be read back, so there is no error in the unit.")
    else:
        sentences.append(
            f"Guessing the mean of what the network reads would be off by {amount(found.of_nothing, unit)}."
        )
    numbers = vars(found) | {
        "current": vars(found.current),
        "following": None if found.following is None else vars(found.following),
        "unit": unit,
    }
    is_readable = found.of_embedding is not None
    pictures = {NAME: picture_reconstruction(shown, panel, column, found)} if is_readable else {}
    return ModelFinding(NAME, TITLE, tuple(sentences), numbers, pictures)


def picture_reconstruction(
    shown: WindowStates, panel: Panel, column: int, found: Reconstruction | None = None
) -> ReconstructionPicture:
    """Return readings, both reconstructions and the parts of one sensor in its unit, over windows in a row."""
    components = shown.components
    assert components is not None
    inverse, scaler = EmbeddingInverse(shown.network.embedding), shown.trainable.scaler
    scales = inverse.scales(shown.embedded[:, column])

    def in_time(states: Tensor, *, has_offset: bool = True) -> Doubles:
        patches = inverse.readings(states[:, column], scales, has_offset=has_offset)
        mean: Doubles = _overlapped(shown, patches).numpy().ravel() * scaler.deviation
        return mean

    current, following = map(in_time, rebuilt(components))
    history = shown.network.settings.history
    level = shown.anchor[:, 0, column].double().repeat_interleave(history).numpy() * scaler.deviation + scaler.mean
    rows = (shown.origins[:, None] + np.arange(-history, 0)).ravel()
    times = panel.times.local[rows].to_pydatetime()
    return ReconstructionPicture(
        sensor=sensor_label(panel.sensors[column].id, panel.sensors[column].name),
        unit=panel.sensors[column].unit,
        times=list(times),
        breaks=[times[place] for place in range(history, len(times), history)],
        readings=panel.values[rows, column],
        current=current + level,
        following=following + level,
        parts={
            name: in_time(getattr(components, f"raw_{name}"), has_offset=False)
            for name in ("accumulation", "release", "shock")
        },
        note="" if found is None else _errors_in_words(found, panel.unit, len(shown.origins)),
    )


def _overlapped(of: WindowStates, patches: Tensor) -> Tensor:
    """Return patches, window x patch x length, as steps of the history; NaN at steps that no patch covers."""
    settings = of.network.settings
    total = patches.new_zeros(len(patches), settings.history)
    count = patches.new_zeros(settings.history)
    for patch, start in enumerate(settings.history_starts):
        covered = slice(start, start + settings.patch_length)
        total[:, covered] += patches[:, patch]
        count[covered] += 1
    return total / torch.where(count > 0, count, torch.nan)


def _errors_in_words(found: Reconstruction, unit: str, windows: int) -> str:
    references = {"current reference": found.current, "next reference": found.following}
    words = ", ".join(
        f"{name} {amount(error.in_unit or 0.0, unit)}" for name, error in references.items() if error is not None
    )
    dotted = " Dotted lines part histories." if windows > 1 else ""
    return f"Mean absolute error over all sensors: {words}. Read back by the inverse of the embedding.{dotted}"
