"""Packages that only some uses need: extras of this one, and a few that are installed by themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

from candor.core.errors import InputError


@contextmanager
def needing_packages(purpose: str, *, extra: str = "", packages: str = "", where: str = "") -> Iterator[None]:
    """Refuse a purpose where a package that is imported in the block is not installed, and say how to install it.

    Args:
        purpose: what needs the packages, as the subject of a sentence.
        extra: the extra of candor-forecast that brings them.
        packages: what to install if no extra brings them.
        where: what they are needed for, such as a file.
    """
    try:
        yield
    except ImportError as error:
        what = f"{purpose} needs the package {error.name or error}, which is not installed"
        hint = f"pip install {packages}" if packages else f"pip install 'candor-forecast[{extra}]'"
        raise InputError(what, where=where, hint=hint) from None
