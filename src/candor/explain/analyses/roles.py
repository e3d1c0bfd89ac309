"""Whether components play the parts they are meant for: their alignment with states of the physical branch.

Compared are, at one sensor, the background of the next patch with the temporal state L, the accumulation of the next
patch with the contribution o that arrived, and release with the residual E of the same patch, each after the network's
own maps for this comparison (eq. app_projected_similarity), by cosine. Before training these maps change nothing.

Cosines can be large because all states share a direction, whatever happens. So two more are computed: with states half
of the windows apart, which do not belong together; and of deviations, what is left of both sides when what is usual at
their sensor, patch and hour of the day is subtracted: about 0 unless the two move together.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from candor.core.arrays import Doubles
from candor.explain.analyses.states import WindowStates
from candor.explain.explanation import ModelFinding
from candor.explain.pictures import RolePicture, Spread

NAME, TITLE = "roles", "Do the components play their parts?"
_PARTNERS = {
    "background": "next background with the temporal state",
    "accumulation": "next accumulation with what arrives",
    "release": "release with the residual",
}
ROLES = tuple(_PARTNERS)


@dataclass(frozen=True, eq=False)
class Alignments:
    """Cosines of one role, each window x sensor x patch."""

    together: Doubles  # of states that belong together, the similarity of the paper
    apart: Doubles  # of components with states half of the windows later, around the end to the beginning
    deviations: Doubles  # of what is left when what is usual is subtracted


def role_states(states: WindowStates) -> dict[str, tuple[Tensor, Tensor]]:
    """Return component and physical state by role (eq. app_role_consistency), each window x sensor x patch x hidden.

    Roles whose patches are too few are left out.
    """
    components = states.components
    assert components is not None and states.paths
    first = max(states.network.settings.temporal_span - 1, 1) - 1  # the paper counts patches from one
    following, current = slice(first + 1, None), slice(first, -1)
    temporal, residual, contribution = map(states.over_paths, ("temporal", "residual", "contribution"))
    found = {
        "background": (components.background[..., following, :], temporal[..., current, :]),
        "accumulation": (components.accumulation[..., following, :], contribution[..., current, :]),
        "release": (components.release, residual),
    }
    return {name: sides for name, sides in found.items() if sides[0].shape[-2]}


@torch.no_grad()
def alignments(states: WindowStates) -> dict[str, Alignments]:
    """Return the cosines by role; a network that learned no maps for the comparison is compared as it is."""
    maps, half = states.network.roles, len(states.origins) // 2
    found = {}
    for role, (ours, theirs) in role_states(states).items():
        if maps is not None:
            ours, theirs = getattr(maps, f"{role}_component")(ours), getattr(maps, f"{role}_physical")(theirs)
        pairs = (
            (ours, theirs),
            (ours, theirs.roll(half, dims=0)),
            (states.deviations(ours), states.deviations(theirs)),
        )
        found[role] = Alignments(*(F.cosine_similarity(one, two, dim=-1).double().numpy() for one, two in pairs))
    return found


def find_roles(before: WindowStates, after: WindowStates) -> ModelFinding:
    """Return the alignments before training and after it."""
    if after.components is None or not after.paths:
        lacking = "components" if after.components is None else "physical branch"
        return ModelFinding(NAME, TITLE, (f"This network has no {lacking}, so there are no parts to compare.",))
    if len(after.origins) < 2:
        return ModelFinding(NAME, TITLE, ("There is one window only, and no other to compare it with.",))
    first, last = alignments(before), alignments(after)
    rows = {
        role: {
            "before": Spread.of(first[role].together),
            "after": Spread.of(last[role].together),
            "after_apart": Spread.of(last[role].apart),
            "deviations_before": Spread.of(first[role].deviations),
            "deviations_after": Spread.of(last[role].deviations),
        }
        for role in last
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
    numbers = {role: {name: part._asdict() for name, part in row.items()} for role, row in rows.items()}
    picture = RolePicture({_PARTNERS[role]: row for role, row in rows.items()}, windows=len(after.origins))
    return ModelFinding(NAME, TITLE, tuple(sentences), numbers, {NAME: picture})
