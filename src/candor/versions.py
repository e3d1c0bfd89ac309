"""What a result was made with, so that it can be made again."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("candor-forecast", "numpy", "pandas", "pyarrow", "scipy", "torch")


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that numbers depend on; nothing is imported for it."""
    return {"python": platform.python_version()} | {package: version_of(package) for package in _PACKAGES}


@cache
def version_of(package: str) -> str:
    """Returns the version of a package, in words where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
