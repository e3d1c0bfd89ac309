"""Writing that is all or nothing, and checksums of what was written."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from candor.errors import InputError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a temporary sibling of `path` that replaces it only when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _flush_to_disk(temporary)
        temporary.chmod(0o644)  # mkstemp makes files only their owner can read
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yields a temporary folder that takes the place of `path` only when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush_to_disk(file)
        temporary.chmod(0o755)
        _swap_in(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _swap_in(temporary: Path, path: Path) -> None:
    """Puts the new folder where the old one was; the old one goes only after the new one stands."""
    if not path.exists():
        temporary.replace(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    path.replace(old / "was")
    temporary.replace(path)
    shutil.rmtree(old)


def _flush_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_json(path: Path, content: Any) -> None:
    """Writes readable JSON atomically; NaN has no place in JSON and is refused."""
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file, or says in plain words why it cannot."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("the file is not there", where=str(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"the file is not readable JSON ({error})", where=str(path)) from None


def sha256_of_file(path: Path) -> str:
    """Returns the SHA-256 of a file's bytes, read in pieces."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
