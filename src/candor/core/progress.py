"""Progress callbacks."""

from collections.abc import Callable

Report = Callable[[str, float | None], object]
"""Takes what is being done and the share of it that is done, or None while that is not known.

Words after " | " say how it stands now and may change while the same work goes on.
"""


def silent(what: str, share: float | None) -> None:
    """Do nothing: the default callback."""


def within(report: Report, whole: str, part: str, begin: float, end: float) -> Report:
    """Return a callback for the part of a work from share `begin` to `end`, reported under the whole's name.

    Work that has several stages begins anew at each; the reported share never goes back.
    """
    reached = begin

    def advance(what: str, share: float | None) -> None:
        nonlocal reached
        reached = max(reached, begin + (end - begin) * (share or 0.0))
        report(f"{whole} | {part}: {what.partition(' | ')[2] or what}", reached)

    return advance
