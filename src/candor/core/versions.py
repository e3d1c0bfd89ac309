"""What a result was made with, so that it can be made again."""

import platform
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("candor-forecast", "numpy", "pandas", "pyarrow", "scipy", "torch")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on; nothing is imported for it."""
    return {"python": platform.python_version()} | {package: version_of(package) for package in _PACKAGES}


@cache
def version_of(package: str) -> str:
    """Return the version of a package, in words where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@cache
def code_checksum() -> str:
    """Return the SHA-256 of this package's code, which in a clone changes between versions."""
    package, found = Path(__file__).parents[1], sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()
