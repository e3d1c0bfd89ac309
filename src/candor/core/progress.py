"""How long work tells of itself, without knowing who listens."""

from collections.abc import Callable

Report = Callable[[str, float | None], object]
"""Takes what is being done and the share of it that is done, or None while that is not known.

Words after " | " tell how it stands now and may change while the same work goes on.
"""


def silent(what: str, share: float | None) -> None:
    """Listens to nothing: the default where nobody watches."""


def within(report: Report, whole: str, part: str, begin: float, end: float) -> Report:
    """Returns a listener to the part of a work from share `begin` to `end`, which is told of under the whole's name.

    Work that has several stages begins anew at each; what is told never goes back.
    """
    reached = begin

    def listen(what: str, share: float | None) -> None:
        nonlocal reached
        reached = max(reached, begin + (end - begin) * (share or 0.0))
        report(f"{whole} | {part}: {what.partition(' | ')[2] or what}", reached)

    return listen
