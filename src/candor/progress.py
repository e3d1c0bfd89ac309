"""How long work tells of itself, without knowing who listens."""

from collections.abc import Callable

Report = Callable[[str, float | None], object]
"""Takes what is being done and the share of it that is done, or None while that is not known.

Words after " | " tell how it stands now and may change while the same work goes on.
"""


def silent(what: str, share: float | None) -> None:
    """Listens to nothing: the default where nobody watches."""
