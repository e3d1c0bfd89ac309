"""Whether components play the parts they are meant for: their alignment with states of the physical branch.

Compared are, at one sensor, the background of the next patch with the temporal state L, the accumulation of the next
patch with the contribution o that arrived, and release with the residual E of the same patch, each after the network's
own maps for this comparison (eq. app_projected_similarity), by cosine. Before training these maps change nothing.

Cosines can be large because all states share a direction, whatever happens. So two more things are asked: the same of
states that do not belong together, half of the windows apart; and the cosine of deviations, what is left of both sides
when what is usual at their sensor, patch and hour of the day is taken off: about 0 unless the two move together.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from candor.core.arrays import Doubles
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import Finding
from candor.explain.pictures import Alignment, RolePicture

NAME, TITLE = "roles", "Do the components play their parts?"
ROLES = ("background", "accumulation", "release")
_PARTNERS = {
    "background": "next background with the temporal state",
    "accumulation": "next accumulation with what arrives",
    "release": "release with the residual",
}


@dataclass(frozen=True, eq=False)
class RoleStates:
    """The two sides of a comparison, each window x sensor x patch x hidden."""

    component: Tensor
    physical: Tensor


@dataclass(frozen=True, eq=False)
class Alignments:
    """Cosines of one role, each window x sensor x patch.

    Args:
        together: of states that belong together, the similarity of the paper.
        apart: of components with states half of the windows later, around the end to the beginning.
        deviations: of what is left when what is usual is taken off.
    """

    together: Doubles
    apart: Doubles
    deviations: Doubles


def role_states(states: WindowStates) -> dict[str, RoleStates]:
    """Returns what is compared by role (eq. app_role_consistency); without roles whose patches are too few."""
    components = states.components
    assert components is not None and states.paths
    first = max(states.network.settings.temporal_span - 1, 1) - 1  # the paper counts patches from one
    following, current = slice(first + 1, None), slice(first, -1)
    temporal, residual, contribution = map(states.over_paths, ("temporal", "residual", "contribution"))
    found = {
        "background": RoleStates(components.background[..., following, :], temporal[..., current, :]),
        "accumulation": RoleStates(components.accumulation[..., following, :], contribution[..., current, :]),
        "release": RoleStates(components.release, residual),
    }
    return {name: sides for name, sides in found.items() if sides.component.shape[-2]}


@torch.no_grad()
def alignments(states: WindowStates) -> dict[str, Alignments]:
    """Returns the cosines by role; a network that learned no maps for the comparison is compared as it is."""
    maps, half = states.network.roles, len(states.origins) // 2
    found = {}
    for role, sides in role_states(states).items():
        ours, theirs = sides.component, sides.physical
        if maps is not None:
            ours = getattr(maps, f"{role}_component")(ours)
            theirs = getattr(maps, f"{role}_physical")(theirs)
        found[role] = Alignments(
            together=_cosines(ours, theirs),
            apart=_cosines(ours, theirs.roll(half, dims=0)),
            deviations=_cosines(states.deviations(ours), states.deviations(theirs)),
        )
    return found


def _cosines(ours: Tensor, theirs: Tensor) -> Doubles:
    cosines: Doubles = F.cosine_similarity(ours, theirs, dim=-1).double().numpy()
    return cosines


def find_roles(before: WindowStates, after: WindowStates) -> Finding:
    """Returns the alignments before training and after it."""
    if after.components is None or not after.paths:
        lacking = "components" if after.components is None else "physical branch"
        return Finding(NAME, TITLE, (f"This network has no {lacking}, so there are no parts to compare.",))
    if len(after.origins) < 2:
        return Finding(NAME, TITLE, ("There is one window only, and no other to compare it with.",))
    first, last = alignments(before), alignments(after)
    rows = {
        role: {
            "before": _summary(first[role].together),
            "after": _summary(last[role].together),
            "after_apart": _summary(last[role].apart),
            "deviations_before": _summary(first[role].deviations),
            "deviations_after": _summary(last[role].deviations),
        }
        for role in ROLES
        if role in last
    }
    sentences = [
        f"{_PARTNERS[role].capitalize()}: {row['after'].mean:+.2f} ({row['before'].mean:+.2f} before training, "
        f"{row['after_apart'].mean:+.2f} with another window's); of deviations {row['deviations_after'].mean:+.2f} "
        f"({row['deviations_before'].mean:+.2f} before training)."
        for role, row in rows.items()
    ]
    if len(rows) < len(ROLES):
        sentences.append("The history has too few patches for the other roles.")
    sentences.append(
        "These are mean cosines: 1 the same direction, 0 unrelated, -1 opposite. Where another window's state does as "
        "well, the two share a direction whatever happens; deviations tell whether they also move together."
    )
    numbers = {role: {name: vars(part) for name, part in row.items()} for role, row in rows.items()}
    picture = RolePicture({_PARTNERS[role]: row for role, row in rows.items()}, windows=len(after.origins))
    return Finding(NAME, TITLE, tuple(sentences), numbers, {NAME: picture})


def _summary(cosines: Doubles) -> Alignment:
    low, high = np.quantile(cosines, (0.1, 0.9))
    return Alignment(float(cosines.mean()), float(low), float(high))
