"""What a result was made with, so that it can be made again."""

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("candor-forecast", "numpy", "pandas", "pyarrow", "scipy", "torch")


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that numbers depend on; nothing is imported for it."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
